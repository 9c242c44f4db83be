package front

import (
	"context"

	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/client"
)

// An attempt is one try of a transaction over a connection.
type attempt struct {
	c *Conn
	b client.Beginning
}

// Begin implements client.Backend.
func (c *Conn) Begin(b client.Beginning) client.Attempt { return &attempt{c: c, b: b} }

// Read implements client.Attempt.
func (a *attempt) Read(ctx context.Context, key store.Key, first func(client.Answer)) (client.Answer, error) {
	return a.c.get(ctx, store.Get{Key: key, Priority: a.b.Priority}, first)
}

// ReadNearest implements client.Attempt.
func (a *attempt) ReadNearest(ctx context.Context, key store.Key) (client.Answer, error) {
	return a.c.get(ctx, store.Get{Key: key, Priority: a.b.Priority, Nearest: true}, nil)
}

// Commit implements client.Attempt.
func (a *attempt) Commit(ctx context.Context, s client.Submission) client.Decision {
	return a.c.commit(ctx, store.Submit{Priority: a.b.Priority, Reads: s.Reads, Writes: s.Writes, Hold: s.Hold})
}

// Stale implements client.Attempt: the sites validate the reads as those of a transaction that
// writes nothing.
func (a *attempt) Stale(ctx context.Context, reads []store.Read) bool {
	o := a.c.commit(ctx, store.Submit{Reads: reads}).Outcome
	return o.Verdict == store.Aborted && o.Reason == store.StaleRead
}

// End implements client.Attempt.
func (a *attempt) End() {}
