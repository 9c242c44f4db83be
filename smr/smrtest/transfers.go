package smrtest

import (
	"bytes"
	"fmt"
	"io"
	"iter"
	"testing"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
)

// Bounds of what Transfers looks at.
const (
	bulkBytes = 3 << 20 // of each state, beside its keys
	turnBytes = 1 << 20 // that a replica may read of a state, or of a snapshot on disk, in one call
)

// transfers counts what the replicas of a world read.
type transfers struct {
	most   int // bytes, in one call
	chunks int // that were sent to laggards
}

// Transfers has a replica lag behind a group with a large state, so that it gets a snapshot, and looks how much of one any replica reads in one call: commands and heartbeats wait for that long.
func Transfers(t *testing.T, p smr.Protocol) {
	var seen transfers
	counted := p
	counted.NewReplica = func(cfg smr.ReplicaConfig) (protocol.Node[smr.Message], error) {
		n := &countedReplica{total: &seen}
		cfg.SnapshotEvery = 50
		cfg.Machine = bulky{cfg.Machine.(*machine), n}
		var err error
		n.Node, err = p.NewReplica(cfg)
		return n, err
	}
	sc := Scenario{Protocol: counted, Seed: firstSeed(t), Script: laggard}
	if r, err := Play(sc); err != nil {
		t.Fatalf("%v\n%v", r, err)
	}
	if seen.chunks == 0 {
		t.Error("no snapshot was sent")
	}
	if seen.most > turnBytes {
		t.Errorf("a replica read %d bytes of a state in one call, of which commands wait for the end: want %d at most", seen.most, turnBytes)
	}
}

// countedReplica counts what a replica reads in each call but Start, for which nobody waits.
type countedReplica struct {
	protocol.Node[smr.Message]
	total *transfers
	env   *protocol.Env[smr.Message] // the replica's own
	outer *protocol.Env[smr.Message]
	read  int // bytes, in this call
}

// Start is part of protocol.Node, like Receive and Expire.
func (c *countedReplica) Start(env *protocol.Env[smr.Message], log []protocol.Record[smr.Message]) {
	c.env = protocol.NewEnv[smr.Message](c, env.NextIndex(), env.Rand)
	c.call(env, func() { c.Node.Start(c.env, log); c.read = 0 })
}

func (c *countedReplica) Receive(env *protocol.Env[smr.Message], from protocol.ID, msg smr.Message) {
	c.call(env, func() { c.Node.Receive(c.env, from, msg) })
}

func (c *countedReplica) Expire(env *protocol.Env[smr.Message], timer protocol.Timer) {
	c.call(env, func() { c.Node.Expire(c.env, timer) })
}

func (c *countedReplica) call(env *protocol.Env[smr.Message], f func()) {
	c.outer, c.read = env, 0
	c.env.Begin(env.Now)
	f()
	c.total.most = max(c.total.most, c.read)
	for _, e := range c.env.Out {
		if _, ok := e.Msg.(smr.SnapshotChunk); ok {
			c.total.chunks++
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
	c.read += len(v)
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
	r.by.read += n
	return n, err
}

// Freeze puts the bulk in front of the state.
func (b bulky) Freeze() io.Reader {
	return countedReader{io.MultiReader(bytes.NewReader(make([]byte, bulkBytes)), b.machine.Freeze()), b.by}
}

func (b bulky) Restore(in io.Reader) error {
	if _, err := io.CopyN(io.Discard, in, bulkBytes); err != nil {
		return fmt.Errorf("the bulk of a state: %w", err)
	}
	return b.machine.Restore(in)
}
