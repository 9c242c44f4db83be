package smrtest

import (
	"cmp"
	"fmt"
	"time"

	"github.com/foresay/foresay/history"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/sim/deploy"
	"github.com/foresay/foresay/smr"
)

// client is an application that makes one call after the other.
type client struct {
	w          *World
	id         protocol.ID
	lastCommit time.Duration // when a call was committed that began then or before; see settle
}

type call struct {
	record   history.Invocation[history.KVInput, history.KVOutput]
	recorded bool
	read     bool
	brief    bool      // a Propose: its result is not known
	proposal *proposal // nil for reads
	then     func(smr.Done)
}

// proposal is a command that a client proposed.
type proposal struct{ history.Proposal[commandID] }

const patience = 2 * time.Second // of clients with a call, before they cancel it

func (w *World) addClient(id protocol.ID) (*client, error) {
	cfg := smr.ClientConfig{ID: id, Members: w.group, RoundTrip: cmp.Or(w.sc.RoundTrip, roundTrip)}
	return &client{w: w, id: id}, w.Sim.Add(id, w.sites[int(id)%len(w.sites)], func() (protocol.Node[smr.Message], error) {
		return w.sc.Protocol.NewClient(cfg)
	})
}

// next makes a call of a random kind.
func (c *client) next() {
	w := c.w
	if w.stopped {
		return
	}
	if w.quiet {
		w.Sim.After(roundTrip/2, c.next)
		return
	}
	keys := 3
	if calls := w.sc.Clients * max(w.sc.Calls, 1); calls > 16 {
		keys = calls // the more calls of one key there are at once, the longer the judge takes
	}
	in := history.KVInput{Key: fmt.Sprintf("%d-%d", w.Sim.Now()/(700*time.Millisecond), w.rand.IntN(keys))}
	id := commandID(len(w.proposals) + 1)
	switch n := w.rand.IntN(10); {
	case n < 3:
		in.Kind = history.KVGet
	case n < 7:
		in.Kind, in.Value = history.KVPut, fmt.Sprint("v", id)
	case n < 8:
		in.Kind, in.Value = history.KVAppend, fmt.Sprint("+", id)
	case n < 9:
		in.Kind, in.Value = history.KVCAS, fmt.Sprint("v", id)
	default:
		in.Kind = history.KVDelete
	}
	c.operate(in, id, w.rand.IntN(4) == 0)
}

// operate makes a call for an operation on the store.
func (c *client) operate(in history.KVInput, id commandID, propose bool) {
	w := c.w
	name := history.Client(c.id)
	k := &call{record: w.ops.Invoke(name, w.Sim.Now(), in), recorded: true}
	k.then = func(smr.Done) {
		wait := time.Duration(w.rand.IntN(30)) * time.Millisecond
		if w.sc.Idle > 0 && c == w.clients[len(w.clients)-1] {
			wait = time.Duration(w.rand.Int64N(int64(w.sc.Idle)))
		} else if w.sc.Calls > 1 { // at the same time as others
			wait = 2*roundTrip - w.Sim.Now()%(2*roundTrip)
		}
		w.Sim.After(wait, c.next)
	}
	msg := smr.Call{Kind: smr.Execute, Command: command{id, in, w.sc.ValueBytes}.encode()}
	switch {
	case in.Kind == history.KVGet:
		k.read = true
		msg = smr.Call{Kind: smr.Read, Command: []byte(in.Key)}
	case propose && in.Kind != history.KVCAS:
		msg.Kind, k.brief = smr.Propose, true
	}
	if w.durable() {
		msg.After = w.token
		if msg.Kind == smr.Propose {
			msg.Ack = smr.AckDurable
		}
	}
	if !k.read {
		k.proposal = &proposal{history.Proposal[commandID]{ID: id, Client: name, Call: w.Sim.Now()}}
		w.proposals = append(w.proposals, k.proposal)
	}
	c.start(msg, k)
}

func (c *client) start(msg smr.Call, k *call) {
	n := c.w.Sim.Call(c.id, func(n uint64) smr.Message {
		msg.ID = smr.CallID(n)
		return msg
	}, func(a deploy.Answer[smr.Message]) { c.done(k, a) })
	c.w.Sim.After(patience, func() {
		if c.w.Sim.Waiting(c.id, n) {
			c.w.Sim.Deliver(c.id, smr.Cancel{ID: smr.CallID(n)})
		}
	})
}

// done takes what became of a call.
func (c *client) done(k *call, a deploy.Answer[smr.Message]) {
	w, now, d := c.w, c.w.Sim.Now(), a.Msg.(smr.Done)
	if d.Outcome < smr.Committed || d.Outcome > smr.Unknown {
		w.Sim.Fail("client %d: call %d has the outcome %v", c.id, d.ID, d.Outcome)
		return
	}
	w.token = max(w.token, d.Slot)
	if k.recorded {
		w.counts[d.Outcome]++
		c.record(k, d, now)
	}
	if d.Outcome == smr.Committed {
		w.gap = max(w.gap, now-w.lastDone)
		w.lastDone = now
		w.longest = max(w.longest, a.Took)
		c.lastCommit = a.Began
	}
	k.then(d)
}

func (c *client) record(k *call, d smr.Done, now time.Duration) {
	switch d.Outcome {
	case smr.Committed:
		var out history.KVOutput
		if !k.brief {
			var err error
			if out, err = outputLayout.Decode(d.Result); err != nil {
				c.w.Sim.Fail("client %d: the result of call %d: %v", c.id, d.ID, err)
				return
			}
		}
		k.record.Return(now, out)
		if k.proposal != nil {
			k.proposal.Return, k.proposal.Outcome = now, history.Returned
		}
	case smr.Rejected:
		k.record.Fail(now)
		if k.proposal != nil {
			k.proposal.Return, k.proposal.Outcome = now, history.Failed
		}
	}
}
