package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/foresay/foresay"
	"github.com/foresay/foresay/store"
)

// Client makes transactions. Its methods may be called concurrently.
type Client struct {
	cfg     Config
	read    *foresay.Site // what speculates
	commit  *foresay.Site
	control controller
	hot     contended
	name    string // of the client as a connection, to the engine
	stats   counters
}

// New returns a client. The error names the field of the configuration that is wrong.
func New(cfg Config) (*Client, error) {
	switch {
	case cfg.Backend == nil:
		return nil, errors.New("client: Config.Backend is missing")
	case int(cfg.Mode) >= len(modeNames()):
		return nil, fmt.Errorf("client: Config.Mode is %d", cfg.Mode)
	case cfg.MaxAttempts < 0 || cfg.Backoff < 0 || cfg.QuorumAfter < 0:
		return nil, fmt.Errorf("client: Config.MaxAttempts, Backoff or QuorumAfter of %d, %v, %v is negative", cfg.MaxAttempts, cfg.Backoff, cfg.QuorumAfter)
	}
	cfg.Backoff = cmp.Or(cfg.Backoff, 50*time.Millisecond)
	cfg.QuorumAfter = cmp.Or(cfg.QuorumAfter, 500*time.Millisecond)
	cfg.Limits.Depth = cmp.Or(cfg.Limits.Depth, store.MaxAccesses)
	c := &Client{cfg: cfg}
	c.name = fmt.Sprintf("store@%p", c)
	mode := foresay.ModeOn
	if cfg.Mode == Off || cfg.Mode == GRPC {
		mode = foresay.ModeOff
	}
	var err error
	if c.read, err = foresay.NewSite(foresay.SiteConfig{Name: "store.Read", Mode: mode, Effect: foresay.EffectNone}); err != nil {
		return nil, err
	}
	c.commit, err = foresay.NewSite(foresay.SiteConfig{Name: "store.Commit", Mode: foresay.ModeOff, Effect: foresay.EffectImmediate})
	return c, err
}

// Txn runs f as a transaction, again until it is committed: see the package's documentation for what f may do. The error is f's own, if that rests on valid reads; one of this package's,
// which say what became of the transaction; or ctx's.
func (c *Client) Txn(ctx context.Context, f func(ctx context.Context, tx *Tx) error) error {
	_, err := Run(ctx, c, func(ctx context.Context, tx *Tx) (struct{}, error) { return struct{}{}, f(ctx, tx) })
	return err
}

// Run is Txn with a result.
func Run[T any](ctx context.Context, c *Client, f func(ctx context.Context, tx *Tx) (T, error)) (T, error) {
	var zero T
	t := newTxn(ctx, c)
	for {
		t.begin(ctx)
		attempt, end := t.watched(ctx)
		out, err := once(attempt, t, f)
		end()
		var d Decision
		switch sent := t.validation.wait(); {
		case sent != nil:
			d = t.decided(*sent)
		case err != nil && t.watch.failed() && ctx.Err() == nil:
			d = t.decided(Decision{Txn: store.Txn{Priority: t.priority}, Outcome: store.Outcome{Verdict: store.Aborted, Reason: store.StaleRead}})
		case err != nil:
			return zero, t.ended(err)
		default:
			d = t.commit(ctx, out.reads, out.writes)
		}
		switch {
		case d.Outcome.Verdict == store.Committed && out.panicked != nil:
			panic(out.panicked)
		case d.Outcome.Verdict == store.Committed:
			return out.value, out.err
		case d.Outcome.Verdict != store.Aborted:
			return zero, unsure(ctx, failure(d, t.attempts))
		}
		if err := t.again(ctx, d); err != nil {
			return zero, err
		}
	}
}

// unsure adds why nobody waited longer.
func unsure(ctx context.Context, err error) error {
	if u, ok := errors.AsType[*UnknownError](err); ok {
		u.Err = context.Cause(ctx)
	}
	return err
}

// An outcome is what a run of the user's function comes to.
type outcome[T any] struct {
	value    T
	err      error
	panicked any // not nil: it did
	reads    []store.Read
	writes   []store.Write
}

// once runs the function once, as far as it knows; with the engine that is one task of as many runs as it takes. The error says that there is no outcome.
func once[T any](ctx context.Context, t *txn, f func(ctx context.Context, tx *Tx) (T, error)) (outcome[T], error) {
	if t.mode == GRPC {
		return play(ctx, t, f)
	}
	var submitted outcome[T] // of the run whose commit has left: it alone counts, whatever becomes of the task
	if t.validation != nil {
		var cancel context.CancelCauseFunc
		ctx, cancel = context.WithCancelCause(ctx)
		defer cancel(nil)
		defer t.validation.begin(ctx, cancel)()
	}
	out, err := foresay.Do(ctx, func(ctx context.Context) (outcome[T], error) {
		out, err := play(ctx, t, f)
		if err == nil && t.validation != nil {
			t.validation.submit(ctx, out.reads, out.writes, func() { submitted = out })
		}
		return out, err
	}, foresay.WithName("txn"), foresay.WithLimits(t.client.cfg.Limits))
	if t.validation.hasLeft() {
		return submitted, nil
	}
	return out, err
}

