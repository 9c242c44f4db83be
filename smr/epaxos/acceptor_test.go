package epaxos

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
	"github.com/foresay/foresay/smr/smrtest"
)

// onDisk starts replica 2 of three with a disk, and admits it.
func onDisk(t *testing.T, disk *smrtest.Disk) (*replica, *protocol.Env[smr.Message]) {
	t.Helper()
	cfg := smr.ReplicaConfig{ID: 2, Members: smrtest.Group(3), Machine: newRegisters(nil), RoundTrip: trip}
	r, env := smrtest.OnDisk(t, disk, newReplica, cfg)
	disk.Admit(r, env, cfg, r.Admission.Own())
	return r, env
}

// TestInstancesSurviveRestart has a replica vote and promise at random, with snapshots that rewrite
// its log, and compares with it what is there after a crash. What was voted for stays with the
// ballot of the vote, whatever was promised since.
func TestInstancesSurviveRestart(t *testing.T) {
	for seed := range uint64(200) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		var disk smrtest.Disk
		r, env := onDisk(t, &disk)
		own := r.head()
		for n := range uint64(1 + rnd.IntN(25)) {
			id := instanceID{1, 1 + uint64(rnd.IntN(6))}
			b, deps := kit.NewBallot(kit.Ballot(rnd.IntN(4))<<32, 1), deps{id.Index - 1, 0, 0}
			switch rnd.IntN(5) {
			case 0, 1:
				r.Receive(env, 1, kit.Letter{Disk: 1, Msg: preAccept{head: own, ID: id, Cmd: workOn("c", "k"), Deps: deps}})
			case 2:
				r.Receive(env, 1, kit.Letter{Disk: 1, Msg: accept{head: own, ID: id, Ballot: b, Cmd: workOn("c", "k"), Deps: deps}})
			case 3:
				r.Receive(env, 1, kit.Letter{Disk: 1, Msg: recover{head: own, ID: id, Ballot: b}})
			case 4:
				if n > 10 {
					r.rewrite(env)
				}
			}
			disk.Write(env, 0)
		}
		before := r
		r, _ = onDisk(t, &disk)
		for x := uint64(1); x <= 6; x++ {
			a, b := before.find(instanceID{1, x}), r.find(instanceID{1, x})
			if a.phase != b.phase || a.ballot != b.ballot || a.voted != b.voted || a.nothing != b.nothing ||
				!slices.Equal(a.init, b.init) || !slices.Equal(a.deps, b.deps) || (a.cmd == nil) != (b.cmd == nil) {
				t.Errorf("seed %d: %v after a crash: %+v, before: %+v", seed, a.id, *b, *a)
			}
		}
	}
}

// TestNoVoteBelowPromise: who has promised a ballot votes for nothing in the proposer's own, not
// even first.
func TestNoVoteBelowPromise(t *testing.T) {
	var disk smrtest.Disk
	r, env := onDisk(t, &disk)
	id := instanceID{1, 1}
	r.Receive(env, 3, kit.Letter{Disk: 3, Msg: recover{head: r.head(), ID: id, Ballot: kit.NewBallot(0, 3)}})
	disk.Write(env, 0)
	r.Receive(env, 1, kit.Letter{Disk: 1, Msg: preAccept{head: r.head(), ID: id, Cmd: workOn("c", "k"),
		Deps: make(deps, 3)}})
	refused := slices.ContainsFunc(env.Out, func(e protocol.Effect[smr.Message]) bool {
		_, ok := kit.Inside(e.Msg).(refusal)
		return ok && e.To == 1
	})
	if i := r.find(id); i.phase != phaseUnknown || !refused {
		t.Errorf("it is %v, and told %+v", i.phase, env.Out)
	}
}

// TestAcceptorAddsNothingOfTheRow: an acceptor that hears of a row's instances in another order
// agrees all the same with the first one: it cannot depend on those behind.
func TestAcceptorAddsNothingOfTheRow(t *testing.T) {
	var disk smrtest.Disk
	r, env := onDisk(t, &disk)
	for _, index := range []uint64{2, 1} {
		m := preAccept{head: r.head(), ID: instanceID{1, index}, Cmd: workOn("c", "k"), Deps: deps{index - 1, 0, 0}}
		r.Receive(env, 1, kit.Letter{Disk: 1, Msg: m})
		if i := r.find(m.ID); !slices.Equal(i.deps, m.Deps) {
			t.Errorf("%v depends on %v, want %v", m.ID, i.deps, m.Deps)
		}
	}
}

