package client_test

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/foresay/foresay"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/client"
)

const proofKeys = 6

// A proofTxn is a transaction as its application saw it.
type proofTxn struct {
	n, driver  int
	begin, end time.Duration
	verdict    store.Verdict // what the client said
	run        *proofRun     // nil if there is no result
	watch      *watch
	nested     bool // in a task of the application
}

// A proofRun is what a run of a transaction's function saw and wrote.
type proofRun struct {
	reads  map[string]proofRead
	writes map[string]store.Write
	failed bool // it writes nothing then
	wrong  string
}

type proofRead struct {
	ok    bool
	value string
}

// userError is an error or a panic of a transaction's function, which rests on what it read.
type userError struct{ run *proofRun }

func (e *userError) Error() string { return "the function does not like what it read" }

// A step is a part of a transaction's function.
type step struct {
	kind stepKind
	key  int
}

type stepKind int

const (
	stepGet    stepKind = iota
	stepPair            // reads this key and the next at once
	stepPut             // a value that depends on all that was read
	stepDelete          //
	stepOther           // reads, and writes a key that depends on it
	stepOwn             // writes, and reads that
	stepGuess           // goes on with a guess, half of which are wrong
	stepKinds
)

// A plot is a transaction's function: it does the same each time for the same answers.
type plot struct {
	n      int
	steps  []step
	fails  bool // if it reads something certain
	panics bool
	misled bool // it runs on a guess that is wrong
	bug    *bug
}

func newPlot(n int, r *rand.Rand, b *bug) plot {
	p := plot{n: n, bug: b}
	readOnly := r.IntN(4) == 0
	for range 1 + r.IntN(4) {
		s := step{kind: stepKind(r.IntN(int(stepKinds))), key: r.IntN(proofKeys)}
		if readOnly {
			s.kind = stepKind(r.IntN(2))
		}
		p.steps = append(p.steps, s)
	}
	switch r.IntN(20) {
	case 0, 1:
		p.fails = true
	case 2:
		p.panics = true
	}
	return p
}

// misled ends values that must not be in the store.
const misled = ".misled"

func proofKey(k int) string { return fmt.Sprintf("k%d", k%proofKeys) }

func (p plot) play(ctx context.Context, tx *client.Tx) (*proofRun, error) {
	run := &proofRun{reads: map[string]proofRead{}, writes: map[string]store.Write{}}
	hash := fnv.New64a()
	get := func(ctx context.Context, key string) (proofRead, error) {
		v, ok, err := tx.Get(ctx, key)
		return proofRead{ok, string(v)}, err
	}
	saw := func(key string, r proofRead) {
		fmt.Fprintln(hash, key, r)
		w, written := run.writes[key]
		before, read := run.reads[key]
		switch {
		case written && (r.ok == w.Delete || r.value != string(w.Bytes)), !written && read && r != before:
			run.wrong = fmt.Sprintf("%s is %+v, it had read %+v (%t) and written %+v (%t)", key, r, before, read, w, written)
		case !written:
			run.reads[key] = r
		}
	}
	write := func(key string, remove bool) error {
		w := store.Write{Key: store.Key(key), Delete: remove}
		if !remove {
			w.Bytes = fmt.Appendf(nil, "%d.%d.%s.%x", p.n, tx.Attempt(), key, hash.Sum64())
			if p.misled {
				w.Bytes = append(w.Bytes, misled...)
			}
		}
		run.writes[key] = w
		if p.bug != nil {
			p.bug.wrote(p.n, w)
		}
		if remove {
			return tx.Delete(key)
		}
		return tx.Put(key, w.Bytes)
	}
	for _, s := range p.steps {
		key, next := proofKey(s.key), proofKey(s.key+1)
		var err error
		switch s.kind {
		case stepGuess:
			sure := foresay.Go(ctx, func(context.Context) (bool, error) {
				time.Sleep(time.Duration(10*s.key) * time.Millisecond)
				return true, nil
			}, foresay.Guess(s.key%2 == 0))
			var right bool
			// the context has ended: that is the function's failure, not the store's
			if right, err = sure.Wait(ctx); err != nil {
				run.failed = true
				return run, &userError{run}
			}
			p.misled = p.misled || !right
		case stepPut:
			err = write(key, false)
		case stepDelete:
			err = write(key, true)
		case stepPair:
			var a, b proofRead
			g := foresay.NewGroup(ctx)
			g.Go(func(ctx context.Context) (err error) { a, err = get(ctx, key); return err })
			g.Go(func(ctx context.Context) (err error) { b, err = get(ctx, next); return err })
			if err = g.Wait(); err == nil {
				saw(key, a)
				saw(next, b)
			}
		default:
			if s.kind == stepOwn {
				err = write(key, s.key%2 == 0)
			}
			var r proofRead
			if err == nil {
				r, err = get(ctx, key)
			}
			if err == nil {
				saw(key, r)
			}
			if err == nil && s.kind == stepOther {
				err = write(proofKey(int(hash.Sum64()%proofKeys)), false)
			}
		}
		if err != nil {
			return run, err
		}
	}
	if (p.fails || p.panics) && hash.Sum64()%2 == 0 {
		run.failed = true
		if p.panics {
			panic(&userError{run})
		}
		return run, &userError{run}
	}
	return run, nil
}

