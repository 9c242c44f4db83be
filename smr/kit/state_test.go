package kit

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kv"
)

// journal is a state machine that keeps each command it was given, in order.
type journal struct {
	commands [][]byte
	fail     error
}

func (j *journal) Apply(command []byte) []byte {
	j.commands = append(j.commands, slices.Clone(command))
	return fmt.Appendf(nil, "%d: %s", len(j.commands), command)
}

func (j *journal) Read([]byte) []byte { return fmt.Append(nil, len(j.commands)) }

func (j *journal) Snapshot(w io.Writer) error {
	if j.fail != nil {
		return j.fail
	}
	_, err := w.Write(bytes.Join(j.commands, []byte("\n")))
	return err
}

func (j *journal) Restore(r io.Reader) error {
	b, err := io.ReadAll(r)
	if err != nil || j.fail != nil {
		return errors.Join(err, j.fail)
	}
	j.commands = nil
	if len(b) > 0 {
		j.commands = bytes.Split(b, []byte("\n"))
	}
	return nil
}

func group(ids ...protocol.ID) []smr.Member {
	var out []smr.Member
	for _, id := range ids {
		out = append(out, smr.Member{ID: id})
	}
	return out
}

func opened(t *testing.T, s *State, slot smr.Slot, client protocol.ID, nonce Seq, limits Open) SessionID {
	t.Helper()
	r := s.Apply(slot, Entry{Kind: OpenSession, Client: client, Seq: nonce, Open: &limits})
	if r.Outcome != smr.Committed || r.Session == 0 || r.Window != limits.Window {
		t.Fatalf("open at slot %d: %+v", slot, r)
	}
	return r.Session
}

func command(client protocol.ID, session SessionID, seq, acked Seq, body string) Entry {
	return Entry{Kind: Command, Client: client, Session: session, Seq: seq, Acked: acked, Command: []byte(body)}
}

func TestCommandAppliesOnce(t *testing.T) {
	j := &journal{}
	s := NewState(j, group(1, 2, 3))
	id := opened(t, s, 1, 9, 77, Open{MaxSessions: 10, Window: 4})
	if again := s.Apply(2, Entry{Kind: OpenSession, Client: 9, Seq: 77,
		Open: &Open{MaxSessions: 10, Window: 4}}); again.Session != id {
		t.Errorf("the same request opened session %d, and then %d", id, again.Session)
	}
	first := s.Apply(3, command(9, id, 2, 1, "b"))
	for _, c := range []struct {
		what    string
		entry   Entry
		outcome smr.Outcome
		slot    smr.Slot
		result  string
		gone    bool
	}{
		{"the same again", command(9, id, 2, 1, "b"), smr.Committed, 3, "1: b", false},
		{"an earlier one that comes later", command(9, id, 1, 1, "a"), smr.Committed, 5, "2: a", false},
		{"one that is acknowledged meanwhile", command(9, id, 3, 3, "c"), smr.Committed, 6, "3: c", false},
		{"an acknowledged one again", command(9, id, 2, 1, "b"), smr.Unknown, 0, "", false},
		{"one beyond the window", command(9, id, 7, 3, "x"), smr.Rejected, 0, "", false},
		{"the last one in the window", command(9, id, 6, 3, "d"), smr.Committed, 9, "4: d", false},
		{"one of another client's session", command(8, id, 4, 3, "x"), smr.Rejected, 0, "", false},
		{"one of a session that never was", command(9, id+1, 1, 1, "x"), smr.Unknown, 0, "", true},
	} {
		r := s.Apply(s.Applied()+1, c.entry)
		if r.Outcome != c.outcome || r.Slot != c.slot || string(r.Result) != c.result || r.Gone != c.gone {
			t.Errorf("%s: %+v", c.what, r)
		}
		if err := s.Check(); err != nil {
			t.Errorf("%s: %v", c.what, err)
		}
	}
	if string(first.Result) != "1: b" || string(bytes.Join(j.commands, nil)) != "bacd" {
		t.Errorf("first %q; the machine got %q", first.Result, j.commands)
	}
}

