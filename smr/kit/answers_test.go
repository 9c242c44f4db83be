package kit

import (
	"bytes"
	"strings"
	"testing"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
)

// echo is a state machine whose results are the commands.
type echo struct{ journal }

func (e *echo) Apply(command []byte) []byte {
	e.journal.Apply(command)
	return command
}

// TestAnswersAreBoundedInBytes: results that no client acknowledges are forgotten, first those of
// who was silent for the longest time; that the commands were executed is not.
func TestAnswersAreBoundedInBytes(t *testing.T) {
	machine := &echo{}
	cfg, err := smr.ReplicaConfig{ID: 1, Members: group(1), Machine: machine, MaxAnswerBytes: 1000}.WithDefaults()
	if err != nil {
		t.Fatal(err)
	}
	s := NewState(machine, cfg.Members)
	d := NewDesk(cfg, s, NewAdmission(cfg, s))
	slot := smr.Slot(0)
	apply := func(e Entry) Reply {
		slot++
		r := s.Apply(slot, e)
		if err := s.Check(); err != nil {
			t.Fatal(err)
		}
		if s.sessions.bytes > 1000 {
			t.Fatalf("%d bytes of results are kept", s.sessions.bytes)
		}
		return r
	}
	for client := range protocol.ID(3) {
		apply(Entry{Kind: OpenSession, Client: 10 + client, Seq: 1, Open: &Open{MaxSessions: 9, Window: 100}})
	}
	body := func(n int) []byte { return bytes.Repeat([]byte{'x'}, n) }
	run := func(client protocol.ID, seq Seq, n int) Entry {
		e := Entry{Kind: Command, Client: client, Session: SessionID(client - 9), Seq: seq, Acked: 1, Command: body(n)}
		if r := apply(e); r.Outcome != smr.Committed || len(r.Result) != n {
			t.Fatalf("%v: %v with %d bytes", e, r.Outcome, len(r.Result))
		}
		return e
	}
	silent := []Entry{run(10, 1, 300), run(10, 2, 1)}
	first := run(11, 1, 300)
	run(12, 1, 300)
	last := run(11, 2, 300) // one too many
	kept := func(e Entry, want bool) {
		t.Helper()
		r, ok := s.Seen(e)
		if !ok || r.Outcome != smr.Committed || len(r.Result) > 0 != want {
			t.Errorf("%v: seen %v, %v, %d bytes of the result, want them: %v", e, ok, r.Outcome, len(r.Result), want)
		}
	}
	kept(silent[0], false)
	kept(silent[1], false)
	kept(first, true)
	kept(last, true)

	told := func(brief bool) CommandReply {
		env := protocol.NewEnv[smr.Message](nil, 1, nil)
		env.Begin(0)
		d.Take(env, 10, Request{Session: 1, Acked: 1,
			Commands: []RequestedCommand{{Seq: 1, Brief: brief, Command: silent[0].Command}}}, nil)
		d.Flush(env)
		return env.Out[0].Msg.(Replies).Items[0]
	}
	if r := told(false); r.Outcome != smr.Unknown || !strings.Contains(r.Reason, "executed at slot 4") ||
		!strings.Contains(r.Reason, "forgotten") {
		t.Errorf("who wants the result is told %+v", r)
	}
	if r := told(true); r.Outcome != smr.Committed || r.Reason != "" {
		t.Errorf("who wants none is told %+v", r)
	}
	before := len(machine.commands)
	if apply(silent[0]); len(machine.commands) != before {
		t.Error("a command was executed again")
	}

	image, err := s.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Restore(image); err != nil {
		t.Fatal(err)
	}
	kept(silent[0], false)
	kept(last, true)
	large := run(12, 2, 2000-1000) // alone it fills all
	kept(large, true)
	kept(last, false)
}

// TestOpenedSessionsAreSeen: a request for a session that was opened need not be proposed again,
// unless the session has had to make room for others.
func TestOpenedSessionsAreSeen(t *testing.T) {
	s := NewState(&journal{}, group(1))
	limits := Open{MaxSessions: 1, Window: 10}
	request := Entry{Kind: OpenSession, Client: 5, Seq: 1, Open: &limits}
	if r, ok := s.Seen(request); ok {
		t.Errorf("before it is opened: %+v", r)
	}
	id := opened(t, s, 1, 5, 1, limits)
	if r, ok := s.Seen(request); !ok || r.Session != id || r.Window != 10 {
		t.Errorf("an opened session is seen as %+v, %v; want session %d", r, ok, id)
	}
	opened(t, s, 2, 6, 1, limits)
	if r, ok := s.Seen(request); ok {
		t.Errorf("after it has made room: %+v", r)
	}
}
