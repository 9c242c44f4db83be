package client

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/foresay/foresay/driver"

	"github.com/foresay/foresay"
	"github.com/foresay/foresay/store"
)

// txn is a transaction with all its attempts. Only the goroutine that makes them uses it: runs that
// are given up may still be going on, and know their attempt only.
type txn struct {
	client   *Client
	options  options
	class    string
	began    time.Time
	tracer   *tracer // nil: none is wanted
	priority store.Priority
	attempts int
	refused  store.Reason // the last attempt, if it was
	quorum   bool         // guesses do not get on: a quorum is asked
	// seeds are what the refusal of a predicated attempt told.
	seeds map[store.Key]store.Value
	// blocked are keys that the refusal said were about to change.
	blocked []store.Key
	// tentative is nil for a transaction that is told when it is final.
	tentative *tentative
	// predictions is how often the predictor was asked for keys: maxPredictions if it was wrong.
	predictions map[store.Key]int
}

// maxPredictions is how often a transaction asks the client's predictor for a key: it may have been
// right when an attempt was refused for another reason.
const maxPredictions = 2

// attempt is one try of a transaction. It does not change, but for what is settled.
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
	reads      *reads
	sites      Attempt
	snapshot   string    // what tells its calls from those in other snapshots; in a task
	prepares   *prepares // nil: its reads are not predicated
	tentative  *tentative
	// unpredictable are keys that the predictor is not asked for.
	unpredictable map[store.Key]bool
}

// reads is what is known of an attempt's reads, those of all its runs.
type reads struct {
	mu      sync.Mutex
	settled map[store.Read]bool // answers that need no validation where they are all that a transaction did
	asked   map[store.Key]int   // how many reads of a key have no answer
	// predicted are keys that the client's predictor was asked for.
	predicted map[store.Key]bool
	// refuted is what keys hold that were guessed otherwise.
	refuted map[store.Key]store.Value
}

// predict notes that the client's predictor is asked for a key.
func (s *reads) predict(key store.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.predicted == nil {
		s.predicted = map[store.Key]bool{}
	}
	s.predicted[key] = true
}

// refute notes what a key holds in place of what was guessed.
func (s *reads) refute(key store.Key, v store.Value) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refuted == nil {
		s.refuted = map[store.Key]store.Value{}
	}
	s.refuted[key] = v
}

// ask notes that a key is asked for, or that an answer came.
func (s *reads) ask(key store.Key, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.asked == nil {
		s.asked = map[store.Key]int{}
	}
	s.asked[key] += n
}

func (s *reads) saw(key store.Key, a Answer) {
	s.ask(key, -1)
	if !a.Settled {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.settled == nil {
		s.settled = map[store.Read]bool{}
	}
	s.settled[store.Read{Key: key, Version: a.Value.Version}] = true
}

func (s *reads) isSettled(r store.Read) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.settled[r]
}

// predicatedTries is how many attempts of a transaction are predicated at most: the nearest site
// may be cut off from the others, and never know better.
const predicatedTries = 64

func newTxn(ctx context.Context, c *Client, o options) *txn {
	t := &txn{client: c, class: classOf(ctx), began: time.Now(), tracer: newTracer(ctx)}
	t.tentative = newTentative(ctx, c, &o)
	t.options = o
	return t
}

// begin begins an attempt.
func (t *txn) begin(ctx context.Context) *attempt {
	t.attempts++
	a := &attempt{client: t.client, number: t.attempts, mode: t.client.cfg.Mode, inTask: driver.InTask(ctx),
		began: time.Now(), priority: t.priority,
		reads: &reads{}, tentative: t.tentative}
	if a.mode == Auto {
		a.mode = t.client.control.choose(t.class)
	}
	if a.mode == Predicated && (a.inTask || t.quorum || t.attempts > predicatedTries) {
		a.mode = Spec // in a task, the commit waits for what that assumed before
	}
	if a.mode == Predicated && LevelOf(t.client.cfg.Backend) == Snapshot {
		a.mode = Spec // what it reads is right
	}
	b := Beginning{Priority: a.priority, Mode: a.mode, Level: t.options.level, Explain: t.tracer != nil}
	if _, ok := b.Level.MaxAge(); ok && (t.attempts > 1 || a.inTask) {
		// It writes, or could not be told as of one time. A task may have read long ago.
		b.Level = Strict
	} else if ok && a.mode == Predicated {
		a.mode, b.Mode = Spec, Spec // what it reads is right
	}
	if t.attempts == 1 && !a.inTask {
		// What a refused attempt has declared may be prepared for longer than the refusal takes to
		// get here, and would be in the way of the same keys.
		b.Reads, b.Writes = t.options.reads, t.options.writes
	}
	at := t.client.performBegin(ctx, b)
	a.sites, a.snapshot = at.sites, at.name
	a.trace = t.tracer.begin(a.number, b)
	if a.mode == Predicated {
		a.validation = newValidation(a, t.seeds)
		a.unpredictable = t.unpredictable()
		// As with what is declared: what a refused attempt has prepared is in the way.
		a.prepares = newPrepares(a.sites, b, t.client.cfg.PrepareEarly && t.attempts == 1)
	}
	if !a.inTask { // how long something takes must make no difference to a task
		a.watch = &watch{attempt: a}
		t.client.stats.attempts.Add(1)
	}
	return a
}

