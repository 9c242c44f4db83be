package bfttest

import (
	"crypto/ed25519"
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/foresay/foresay/bft"
	"github.com/foresay/foresay/protocol"
)

// realSigner returns a signer of Ed25519 that depends on the seed alone.
func realSigner(seed uint64, id protocol.ID) *bft.Signer {
	s := sha256.Sum256(fmt.Appendf(nil, "%d %d", seed, id))
	return bft.NewSigner(ed25519.NewKeyFromSeed(s[:]))
}

// client is an honest application: it makes calls, some of them on a guess at the one before.
type client struct {
	w         *World
	id        protocol.ID
	last      bft.CallID
	calls     map[bft.CallID]*call
	open      int
	lastBegun time.Duration // when a call began that was confirmed
}

type call struct {
	question Question
	began    time.Duration
	assumes  *bft.Assumption
	guess    *bft.Result
	result   *bft.Result
	chain    int
}

// missed reports whether a call is known not to have been executed.
func (k *call) missed() bool { return k.result != nil && k.result.Outcome != bft.Executed }

// checkGuesses is an error if a call was executed on a guess that was wrong.
func (c *client) checkGuesses() error {
	for id, k := range c.calls {
		if k.assumes == nil || k.missed() {
			continue
		}
		if c.calls[k.assumes.Call].result.Digest() != k.assumes.Digest {
			return fmt.Errorf("client %d: call %d was executed on a wrong guess", c.id, id)
		}
	}
	return nil
}

// next makes a call that depends on no guess.
func (c *client) next() {
	if !c.w.stopped {
		c.call(nil, nil, c.w.rand.IntN(4))
	}
}

// call makes a call, which may stand on the result of an earlier one.
func (c *client) call(on *bft.Assumption, shown *bft.Result, chain int) {
	w := c.w
	q := w.load.Ask(Caller{ID: c.id, Now: w.Sim.Now(), Rand: w.rand}, shown)
	msg := bft.Call{Read: q.Query && on == nil}
	if on != nil {
		msg.After, msg.Assumes = on.Call, []bft.Assumption{*on}
	}
	c.ask(msg, &call{question: q, began: w.Sim.Now(), assumes: on, chain: chain})
}

// ask makes a call of its question.
func (c *client) ask(msg bft.Call, k *call) {
	c.last++
	c.calls[c.last] = k
	c.open++
	msg.ID, msg.Command = c.last, k.question.Command
	c.w.Sim.Deliver(c.id, msg)
}

// app gets what clients are told.
func (w *World) app(from protocol.ID, msg bft.Message) {
	if from < firstClient {
		return
	}
	c := w.clients[from-firstClient]
	switch m := msg.(type) {
	case bft.First:
		w.report.Guesses++
		k := c.calls[m.ID]
		k.guess = &m.Result
		c.note(&w.report.FirstAfter, k)
		if k.chain > 0 && !w.stopped && k.result == nil {
			chain := k.chain
			k.chain = 0
			c.call(&bft.Assumption{Call: m.ID, Digest: m.Result.Digest()}, &m.Result, chain-1)
		}
	case bft.Withdrawn:
		w.report.Withdrawn++
	case bft.Done:
		c.done(m)
	}
}

// note keeps the shortest time that the second client has waited for something.
func (c *client) note(shortest *time.Duration, k *call) {
	if d := c.w.Sim.Now() - k.began; c.id == firstClient+1 && (*shortest == 0 || d < *shortest) {
		*shortest = d
	}
}

func (c *client) done(m bft.Done) {
	w, k := c.w, c.calls[m.ID]
	if k == nil || k.result != nil {
		w.failed = fmt.Errorf("client %d: call %d is done twice", c.id, m.ID)
		return
	}
	k.result = &m.Result
	c.open--
	if w.report.Slowest = max(w.report.Slowest, w.Sim.Now()-k.began); c.lastBegun == 0 {
		w.report.Served = max(w.report.Served, w.Sim.Now())
	}
	c.lastBegun = max(c.lastBegun, k.began)
	w.report.Confirmed++
	if !k.question.Query && m.Result.Outcome == bft.Executed {
		c.note(&w.report.DoneAfter, k)
	}
	if k.question.Query && k.assumes == nil {
		w.report.Reads++
	}
	if k.guess != nil && k.guess.Digest() == m.Result.Digest() {
		w.report.Right++
	}
	switch m.Result.Outcome {
	case bft.Executed, bft.Oversized:
		if err := k.question.Ended(w.Sim.Now(), &m.Result); err != nil {
			w.failed = fmt.Errorf("client %d: the result of call %d: %w", c.id, m.ID, err)
			return
		}
	case bft.Aborted, bft.Retry:
		if m.Result.Outcome == bft.Aborted {
			w.report.Aborted++
		} else {
			w.report.Retried++
		}
		if k.assumes != nil && c.calls[k.assumes.Call].missed() {
			w.report.Cascaded++
		}
		if err := k.question.Ended(w.Sim.Now(), nil); err != nil {
			w.failed = err
		}
		if k.assumes == nil {
			w.failed = fmt.Errorf("client %d: call %d, which assumes nothing: %v", c.id, m.ID, m.Result.Outcome)
		}
	default:
		w.failed = fmt.Errorf("client %d: call %d: %v", c.id, m.ID, m.Result.Outcome)
	}
	if c.open == 0 {
		w.Sim.After(time.Duration(w.rand.IntN(30))*time.Millisecond, c.next)
	}
}
