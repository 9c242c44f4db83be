package front

import (
	"context"
	"fmt"

	pb "github.com/foresay/foresay/api/foresay/store/v1"
	"github.com/foresay/foresay/history"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/client"
)

var _ client.Backend = (*Conn)(nil)

// ask gives the node a message that is made with a number, which it returns. The answer comes
// through the waiter's channel.
func (c *Conn) ask(first func(client.Answer), msg func(ref uint64) store.Message) (w *waiter, ref uint64) {
	answer := make(chan store.Message, 1)
	return c.askWith(&waiter{first: first, answer: answer, then: answersTo(answer)}, msg)
}

// askLocal is ask for one who takes word of a local commit.
func (c *Conn) askLocal(local func(store.TxnID), msg func(ref uint64) store.Message) (w *waiter, ref uint64) {
	answer := make(chan store.Message, 1)
	return c.askWith(&waiter{local: local, answer: answer, then: answersTo(answer)}, msg)
}

// answersTo has an answer come through a channel, which is closed if there is none.
func answersTo(answer chan<- store.Message) func(store.Message) {
	return func(m store.Message) {
		if m == nil {
			close(answer)
			return
		}
		answer <- m
	}
}

// askFor is ask for one who does not wait: then is called with the answer, or with nil if the
// connection is closed.
func (c *Conn) askFor(
	first func(client.Answer), then func(store.Message), msg func(ref uint64) store.Message,
) (w *waiter, ref uint64) {
	return c.askWith(&waiter{first: first, then: then}, msg)
}

func (c *Conn) askWith(w *waiter, msg func(ref uint64) store.Message) (_ *waiter, ref uint64) {
	w.request = &request{}
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		w.then(nil)
		return w, 0
	}
	ref, _ = c.waiting.Add(func(m store.Message) { c.took(w, m) }) // it has no bound, and is closed later
	w.request.ref = ref
	c.mu.Unlock()
	c.deliver(asked{msg(ref), w.request})
	return w, ref
}

