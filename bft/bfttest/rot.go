package bfttest

import (
	"bytes"
	"testing"
	"time"

	"github.com/foresay/foresay/bft"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/sim"
)

// Rot says what becomes of a disk by itself.
type Rot struct {
	// AtStart and Running are what the keys begin with of which one changes: at each start of the
	// replica, before it reads its disk, and every so often for a while after that.
	AtStart, Running []string
	Every, For       time.Duration
}

// Wrap returns the wrapper of a replica whose disk rots.
func (r Rot) Wrap() bft.Traitor {
	return func(node protocol.Node[bft.Message], _ bft.ReplicaConfig) protocol.Node[bft.Message] {
		return &rotting{Observed: node.(bft.Observed), rot: r}
	}
}

type rotting struct {
	bft.Observed
	rot   Rot
	since time.Duration // the start
}

type rotTimer struct{}

// Start is part of protocol.Node, as is Expire.
func (r *rotting) Start(env *protocol.Env[bft.Message], log []protocol.Record[bft.Message]) {
	for _, prefix := range r.rot.AtStart {
		damage(env, prefix)
	}
	r.Observed.Start(env, log)
	if r.rot.Every > 0 {
		env.After(r.rot.Every, rotTimer{})
	}
}

func (r *rotting) Expire(env *protocol.Env[bft.Message], t protocol.Timer) {
	if _, ok := t.(rotTimer); !ok {
		r.Observed.Expire(env, t)
		return
	}
	for _, prefix := range r.rot.Running {
		damage(env, prefix)
	}
	if r.since += r.rot.Every; r.since < r.rot.For {
		env.After(r.rot.Every, rotTimer{})
	}
}

// damage changes, or removes, what is under one of the keys that begin with a prefix.
func damage(env *protocol.Env[bft.Message], prefix string) {
	var keys [][]byte
	for k := range env.Scan([]byte(prefix), nil) {
		if !bytes.HasPrefix(k, []byte(prefix)) {
			break
		}
		keys = append(keys, bytes.Clone(k))
	}
	if len(keys) == 0 {
		return
	}
	key := keys[env.Rand.IntN(len(keys))]
	value, _ := env.Get(key)
	if value = bytes.Clone(value); len(value) == 0 || env.Rand.IntN(4) == 0 {
		env.Delete(key)
		return
	}
	value[env.Rand.IntN(len(value))] ^= 1 << env.Rand.IntN(8)
	env.Put(key, value)
}

// TestRot has a disk change by itself, in what the state has there: at each start, when the tree of
// digests is hurt, too; and while the replica is up. It finds that, and is equal to the others
// again, though nobody else does anything about it.
func TestRot(t *testing.T, p bft.Protocol) {
	const values, tree = "s/v", "s/t"
	for name, rot := range map[string]Rot{
		"at starts": {AtStart: []string{values, tree}},
		"running":   {Running: []string{values}, Every: 400 * time.Millisecond, For: 2 * time.Second},
	} {
		for seed := range uint64(4) {
			sc := Scenario{Protocol: p, Seed: seed, For: 2 * time.Second,
				Rotting: map[int]bft.Traitor{int(seed) % 4: rot.Wrap()}}
			if rot.AtStart != nil {
				sc.Script = CrashInWrite(int(seed)%4, 40, sim.KeepNone)
			}
			if r, err := Play(sc); err != nil || r.Repairs == 0 {
				t.Errorf("%s, seed %d: %+v: %v", name, seed, r, err)
			}
		}
	}
}
