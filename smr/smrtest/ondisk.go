package smrtest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/foresay/foresay/internal/diskid"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
)

// onDisk is a replica whose disk can be looked at after each call.
type onDisk struct {
	protocol.Node[smr.Message]
	disk  Disk
	after func()
}

func (n *onDisk) Start(env *protocol.Env[smr.Message], log []protocol.Record[smr.Message]) {
	n.disk = Disk{Log: slices.Clone(log), keys: map[string][]byte{}, next: env.NextIndex()}
	for k, v := range env.Scan([]byte{}, nil) {
		n.disk.keys[string(k)] = v
	}
	n.Node.Start(env, log)
	n.disk.keep(env.Out)
}

func (n *onDisk) Receive(env *protocol.Env[smr.Message], from protocol.ID, msg smr.Message) {
	n.Node.Receive(env, from, msg)
	n.disk.keep(env.Out)
	n.after()
}

func (n *onDisk) Expire(env *protocol.Env[smr.Message], t protocol.Timer) {
	n.Node.Expire(env, t)
	n.disk.keep(env.Out)
	n.after()
}

// Broken is part of protocol.Linked.
func (n *onDisk) Broken(env *protocol.Env[smr.Message], from protocol.ID) {
	if l, ok := n.Node.(protocol.Linked[smr.Message]); ok {
		l.Broken(env, from)
		n.disk.keep(env.Out)
	}
}

// Where a replica keeps which disk it has, and what its newest snapshot is.
const (
	selfKey     = "smr/self"
	snapshotKey = "smr/snapshot"
)

// lostSnapshot has groups live under faults, and again and again starts another replica from what
// is left of a member's disk without its snapshot. It must refuse the disk and say why: it cannot
// know what the records of its log follow.
func lostSnapshot(t *testing.T, p smr.Protocol) {
	t.Helper()
	founders, joined := 0, 0
	checkDisks(t, p, 5, func(cfg smr.ReplicaConfig) (protocol.Node[smr.Message], *onDisk, func() error, error) {
		n, err := p.NewReplica(cfg)
		r := &onDisk{Node: n}
		return r, r, func() error {
			switch {
			case !r.disk.follows():
				return nil
			case cfg.Join:
				joined++
			default:
				founders++
			}
			return r.disk.mustBeRefused(p, cfg)
		}, err
	})
	if founders == 0 || joined == 0 {
		t.Errorf("%d disks of founders were tried, and %d of replicas that joined", founders, joined)
	}
}

// checkDisks has groups live under faults, as so many seeds decide, and checks again and again what
// is left of a replica's disk. Each replica is begun with its disk and with what checks that.
func checkDisks(t *testing.T, p smr.Protocol, seeds uint64,
	begin func(smr.ReplicaConfig) (n protocol.Node[smr.Message], d *onDisk, check func() error, err error),
) {
	t.Helper()
	for seed := uint64(1); seed <= seeds; seed++ {
		var failed error
		watched := p
		watched.NewReplica = func(cfg smr.ReplicaConfig) (protocol.Node[smr.Message], error) {
			n, d, check, err := begin(cfg)
			calls := 0
			d.after = func() {
				if calls++; calls%97 == 0 && failed == nil {
					failed = check()
				}
			}
			return n, err
		}
		sc := Swarm(watched, seed)
		sc.brief = true
		if _, err := Play(sc); err != nil {
			t.Fatal(err)
		}
		if failed != nil {
			t.Fatalf("seed %d: %v", seed, failed)
		}
	}
}

// follows reports whether the disk has a log that follows a snapshot, of a replica that has taken
// part.
func (d *Disk) follows() bool {
	self, _, err := diskid.Read(d.Env(), selfKey)
	_, ok := d.keys[snapshotKey]
	return ok && err == nil && self.Joined && len(d.Log) > 0
}

// mustBeRefused is an error if a replica takes the disk without its snapshot.
func (d *Disk) mustBeRefused(p smr.Protocol, cfg smr.ReplicaConfig) error {
	left := Disk{keys: maps.Clone(d.keys), next: d.next}
	delete(left.keys, snapshotKey)
	cfg.Machine = newMachine(func(int, commandID) {})
	n, err := p.NewReplica(cfg)
	if err != nil {
		return err
	}
	env := left.Env()
	n.Start(env, slices.Clone(d.Log))
	for _, e := range env.Out {
		if r, ok := e.Msg.(smr.Refused); ok && strings.Contains(r.Reason, "no snapshot of what was before") {
			return nil
		}
	}
	return fmt.Errorf("replica %d starts from %d records without the snapshot that they follow, with %d effects",
		cfg.ID, len(d.Log), len(env.Out))
}
