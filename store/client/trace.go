package client

import (
	"context"
	"sync"
	"time"

	"github.com/foresay/foresay/store"
)

// A Trace is what one attempt of a transaction waited for. All times are since the transaction
// began, its first attempt that is.
type Trace struct {
	Attempt int // 1 is the first
	Mode    Mode
	Level   Level // what it asked for; 0: what the store has
	Began   time.Duration
	// Declared says that it has declared keys as it began.
	Declared bool
	// Reads are the keys that were asked for, in that order. Those of runs that were given up are
	// among them.
	Reads []ReadTrace
	// Commit is when the commit request left, -1 if none did. By then all reads were known, but in
	// mode Predicated.
	Commit time.Duration
	Ended  time.Duration
	// Site is whose vote was the last that was needed; empty if none's.
	Site    string
	Txn     store.Txn // with its name, if it was submitted
	Outcome store.Outcome
	// At is the timestamp as of which it has read, if it was Stale and a site answered so, since 1970,
	// and Age how long ago that was when the first answer was given. 0: it has seen what there was.
	At, Age time.Duration
	// Failed says that the attempt ended without a commit: its context ended, or too few sites
	// answered.
	Failed bool
}

// A ReadTrace is one read.
type ReadTrace struct {
	Key       store.Key
	Asked     time.Duration
	First     time.Duration // when the first site answered, -1 if the quorum was there at once
	FirstSite string
	Known     time.Duration // when the quorum had answered, -1 if nobody waited for that
	KnownSite string        // whose answer was the last that was needed
	Version   store.Version // the quorum's
	Right     bool          // the first answer was that of the quorum or, if none was asked, was committed with
}

type traceKey struct{}

// WithTrace has f called with a Trace when an attempt of a transaction under the context ends. f
// must not wait long. Sites are asked to explain the outcome, where their protocol can
// (store.Outcome.Course).
func WithTrace(ctx context.Context, f func(*Trace)) context.Context {
	return context.WithValue(ctx, traceKey{}, f)
}

// tracer makes the traces of a transaction. A nil one makes none.
type tracer struct {
	tell  func(*Trace)
	start time.Time
}

func newTracer(ctx context.Context) *tracer {
	f, ok := ctx.Value(traceKey{}).(func(*Trace))
	if !ok || f == nil {
		return nil
	}
	return &tracer{tell: f, start: time.Now()}
}

// attemptTrace makes the trace of one attempt. A nil one makes none.
type attemptTrace struct {
	*tracer
	mu    sync.Mutex
	trace *Trace // nil: it was told
}

func (t *tracer) begin(attempt int, b Beginning) *attemptTrace {
	if t == nil {
		return nil
	}
	return &attemptTrace{tracer: t, trace: &Trace{Attempt: attempt, Mode: b.Mode, Level: b.Level,
		Began: time.Since(t.start), Declared: len(b.Reads)+len(b.Writes) > 0, Commit: -1}}
}

func (t *attemptTrace) commitBegins() {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.trace != nil {
		t.trace.Commit = time.Since(t.start)
	}
}

func (t *attemptTrace) decided(d Decision) {
	t.end(func(now *Trace) {
		now.Txn, now.Outcome, now.Site = d.Txn, d.Outcome, d.Site
		now.At, now.Age = time.Duration(d.At), d.Age
		if d.Txn.ID.IsZero() && d.Outcome.Verdict == store.Committed {
			now.Commit = -1 // what it read is all that it did, and needed nobody's word
		}
	})
}

// ended ends an attempt that did not come to a decision.
func (t *attemptTrace) ended() {
	t.end(func(now *Trace) { now.Failed = true })
}

func (t *attemptTrace) end(fill func(*Trace)) {
	if t == nil {
		return
	}
	t.mu.Lock()
	now := t.trace
	t.trace = nil
	t.mu.Unlock()
	if now == nil {
		return
	}
	now.Ended = time.Since(t.start)
	fill(now)
	t.tell(now)
}

// readTracer notes one read. A nil one notes nothing.
type readTracer struct {
	t     *attemptTrace
	i     int
	guess *store.Version
}

func (t *attemptTrace) read(key store.Key) *readTracer {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.trace == nil {
		return nil // of a run that was given up
	}
	t.trace.Reads = append(t.trace.Reads, ReadTrace{Key: key, Asked: time.Since(t.start), First: -1, Known: -1})
	return &readTracer{t: t, i: len(t.trace.Reads) - 1}
}

func (r *readTracer) first(a Answer) {
	if r == nil {
		return
	}
	r.t.mu.Lock()
	defer r.t.mu.Unlock()
	if r.t.trace == nil {
		return
	}
	read := &r.t.trace.Reads[r.i]
	read.First, read.FirstSite = time.Since(r.t.start), a.Site
	r.guess = &a.Value.Version
}

// right notes that the commit has confirmed the first answer.
func (r *readTracer) right() {
	if r == nil {
		return
	}
	r.t.mu.Lock()
	defer r.t.mu.Unlock()
	if r.t.trace != nil {
		read := &r.t.trace.Reads[r.i]
		read.Right = true
		if r.guess != nil {
			read.Version = *r.guess
		}
	}
}

func (r *readTracer) done(a Answer, err error) {
	if r == nil || err != nil {
		return
	}
	r.t.mu.Lock()
	defer r.t.mu.Unlock()
	if r.t.trace == nil {
		return
	}
	read := &r.t.trace.Reads[r.i]
	read.Known, read.KnownSite, read.Version = time.Since(r.t.start), a.Site, a.Value.Version
	read.Right = r.guess != nil && *r.guess == a.Value.Version
}
