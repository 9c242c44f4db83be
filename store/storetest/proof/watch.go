package proof

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/client"
)

// forTxn returns a context of a transaction. Those of one task have a group: the engine may answer
// one's read with what it asked for another one.
func forTxn(ctx context.Context, n, group int) context.Context {
	return context.WithValue(ctx, txnKey{}, [2]int{n, group})
}

type txnKey struct{}

func txnOf(ctx context.Context) (n, group int) {
	v := ctx.Value(txnKey{}).([2]int)
	return v[0], v[1]
}

// A commitCall is one call of Commit.
type commitCall struct {
	begin, end time.Duration
	reads      []store.Read
	writes     []store.Write
	decision   client.Decision
	ended      bool
	ahead      bool // it may be made for code that is wrong, and is made again then
}

// A watch stands between a client and its connection. It notes each commit of its attempts, and
// objects to those that must not be.
type watch struct {
	client.Backend
	world *world
	near  bool // commits may rest on the nearest site's answers

	mu    sync.Mutex
	known map[int]map[store.Read]bool // by group: what it may rest on
	calls map[int][]*commitCall       // by transaction

	settled map[int]map[store.Key][]store.Value // by transaction: answers that need no validation
}

func newWatch(w *world, b client.Backend, m client.Mode) *watch {
	return &watch{Backend: b, world: w, near: m == client.Predicated || m == client.Auto,
		known: map[int]map[store.Read]bool{}, calls: map[int][]*commitCall{},
		settled: map[int]map[store.Key][]store.Value{}}
}

// A watched attempt is one that a watch looks at.
type watched struct {
	client.Attempt
	*watch
}

// Begin implements client.Backend.
func (w *watch) Begin(b client.Beginning) client.Attempt { return watched{w.Backend.Begin(b), w} }

func (w watched) Read(ctx context.Context, key store.Key, first func(client.Answer)) (client.Answer, error) {
	a, err := w.Attempt.Read(ctx, key, first)
	if err == nil {
		w.know(ctx, key, a)
		w.settle(ctx, key, a)
	}
	return a, err
}

func (w *watch) settle(ctx context.Context, key store.Key, a client.Answer) {
	if !a.Settled {
		return
	}
	n, _ := txnOf(ctx)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.settled[n] == nil {
		w.settled[n] = map[store.Key][]store.Value{}
	}
	w.settled[n][key] = append(w.settled[n][key], a.Value)
}

