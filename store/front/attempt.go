package front

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/client"
)

// An attempt is one try of a transaction over a connection. What it has declared is asked for as it
// begins: it is read, and prepared if it writes and the protocol does so. Of a protocol that reads
// at timestamps, what is declared to be read only is a transaction of its own. Whatever comes of
// that, the attempt reads and commits all the same.
type attempt struct {
	c     *Conn
	b     client.Beginning
	begun *declaration           // nil: nothing is prepared, or read at one time
	early map[store.Key]*reading // reads that are under way from the beginning
	stale *snapshot              // nil: it sees what there is
	steps *steps                 // nil: it reads no snapshot

	mu    sync.Mutex
	ref   uint64 // of the Declare that has begun what is prepared; zero: nothing is
	ended bool   // what is prepared now would have nobody who ends it
}

// A declaration is what was declared and is prepared, or read at one time.
type declaration struct {
	w    *waiter
	ref  uint64
	done chan struct{}
	got  store.Declared // once done is closed
}

// A reading is a read that the transaction's function may not have asked for yet.
type reading struct {
	w       *waiter
	nearest bool
	first   chan struct{}
	guess   client.Answer // once first is closed
	done    chan struct{}
	got     store.Got // once done is closed
}

// Begin implements client.Backend.
func (c *Conn) Begin(b client.Beginning) client.Attempt {
	a := &attempt{c: c, b: b, early: map[store.Key]*reading{}}
	if c.cfg.Protocol.Steps {
		a.steps = newSteps(c, b.Reads)
		return a
	}
	view := len(b.Writes) == 0
	if maxAge, ok := b.Level.MaxAge(); ok && view && c.cfg.Protocol.Stale {
		if a.stale = newSnapshot(c, maxAge); len(b.Reads) == 0 {
			return a
		}
	}
	if c.cfg.Protocol.Declares && (!view || c.cfg.Protocol.Clocked && len(b.Reads) > 0) {
		m := store.Declare{Reads: b.Reads, Writes: b.Writes, Serializable: b.Level == client.Serializable,
			Priority: b.Priority}
		if a.stale != nil {
			m.MaxAge = a.stale.maxAge
			a.begun = c.declare(m, func(got store.Declared) { a.stale.note(b.Reads, got) })
			return a
		}
		if a.begun = c.declare(m, nil); !view {
			a.ref = a.begun.ref
			c.begins(a.ref)
		}
		if b.Mode != client.Spec && (view || b.Mode != client.Predicated) {
			// Reads come with it, and nobody wants guesses: those of a transaction in mode Predicated
			// would have to be right, and what it gets otherwise is.
			return a
		}
	}
	for _, k := range b.Reads {
		a.early[k] = c.begin(store.Get{Key: k, Priority: b.Priority,
			Nearest: a.begun != nil || b.Mode == client.Predicated})
	}
	return a
}

// declare asks for what a transaction is going to read and to write. took gets the answer before
// anybody else, if it is not nil.
func (c *Conn) declare(m store.Declare, took func(store.Declared)) *declaration {
	d := &declaration{done: make(chan struct{})}
	d.w, d.ref = c.askFor(nil, func(m store.Message) {
		if d.got, _ = m.(store.Declared); took != nil {
			took(d.got)
		}
		close(d.done)
	}, func(ref uint64) store.Message {
		m.Ref = ref
		return m
	})
	return d
}

// begin begins a read.
func (c *Conn) begin(get store.Get) *reading {
	r := &reading{nearest: get.Nearest, first: make(chan struct{}), done: make(chan struct{})}
	r.w, _ = c.askFor(func(first client.Answer) {
		r.guess = first
		close(r.first)
	}, func(m store.Message) {
		r.got, _ = m.(store.Got)
		close(r.done)
	}, func(ref uint64) store.Message {
		get.Ref = ref
		return get
	})
	return r
}