// TestEvictionIsByUse opens more sessions than there may be. The one that was unused for the
// longest time goes, and its commands are never executed again.
func TestEvictionIsByUse(t *testing.T) {
	j := &journal{}
	s := NewState(j, group(1))
	limits := Open{MaxSessions: 2, Window: 10}
	a := opened(t, s, 1, 5, 1, limits)
	b := opened(t, s, 2, 6, 1, limits)
	s.Apply(3, command(5, a, 1, 1, "a1"))
	c := opened(t, s, 4, 7, 1, limits)
	for session, want := range map[SessionID]smr.Outcome{a: smr.Committed, b: smr.Unknown, c: smr.Committed} {
		client := protocol.ID(4 + session)
		if r, ok := s.Seen(command(client, session, 1, 1, "a1")); ok && r.Outcome != want || !ok && want == smr.Unknown {
			t.Errorf("session %d: %+v, %v; want %v", session, r, ok, want)
		}
	}
	r := s.Apply(5, command(6, b, 1, 1, "b1"))
	if r.Outcome != smr.Unknown || !r.Gone || len(j.commands) != 1 {
		t.Errorf("a command of a session that is gone: %+v; the machine got %q", r, j.commands)
	}
	if d := opened(t, s, 6, 6, 1, limits); d <= c {
		t.Errorf("session %d was given again", d)
	}
}

func TestMembersChange(t *testing.T) {
	s := NewState(&journal{}, group(3, 1, 2))
	id := opened(t, s, 1, 9, 1, Open{MaxSessions: 1, Window: 100})
	seq := Seq(0)
	change := func(c smr.Change, disk Incarnation) Reply {
		seq++
		return s.Apply(s.Applied()+1, Entry{
			Kind: ChangeMembers, Client: 9, Session: id, Seq: seq, Acked: 1,
			Members: &MemberChange{Change: c, Incarnation: disk},
		})
	}
	add := smr.Change{Add: smr.Member{ID: 4, Address: "d"}}
	for i, c := range []struct {
		change smr.Change
		disk   Incarnation
		want   smr.Outcome
		reason string
	}{
		{add, 44, smr.Committed, ""},
		{add, 44, smr.Committed, ""}, // is the case already
		{smr.Change{Add: smr.Member{ID: 4, Address: "e"}}, 45, smr.Rejected, "is a member already"},
		{smr.Change{Remove: 7}, 0, smr.Rejected, "is no member"},
		{smr.Change{}, 0, smr.Rejected, "neither"},
		{smr.Change{Add: smr.Member{ID: 5}, Remove: 1}, 0, smr.Rejected, "both"},
		{smr.Change{Remove: 4}, 0, smr.Committed, ""},
		{smr.Change{Remove: 4}, 0, smr.Committed, ""},
		{add, 44, smr.Rejected, "does not come back"},
		{smr.Change{Remove: 1}, 0, smr.Committed, ""},
		{smr.Change{Remove: 2}, 0, smr.Committed, ""},
		{smr.Change{Remove: 3}, 0, smr.Rejected, "last member"},
	} {
		if r := change(c.change, c.disk); r.Outcome != c.want || !strings.Contains(r.Reason, c.reason) {
			t.Errorf("%d, %v: %+v, want %v %q", i, c.change, r, c.want, c.reason)
		}
		if i == 0 {
			if disk, ok := s.Member(4); !ok || disk != 44 || s.Removed(4) {
				t.Errorf("member 4: disk %d, %v", disk, ok)
			}
		}
	}
	if got := s.Members(); !slices.Equal(got, group(3)) || !s.Removed(4) {
		t.Errorf("members %v", got)
	}
	// Who was removed does not come back in a replica that has got the state from another either.
	data, err := s.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	other := NewState(&journal{}, nil)
	if err := other.Restore(data); err != nil {
		t.Fatal(err)
	}
	for _, gone := range []protocol.ID{1, 2, 4} {
		if !other.Removed(gone) || other.Removed(3) {
			t.Errorf("after a snapshot: replica %d is removed %v, 3 %v", gone, other.Removed(gone), other.Removed(3))
		}
	}
	s = other
	if r := change(add, 44); r.Outcome != smr.Rejected || !strings.Contains(r.Reason, "does not come back") {
		t.Errorf("after a snapshot a removed replica is added again: %+v", r)
	}
}

// TestReplicasAreEqual applies random entries, many of them twice, to one state, and to one that is
// thrown away now and then and restored from the other's snapshot. A plain count of what was
// executed reports whether each command was executed once at most.
func TestReplicasAreEqual(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	j := &journal{}
	s, twin := NewState(j, group(1, 2, 3)), NewState(&journal{}, group(3, 2, 1))
	var past []Entry
	for slot := smr.Slot(1); slot < 5000; slot++ {
		e := Entry{Kind: NoOp}
		switch n := rnd.IntN(20); {
		case slot%97 == 1:
			e = Entry{Kind: OpenSession, Client: 9, Seq: Seq(rnd.IntN(50)), Open: &Open{MaxSessions: 4, Window: 8}}
		case n < 12:
			session := s.sessions.last - min(SessionID(rnd.IntN(6)), s.sessions.last)
			base := Seq(1)
			if open := s.sessions.byID[session]; open != nil {
				base = open.acked
			}
			seq := base + Seq(rnd.IntN(9))
			e = command(9, session, seq, min(seq, base+Seq(rnd.IntN(3))), fmt.Sprintf("%d.%d", session, seq))
		case n < 19 && len(past) > 0:
			e = past[rnd.IntN(len(past))]
		}
		past = append(past, e)
		if got, want := s.Apply(slot, e), twin.Apply(slot, e); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("slot %d, %v: %+v and %+v", slot, e, got, want)
		}
		if rnd.IntN(100) == 0 {
			twin = restored(t, s)
		}
	}
	seen := map[string]bool{}
	for _, c := range j.commands {
		if seen[string(c)] {
			t.Errorf("command %s was executed twice", c)
		}
		seen[string(c)] = true
	}
	if len(j.commands) < 500 {
		t.Errorf("%d commands were executed", len(j.commands))
	}
}

