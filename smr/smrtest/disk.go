package smrtest

import (
	"iter"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// A Disk is that of a replica that a test calls itself, and what survives when the test makes
// another one in its place. Its zero value is empty.
type Disk struct {
	// Log is what NewReplica's Start is given.
	Log  []protocol.Record[smr.Message]
	keys map[string][]byte
	next uint64
}

// Env returns the world of a replica that starts with the disk.
func (d *Disk) Env() *protocol.Env[smr.Message] {
	if d.keys == nil {
		d.keys, d.next = map[string][]byte{}, 1
	}
	return protocol.NewEnv[smr.Message](d, d.next, rand.New(rand.NewPCG(1, 1)))
}

// Group returns members 1 to n.
func Group(n int) (members []smr.Member) {
	for i := range n {
		members = append(members, smr.Member{ID: protocol.ID(i + 1)})
	}
	return members
}

// OnDisk starts a replica with a disk, and has the time pass for which one that was started again
// waits for its members.
func OnDisk[R protocol.Node[smr.Message]](
	t testing.TB, d *Disk, newReplica func(smr.ReplicaConfig) (R, error), cfg smr.ReplicaConfig,
) (R, *protocol.Env[smr.Message]) {
	t.Helper()
	r, err := newReplica(cfg)
	if err != nil {
		t.Fatal(err)
	}
	env := d.Env()
	r.Start(env, slices.Clone(d.Log))
	Unheard(r, env)
	return r, env
}

// Admit has all other members of a replica's group say that they know no other disk of the replica
// than its own.
func (d *Disk) Admit(
	r protocol.Node[smr.Message], env *protocol.Env[smr.Message], cfg smr.ReplicaConfig, own kit.Incarnation,
) {
	for _, m := range cfg.Members {
		if m.ID != cfg.ID {
			r.Receive(env, m.ID, kit.Welcome{Disk: kit.Incarnation(m.ID), Asked: own, Known: own})
		}
	}
	d.Write(env, 0)
}

// Write puts what a call has written on the disk, and begins the next call at a time.
func (d *Disk) Write(env *protocol.Env[smr.Message], now time.Duration) {
	d.keep(env.Out)
	env.Begin(now)
}

func (d *Disk) keep(out []protocol.Effect[smr.Message]) {
	for _, e := range out {
		switch e.Kind {
		case protocol.KindAppend:
			d.Log = append(d.Log, protocol.Record[smr.Message]{Index: e.Index, Msg: e.Msg})
			d.next = e.Index + 1
		case protocol.KindTruncate:
			d.Log = slices.DeleteFunc(d.Log, func(r protocol.Record[smr.Message]) bool { return r.Index < e.Index })
		case protocol.KindPut:
			d.keys[string(e.Key)] = e.Value
		case protocol.KindDelete:
			delete(d.keys, string(e.Key))
		}
	}
}

// Get is part of protocol.Keys.
func (d *Disk) Get(key []byte) ([]byte, bool) { v, ok := d.keys[string(key)]; return v, ok }

// Scan is part of protocol.Keys.
func (d *Disk) Scan(lo, hi []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func([]byte, []byte) bool) {
		for _, k := range slices.Sorted(maps.Keys(d.keys)) {
			if k >= string(lo) && (hi == nil || k < string(hi)) && !yield([]byte(k), d.keys[k]) {
				return
			}
		}
	}
}

// A Promised is what a replica has promised, in the words of its protocol, and how it is asked to
// break that.
type Promised struct {
	Prepares []smr.Message // by replica 2, each of which the replica promises
	Promise  smr.Message   // of the kind by which it does
	Lower    smr.Message   // asks it to accept what it must not any more,
	From     protocol.ID   // by this replica
	Refuses  func(smr.Message) bool
}

// PromiseIsOnDisk has replica 1, which has begun with cfg, promise something, perhaps cut its log,
// and crash: others must not hear of the promise before its disk does, and it must be kept.
func PromiseIsOnDisk[R protocol.Node[smr.Message]](
	t *testing.T, newReplica func(smr.ReplicaConfig) (R, error), cfg smr.ReplicaConfig,
	begun func() (R, *protocol.Env[smr.Message], *Disk), cut func(R, *protocol.Env[smr.Message]), says func(R) Promised,
) {
	t.Helper()
	for _, cuts := range []bool{false, true} {
		r, env, disk := begun()
		p := says(r)
		for _, m := range p.Prepares {
			r.Receive(env, 2, kit.Letter{Disk: 2, Msg: m})
			if !slices.ContainsFunc(env.Out, func(e protocol.Effect[smr.Message]) bool {
				return e.Kind == protocol.KindSend && reflect.TypeOf(kit.Inside(e.Msg)) == reflect.TypeOf(p.Promise)
			}) {
				t.Fatalf("no promise that waits for the disk: %+v", env.Out)
			}
			disk.Write(env, 0)
		}
		if cuts {
			cut(r, env)
			disk.Write(env, 0)
			if disk.Log[0].Index == 1 {
				t.Fatalf("the log was not cut: %+v", disk.Log)
			}
		}
		r, env = OnDisk(t, disk, newReplica, cfg)
		disk.Write(env, 0)
		r.Receive(env, p.From, kit.Letter{Disk: kit.Incarnation(p.From), Msg: p.Lower})
		if !slices.ContainsFunc(env.Out, func(e protocol.Effect[smr.Message]) bool { return p.Refuses(kit.Inside(e.Msg)) }) {
			t.Errorf("a promise was forgotten in a crash; log cut before: %v", cuts)
		}
	}
}
