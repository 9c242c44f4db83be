package smrtest

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// byHand is a replica that a test calls itself, on a disk.
type byHand struct {
	protocol.Node[smr.Message]
	id   protocol.ID
	env  *protocol.Env[smr.Message]
	disk *Disk
	out  []protocol.Effect[smr.Message]
}

func (b *byHand) call(f func()) {
	f()
	b.out = append(b.out, b.env.Out...)
	b.disk.Write(b.env, b.env.Now)
}

// sent takes what was said to a node about disks, and the reasons why the replica was refused.
func (b *byHand) sent(to protocol.ID) (about []smr.Message, refused string) {
	for _, e := range b.out {
		switch m := e.Msg.(type) {
		case kit.Founding, kit.Hello, kit.Welcome:
			if e.To == to {
				about = append(about, m)
			}
		case smr.Refused:
			refused = m.Reason
		}
	}
	b.out = nil
	return about, refused
}

// role returns what the replica says it is.
func (b *byHand) role() (role string) {
	b.call(func() { b.Receive(b.env, protocol.App, smr.StatusQuery{ID: 1}) })
	for _, e := range b.out {
		if s, ok := e.Msg.(smr.Status); ok {
			role = s.Role
		}
	}
	return role
}

// CutLog has a replica start on a disk that is older than itself, such as a copy, or one whose log
// has lost its end. A replica that knows how far it was says so, also if that was started again
// meanwhile, and it is refused, then and whenever it is started; a disk that has everything is not.
func CutLog(t *testing.T, p smr.Protocol) {
	disks := map[protocol.ID]*Disk{1: {}, 2: {}}
	members := []smr.Member{{ID: 1}, {ID: 2}, {ID: 3}}
	starts := uint64(0)
	start := func(id protocol.ID) *byHand {
		t.Helper()
		n, err := p.NewReplica(smr.ReplicaConfig{ID: id, Members: members, Machine: newMachine(func(int, commandID) {})})
		if err != nil {
			t.Fatal(err)
		}
		disks[id].Env() // makes it, if it is new
		starts++
		env := protocol.NewEnv[smr.Message](disks[id], disks[id].next, rand.New(rand.NewPCG(starts, 1)))
		b := &byHand{Node: n, id: id, env: env, disk: disks[id]}
		b.call(func() { b.Start(b.env, slices.Clone(b.disk.Log)) })
		return b
	}
	// talk delivers what the two say about disks, and returns why the first was refused.
	talk := func(one, two *byHand) (refused string) {
		for range 4 {
			about, why := one.sent(two.id)
			if refused += why; why != "" {
				return refused
			}
			for _, m := range about {
				two.call(func() { two.Receive(two.env, one.id, m) })
			}
			about, _ = two.sent(one.id)
			for _, m := range about {
				one.call(func() { one.Receive(one.env, two.id, m) })
			}
		}
		return refused
	}
	one, two := start(1), start(2)
	for _, b := range []*byHand{one, two} {
		for _, e := range b.out {
			if m, ok := e.Msg.(kit.Founding); ok && e.To == 3 {
				b.call(func() { b.Receive(b.env, 3, kit.Welcome{Disk: 3, Asked: m.Disk, Known: m.Disk}) })
				break
			}
		}
	}
	if why := talk(one, two); why != "" {
		t.Fatalf("in a new group: refused: %s", why)
	}
	if role := one.role(); role == "blank" {
		t.Fatal("in a new group it does not take part, though all have said yes")
	}
	older := &Disk{Log: slices.Clone(disks[1].Log), keys: maps.Clone(disks[1].keys), next: disks[1].next}
	disks[1].next += 10 // as if so many records had been written, and cut again
	for range 2 {
		two = start(2)
		if why := talk(start(1), two); why != "" {
			t.Fatalf("with the disk that it had: refused: %s", why)
		}
	}
	disks[1], two = older, start(2)
	one = start(1)
	if role := one.role(); role != "blank" {
		t.Errorf("with an older disk, before the others have said what they know of it: %s, want blank", role)
	}
	if why := talk(one, two); !strings.Contains(why, "older copy of itself") || !strings.Contains(why, "another ID") {
		t.Errorf("with an older disk: refused %q", why)
	}
	if _, why := start(1).sent(2); !strings.Contains(why, "older copy of itself") {
		t.Errorf("started again with it: refused %q", why)
	}
}