func restored(t *testing.T, s *State) *State {
	t.Helper()
	b, err := s.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	r := NewState(&journal{}, nil)
	if err := r.Restore(b); err != nil {
		t.Fatal(err)
	}
	again, err := r.Snapshot()
	if err != nil || !bytes.Equal(b, again) || r.Applied() != s.Applied() {
		t.Fatalf("the restored state at slot %d has another snapshot than that at slot %d (%v)", r.Applied(), s.Applied(),
			err)
	}
	return r
}

func TestDamagedSnapshots(t *testing.T) {
	s := NewState(&journal{}, group(1, 2, 3))
	id := opened(t, s, 1, 9, 1, Open{MaxSessions: 2, Window: 10})
	s.Apply(2, command(9, id, 1, 1, "a"))
	good, err := s.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	for i := range good {
		for _, bad := range [][]byte{good[:i], slices.Concat(good[:i], []byte{good[i] ^ 1}, good[i+1:])} {
			r := NewState(&journal{}, group(7))
			if err := r.Restore(bad); err == nil || !slices.Equal(r.Members(), group(7)) {
				t.Errorf("damaged at byte %d: error %v, members %v", i, err, r.Members())
			}
		}
	}
	newer := slices.Clone(good)
	newer[0] = 9
	if err := NewState(&journal{}, nil).Restore(newer); err == nil || !strings.Contains(err.Error(), "version 9") {
		t.Errorf("a snapshot of version 9: %v", err)
	}
	fault := errors.New("no room")
	if _, err := NewState(&journal{fail: fault}, group(1)).Snapshot(); !errors.Is(err, fault) {
		t.Errorf("the machine's error is %v", err)
	}
	if err := NewState(&journal{fail: fault}, group(1)).Restore(good); !errors.Is(err, fault) {
		t.Errorf("the machine's error is %v", err)
	}
}

// FuzzRestore puts the right checksum behind anything.
func FuzzRestore(f *testing.F) {
	s := NewState(&journal{}, group(1, 2, 3))
	s.Apply(1, Entry{Kind: OpenSession, Client: 9, Seq: 1, Open: &Open{MaxSessions: 2, Window: 10}})
	s.Apply(2, command(9, 1, 1, 1, "a"))
	good, _ := s.Snapshot()
	f.Add(good[:len(good)-4])
	f.Fuzz(func(t *testing.T, b []byte) {
		r := NewState(&journal{}, group(1))
		if err := r.Restore(binary.BigEndian.AppendUint32(b, Checksum(b))); err != nil {
			return
		}
		r.Apply(r.Applied()+1, command(9, 1, 2, 2, "b"))
		if _, err := r.Snapshot(); err != nil {
			t.Error(err)
		}
	})
}

// TestArrangedSessionsGoInOrder opens sessions beyond their number: the one that was said to be
// used least goes.
func TestArrangedSessionsGoInOrder(t *testing.T) {
	s := NewState(kv.New(), []smr.Member{{ID: 1}})
	open := func(slot smr.Slot) SessionID {
		r := s.Apply(slot, Entry{Kind: OpenSession, Client: protocol.ID(slot), Seq: 1,
			Open: &Open{MaxSessions: 3, Window: 10}})
		return r.Session
	}
	gone := func(id SessionID) bool {
		r, ok := s.Seen(Entry{Kind: Command, Client: protocol.ID(id), Session: id, Seq: 1})
		return ok && r.Gone
	}
	for slot := range smr.Slot(3) {
		open(slot + 1)
	}
	ages := map[SessionID]uint64{1: 5, 2: 4, 3: 4}
	s.ArrangeSessions(func(id SessionID) uint64 { return ages[id] })
	open(4)
	if gone(1) || !gone(2) || gone(3) || gone(4) {
		t.Errorf("gone are 1: %v, 2: %v, 3: %v, 4: %v; want the second only", gone(1), gone(2), gone(3), gone(4))
	}
	if err := s.Check(); err != nil {
		t.Error(err)
	}
}
