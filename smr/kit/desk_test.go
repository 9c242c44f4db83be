package kit

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
)

// sentTo returns what a call sent, but to the application.
func sentTo(env *protocol.Env[smr.Message]) []letter {
	var out []letter
	for _, e := range env.Out {
		if e.Kind == protocol.KindSend || e.Kind == protocol.KindSendAhead {
			out = append(out, letter{to: e.To, msg: e.Msg})
		}
	}
	return out
}

func newDesk(t *testing.T, maxPending int) (*Desk, *State, *protocol.Env[smr.Message]) {
	t.Helper()
	cfg, err := smr.ReplicaConfig{ID: 1, Members: group(1, 2, 3), Machine: &journal{},
		MaxPending: maxPending}.WithDefaults()
	if err != nil {
		t.Fatal(err)
	}
	state := NewState(cfg.Machine, cfg.Members)
	env := protocol.NewEnv[smr.Message](nil, 1, nil)
	env.Begin(0)
	return NewDesk(cfg, state, NewAdmission(cfg, state)), state, env
}

// TestDeskTellsHowLongItTook: of each command that was taken here, once, whatever comes of it.
func TestDeskTellsHowLongItTook(t *testing.T) {
	d, state, env := newDesk(t, 9)
	var told []string
	d.cfg.Executed = func(o smr.Outcome, took time.Duration) { told = append(told, fmt.Sprint(o, " ", took)) }
	open := d.Take(env, 9, OpenRequest{Nonce: 5}, nil)[0]
	d.Applied(env, open, state.Apply(1, open))
	req := Request{Session: 1, Acked: 1, Commands: []RequestedCommand{{Seq: 1}, {Seq: 2}}}
	env.Begin(10 * time.Millisecond)
	entries := d.Take(env, 9, req, nil)
	env.Begin(20 * time.Millisecond)
	entries = d.Take(env, 9, req, entries) // again
	entries = append(d.Take(env, 9, Request{Session: 2, Acked: 1, Commands: req.Commands[:1]}, entries),
		Entry{Kind: Command, Client: 8, Session: 1, Seq: 3})
	env.Begin(28 * time.Millisecond)
	for i, e := range entries {
		d.Applied(env, e, state.Apply(smr.Slot(i+2), e))
	}
	want := []string{fmt.Sprint(smr.Committed, " 18ms"), fmt.Sprint(smr.Committed, " 18ms"),
		fmt.Sprint(smr.Unknown, " 8ms")}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Errorf("told of (-want +got):\n%s", diff)
	}
}

// TestDeskForgetsBytes: what cannot be proposed is given back with the room that it took.
func TestDeskForgetsBytes(t *testing.T) {
	d, state, env := newDesk(t, 9)
	d.cfg.MaxPendingBytes = 4
	open := d.Take(env, 9, OpenRequest{Nonce: 5}, nil)[0]
	d.Applied(env, open, state.Apply(1, open))
	for seq := Seq(1); seq < 5; seq++ {
		entries := d.Take(env, 9, Request{Session: 1, Acked: 1,
			Commands: []RequestedCommand{{Seq: seq, Command: []byte("123")}}}, nil)
		if len(entries) != 1 {
			t.Fatalf("command %d is not taken: the desk has %d bytes", seq, d.bytes)
		}
		d.GiveBack(env, entries)
	}
}