// readAlone notes the commit of a transaction that needed none: it did nothing but read a key,
// outside of a task, and a settled answer is what it saw. The history says whether that was right.
func (w *watch) readAlone(t *txn) {
	if t.nested || t.run == nil || len(t.run.reads) != 1 || len(t.run.writes) > 0 && !t.run.failed {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if calls := w.calls[t.n]; len(calls) > 0 && calls[len(calls)-1].decision.Outcome.Verdict != store.Aborted {
		return
	}
	for key, saw := range t.run.reads {
		for _, v := range slices.Backward(w.settled[t.n][store.Key(key)]) {
			if v.Present == saw.ok && string(v.Bytes) == saw.value {
				w.calls[t.n] = append(w.calls[t.n], &commitCall{
					reads: []store.Read{{Key: store.Key(key), Version: v.Version}}, ended: true,
					decision: client.Decision{Txn: store.Txn{ID: store.TxnID{Time: 1, Client: 1}},
						Outcome: store.Outcome{Verdict: store.Committed}},
				})
				return
			}
		}
	}
}

// Prepare implements client.Preparer.
func (w watched) Prepare(ctx context.Context, reads, writes []store.Key, took func(map[store.Key]client.Answer)) {
	p, ok := w.Attempt.(client.Preparer)
	if !ok {
		return
	}
	n, _ := txnOf(ctx)
	p.Prepare(ctx, reads, writes, func(values map[store.Key]client.Answer) {
		w.mu.Lock()
		for k, a := range values { // the next attempt may rest on them, too
			w.relyLocked(n, store.Read{Key: k, Version: a.Value.Version})
		}
		w.mu.Unlock()
		took(values)
	})
}

func (w *watch) relyLocked(group int, r store.Read) {
	if w.known[group] == nil {
		w.known[group] = map[store.Read]bool{}
	}
	w.known[group][r] = true
}

func (w watched) ReadNearest(ctx context.Context, key store.Key) (client.Answer, error) {
	a, err := w.Attempt.ReadNearest(ctx, key)
	if err == nil && w.near {
		w.know(ctx, key, a)
	}
	return a, err
}

func (w *watch) know(ctx context.Context, key store.Key, a client.Answer) {
	_, group := txnOf(ctx)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.relyLocked(group, store.Read{Key: key, Version: a.Value.Version})
}

func (w watched) Commit(ctx context.Context, s client.Submission) client.Decision {
	return w.commit(ctx, s, false, w.Attempt.Commit)
}

// Speculates reports whether the store answers at local commits.
func (w *watch) Speculates() bool {
	b, ok := w.Backend.(interface{ Speculates() bool })
	return ok && b.Speculates()
}

// Speculate implements client.Speculator.
func (w watched) Speculate(ctx context.Context, s client.Submission, how client.Speculation) client.Decision {
	return w.commit(ctx, s, true, func(ctx context.Context, s client.Submission) client.Decision {
		return w.Attempt.(client.Speculator).Speculate(ctx, s, how)
	})
}

// commit notes a commit. One that is made ahead may be made for code that is wrong, and again
// before it has ended: of all of them one may be committed.
func (w watched) commit(
	ctx context.Context, s client.Submission, ahead bool,
	commit func(context.Context, client.Submission) client.Decision,
) client.Decision {
	n, group := txnOf(ctx)
	c := &commitCall{begin: w.world.now(), reads: slices.Clone(s.Reads), writes: slices.Clone(s.Writes),
		ahead: ahead}
	w.mu.Lock()
	if w.known[n] == nil {
		w.known[n] = map[store.Read]bool{}
	}
	for _, r := range s.Reads {
		if !w.known[group][r] && !w.world.sc.blind {
			w.world.fail(fmt.Errorf("transaction %d commits with %q in version %v, which nobody it may rely on has answered", n,
				r.Key, r.Version))
		}
	}
	for _, before := range w.calls[n] {
		if !ahead && (!before.ended || before.decision.Outcome.Verdict != store.Aborted) && !w.world.sc.blind {
			w.world.fail(fmt.Errorf("transaction %d is tried again, after it was %v", n, before.decision.Outcome.Verdict))
		}
	}
	w.calls[n] = append(w.calls[n], c)
	w.mu.Unlock()
	d := commit(ctx, s)
	w.mu.Lock()
	for _, o := range w.calls[n] {
		if o.ended && o.decision.Outcome.Verdict == store.Committed && d.Outcome.Verdict == store.Committed {
			w.world.fail(fmt.Errorf("transaction %d is committed twice, as %v and %v", n, o.decision.Txn.ID, d.Txn.ID))
		}
	}
	c.decision, c.end, c.ended = d, w.world.now(), true
	for _, now := range d.Current {
		if w.near && !now.Locked {
			w.known[n][store.Read{Key: now.Key, Version: now.Value.Version}] = true // the next attempt rests on it
		}
	}
	w.mu.Unlock()
	return d
}

// attempts returns the commits of a transaction: the last one is that which is committed, if any
// is.
func (w *watch) attempts(n int) []commitCall {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []commitCall
	for _, c := range w.calls[n] {
		out = append(out, *c)
	}
	slices.SortStableFunc(out, func(a, b commitCall) int { return int(a.rank()) - int(b.rank()) })
	return out
}

func (c *commitCall) rank() (n uint8) {
	if c.ended && c.decision.Outcome.Verdict == store.Committed {
		return 1
	}
	return 0
}
