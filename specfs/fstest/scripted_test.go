package fstest

import (
	"testing"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/specfs"
	"github.com/foresay/foresay/specfs/view"
)

// scripted is a world whose operations a test makes one by one.
type scripted struct {
	*World
	t    *testing.T
	tag  uint64
	done map[uint64]specfs.Result
}

func newScripted(t *testing.T, lease time.Duration, systems ...view.System) *scripted {
	t.Helper()
	return newScriptedOf(t, Config{Systems: systems, Lease: lease})
}

func newScriptedOf(t *testing.T, c Config) *scripted {
	t.Helper()
	c.Seed = 1
	w, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	s := &scripted{World: w, t: t, done: map[uint64]specfs.Result{}}
	w.script = func(_ protocol.ID, msg specfs.Message) {
		if m, ok := msg.(view.Done); ok {
			s.done[m.Tag] = m.Result
		}
	}
	return s
}

// ask makes an operation at a client, the first is 0, and returns its tag.
func (s *scripted) ask(client int, op specfs.Op) uint64 {
	s.tag++
	s.sim.Deliver(s.clients[client], view.Do{Tag: s.tag, Op: op})
	return s.tag
}

// await lets time pass until an operation is done, and returns its result and how long that took.
func (s *scripted) await(tag uint64) (specfs.Result, time.Duration) {
	s.t.Helper()
	began := s.sim.Now()
	if err := s.sim.RunUntil(time.Minute, func() bool { _, ok := s.done[tag]; return ok }); err != nil {
		s.t.Fatal(err)
	}
	return s.done[tag], s.sim.Now() - began
}

func (s *scripted) do(client int, op specfs.Op) (specfs.Result, time.Duration) {
	s.t.Helper()
	r, took := s.await(s.ask(client, op))
	if r.Errno != specfs.OK {
		s.t.Fatalf("%#v: %v", op, r.Errno)
	}
	return r, took
}

// shared makes a file that client 0 has written and client 1 has read.
func (s *scripted) shared() specfs.ID {
	s.t.Helper()
	made, _ := s.do(0, specfs.Make{Parent: specfs.Root, Name: "f", Kind: specfs.File, Mode: 0o666})
	s.do(0, specfs.WriteAt{ID: made.ID, Data: []byte("old")})
	s.do(1, specfs.ReadAt{ID: made.ID, Length: 9})
	return made.ID
}

// TestHeldIsFree: what is held under a lease costs no message, and no time.
func TestHeldIsFree(t *testing.T) {
	s := newScripted(t, 4*time.Second, view.Callback(), view.Callback())
	f := s.shared()
	for range 100 {
		if r, took := s.do(1, specfs.ReadAt{ID: f, Length: 9}); string(r.Data) != "old" || took != 0 {
			t.Fatalf("read %q in %v", r.Data, took)
		}
	}
	s = newScripted(t, 4*time.Second, view.BlueFSSync(), view.BlueFSSync())
	f = s.shared()
	if _, took := s.do(1, specfs.ReadAt{ID: f, Length: 9}); took < 30*time.Millisecond {
		t.Errorf("an operation that is verified took %v", took)
	}
}

// TestHolderDelays: a change waits for who holds what it changes: a round trip if that answers, and
// for a lease if it does not. Who comes back then sees the change.
func TestHolderDelays(t *testing.T) {
	const lease = 4 * time.Second
	s := newScripted(t, lease, view.Callback(), view.Callback())
	f := s.shared()
	write := func(text string) specfs.Op { return specfs.WriteAt{ID: f, Data: []byte(text)} }
	if _, took := s.do(0, write("new")); took < 60*time.Millisecond || took > 70*time.Millisecond {
		t.Errorf("a change that is told took %v, two round trips are 60ms", took)
	}
	if r, _ := s.do(1, specfs.ReadAt{ID: f, Length: 9}); string(r.Data) != "new" {
		t.Errorf("then the other client read %q", r.Data)
	}
	s.sim.Cut(serverID, s.clients[1])
	s.sim.Cut(s.clients[1], serverID)
	tag := s.ask(0, write("own"))
	if r, _ := s.do(1, specfs.ReadAt{ID: f, Length: 9}); string(r.Data) != "new" {
		t.Errorf("a client that is cut off read %q under its lease", r.Data)
	}
	if _, took := s.await(tag); took < lease/2 || took > 2*lease {
		t.Errorf("a change of what is held by a client that is cut off took %v", took)
	}
	read := s.ask(1, specfs.ReadAt{ID: f, Length: 9})
	s.sim.Mend(serverID, s.clients[1])
	s.sim.Mend(s.clients[1], serverID)
	if r, _ := s.await(read); string(r.Data) != "own" {
		t.Errorf("back again it read %q", r.Data)
	}
}

// TestRestartWaitsForLeases: a server that has restarted does not know what clients hold, so it
// changes nothing until they have come back, or their leases are over.
func TestRestartWaitsForLeases(t *testing.T) {
	const lease = 4 * time.Second
	s := newScripted(t, lease, view.Callback(), view.Callback())
	f := s.shared()
	s.sim.Cut(serverID, s.clients[1])
	s.sim.Cut(s.clients[1], serverID)
	s.sim.Crash(serverID, sim.KeepAll)
	s.sim.Restart(serverID)
	tag := s.ask(0, specfs.WriteAt{ID: f, Data: []byte("new")})
	for range 20 {
		if err := s.sim.Run(100 * time.Millisecond); err != nil {
			t.Fatal(err)
		}
		read := s.ask(1, specfs.ReadAt{ID: f, Length: 9})
		if err := s.sim.Run(0); err != nil {
			t.Fatal(err)
		}
		_, changed := s.done[tag]
		if r, ok := s.done[read]; ok && changed && string(r.Data) == "old" {
			t.Fatal("a client reads under its lease what has changed")
		}
	}
	if _, took := s.await(tag); took > 2*lease {
		t.Errorf("the change took %v more", took)
	}
}

// TestAppendsOfTwo: clients that append at the same time both find their data whole.
func TestAppendsOfTwo(t *testing.T) {
	s := newScripted(t, 4*time.Second, view.Callback(), view.BlueFSSync())
	f := s.shared()
	a := s.ask(0, specfs.WriteAt{ID: f, Append: true, Data: []byte("<a>")})
	b := s.ask(1, specfs.WriteAt{ID: f, Append: true, Data: []byte("<b>")})
	s.await(a)
	s.await(b)
	if r, _ := s.do(1, specfs.ReadAt{ID: f, Length: 99}); string(r.Data) != "old<a><b>" && string(r.Data) != "old<b><a>" {
		t.Errorf("the file has %q", r.Data)
	}
}
