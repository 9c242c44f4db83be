package fstest

import (
	"testing"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/specfs"
	"github.com/foresay/foresay/specfs/server"
	"github.com/foresay/foresay/specfs/tree"
	"github.com/foresay/foresay/specfs/view"
)

// raw is a client that sends the server whatever the test tells it to, and keeps what it is told.
type raw struct {
	s   *scripted
	got []specfs.Message
}

const rawID protocol.ID = 99

// Start is part of protocol.Node.
func (*raw) Start(*view.Env, []protocol.Record[specfs.Message]) {}

// Receive is part of protocol.Node.
func (r *raw) Receive(env *view.Env, from protocol.ID, msg specfs.Message) {
	if from == protocol.App {
		env.Send(serverID, msg)
		return
	}
	r.got = append(r.got, msg)
}

// Expire is part of protocol.Node.
func (*raw) Expire(*view.Env, protocol.Timer) {}

// addRaw adds a raw client, which has said hello.
func (s *scripted) addRaw() *raw {
	s.t.Helper()
	r := &raw{s: s}
	err := s.sim.Add(sim.Node[specfs.Message]{
		ID: rawID, Site: "client", New: func() protocol.Node[specfs.Message] { return r },
	})
	if err != nil {
		s.t.Fatal(err)
	}
	r.send(specfs.Hello{Token: 1, First: 1})
	return r
}

// send sends messages, and lets them arrive and be answered.
func (r *raw) send(messages ...specfs.Message) {
	r.s.t.Helper()
	for _, m := range messages {
		r.s.sim.Deliver(rawID, m)
	}
	if err := r.s.sim.Run(100 * time.Millisecond); err != nil {
		r.s.t.Fatal(err)
	}
}

// last returns the last message of a kind.
func last[M specfs.Message](r *raw) M {
	r.s.t.Helper()
	for i := len(r.got) - 1; i >= 0; i-- {
		if m, ok := r.got[i].(M); ok {
			return m
		}
	}
	var none M
	r.s.t.Fatalf("no %T came", none)
	return none
}

// principal returns a change of a server's config: everybody is one principal.
func principal(p server.Principal) func(*server.Config) {
	return func(c *server.Config) { c.Principal = func(protocol.ID) (server.Principal, bool) { return p, true } }
}

func assume(n specfs.Number, p specfs.Part, v specfs.Version) specfs.Epoch {
	assumes := []specfs.Assumption{{Part: p, Version: v}}
	return specfs.Epoch{Number: n, Acked: n - 1, Era: specfs.Era(n) << 8, Assumes: assumes}
}

// TestAssumptionOfEverything: no object has a version as a whole.
func TestAssumptionOfEverything(t *testing.T) {
	s := newScripted(t, time.Second, view.Callback())
	r := s.addRaw()
	r.send(assume(1, specfs.Part{ID: specfs.Root}, 1))
	if a := last[specfs.Answer](r); a.Refused != specfs.Unlawful {
		t.Errorf("it is %v", a.Refused)
	}
}

// TestAssumptionsAreNoOracle: who may not look a name up does not learn from an assumption whether
// it is there.
func TestAssumptionsAreNoOracle(t *testing.T) {
	s := newScriptedOf(t, Config{Systems: []view.System{view.Callback()}, Server: func(c *server.Config) {
		c.Principal = func(id protocol.ID) (server.Principal, bool) {
			return server.Principal{Trusted: id != rawID, Cred: specfs.Cred{UID: 7, GID: 7}}, true
		}
	}})
	d, _ := s.do(0, specfs.Make{Parent: specfs.Root, Name: "d", Kind: specfs.Directory, Mode: 0o700})
	s.do(0, specfs.Make{Parent: d.ID, Name: "secret", Kind: specfs.File, Mode: 0o600})
	r := s.addRaw()
	for i, name := range []string{"secret", "nothing"} {
		r.send(assume(specfs.Number(i)+1, specfs.Part{ID: d.ID, Aspect: specfs.Name, Name: name}, 0))
		if a := last[specfs.Answer](r); a.Refused != specfs.WrongVersion {
			t.Errorf("that %s is not there: %v", name, a.Refused)
		}
	}
	r.send(assume(3, specfs.Part{ID: specfs.Root, Aspect: specfs.Name, Name: "e"}, 0))
	if a := last[specfs.Answer](r); a.Refused != specfs.Accepted {
		t.Errorf("what it may know: %v", a.Refused)
	}
}

