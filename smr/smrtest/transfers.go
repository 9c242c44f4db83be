package smrtest

import (
	"bytes"
	"fmt"
	"io"
	"iter"
	"testing"
	"time"

	"github.com/foresay/foresay/internal/seed"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// Bounds of what Transfers looks at.
const (
	bulkBytes = 5 << 18 // of each state, beside its keys
	// of one that is on its way while the others write several snapshots and cut their logs
	longBytes = 32 << 20
	// that may be sent of it: two replicas may send it
	longSent  = 2*longBytes + longBytes/4
	turnBytes = 1 << 20 // that a replica may read of a state, or of a snapshot on disk, write, or restore in one call
)

// transfers counts what the replicas of a world read and write.
type transfers struct {
	bulk    int // bytes of each state, beside its keys
	most    int // bytes, in one call
	chunks  int // that were sent to laggards
	sent    int // bytes of them
	crashAt int // the laggard crashes in the writing of this chunk that comes to it; 0 is none
	keep    sim.Keep
	taken   int // chunks that have come to the laggard
	world   *World
}

// laggardID is the replica that lags.
const laggardID = protocol.ID(3)

// Transfers has a replica lag behind a group with a large state, so that it gets a snapshot, and
// looks how much of one any replica reads, writes or restores in one call: commands and heartbeats
// wait for that long. Then it has the replica crash with each chunk that comes.
func Transfers(t *testing.T, p smr.Protocol) {
	seen := transfer(t, p, bulkBytes, 0, sim.KeepNone)
	if seen.chunks == 0 {
		t.Error("no snapshot was sent")
	}
	if seen.most > turnBytes {
		t.Errorf("a replica read, wrote or restored %d bytes of a state in one call, of which commands wait for the end: "+
			"want %d at most", seen.most, turnBytes)
	}
	for at := 1; at <= seen.taken; at++ {
		transfer(t, p, bulkBytes, at, []sim.Keep{sim.KeepNone, sim.KeepAll, 1}[at%3])
	}
	// While a large state is on its way, those that it does not come from go on, and have newer
	// ones, and the log that the laggard needs behind it is not thrown away.
	if seen := transfer(t, p, longBytes, 0, sim.KeepNone); seen.sent > longSent {
		t.Errorf("%d bytes were sent to a laggard that lacks a state of %d", seen.sent, longBytes)
	}
}

func transfer(t *testing.T, p smr.Protocol, bulk, crashAt int, keep sim.Keep) transfers {
	t.Helper()
	seen := transfers{bulk: bulk, crashAt: crashAt, keep: keep}
	counted := p
	counted.NewReplica = func(cfg smr.ReplicaConfig) (protocol.Node[smr.Message], error) {
		n := &countedReplica{total: &seen, id: cfg.ID}
		cfg.SnapshotEvery = 50
		cfg.Machine = bulky{plain(cfg.Machine), n}
		var err error
		n.Node, err = p.NewReplica(cfg)
		return n, err
	}
	sc := Scenario{Protocol: counted, Seed: seed.First(t, 1), Script: func(w *World) {
		seen.world = w
		laggard(w)
		for i := range 5 {
			w.Sim.After(5200*time.Millisecond+time.Duration(i)*200*time.Millisecond, func() { w.Sim.Restart(laggardID) })
		}
	}}
	r, err := Play(sc)
	if err != nil {
		t.Fatalf("a crash with chunk %d: %v\n%v", crashAt, err, r)
	}
	if crashAt > 0 && r.Crashes < 2 {
		t.Errorf("no crash with chunk %d", crashAt)
	}
	return seen
}

// countedReplica counts what a replica reads in each call but Start, for which nobody waits.
type countedReplica struct {
	protocol.Node[smr.Message]
	id    protocol.ID
	total *transfers
	env   *protocol.Env[smr.Message] // the replica's own
	outer *protocol.Env[smr.Message]
	moved int // bytes of states, in this call
	// starts says that this call is Start.
	starts bool
}

// Start is part of protocol.Node, like Receive and Expire.
func (c *countedReplica) Start(env *protocol.Env[smr.Message], log []protocol.Record[smr.Message]) {
	c.env = protocol.NewEnv[smr.Message](c, env.NextIndex(), env.Rand)
	c.call(env, func() { c.Node.Start(c.env, log); c.starts = true })
}

func (c *countedReplica) Receive(env *protocol.Env[smr.Message], from protocol.ID, msg smr.Message) {
	if _, ok := kit.Inside(msg).(kit.SnapshotChunk); ok && c.id == laggardID {
		if c.total.taken++; c.total.taken == c.total.crashAt {
			c.total.world.Sim.CrashInNextWrite(laggardID, c.total.keep)
		}
	}
	c.call(env, func() { c.Node.Receive(c.env, from, msg) })
}

func (c *countedReplica) Expire(env *protocol.Env[smr.Message], timer protocol.Timer) {
	c.call(env, func() { c.Node.Expire(c.env, timer) })
}

func (c *countedReplica) call(env *protocol.Env[smr.Message], f func()) {
	c.outer, c.moved = env, 0
	c.env.Begin(env.Now)
	f()
	for _, e := range c.env.Out {
		if e.Kind == protocol.KindPut {
			c.moved += len(e.Value)
		}
	}
	if c.starts {
		c.moved, c.starts = 0, false
	}
	c.total.most = max(c.total.most, c.moved)
	for _, e := range c.env.Out {
		if chunk, ok := kit.Inside(e.Msg).(kit.SnapshotChunk); ok {
			c.total.chunks++
			c.total.sent += len(chunk.Data)
		}
		repeat(env, e)
	}
}

// repeat has another world see an effect.
func repeat(env *protocol.Env[smr.Message], e protocol.Effect[smr.Message]) {
	switch e.Kind {
	case protocol.KindAppend:
		env.Append(e.Msg)
	case protocol.KindTruncate:
		env.Truncate(e.Index)
	case protocol.KindPut:
		env.Put(e.Key, e.Value)
	case protocol.KindDelete:
		env.Delete(e.Key)
	case protocol.KindSend:
		if e.Unhurried {
			env.SendUnhurried(e.To, e.Msg)
		} else {
			env.Send(e.To, e.Msg)
		}
	case protocol.KindSendAhead:
		env.SendAhead(e.To, e.Msg)
	case protocol.KindAfter:
		env.After(e.Delay, e.Timer)
	case protocol.KindStop:
		env.Stop(e.Timer)
	default:
		panic(fmt.Sprintf("smrtest: an effect of kind %d", e.Kind))
	}
}

// Get is part of protocol.Keys, like Scan.
func (c *countedReplica) Get(key []byte) ([]byte, bool) {
	v, ok := c.outer.Get(key)
	c.moved += len(v)
	return v, ok
}

func (c *countedReplica) Scan(lo, hi []byte) iter.Seq2[[]byte, []byte] { return c.outer.Scan(lo, hi) }

// bulky is a machine with a large state, of which it counts what is read.
type bulky struct {
	*machine
	by *countedReplica
}

type countedReader struct {
	io.Reader
	by *countedReplica
}

func (r countedReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	r.by.moved += n
	return n, err
}

// Freeze puts the bulk in front of the state.
func (b bulky) Freeze() io.Reader {
	return countedReader{io.MultiReader(bytes.NewReader(make([]byte, b.by.total.bulk)), b.machine.Freeze()), b.by}
}

func (b bulky) Restore(in io.Reader) error { return restoreBy(b, in) }

// Restoring makes bulky an smr.Restorer that counts.
func (b bulky) Restoring() smr.Restoration {
	return &countedRestoration{Restoration: b.machine.restoring(b.by.total.bulk), by: b.by}
}

type countedRestoration struct {
	smr.Restoration
	by *countedReplica
}

func (r *countedRestoration) Write(p []byte) (int, error) {
	r.by.moved += len(p)
	return r.Restoration.Write(p)
}

// Arrive has a snapshot arrive at a replica's state in one chunk.
func Arrive(t *testing.T, env *protocol.Env[smr.Message], at *kit.State, s kit.Snapshot, split kit.Front) *kit.Arrived {
	t.Helper()
	chunk := kit.SnapshotChunk{Slot: s.Slot, Size: uint64(len(s.Data)), Sum: kit.Checksum(s.Data), Data: s.Data}
	_, whole, err := at.Take(env, chunk, 0, split)
	if whole == nil || err != nil {
		t.Fatalf("the snapshot has not arrived: %v", err)
	}
	return whole
}
