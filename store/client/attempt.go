package client

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/foresay/foresay"
	"github.com/foresay/foresay/store"
)

// txn is a transaction with all its attempts. Only the goroutine that makes them uses it: runs that are given up may still be going on, and know their attempt only.
type txn struct {
	client   *Client
	class    string
	tracer   *tracer // nil: none is wanted
	priority store.Priority
	attempts int
	quorum   bool        // guesses do not get on: a quorum is asked
	wanted   []store.Key // by the last attempt
	// seeds are what the refusal of a predicated attempt told.
	seeds map[store.Key]store.Value
}

// attempt is one try of a transaction. It does not change.
type attempt struct {
	client     *Client
	number     int // 1 is the first
	mode       Mode
	inTask     bool // of the application's own
	began      time.Time
	priority   store.Priority // zero in the first
	trace      *attemptTrace  // nil: none is wanted
	validation *validation    // nil: the commit is sent when all reads are known
	watch      *watch         // nil: in a task
}

// predicatedTries is how many attempts of a transaction are predicated at most: the nearest site may be cut off from the others, and never know better.
const predicatedTries = 24

func newTxn(ctx context.Context, c *Client) *txn {
	return &txn{client: c, class: classOf(ctx), tracer: newTracer(ctx)}
}

// begin begins an attempt. What the last one wanted is reserved at all sites.
func (t *txn) begin(ctx context.Context) *attempt {
	t.attempts++
	a := &attempt{client: t.client, number: t.attempts, mode: t.client.cfg.Mode, inTask: foresay.InTask(ctx), began: time.Now(), priority: t.priority}
	if a.mode == Auto {
		a.mode = t.client.control.choose(t.class)
	}
	if a.mode == Predicated && (a.inTask || t.quorum || t.attempts > predicatedTries) {
		a.mode = Spec // in a task, the commit waits for what that assumed before
	}
	a.trace = t.tracer.begin(a.number, a.mode)
	if a.mode == Predicated {
		a.validation = newValidation(a, t.seeds)
	}
	if !a.inTask { // how long something takes must make no difference to a task
		a.watch = &watch{attempt: a}
		t.client.stats.attempts.Add(1)
	}
	if t.attempts > 1 && len(t.wanted) > 0 {
		t.client.cfg.Backend.Reserve(t.wanted, t.priority)
	}
	return a
}

// commit asks for the outcome of what a run did. In a task it waits until the run is known to be the one that counts, and happens once however often the task's code runs.
func (a *attempt) commit(ctx context.Context, reads []store.Read, writes []store.Write) Decision {
	if len(reads)+len(writes) == 0 {
		return Decision{Outcome: store.Outcome{Verdict: store.Committed}}
	}
	if err := store.ValidAccesses(reads, writes); err != nil {
		return Decision{Outcome: store.Outcome{Verdict: store.Rejected, Detail: err.Error()}}
	}
	if ctx.Err() != nil && !a.inTask { // a task knows what it sent before
		return Decision{Txn: store.Txn{Priority: a.priority}, Outcome: store.Outcome{Verdict: store.Aborted}}
	}
	a.trace.commitBegins()
	return a.client.performCommit(ctx, a.priority, reads, writes)
}

// decided learns from what became of an attempt.
func (t *txn) decided(a *attempt, d Decision) {
	t.priority = d.Txn.Priority
	t.want(d)
	t.plant(a, d)
	if !a.inTask { // in a task, what is sent counts, when it is
		t.client.stats.count(d.Outcome)
		if t.client.cfg.Mode == Auto {
			t.client.control.saw(t.class, a.mode, time.Since(a.began), d.Outcome.Verdict)
		}
	}
	a.trace.decided(d)
}

// maxWanted bounds the keys that are reserved for another attempt.
const maxWanted = 64

// want keeps which keys the next attempt reserves: those that it may not read itself at all sites.
func (t *txn) want(d Decision) {
	t.wanted = t.wanted[:0]
	for _, w := range d.Txn.Writes {
		t.wanted = append(t.wanted, w.Key)
	}
	for _, r := range d.Txn.Reads {
		if _, ok := slices.BinarySearchFunc(d.Txn.Writes, r.Key, func(w store.Write, k store.Key) int { return cmp.Compare(w.Key, k) }); !ok {
			t.wanted = append(t.wanted, r.Key)
		}
	}
	t.wanted = t.wanted[:min(len(t.wanted), maxWanted)]
}

// plant keeps what the next predicated attempt can take for granted, since the refusals say so.
func (t *txn) plant(a *attempt, d Decision) {
	t.seeds = nil
	if a.validation == nil || d.Outcome.Verdict != store.Aborted {
		return
	}
	t.seeds = map[store.Key]store.Value{}
	for _, c := range d.Current {
		if old, ok := t.seeds[c.Key]; !c.Locked && (!ok || c.Value.Version.After(old.Version)) {
			t.seeds[c.Key] = c.Value
		}
	}
	for _, c := range d.Current {
		if c.Locked {
			delete(t.seeds, c.Key) // the nearest site answers when it has changed
		}
	}
}

// again waits before another attempt, or returns why there is none.
func (t *txn) again(ctx context.Context, d Decision) error {
	failed := &AbortedError{Reason: d.Outcome.Reason, Attempts: t.attempts}
	if t.attempts == t.client.cfg.MaxAttempts {
		failed.Err = context.Cause(ctx)
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
