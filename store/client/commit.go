package client

import (
	"context"
	"encoding/binary"
	"time"

	"github.com/foresay/foresay/driver"

	"github.com/foresay/foresay"
	"github.com/foresay/foresay/store"
)

// performCommit commits for the code that runs under ctx. To the engine it is a call with a side
// effect like others: it leaves when all that the code did before is known to be right, and is not
// sent again when the code runs again.
func (a *attempt) performCommit(ctx context.Context, reads []store.Read, writes []store.Write) Decision {
	if !driver.InTask(ctx) {
		return a.sites.Commit(ctx, Submission{Reads: reads, Writes: writes})
	}
	op := &driver.Operation{
		CallSite: a.client.commit, Conn: a.client.name, Identity: a.snapshot + identity(a.priority, reads, writes),
		Transport: &committing{a, reads, writes},
	}
	if sites, ok := a.sites.(Speculator); ok && a.client.local != nil {
		op.CallSite, op.Domain, op.CanSpeculate = a.client.local, a.client.domain, true
		op.Transport = &speculating{committing: committing{a, reads, writes}, sites: sites}
	}
	v, err := driver.Perform(ctx, op)
	d, ok := v.(Decision)
	if err != nil || !ok {
		// The engine gave the run up, or its context ended, before or after the commit left.
		return Decision{Txn: store.Txn{Priority: a.priority}, Outcome: store.Outcome{Verdict: store.Unknown}}
	}
	return d
}

// identity is equal for equal transactions. Those that are made one after the other are told apart
// by their order.
func identity(p store.Priority, reads []store.Read, writes []store.Write) string {
	var b []byte
	version := func(v store.Version) {
		b = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(b, v.Time), uint64(v.Client))
	}
	text := func(s string) { b = append(binary.AppendUvarint(b, uint64(len(s))), s...) }
	version(store.Version{Time: p.Began, Client: p.Client})
	b = binary.AppendUvarint(b, uint64(len(reads)))
	for _, r := range reads {
		text(string(r.Key))
		version(r.Version)
	}
	for _, w := range writes {
		text(string(w.Key))
		if w.Delete {
			b = append(b, 0)
			continue
		}
		b = append(b, 1)
		text(string(w.Bytes))
	}
	return string(b)
}

// committing is a commit as the engine sees it. It is never predicted.
type committing struct {
	attempt *attempt
	reads   []store.Read
	writes  []store.Write
}

// Start implements driver.Transport.
func (c *committing) Start(ctx context.Context, a *driver.Attempt) {
	client := c.attempt.client
	client.stats.attempts.Add(1)
	start := time.Now()
	go func() {
		d := c.attempt.sites.Commit(ctx, Submission{Reads: c.reads, Writes: c.writes})
		took := time.Since(start)
		client.attempted(Attempted{Mode: client.cfg.Mode, Outcome: d.Outcome, Took: took, SinceFirst: took})
		a.Finish(d, nil)
	}()
}

// Ended implements driver.Ender: who gives up while the commit is under way does not know its
// outcome.
func (c *committing) Ended(err error) error { return &UnknownError{Err: plainEnd{err}} }

// Equal implements driver.Transport.
func (c *committing) Equal(_, _ any) bool { return false }

// Same implements driver.Transport.
func (c *committing) Same(_, _ any) bool { return false }

// Accept implements driver.Transport.
func (c *committing) Accept(any) (any, bool) { return nil, false }

// Resolve asks again for the outcome of a transaction that was unknown or blocked. nil: it is
// committed.
func (c *Client) Resolve(ctx context.Context, txn store.Txn) error {
	if err := foresay.Barrier(ctx); err != nil {
		return &UnknownError{Txn: txn, Err: err}
	}
	d := c.cfg.Backend.Resolve(ctx, txn)
	if d.Outcome.Verdict == store.Rejected {
		d.Outcome.Verdict = store.Unknown // the question was rejected, not the transaction
	}
	return unsure(ctx, failure(d, 1))
}
