package epaxos

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
	"github.com/foresay/foresay/smr/smrtest"
)

// TestImpossibleMessages gives replicas messages that no right one sends: with rows, indices,
// ballots, stamps, phases and lengths as they like to be. None may panic, hang, or come to a state
// that it finds wrong itself.
func TestImpossibleMessages(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	number := func() uint64 {
		all := []uint64{0, 1, 2, 3, 5, 40, maxAhead + 1, 1 << 32, 1<<62 - 1, 1 << 62, 1<<64 - 1}
		return all[rnd.IntN(len(all))]
	}
	deps := func() deps {
		d := make(deps, []int{3, 3, 3, 3, 0, 2, 9}[rnd.IntN(7)])
		for k := range d {
			d[k] = uint64(rnd.IntN(6))
			if rnd.IntN(20) == 0 {
				d[k] = number()
			}
		}
		return d
	}
	id := func() instanceID {
		return instanceID{protocol.ID(rnd.IntN(5)), []uint64{1, 2, 3, 4, number()}[rnd.IntN(5)]}
	}
	ballot := func() kit.Ballot {
		all := []kit.Ballot{0, kit.NewBallot(0, 2), kit.NewBallot(0, 3), kit.NewBallot(1<<32, 2), kit.Ballot(number())}
		return all[rnd.IntN(len(all))]
	}
	command := func() *command {
		change := &kit.MemberChange{Change: smr.Change{Remove: 3}}
		return []*command{
			{Kind: nothing}, {Kind: fence, Stamp: number()}, {Kind: checkpoint, Stamp: 4}, {Kind: work}, workOn("a", "k"),
			workOn("bb", "k", "l"),
			{Kind: work, Stamp: 3, Entries: []kit.Entry{{Kind: kit.NoOp}, {Kind: kit.OpenSession, Client: 9, Seq: 1,
				Open: &kit.Open{}}}},
			{Kind: work, Stamp: 5, Entries: []kit.Entry{{Kind: kit.Command, Command: []byte("no footprint")},
				{Kind: kit.ChangeMembers, Members: change}}},
		}[rnd.IntN(8)]
	}
	for range 40 {
		th := newTheatre(t, 3)
		h := func(from protocol.ID) head { return head{uint64(rnd.IntN(8)/7 + 1)} }
		for range 40 {
			from := protocol.ID(2 + rnd.IntN(2))
			msgs := []smr.Message{
				preAccept{h(from), id(), command(), deps()},
				preAccept{h(from), instanceID{from, uint64(1 + rnd.IntN(4))}, command(),
					deps()},
				preAccepted{h(from), id(), deps(), true}, accept{h(from), id(), ballot(), command(), deps()},
				accepted{h(from), id(), ballot()}, commit{h(from), id(), command(), deps()}, commit{h(from), id(), nil, deps()},
				lacking{h(from), id()},
				preAccept{h(from), instanceID{from, uint64(1 + rnd.IntN(4))}, nil, deps()},
				accept{h(from), id(), ballot(), nil, deps()},
				recover{h(from), id(), ballot()},
				recovered{h(from), id(), ballot(), uint8(rnd.IntN(4)), ballot(), command(), deps(), deps()},
				validate{h(from), id(), ballot(), command(), deps()}, validated{h(from), id(), ballot(), rnd.IntN(2) == 0,
					[]instanceID{id(), id()}},
				waiting{h(from), id(), number()}, refusal{h(from), id(), ballot()}, news{h(from), deps()},
				fetch{h(from), []span{{1, number(), number()}, {7, 1, 1}, {2, 1, number()}}},
				poll{h(from), number(), []string{"kk"}, rnd.IntN(2) == 0},
				polled{h(from), number(), deps()}, settled{h(from), id()}, kit.Request{After: smr.Slot(number())},
				kit.ReadRequest{Queries: []kit.Query{{ID: 1}}},
				kit.SnapshotChunk{Slot: smr.Slot(number()), Size: 1, Data: []byte{1}}, kit.SnapshotWanted{},
				"no message", nil,
			}
			msg := msgs[rnd.IntN(len(msgs))]
			switch msg.(type) {
			case kit.Request, kit.ReadRequest:
			default:
				msg = kit.Letter{Disk: th.nodes[from].Admission.Own(), Msg: msg}
			}
			th.do(1, func(r *replica, env *protocol.Env[smr.Message]) { r.Receive(env, from, msg) })
			switch rnd.IntN(6) {
			case 0:
				th.do(1, func(r *replica, env *protocol.Env[smr.Message]) { r.Expire(env, beatTimer{}) })
			case 1:
				th.propose(1, workOn("c", "k"))
			case 2:
				th.deliver(nil)
			}
			if t.Failed() {
				t.Fatalf("after %#v from %d", msg, from)
			}
		}
	}
}

// TestDamagedDisk starts replicas with records that cannot be, and with snapshots that cannot be
// read: they say so, and do nothing.
func TestDamagedDisk(t *testing.T) {
	group := []smr.Member{{ID: 1}, {ID: 2}, {ID: 3}}
	for want, rec := range map[string]smr.Message{
		"none of the protocol's": kit.Hello{},
		"which cannot be":        instanceRecord{ID: instanceID{9, 1}},
		"without a command":      instanceRecord{ID: instanceID{1, 1}, Phase: uint8(phaseAccepted), Deps: deps{0, 0, 0}},
		"1.70000":                instanceRecord{ID: instanceID{1, 70000}},
	} {
		cfg := smr.ReplicaConfig{ID: 1, Members: group, Machine: newRegisters(nil)}
		var disk smrtest.Disk
		_, env := smrtest.OnDisk(t, &disk, newReplica, cfg)
		env.Append(rec)
		disk.Write(env, 0)
		r, err := newReplica(cfg)
		if err != nil {
			t.Fatal(err)
		}
		env = disk.Env()
		env.Begin(0)
		r.Start(env, disk.Log)
		told := slices.ContainsFunc(env.Out, func(e protocol.Effect[smr.Message]) bool {
			m, ok := e.Msg.(smr.Refused)
			return ok && e.To == protocol.App && strings.Contains(m.Reason, want)
		})
		if !told {
			t.Errorf("%+v: got %+v, want a refusal that says %q", rec, env.Out, want)
		}
		env.Begin(0)
		r.Receive(env, 2, kit.Letter{Disk: 2, Msg: recover{head{1}, instanceID{2, 1}, kit.NewBallot(0, 2)}})
		r.Receive(env, 9, kit.ReadRequest{Queries: []kit.Query{{ID: 1}}})
		if len(env.Out) > 0 {
			t.Errorf("%s: it goes on: %+v", want, env.Out)
		}
	}
	r, err := newReplica(smr.ReplicaConfig{ID: 1, Members: group, Machine: newRegisters(nil)})
	if err != nil {
		t.Fatal(err)
	}
	good, err := r.image()
	if err != nil {
		t.Fatal(err)
	}
	for n := range len(good) + 1 {
		var disk smrtest.Disk
		env := disk.Env()
		env.Begin(0)
		r.State.Save(env, kit.Snapshot{Slot: 1, Data: good[:n]})
		disk.Write(env, 0)
		_, front, ok, err := r.State.Load(env, placeLayout.Length)
		if err == nil && ok {
			_, err = r.place(front)
		}
		if restored := ok && err == nil; restored != (n == len(good)) {
			t.Errorf("an image cut off after %d of %d bytes is restored: %v, %v", n, len(good), restored, err)
		}
	}
}