// TestPrincipal: operations are made by the principal, in the client's prediction too, and one that
// may only read gets the error at once.
func TestPrincipal(t *testing.T) {
	for _, system := range systems() {
		me := specfs.Cred{UID: 7, GID: 8}
		s := newScriptedOf(t, Config{Systems: []view.System{system}, Server: principal(server.Principal{Cred: me})})
		d, _ := s.do(0, specfs.Make{Parent: specfs.Root, Name: "d", Kind: specfs.Directory, Mode: 0o700})
		if a, _ := s.do(0, specfs.GetAttr{ID: d.ID}); a.Attr.UID != me.UID || a.Attr.GID != me.GID {
			t.Errorf("a directory belongs to %d and %d", a.Attr.UID, a.Attr.GID)
		}
		s = newScriptedOf(t, Config{Systems: []view.System{system}, Server: principal(server.Principal{ReadOnly: true})})
		r, _ := s.await(s.ask(0, specfs.Make{Parent: specfs.Root, Name: "f", Kind: specfs.File}))
		if r.Errno != specfs.EROFS {
			t.Errorf("making a file: %v", r.Errno)
		}
	}
}

// TestOwnerMayRemoveWhatNobodyMayRead: a client has to know that a directory is empty.
func TestOwnerMayRemoveWhatNobodyMayRead(t *testing.T) {
	me := server.Principal{Cred: specfs.Cred{UID: 7}}
	s := newScriptedOf(t, Config{Systems: []view.System{view.Callback(), view.Callback()}, Server: principal(me)})
	s.do(0, specfs.Make{Parent: specfs.Root, Name: "d", Kind: specfs.Directory})
	s.do(1, specfs.RemoveDir{Parent: specfs.Root, Name: "d"})
}

// TestBarredAfterRestart: who may not come in any more does not keep a session.
func TestBarredAfterRestart(t *testing.T) {
	barred := false
	s := newScriptedOf(t, Config{Systems: []view.System{view.Callback()}, Server: func(c *server.Config) {
		c.Principal = func(id protocol.ID) (server.Principal, bool) {
			if id == rawID && barred {
				return server.Principal{}, false
			}
			return server.Principal{Cred: specfs.Cred{UID: 7}}, true
		}
	}})
	r := s.addRaw()
	barred = true
	s.sim.Crash(serverID, sim.KeepAll)
	s.sim.Restart(serverID)
	welcomes := len(r.got)
	r.send(specfs.Hello{Token: 1, First: 1})
	for _, m := range r.got[welcomes:] {
		if _, ok := m.(specfs.Welcome); ok {
			t.Error("it comes in")
		}
	}
}

// TestFollowsRefusedAfterHello: a client that says hello before it knows of a refusal does not get
// what it has built on that carried out.
func TestFollowsRefusedAfterHello(t *testing.T) {
	s := newScriptedOf(t, Config{
		Systems: []view.System{view.Callback(), view.Callback()}, Lease: time.Minute,
		Server: func(c *server.Config) { c.MaxWaiting = 2 },
	})
	f := s.shared()
	r := s.addRaw()
	r.send(specfs.Bye{}, specfs.Hello{Token: 2, First: 1, Leases: true})
	session := last[specfs.Welcome](r).Session
	wrong := specfs.Assumption{Part: specfs.Part{ID: f, Aspect: specfs.Meta}, Version: 77}
	r.send(specfs.Epoch{Number: 1, Assumes: []specfs.Assumption{wrong}})
	s.sim.Cut(serverID, s.clients[1])
	s.ask(0, specfs.WriteAt{ID: f, Data: []byte("new")})
	r.send()
	fetch := specfs.Fetch{Wants: tree.Records(specfs.Part{ID: f, Aspect: specfs.Data})}
	r.send(fetch, fetch, fetch) // one too many that wait
	last[specfs.Unknown](r)
	make := specfs.Make{Parent: specfs.Root, Name: "g", New: session.IDs() + 1, Kind: specfs.File}
	r.send(specfs.Hello{Token: 2, First: 1, Leases: true}, specfs.Epoch{Number: 2, Steps: []specfs.Step{{Op: make}}})
	if a := last[specfs.Answer](r); a.Number != 2 || a.Refused != specfs.FollowsRefused {
		t.Errorf("epoch %d is %v", a.Number, a.Refused)
	}
}