// play is one run. What the function fails with is an outcome too, which must stand on valid reads; it writes nothing then. Only what ended its reads is an error.
func play[T any](ctx context.Context, t *txn, f func(ctx context.Context, tx *Tx) (T, error)) (out outcome[T], err error) {
	tx := &Tx{txn: t}
	t.watch.note(tx)
	returned := false
	defer func() {
		if returned {
			return
		}
		p := recover()
		if p == nil || tx.failed() != nil {
			err = tx.failed() // nil: runtime.Goexit
			if p != nil {
				panic(p)
			}
			return
		}
		out.panicked = p
		out.reads, _ = tx.accesses()
	}()
	out.value, out.err = f(ctx, tx)
	returned = true
	if err := tx.failed(); err != nil {
		return out, err
	}
	out.reads, out.writes = tx.accesses()
	if out.err != nil {
		out.writes = nil
	}
	return out, nil
}

// txn is a transaction with all its attempts.
type txn struct {
	client   *Client
	class    string
	mode     Mode      // of the present attempt
	began    time.Time // the present attempt
	priority store.Priority
	attempts int
	// rival says that others wanted the keys at the same time: reads reserve them at all sites then.
	rival  bool
	wanted []store.Key // by the last attempt, which did not read them itself
	// seeds are what a predicated attempt takes for granted, since the last one ended with it.
	seeds map[store.Key]store.Value
	trace *tracer // nil: none is wanted
	// validation is that of the present attempt; nil if its commit is sent when all reads are known.
	validation *validation
	watch      *watch // of the present attempt; nil in a task
}

func newTxn(ctx context.Context, c *Client) *txn {
	return &txn{client: c, class: classOf(ctx), trace: newTracer(ctx)}
}

// begin begins an attempt. Keys that were written blindly are reserved, as those that are read are by reading.
func (t *txn) begin(ctx context.Context) {
	t.attempts++
	t.began, t.validation = time.Now(), nil
	if t.mode = t.client.cfg.Mode; t.mode == Auto {
		t.mode = t.client.control.choose(t.class)
	}
	if t.mode == Predicated && (foresay.InTask(ctx) || t.rival) {
		t.mode = Spec // the commit waits for what the task assumed before
	}
	if t.mode == Predicated {
		t.validation = newValidation(t)
	}
	t.trace.begin(t.attempts, t.mode)
	t.client.stats.attempts.Add(1)
	if t.attempts > 1 && len(t.wanted) > 0 {
		t.client.cfg.Backend.Reserve(t.wanted, t.priority)
	}
}

// commit asks for the outcome of what a run did. In a task it waits until the run is known to be the one that counts, and happens once however often the task's code runs.
func (t *txn) commit(ctx context.Context, reads []store.Read, writes []store.Write) Decision {
	if len(reads)+len(writes) == 0 {
		return t.decided(Decision{Outcome: store.Outcome{Verdict: store.Committed}})
	}
	if err := store.ValidAccesses(reads, writes); err != nil {
		return t.decided(Decision{Outcome: store.Outcome{Verdict: store.Rejected, Detail: err.Error()}})
	}
	if ctx.Err() != nil && !foresay.InTask(ctx) { // a task knows what it sent before
		return t.decided(Decision{Txn: store.Txn{Priority: t.priority}, Outcome: store.Outcome{Verdict: store.Aborted}})
	}
	t.trace.commitBegins()
	return t.decided(t.client.performCommit(ctx, t.priority, reads, writes))
}

func (t *txn) decided(d Decision) Decision {
	t.priority = d.Txn.Priority
	t.wanted = t.wanted[:0]
	for _, w := range d.Txn.Writes {
		t.wanted = append(t.wanted, w.Key)
	}
	t.rival = t.rival || d.Outcome.Verdict == store.Aborted && d.Outcome.Reason != store.StaleRead
	for _, c := range d.Current {
		if c.Locked {
			t.client.hot.note(c.Key)
		}
	}
	t.plant(d)
	t.client.stats.count(d.Outcome)
	if t.client.cfg.Mode == Auto {
		t.client.control.saw(t.class, t.mode, time.Since(t.began), d.Outcome.Verdict)
	}
	t.trace.decided(d)
	return d
}

// ended is what the transaction fails with.
func (t *txn) ended(err error) error {
	t.trace.ended()
	return err
}

// again waits before another attempt, or returns why there is none.
func (t *txn) again(ctx context.Context, d Decision) error {
	failed := &AbortedError{Reason: d.Outcome.Reason, Attempts: t.attempts}
	if t.attempts == t.client.cfg.MaxAttempts {
		return failed
	}
	pause := func(ctx context.Context) (struct{}, error) {
		longest := t.client.cfg.Backoff << min(t.attempts-1, 3)
		if r := d.Outcome.Reason; r == store.StaleRead || r == store.StaleWrite {
			longest = 1 // nobody is in the way, now that the newer version is known
		}
		timer := time.NewTimer(rand.N(longest))
		defer timer.Stop()
		select {
		case <-timer.C:
			return struct{}{}, nil
		case <-ctx.Done():
			return struct{}{}, context.Cause(ctx)
		}
	}
	// In a task that runs again, the pause is over if it was, whatever became of the context since.
	_, failed.Err = foresay.Act(ctx, fmt.Sprintf("%s: pause after %v", t.client.name, d.Txn.ID), pause)
	if failed.Err != nil {
		return failed
	}
	return nil
}