// A driver makes one transaction after the other.
type driver struct {
	w    *proofWorld
	n    int
	site int
	mode client.Mode
	rand *rand.Rand
}

func (d *driver) drive(ctx context.Context) {
	l := d.w.link(d)
	defer func() { l.close() }()
	for ctx.Err() == nil && !d.w.stopped.Load() {
		if l.crashed.Load() {
			l.close()
			l = d.w.link(d)
		}
		if d.rand.IntN(6) == 0 {
			d.nest(ctx, l)
		} else {
			d.transact(ctx, l)
		}
		time.Sleep(time.Duration(d.rand.IntN(40)) * time.Millisecond)
	}
}

// transact makes a transaction and notes how it ended.
func (d *driver) transact(ctx context.Context, l *proofLink) {
	t := d.w.newTxn(d.n, l.watch)
	limit := time.Minute
	if d.rand.IntN(4) == 0 {
		limit = time.Duration(5+d.rand.IntN(200)) * time.Millisecond
	}
	ctx, cancel := context.WithTimeout(forTxn(ctx, t.n, t.n), limit)
	defer cancel()
	p := newPlot(t.n, d.rand, l.bug)
	err := d.run(ctx, l, p, t)
	d.w.note(t, err)
	if u, ok := errors.AsType[*client.UnknownError](err); ok && !u.Txn.ID.IsZero() && d.rand.IntN(2) == 0 {
		d.resolve(l, t, u.Txn)
	}
}

// run calls the client, and takes panics of the function for results.
func (d *driver) run(ctx context.Context, l *proofLink, p plot, t *proofTxn) (err error) {
	defer func() {
		if r := recover(); r != nil {
			if f, ok := r.(*foresay.PanicError); ok {
				r = f.Value
			}
			u, ok := r.(*userError)
			if !ok {
				panic(r)
			}
			err = u
		}
	}()
	t.run, err = client.Run(ctx, l.client, p.play)
	return err
}