func TestDeskTakesOnce(t *testing.T) {
	d, state, env := newDesk(t, 3)
	entries := d.Take(env, 9, OpenRequest{Nonce: 5}, nil)
	entries = d.Take(env, 9, OpenRequest{Nonce: 5}, entries)
	if len(entries) != 1 || entries[0].Open.Window != 3 {
		t.Fatalf("entries %v", entries)
	}
	d.Applied(env, entries[0], state.Apply(1, entries[0]))
	req := Request{Session: 1, Acked: 1, Commands: []RequestedCommand{{Seq: 1, Command: []byte("a")},
		{Seq: 2, Brief: true, Command: []byte("b")}}}
	entries = d.Take(env, 9, req, nil)
	if more := d.Take(env, 9, req, nil); len(entries) != 2 || len(more) != 0 {
		t.Fatalf("entries %v, and again %v", entries, more)
	}
	req.Commands = append(req.Commands, RequestedCommand{Seq: 3}, RequestedCommand{Seq: 4})
	entries = d.Take(env, 9, req, entries)
	if len(entries) != 3 || d.Taken() != 3 {
		t.Errorf("entries %v of %d taken", entries, d.Taken())
	}
	for i, e := range entries {
		d.Applied(env, e, state.Apply(smr.Slot(i+2), e))
	}
	d.Flush(env)
	d.Flush(env)
	if d.Taken() != 0 {
		t.Errorf("%d are taken after all were applied", d.Taken())
	}
	again := d.Take(env, 9, Request{Session: 1, Acked: 1, Commands: req.Commands[:1]}, nil)
	d.Flush(env)
	if len(again) != 0 {
		t.Errorf("an executed command was taken again")
	}
	want := []letter{
		{to: 9, msg: OpenReply{Nonce: 5, Session: 1, Window: 3}},
		{to: 9, msg: Busy{Session: 1, Seqs: []Seq{4}}},
		{to: 9, msg: Replies{Session: 1, Items: []CommandReply{
			{Seq: 1, Outcome: smr.Committed, Slot: 2, Result: []byte("1: a")},
			{Seq: 2, Outcome: smr.Committed, Slot: 3}, // brief
			{Seq: 3, Outcome: smr.Committed, Slot: 4, Result: []byte("3: ")},
		}}},
		{to: 9, msg: Replies{Session: 1, Items: []CommandReply{{Seq: 1, Outcome: smr.Committed, Slot: 2,
			Result: []byte("1: a")}}}},
	}
	if diff := cmp.Diff(want, sentTo(env), cmp.AllowUnexported(letter{})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestDeskKnowsJoiners(t *testing.T) {
	d, _, env := newDesk(t, 3)
	add := ChangeRequest{Session: 1, Seq: 1, Acked: 1, Change: smr.Change{Add: smr.Member{ID: 4}}}
	if entries := d.TakeChange(env, 9, add, nil); len(entries) != 0 {
		t.Errorf("a replica that nobody knows is taken: %v", entries)
	}
	if sent := sentTo(env); len(sent) != 1 || sent[0].msg.(NotYet).Reason == "" {
		t.Errorf("sent %v", sent)
	}
	d.known.Hello(env, 4, Hello{Disk: 77, Join: true})
	entries := d.TakeChange(env, 9, add, nil)
	if len(entries) != 1 || entries[0].Members.Incarnation != 77 {
		t.Errorf("entries %v", entries)
	}
	for seq := Seq(2); seq < 5; seq++ {
		entries = d.TakeChange(env, 9, ChangeRequest{Session: 1, Seq: seq, Acked: 1, Change: smr.Change{Remove: 3}},
			entries)
	}
	if sent := sentTo(env); len(entries) != 3 || len(sent[len(sent)-1].msg.(Busy).Seqs) != 1 {
		t.Errorf("four changes with room for three: %d are taken", len(entries))
	}
}

// A desk takes commands of so many bytes, or a larger one alone, and has room again when they were
// applied.
func TestDeskBoundsBytes(t *testing.T) {
	d, state, env := newDesk(t, 9)
	d.cfg.MaxPendingBytes = 10
	open := d.Take(env, 9, OpenRequest{Nonce: 5}, nil)[0]
	d.Applied(env, open, state.Apply(1, open))
	slot := smr.Slot(1)
	for _, c := range []struct {
		bytes []int
		taken int
	}{{[]int{20, 1}, 1}, {[]int{6, 4, 1}, 2}, {[]int{6, 5}, 1}} {
		req := Request{Session: 1, Acked: 1}
		for i, n := range c.bytes {
			req.Commands = append(req.Commands, RequestedCommand{Seq: Seq(10*slot) + Seq(i), Command: make([]byte, n)})
		}
		env.Begin(0)
		d.cfg.MaxPending = 1000
		state.sessions.byID[1].window = 1000
		entries := d.Take(env, 9, req, nil)
		busy, _ := sentTo(env)[0].msg.(Busy)
		if len(entries) != c.taken || len(busy.Seqs) != len(c.bytes)-c.taken {
			t.Errorf("of %v bytes %d were taken, and %v told to wait; want %d taken", c.bytes, len(entries), busy.Seqs, c.taken)
		}
		for _, e := range entries {
			slot++
			d.Applied(env, e, state.Apply(slot, e))
		}
	}
	if d.bytes != 0 {
		t.Errorf("%d bytes are pending of nothing", d.bytes)
	}
}