// TestFetchBytes: a Fetched is about as long as it may be, whatever is wanted.
func TestFetchBytes(t *testing.T) {
	s := newScriptedOf(t, Config{
		Systems: []view.System{view.BlueFSSync()}, Server: func(c *server.Config) { c.FetchBytes = 1 },
	})
	made, _ := s.do(0, specfs.Make{Parent: specfs.Root, Name: "f", Kind: specfs.File, Mode: 0o666})
	f := made.ID
	s.do(0, specfs.WriteAt{ID: f, Data: make([]byte, 100_000)})
	r := s.addRaw()
	w := tree.Records(specfs.Part{ID: f, Aspect: specfs.Data})[1]
	r.send(specfs.Fetch{Tag: 1, Wants: []specfs.Want{w, w, w, w}})
	if m := last[specfs.Fetched](r); len(m.Facts) != 1 || len(m.Facts[0].Records) != 1 {
		t.Errorf("it has %d facts", len(m.Facts))
	}
}

// TestMaxHeld: of what a client cannot hold it does not believe what it has made itself.
func TestMaxHeld(t *testing.T) {
	s := newScriptedOf(t, Config{
		Systems: []view.System{view.Callback(), view.Callback()}, Server: func(c *server.Config) { c.MaxHeld = 2 },
	})
	s.do(0, specfs.Make{Parent: specfs.Root, Name: "e", Kind: specfs.File, Mode: 0o666})
	made, _ := s.do(0, specfs.Make{Parent: specfs.Root, Name: "f", Kind: specfs.File, Mode: 0o666})
	s.await(s.ask(0, specfs.WriteAt{ID: made.ID, Data: []byte("old")}))
	s.do(1, specfs.WriteAt{ID: made.ID, Data: []byte("new")})
	if r, _ := s.await(s.ask(0, specfs.ReadAt{ID: made.ID, Length: 9})); r.Errno == specfs.OK && string(r.Data) != "new" {
		t.Errorf("it reads %q", r.Data)
	}
}

// TestShorterLease: a server that restarts with a shorter lease waits for the longer ones.
func TestShorterLease(t *testing.T) {
	lease := 10 * time.Second
	s := newScriptedOf(t, Config{
		Systems: []view.System{view.Callback(), view.Callback()}, Server: func(c *server.Config) { c.Lease = lease },
	})
	f := s.shared()
	s.sim.Cut(serverID, s.clients[1])
	s.sim.Cut(s.clients[1], serverID)
	for range 2 {
		lease = time.Second
		s.sim.Crash(serverID, sim.KeepAll)
		s.sim.Restart(serverID)
	}
	if _, took := s.do(0, specfs.WriteAt{ID: f, Data: []byte("new")}); took < 9*time.Second {
		t.Errorf("after %v the server has changed what is held for %v", took, 10*time.Second)
	}
}

// TestMixedTimesGoInCircles: what a client knows of two directories at different times may have
// each in the other.
func TestMixedTimesGoInCircles(t *testing.T) {
	s := newScripted(t, time.Second, view.BlueFSSync(), view.BlueFSSync())
	dir := func(parent specfs.ID, name string) specfs.ID {
		r, _ := s.do(0, specfs.Make{Parent: parent, Name: name, Kind: specfs.Directory, Mode: 0o777})
		return r.ID
	}
	a := dir(specfs.Root, "a")
	b := dir(a, "b")
	dir(specfs.Root, "c")
	s.do(1, specfs.ParentOf{ID: b})
	s.do(0, specfs.Rename{From: a, Name: "b", To: specfs.Root, NewName: "b"})
	s.do(0, specfs.Rename{From: specfs.Root, Name: "a", To: b, NewName: "a"})
	s.do(1, specfs.Rename{From: specfs.Root, Name: "c", To: a, NewName: "c"})
}

// TestAnswersAreBounded: for a client that never says what it has got not all answers are kept.
func TestAnswersAreBounded(t *testing.T) {
	s := newScriptedOf(t, Config{
		Systems: []view.System{view.BlueFSSync()}, Server: func(c *server.Config) { c.MaxWaiting = 4 },
	})
	r := s.addRaw()
	for n := range specfs.Number(9) {
		r.send(specfs.Epoch{Number: n + 1})
	}
	if a := last[specfs.Answer](r); a.Number != 4 {
		t.Errorf("the last answer is of epoch %d", a.Number)
	}
}