// nest makes two transactions in a task, which begins with a guess.
func (d *driver) nest(ctx context.Context, l *proofLink) {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(20+d.rand.IntN(2000))*time.Millisecond)
	defer cancel()
	// To the history the second one is another client's, as both end when the task does.
	txns := []*proofTxn{d.w.newTxn(d.n, l.watch), d.w.newTxn(1000+d.n, l.watch)}
	var plots []plot
	for _, t := range txns {
		t.nested = true
		p := newPlot(t.n, d.rand, l.bug)
		p.panics = false
		plots = append(plots, p)
	}
	slow := time.Duration(d.rand.IntN(100)) * time.Millisecond
	sure := foresay.Go(ctx, func(context.Context) (bool, error) {
		time.Sleep(slow)
		return true, nil
	}, foresay.Guess(d.rand.IntN(2) == 0))
	type part struct {
		run *proofRun
		err error
	}
	parts, err := foresay.Do(ctx, func(ctx context.Context) (parts [2]part, err error) {
		right, err := sure.Wait(ctx)
		for i, p := range plots {
			p.misled = !right
			if err == nil {
				parts[i].run, parts[i].err = client.Run(forTxn(ctx, p.n, txns[0].n), l.client, p.play)
			}
		}
		return parts, err
	})
	if errors.Is(err, foresay.ErrDiverged) && ctx.Err() != nil {
		err = ctx.Err() // which the function ran into while it ran again, so that it came to another end
	}
	for i, t := range txns {
		switch {
		case err == nil:
			t.run = parts[i].run
			d.w.note(t, parts[i].err)
		case len(t.watch.attempts(t.n)) > 0:
			d.w.note(t, &client.UnknownError{})
		default:
			d.w.note(t, err)
		}
	}
}

// resolve asks for an outcome once more.
func (d *driver) resolve(l *proofLink, t *proofTxn, txn store.Txn) {
	ctx, cancel := context.WithTimeout(forTxn(context.Background(), t.n, t.n), 2*time.Second)
	defer cancel()
	switch err := l.client.Resolve(ctx, txn); {
	case err == nil:
		d.w.end(t, store.Committed)
	case isA[*client.AbortedError](err):
		d.w.end(t, store.Aborted)
	}
}

func isA[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// verdict says what an error of the client's means for a transaction.
func verdict(err error) (v store.Verdict, understood bool) {
	switch {
	case err == nil, isA[*userError](err):
		return store.Committed, true
	case isA[*client.UnknownError](err), isA[*client.BlockedError](err):
		return store.Unknown, true
	case isA[*client.AbortedError](err), isA[*client.UnavailableError](err), errors.Is(err, context.DeadlineExceeded),
		errors.Is(err, errLinkClosed):
		return store.Aborted, true
	}
	// nothing was sent
	if r, ok := errors.AsType[*client.RejectedError](err); ok && (r.Detail == errLinkClosed.Error() || len(r.Sites) > 0) {
		return store.Aborted, true
	}
	return store.Unknown, false
}

// counts tells whether there is anything to commit.
func (r *proofRun) counts() bool { return len(r.reads) > 0 || len(r.writes) > 0 && !r.failed }

// agrees returns an error unless the last commit of a transaction is what its function's result
// says.
func (r *proofRun) agrees(calls []commitCall) error {
	if r.wrong != "" {
		return errors.New(r.wrong)
	}
	if !r.counts() {
		return nil
	}
	writes := r.writes
	if r.failed {
		writes = nil
	}
	if len(calls) == 0 {
		return errors.New("nobody was asked to commit it")
	}
	last := calls[len(calls)-1]
	if v := last.decision.Outcome.Verdict; v != store.Committed {
		return fmt.Errorf("it is said to be committed, and is %v", v)
	}
	var keys []string
	for _, a := range last.reads {
		keys = append(keys, string(a.Key))
	}
	if want := slices.Sorted(maps.Keys(r.reads)); !slices.Equal(keys, want) {
		return fmt.Errorf("its function read %q, and it was committed with the reads %q", want, keys)
	}
	if len(last.writes) != len(writes) {
		return fmt.Errorf("its function wrote %v, and it was committed with %v", writes, last.writes)
	}
	for _, got := range last.writes {
		want, ok := writes[string(got.Key)]
		if !ok || want.Delete != got.Delete || string(want.Bytes) != string(got.Bytes) {
			return fmt.Errorf("its function wrote %v, and it was committed with %v", writes, last.writes)
		}
	}
	return nil
}