// TestValidateNotesTheProposal: who was asked whether something speaks against a proposal has what
// comes later depend on it.
func TestValidateNotesTheProposal(t *testing.T) {
	var disk smrtest.Disk
	r, env := onDisk(t, &disk)
	c := instanceID{1, 1}
	r.Receive(env, 3, kit.Letter{Disk: 3, Msg: validate{head: r.head(), ID: c, Ballot: kit.NewBallot(0, 3),
		Cmd: workOn("c", "k"), Deps: make(deps, 3)}})
	disk.Write(env, 0)
	r.Receive(env, 3, kit.Letter{Disk: 3, Msg: preAccept{head: r.head(), ID: instanceID{3, 1},
		Cmd: workOn("dd", "k"), Deps: make(deps, 3)}})
	if d := r.find(instanceID{3, 1}).deps; !d.has(r.find(c)) {
		t.Errorf("a command that conflicts depends on %v, want on %v too", d, c)
	}
}

// TestCausalBound: a command's stamp is above what its client names.
func TestCausalBound(t *testing.T) {
	var disk smrtest.Disk
	r, env := onDisk(t, &disk)
	r.Receive(env, 77, kit.Request{After: 100, Session: 1, Acked: 1,
		Commands: []kit.RequestedCommand{{Seq: 1, Command: set("v", "k")}}})
	r.Expire(env, kit.FlushTimer{})
	if i := r.find(instanceID{2, 1}); i.cmd == nil || i.cmd.Stamp <= 100 {
		t.Errorf("the command is %+v, want its stamp above 100", i.cmd)
	}
}

// TestClientIsCausal: the requests of a client come after all that its calls were told of, or after
// what they ask for if that is later.
func TestClientIsCausal(t *testing.T) {
	c, err := newClient(smr.ClientConfig{ID: 9, Members: smrtest.Group(3), Nearest: 1})
	if err != nil {
		t.Fatal(err)
	}
	env := protocol.NewEnv[smr.Message](nil, 1, rand.New(rand.NewPCG(1, 1)))
	env.Begin(0)
	c.Start(env, nil)
	open := sentTo[kit.OpenRequest](t, env, 1)
	c.Receive(env, 1, kit.OpenReply{Nonce: open.Nonce, Session: 4, Window: 10})
	told := []kit.CommandReply{{Seq: 1, Outcome: smr.Committed, Slot: 12}}
	for i, tc := range []struct{ asks, want smr.Slot }{{5, 5}, {7, 12}, {20, 20}} {
		env.Begin(0)
		c.Receive(env, protocol.App, smr.Call{ID: smr.CallID(i) + 1, Kind: smr.Execute, After: tc.asks})
		c.Expire(env, kit.FlushTimer{})
		if req := sentTo[kit.Request](t, env, 1); req.After != tc.want {
			t.Errorf("request %d comes after slot %d, want %d", i+1, req.After, tc.want)
		}
		c.Receive(env, 1, kit.Replies{Session: 4, Items: told})
	}
}

// sentTo returns the message of a type that was sent to a node.
func sentTo[M smr.Message](t *testing.T, env *protocol.Env[smr.Message], to protocol.ID) M {
	t.Helper()
	for _, e := range env.Out {
		if m, ok := e.Msg.(M); ok && e.To == to {
			return m
		}
	}
	t.Fatalf("node %d is not sent the message: %+v", to, env.Out)
	panic("unreachable")
}

// TestLackingIsAnsweredInParts: one that was away lacks many commands and asks for all of them when
// it is told what was decided. It gets as many in a round trip as may be under way, and the others
// when it asks again.
func TestLackingIsAnsweredInParts(t *testing.T) {
	const instances, size, bound = 200, 64 << 10, 1 << 20
	var disk smrtest.Disk
	r, env := onDisk(t, &disk)
	r.Cfg.MaxUnderwayBytes = bound
	own := r.head()
	for k := range uint64(instances) {
		c := workOn("c", "k")
		c.Entries[0].Command = make([]byte, size)
		r.Receive(env, 1, kit.Letter{Disk: 1, Msg: commit{head: own, ID: instanceID{1, k + 1}, Cmd: c, Deps: deps{k, 0, 0}}})
		disk.Write(env, 0)
	}
	got := map[uint64]bool{}
	ask := func(now time.Duration) (sent int) {
		for k := range uint64(instances) {
			if got[k+1] {
				continue
			}
			env.Begin(now)
			r.Receive(env, 3, kit.Letter{Disk: 3, Msg: lacking{head: own, ID: instanceID{1, k + 1}}})
			for _, e := range env.Out {
				if m, ok := kit.Inside(e.Msg).(commit); ok && e.To == 3 && m.Cmd != nil {
					got[m.ID.Index] = true
					sent += kit.CommandBytes(m.Cmd.Entries)
				}
			}
		}
		return sent
	}
	for n, now := 0, time.Second; len(got) < instances; n, now = n+1, now+r.Tempo.Times(1) {
		if sent := ask(now); sent < bound/2 || sent > bound+size {
			if len(got) < instances {
				t.Fatalf("in round trip %d %d bytes are sent; %d of %d commands are there", n, sent, len(got), instances)
			}
		}
		if again := ask(now + r.Tempo.Times(0.5)); again != 0 {
			t.Fatalf("%d bytes are sent beyond the bound within a round trip", again)
		}
	}
}