// commit asks for the outcome of what a run did. In a task it waits until the run is known to be
// the one that counts, and happens once however often the task's code runs. early says whether a
// transaction that is Tentative may be told at its local commit.
func (a *attempt) commit(
	ctx context.Context, reads []store.Read, writes []store.Write, early func() bool,
) Decision {
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
	// a task may have read long ago, for an earlier transaction
	if len(writes) == 0 && len(reads) == 1 && !a.inTask && a.reads.isSettled(reads[0]) {
		return Decision{Txn: store.Txn{Priority: a.priority, Reads: reads}, Outcome: store.Outcome{Verdict: store.Committed}}
	}
	if sites, ok := a.sites.(Speculator); ok && a.tentative != nil && early() {
		return a.tentative.commit(ctx, sites, Submission{Reads: reads, Writes: writes})
	}
	return a.performCommit(ctx, reads, writes)
}

// decided learns from what became of an attempt.
func (t *txn) decided(a *attempt, d Decision) {
	t.priority, t.refused = d.Txn.Priority, d.Outcome.Reason
	t.plant(a, d)
	if !a.inTask { // in a task, what is sent counts, when it is
		t.client.attempted(Attempted{Mode: a.mode, Outcome: d.Outcome, Took: time.Since(a.began),
			SinceFirst: time.Since(t.began)})
		if t.client.cfg.Mode == Auto {
			t.client.control.saw(t.class, a.mode, time.Since(a.began), d.Outcome.Verdict)
		}
	}
	a.trace.decided(d)
}

// unpredictable returns the keys that the client's predictor is not asked for any more.
func (t *txn) unpredictable() map[store.Key]bool {
	out := map[store.Key]bool{}
	for k, n := range t.predictions {
		if n >= maxPredictions {
			out[k] = true
		}
	}
	return out
}

// count keeps how the client's predictor has done in a refused attempt. Which guess was wrong, if
// something was that had been read, is not always told.
func (t *txn) count(s *reads, why store.Reason) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.predictions == nil {
		t.predictions = map[store.Key]int{}
	}
	for k := range s.predicted {
		if t.predictions[k]++; why == store.StaleRead {
			t.predictions[k] = maxPredictions
		}
	}
	for k, v := range s.refuted {
		t.predictions[k] = maxPredictions
		t.seed(k, v)
	}
}

// plant keeps what the next predicated attempt can take for granted, since the refusals say so.
func (t *txn) plant(a *attempt, d Decision) {
	t.seeds, t.blocked = nil, nil
	if a.validation == nil || d.Outcome.Verdict != store.Aborted {
		return
	}
	t.seeds = map[store.Key]store.Value{}
	t.count(a.reads, d.Outcome.Reason)
	a.prepares.known(t.seed)
	for _, c := range d.Current {
		switch {
		case !c.Locked:
			t.seed(c.Key, c.Value)
		case !slices.Contains(t.blocked, c.Key):
			t.blocked = append(t.blocked, c.Key)
		}
	}
}

// seed keeps the newest value that is known of a key.
func (t *txn) seed(key store.Key, v store.Value) {
	if old, ok := t.seeds[key]; !ok || v.Version.After(old.Version) {
		t.seeds[key] = v
	}
}

// settle waits until the keys that were about to change can be read at the nearest site, and keeps
// what they hold then. What fails is for the next attempt to find out.
func (t *txn) settle(ctx context.Context) {
	if len(t.blocked) == 0 {
		return
	}
	sites := t.client.cfg.Backend.Begin(Beginning{Priority: t.priority, Mode: Predicated})
	defer sites.End()
	answers := make([]*Answer, len(t.blocked))
	var all sync.WaitGroup
	for i, key := range t.blocked {
		all.Go(func() {
			if a, err := sites.ReadNearest(ctx, key); err == nil {
				answers[i] = &a
			}
		})
	}
	all.Wait()
	for i, key := range t.blocked {
		if answers[i] != nil {
			t.seed(key, answers[i].Value)
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
	t.settle(ctx)
	pause := func(ctx context.Context) (struct{}, error) {
		timer := time.NewTimer(rand.N(t.pause(d.Outcome.Reason)))
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

// patient is how many attempts of a transaction there are before its pauses are long: what is in
// the way may be blocked. Those that were tried most often are the oldest, so that others wait for
// them while they pause.
const patient = 64

// prompt is how many attempts of a transaction are made without a pause where older ones go first.
const prompt = 8

// pause returns what the pause before another attempt is shorter than. The sites keep what the
// transaction needs from younger ones, so there is little to wait for.
func (t *txn) pause(why store.Reason) time.Duration {
	backoff := t.client.cfg.Backoff
	switch {
	case why == store.StaleRead, why == store.StaleWrite:
		return 1 // nobody is in the way, now that the newer version is known
	case t.attempts > patient, why == store.Overloaded:
		return backoff << 6
	case why == store.Locked, why == store.Reserved && t.attempts <= prompt:
		return 1 // that was decided while the refusal was on its way, or the site has its reads wait for their turn
	}
	return backoff << min(t.attempts-1, 3)
}