// Prepare implements client.Preparer.
func (a *attempt) Prepare(
	_ context.Context, reads, writes []store.Key, took func(map[store.Key]client.Answer),
) {
	if !a.c.cfg.Protocol.Declares {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ended {
		return
	}
	m := store.Declare{Reads: reads, Writes: writes, Begun: a.ref, General: a.ref == 0, Priority: a.b.Priority}
	d := a.c.declare(m, func(got store.Declared) {
		if !got.OK {
			return
		}
		values := map[store.Key]client.Answer{}
		for i, v := range got.Values {
			if !v.Large {
				values[reads[i]] = client.Answer{Value: v.Value, Site: a.c.site(int(v.Site))}
			}
		}
		took(values)
	})
	if m.General {
		a.ref = d.ref
		a.c.begins(a.ref)
	}
}

// begunAs returns the Ref by which the node knows what the attempt has begun, zero if that is
// nothing.
func (a *attempt) begunAs() uint64 {
	if a.steps != nil {
		return a.steps.begun()
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ref == 0 && a.begun != nil {
		return a.begun.ref
	}
	return a.ref
}

// Read implements client.Attempt.
func (a *attempt) Read(ctx context.Context, key store.Key, first func(client.Answer)) (client.Answer, error) {
	return a.read(ctx, store.Get{Key: key, Priority: a.b.Priority}, first)
}

// ReadNearest implements client.Attempt.
func (a *attempt) ReadNearest(ctx context.Context, key store.Key) (client.Answer, error) {
	return a.read(ctx, store.Get{Key: key, Priority: a.b.Priority, Nearest: true}, func(client.Answer) {})
}

// read returns what was declared and has come, or is on its way; else it asks.
func (a *attempt) read(ctx context.Context, get store.Get, first func(client.Answer)) (client.Answer, error) {
	if a.steps != nil {
		return a.steps.get(ctx, get.Key)
	}
	if a.stale != nil {
		if answer, ok, err := a.readStale(ctx, get.Key); ok || err != nil {
			return answer, err
		}
		return a.c.get(ctx, get, first)
	}
	var declared, guess, answered <-chan struct{}
	i := -1
	if a.begun != nil {
		if i, _ = slices.BinarySearch(a.b.Reads, get.Key); i < len(a.b.Reads) && a.b.Reads[i] == get.Key {
			declared = a.begun.done
		}
	}
	r := a.early[get.Key]
	if r != nil {
		guess, answered = r.first, r.done
	}
	tell := func(guess client.Answer) {
		if first != nil {
			first(guess)
			first = nil
		}
	}
	for declared != nil || answered != nil && (get.Nearest || !r.nearest) {
		select {
		case <-declared:
			if got := a.begun.got; got.OK && !got.Values[i].Large {
				return client.Answer{Value: got.Values[i].Value, Site: a.c.site(int(got.Values[i].Site))}, nil
			}
			declared = nil
		case <-guess:
			guess = nil
			tell(r.guess)
		case <-answered:
			answered, guess = nil, nil
			answer := client.Answer{Value: r.got.Value, Site: a.c.site(r.got.Site), Settled: r.got.Settled}
			switch {
			case !r.got.OK:
			case get.Nearest || !r.nearest:
				return answer, nil
			case !r.got.Pending:
				tell(answer)
			}
		case <-ctx.Done():
			return client.Answer{}, a.c.unavailable(get.Key, a.asked(r), context.Cause(ctx))
		}
	}
	return a.c.get(ctx, get, first)
}

// readStale reads a key as of the snapshot's timestamp; ok is false if it has to be read otherwise.
func (a *attempt) readStale(ctx context.Context, key store.Key) (answer client.Answer, ok bool, err error) {
	if a.begun != nil {
		select {
		case <-a.begun.done:
		case <-ctx.Done():
			return answer, false, a.c.unavailable(key, a.begun.w.request, context.Cause(ctx))
		}
		if i, declared := slices.BinarySearch(a.b.Reads, key); declared && a.begun.got.OK && !a.begun.got.Values[i].Large {
			v := a.begun.got.Values[i]
			return client.Answer{Value: v.Value, Site: a.c.site(int(v.Site))}, true, nil
		}
	}
	return a.stale.read(ctx, key)
}

// asked returns what was sent for a declared key.
func (a *attempt) asked(r *reading) *request {
	if r != nil {
		return r.w.request
	}
	return a.begun.w.request
}

// Commit implements client.Attempt.
func (a *attempt) Commit(ctx context.Context, s client.Submission) client.Decision {
	return a.commit(ctx, s, nil)
}

// Speculate implements client.Speculator.
func (a *attempt) Speculate(ctx context.Context, s client.Submission, how client.Speculation) client.Decision {
	return a.commit(ctx, s, &how)
}

func (a *attempt) commit(ctx context.Context, s client.Submission, how *client.Speculation) client.Decision {
	if a.viewed(s) {
		d := client.Decision{Txn: store.Txn{Priority: a.b.Priority, Reads: s.Reads},
			Outcome: store.Outcome{Verdict: store.Committed}}
		if a.stale != nil {
			d.At, d.Age = a.stale.seen()
		}
		return d
	}
	if a.steps != nil && len(s.Writes) > 0 {
		// Who has read nothing begins as others do, to come behind what the session has seen.
		if err := a.steps.begin(ctx, s.Writes[0].Key); err != nil {
			return a.unbegun(s, err)
		}
	}
	m := store.Submit{Priority: a.b.Priority, Reads: s.Reads, Writes: s.Writes, Hold: s.Hold,
		Serializable: a.b.Level == client.Serializable, Begun: a.begunAs(), Explain: a.b.Explain}
	if how != nil {
		m.Speculate, m.Held, m.Waits, m.After = true, how.Held, how.Waits, how.After
	}
	return a.c.commit(ctx, m, how)
}

// unbegun is what becomes of a transaction that could not begin: nothing was sent. If that is as
// too few sites answer, its client is told so, as by a read.
func (a *attempt) unbegun(s client.Submission, err error) client.Decision {
	d := client.Decision{Txn: store.Txn{Priority: a.b.Priority, Reads: s.Reads},
		Outcome: store.Outcome{Verdict: store.Aborted, Detail: err.Error()}}
	if u, ok := errors.AsType[*client.UnavailableError](err); ok {
		d.Outcome.Sites, d.Outcome.Detail = u.Sites, u.Detail
		return d
	}
	d.Txn.Writes, d.Outcome.Reason = s.Writes, store.Overloaded
	if ended, ok := errors.AsType[*client.EndedError](err); ok {
		d.Outcome.Reason = ended.Reason
	}
	return d
}

// viewed reports whether a transaction is committed already: it writes nothing, and all that it has
// read was declared and is as of one time.
func (a *attempt) viewed(s client.Submission) bool {
	if a.stale != nil {
		return len(s.Writes) == 0 && a.stale.has(s.Reads)
	}
	if a.begun == nil || len(a.b.Writes)+len(s.Writes) > 0 {
		return false
	}
	select {
	case <-a.begun.done:
	default:
		return false
	}
	got := a.begun.got
	return got.OK && !slices.ContainsFunc(s.Reads, func(r store.Read) bool {
		i, ok := slices.BinarySearch(a.b.Reads, r.Key)
		return !ok || got.Values[i].Large || got.Values[i].Value.Version != r.Version
	})
}

// Stale implements client.Attempt: the sites validate the reads as those of a transaction that
// writes nothing.
func (a *attempt) Stale(ctx context.Context, reads []store.Read) bool {
	if a.steps != nil {
		return false // they are a snapshot
	}
	if a.stale != nil && a.stale.has(reads) {
		return false // they go together, and may be old
	}
	o := a.c.commit(ctx, store.Submit{Reads: reads}, nil).Outcome
	return o.Verdict == store.Aborted && o.Reason == store.StaleRead
}

// End implements client.Attempt.
func (a *attempt) End() {
	a.mu.Lock()
	a.ended = true
	a.mu.Unlock()
	if a.steps != nil {
		a.steps.end()
	}
	// Of one that was submitted the node knows better.
	if ref := a.begunAs(); ref != 0 {
		a.c.deliver(store.Abandon{Ref: ref})
		a.c.ends(ref) // after that: the connection may be closed at any time
	}
	if a.begun != nil && a.begun.ref != a.begunAs() {
		a.c.deliver(store.Abandon{Ref: a.begun.ref})
	}
	var open []*waiter
	for _, r := range a.early {
		select {
		case <-r.done:
		default:
			open = append(open, r.w)
		}
	}
	if len(open) > 0 {
		a.c.forget(open...)
	}
}