// forget has nobody wait for the answers to reads any more, once it is known who was asked.
func (c *Conn) forget(reads ...*waiter) {
	for _, w := range reads {
		c.deliver(store.Cancel{Ref: w.request.ref})
	}
	c.awaitNode()
	for _, w := range reads {
		c.waiting.Forget(w.request.ref)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, w := range reads {
		c.over(w.request)
	}
}

func (c *Conn) get(ctx context.Context, get store.Get, first func(client.Answer)) (client.Answer, error) {
	if len(get.Key) > store.MaxKeyBytes {
		return client.Answer{}, &client.RejectedError{Detail: fmt.Sprintf("a key of %d bytes (the limit is %d)", len(get.Key),
			store.MaxKeyBytes)}
	}
	w, _ := c.ask(first, func(ref uint64) store.Message {
		get.Ref = ref
		return get
	})
	select {
	case m, ok := <-w.answer:
		got, _ := m.(store.Got)
		switch {
		case !ok:
			return client.Answer{}, &client.UnavailableError{Key: get.Key, Err: ErrClosed}
		case got.Full:
			return client.Answer{}, &client.UnavailableError{Key: get.Key, Detail: "too many of this client's reads wait"}
		case !got.OK:
			return client.Answer{}, c.unavailable(get.Key, w.request, nil)
		}
		return client.Answer{Value: got.Value, Site: c.site(got.Site), Settled: got.Settled}, nil
	case <-ctx.Done():
		c.forget(w)
		return client.Answer{}, c.unavailable(get.Key, w.request, context.Cause(ctx))
	}
}

// unavailable is the error of a read that too few sites have answered.
func (c *Conn) unavailable(key store.Key, r *request, err error) error {
	sites, why := c.missing(r)
	return &client.UnavailableError{Key: key, Sites: sites, Detail: why, Err: err}
}

// commit commits a transaction. how is nil unless somebody goes on at its local commit.
func (c *Conn) commit(ctx context.Context, s store.Submit, how *client.Speculation) client.Decision {
	if len(s.Writes) > 0 && c.cfg.Protocol.Absent {
		s.Absent = c.absent(ctx)
	}
	d, r := c.decide(ctx, store.Txn{Priority: s.Priority, Reads: s.Reads, Writes: s.Writes},
		func(ref uint64) store.Message {
			s.Ref = ref
			return s
		}, how)
	switch {
	case r == nil:
		d.Outcome.Verdict = store.Rejected
	case d.Outcome.Verdict == store.Unknown && c.unsent(r):
		d.Outcome = c.refused(r, d.Outcome)
	}
	return d
}

// Resolve implements client.Backend.
func (c *Conn) Resolve(ctx context.Context, txn store.Txn) client.Decision {
	d, _ := c.decide(ctx, txn, func(ref uint64) store.Message { return store.Query{Ref: ref, Txn: txn} }, nil)
	return d
}

// decide waits for an outcome, and returns what was sent for it: nil if the connection was closed
// before.
func (c *Conn) decide(
	ctx context.Context, txn store.Txn, msg func(ref uint64) store.Message, how *client.Speculation,
) (d client.Decision, sent *request) {
	var local func(store.TxnID)
	var settled <-chan bool
	if how != nil {
		local, settled = how.Local, how.Settled
	}
	w, ref := c.askLocal(local, msg)
	var m store.Message
	for m == nil {
		select {
		case answer, ok := <-w.answer:
			if m = answer; !ok {
				return client.Decision{Txn: txn, Outcome: store.Outcome{Verdict: store.Unknown, Detail: ErrClosed.Error()}}, nil
			}
		case confirmed := <-settled:
			settled = nil
			c.deliver(store.Settle{Ref: ref, Refuted: !confirmed})
		case <-ctx.Done():
			c.deliver(store.Cancel{Ref: ref})
			m = <-w.answer // what is known
		}
	}
	done, ok := m.(store.Done)
	if !ok {
		return client.Decision{Txn: txn, Outcome: store.Outcome{Verdict: store.Unknown, Detail: ErrClosed.Error()}}, nil
	}
	d = client.Decision{Txn: done.Txn, Outcome: done.Outcome, Version: done.Version, Site: c.site(done.Site)}
	if d.Outcome.Verdict == store.Committed && !c.cfg.Protocol.Stamped {
		d.Version = d.Txn.ID
	}
	if d.Outcome.Detail == "" && d.Site == "" && d.Outcome.Verdict != store.Blocked {
		d.Outcome.Sites, d.Outcome.Detail = c.missing(w.request)
	}
	for _, now := range done.Current {
		d.Current = append(d.Current, client.Current{Key: now.Key, Locked: now.Locked, Value: now.Value})
	}
	return d, w.request
}

// Promises implements client.Backend.
func (c *Conn) Promises() history.Level { return c.cfg.Protocol.Promises() }

// Speculates reports whether transactions can be answered when they are committed locally.
func (c *Conn) Speculates() bool { return c.cfg.Protocol.Speculates }

// Closed reports whether the connection is closed, so that nobody can be asked any more.
func (c *Conn) Closed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}

// Stales implements client.Backend.
func (c *Conn) Stales() bool { return c.cfg.Protocol.Stale }

// Status asks a machine how it is.
func (c *Conn) Status(ctx context.Context, machine string) (*pb.StatusResponse, error) {
	for _, m := range c.machines {
		if m.name == machine {
			return m.stub.Status(ctx, &pb.StatusRequest{})
		}
	}
	return nil, fmt.Errorf("front: no machine %q takes part", machine)
}

// HandOver asks a machine to have another site lead a shard, if it leads it.
func (c *Conn) HandOver(ctx context.Context, machine string, r *pb.HandOverRequest) (*pb.HandOverResponse, error) {
	for _, m := range c.machines {
		if m.name == machine {
			return m.stub.HandOver(ctx, r)
		}
	}
	return nil, fmt.Errorf("front: no machine %q takes part", machine)
}

// Change asks a machine for a step of the agreement on the next epoch.
func (c *Conn) Change(ctx context.Context, machine string, r *pb.ChangeRequest) (*pb.ChangeResponse, error) {
	for _, m := range c.machines {
		if m.name == machine {
			return m.stub.Change(ctx, r)
		}
	}
	return nil, fmt.Errorf("front: no machine %q takes part", machine)
}
