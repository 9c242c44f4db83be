package proof

import (
	"context"
	"errors"
	"fmt"
	"hash"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/foresay/foresay"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/client"
)

const keys = 6

// A result is what a run of a transaction's function saw and wrote.
type result struct {
	reads  map[string]seen
	writes map[string]store.Write
	failed bool // it writes nothing then
	wrong  string
}

type seen struct {
	ok    bool
	value string
}

// userError is an error or a panic of a transaction's function, which rests on what it read.
type userError struct{ run *result }

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
	// relaxed says that it asks to be serializable, and no more, or may see what is old.
	relaxed bool
	hint    []client.Option // what it declares, and asks for
}

func newPlot(n int, r *rand.Rand, protocol store.Protocol) plot {
	p := plot{n: n}
	readOnly := r.IntN(4) == 0
	for range 1 + r.IntN(4) {
		s := step{kind: stepKind(r.IntN(int(stepKinds))), key: r.IntN(keys)}
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
	p.hint = p.declare(r)
	p.relaxed = r.IntN(4) == 0
	switch {
	case p.relaxed && protocol.Steps:
		p.hint = append(p.hint, client.Snapshot)
	case p.relaxed && protocol.Stale && n%2 == 0:
		p.hint = append(p.hint, client.Stale(time.Duration(1+n%40)*roundTrip/4))
	case p.relaxed:
		p.hint = append(p.hint, client.Serializable)
	}
	return p
}

// declare returns keys that the plot is said to read and to write: none, those that it may, some of
// them, or others.
func (p plot) declare(r *rand.Rand) []client.Option {
	kind := r.IntN(4)
	if kind == 0 {
		return nil
	}
	var reads, writes []string
	add := func(to *[]string, k int) {
		switch {
		case kind == 2 && r.IntN(2) == 0:
			return
		case kind == 3:
			k = r.IntN(keys)
		}
		if key := keyOf(k); !slices.Contains(*to, key) {
			*to = append(*to, key)
		}
	}
	for _, s := range p.steps {
		switch s.kind {
		case stepPut, stepDelete, stepOwn:
			add(&writes, s.key)
			continue
		case stepOther:
			add(&writes, r.IntN(keys)) // nobody knows
		case stepPair:
			add(&reads, s.key+1)
		default:
		}
		add(&reads, s.key)
	}
	return []client.Option{client.Keys(reads, writes)}
}

// misled ends values that must not be in the store.
const misled = ".misled"

func keyOf(k int) string { return fmt.Sprintf("k%d", k%keys) }

// An act is one run of a plot.
type act struct {
	plot
	tx   *client.Tx
	run  *result
	hash hash.Hash64 // of all that it has read
}

func (p plot) play(ctx context.Context, tx *client.Tx) (*result, error) {
	run := &result{reads: map[string]seen{}, writes: map[string]store.Write{}}
	a := &act{plot: p, tx: tx, run: run, hash: fnv.New64a()}
	for _, s := range p.steps {
		if err := a.step(ctx, s); err != nil {
			return a.run, err
		}
	}
	if (p.fails || p.panics) && a.hash.Sum64()%2 == 0 {
		a.run.failed = true
		if p.panics {
			panic(&userError{a.run})
		}
		return a.run, &userError{a.run}
	}
	return a.run, nil
}

func (a *act) step(ctx context.Context, s step) error {
	key := keyOf(s.key)
	switch s.kind {
	case stepGuess:
		return a.guess(ctx, s)
	case stepPut:
		return a.write(key, false)
	case stepDelete:
		return a.write(key, true)
	case stepPair:
		return a.pair(ctx, key, keyOf(s.key+1))
	case stepOwn:
		if err := a.write(key, s.key%2 == 0); err != nil {
			return err
		}
	default:
	}
	r, err := a.get(ctx, key)
	if err != nil {
		return err
	}
	a.saw(key, r)
	if s.kind == stepOther {
		return a.write(keyOf(int(a.hash.Sum64()%keys)), false)
	}
	return nil
}

func (a *act) guess(ctx context.Context, s step) error {
	sure := foresay.Go(ctx, func(context.Context) (bool, error) {
		time.Sleep(time.Duration(10*s.key) * time.Millisecond)
		return true, nil
	}, foresay.Guess(s.key%2 == 0))
	right, err := sure.Wait(ctx)
	if err != nil { // the context has ended: that is the function's failure, not the store's
		a.run.failed = true
		return &userError{a.run}
	}
	a.misled = a.misled || !right
	return nil
}

// pair reads two keys at once.
func (a *act) pair(ctx context.Context, key, next string) error {
	var one, two seen
	g := foresay.NewGroup(ctx)
	g.Go(func(ctx context.Context) (err error) { one, err = a.get(ctx, key); return err })
	g.Go(func(ctx context.Context) (err error) { two, err = a.get(ctx, next); return err })
	err := g.Wait()
	if err == nil {
		a.saw(key, one)
		a.saw(next, two)
	}
	return err
}

func (a *act) get(ctx context.Context, key string) (seen, error) {
	v, ok, err := a.tx.Get(ctx, key)
	return seen{ok, string(v)}, err
}

// saw notes what was read, which must go together with what was read and written before.
func (a *act) saw(key string, r seen) {
	fmt.Fprintln(a.hash, key, r)
	w, written := a.run.writes[key]
	before, read := a.run.reads[key]
	switch {
	case written && (r.ok == w.Delete || r.value != string(w.Bytes)), !written && read && r != before:
		a.run.wrong = fmt.Sprintf("%s is %+v, it had read %+v (%t) and written %+v (%t)", key, r, before, read, w, written)
	case !written:
		a.run.reads[key] = r
	}
}

func (a *act) write(key string, remove bool) error {
	w := store.Write{Key: store.Key(key), Delete: remove}
	if !remove {
		w.Bytes = fmt.Appendf(nil, "%d.%d.%s.%x", a.n, a.tx.Attempt(), key, a.hash.Sum64())
		if a.misled {
			w.Bytes = append(w.Bytes, misled...)
		}
	}
	a.run.writes[key] = w
	if remove {
		return a.tx.Delete(key)
	}
	return a.tx.Put(key, w.Bytes)
}

// counts reports whether there is anything to commit.
func (r *result) counts() bool { return len(r.reads) > 0 || len(r.writes) > 0 && !r.failed }

// agrees returns an error unless the last commit of a transaction is what its function's result
// says.
func (r *result) agrees(calls []commitCall) error {
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
