package client_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foresay/foresay/predict"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/client"
)

// preparing is a fake whose leaders say what they prepare, a while after they are asked.
type preparing struct {
	*fake
	leads map[store.Key]uint64 // the versions that they have
	after time.Duration

	mu    sync.Mutex
	steps []string
}

func (p *preparing) Begin(b client.Beginning) client.Attempt {
	p.fake.Begin(b)
	return p
}

func (p *preparing) Prepare(_ context.Context, reads, writes []store.Key, took func(map[store.Key]client.Answer)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.steps = append(p.steps, fmt.Sprint(reads, writes))
	time.AfterFunc(p.after, func() {
		values := map[store.Key]client.Answer{}
		for _, k := range reads {
			values[k] = val(p.leads[k])
		}
		took(values)
	})
}

// newPreparing returns one whose nearest site has version 1 of all keys, after 10 ms, and whose
// commits take 100 ms and are refused if what was read is not what leaders have.
func newPreparing(leads map[store.Key]uint64, after time.Duration) *preparing {
	p := &preparing{leads: leads, after: after}
	p.fake = &fake{
		nearest: func(context.Context, store.Key, func(client.Answer)) (client.Answer, error) {
			time.Sleep(10 * time.Millisecond)
			return val(1), nil
		},
		read: func(_ context.Context, k store.Key, _ func(client.Answer)) (client.Answer, error) {
			time.Sleep(200 * time.Millisecond)
			return val(p.leads[k]), nil
		},
		commit: func(_ context.Context, reads []store.Read, writes []store.Write) client.Decision {
			time.Sleep(100 * time.Millisecond)
			txn := store.Txn{ID: store.TxnID{Time: 9, Client: 9}, Priority: store.Priority{Began: 9, Client: 9}, Reads: reads,
				Writes: writes}
			for _, r := range reads {
				if r.Version.Time != p.leads[r.Key] {
					return client.Decision{Txn: txn, Outcome: store.Outcome{Verdict: store.Aborted, Reason: store.StaleRead},
						Current: []client.Current{{Key: r.Key, Value: val(p.leads[r.Key]).Value}}}
				}
			}
			return client.Decision{Txn: txn, Outcome: store.Outcome{Verdict: store.Committed},
				Version: store.Version{Time: 7, Client: 9}}
		},
	}
	return p
}

// seen is what runs of a function have seen, of which a discarded one may still go on.
type seen struct {
	mu  sync.Mutex
	all []string
}

func (s *seen) add(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, what)
}

// updates is a function that adds up what keys hold, and writes the sum under each.
func updates(saw *seen, think time.Duration, keys ...string) func(context.Context, *client.Tx) error {
	return func(ctx context.Context, tx *client.Tx) error {
		sum := byte(0)
		for _, k := range keys {
			v, _, err := tx.Get(ctx, k)
			if err != nil {
				return err
			}
			sum += v[0]
			saw.add(fmt.Sprint(k, v[0]))
			if err := tx.Put(k, []byte{sum}); err != nil {
				return err
			}
		}
		time.Sleep(think)
		return nil
	}
}

// TestPreparesAsItGoes: what a function has reached is prepared once it has written, each key once;
// and what leaders say of it before the commit leaves counts, in the same attempt.
func TestPreparesAsItGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPreparing(map[store.Key]uint64{"a": 1, "b": 2, "c": 1}, 30*time.Millisecond)
		c, err := client.New(client.Config{Backend: p, Mode: client.Predicated, PrepareEarly: true})
		if err != nil {
			t.Fatal(err)
		}
		var saw seen
		began := time.Now()
		if err := c.Txn(t.Context(), updates(&saw, 50*time.Millisecond, "a", "b", "c")); err != nil {
			t.Fatal(err)
		}
		if want := []string{"[a b] [a]", "[c] [b]"}; !slices.Equal(p.steps, want) {
			t.Errorf("it prepares %q, want %q", p.steps, want)
		}
		if want := []string{"a1", "b1", "c1", "a1", "b2", "c1"}; !slices.Equal(saw.all, want) {
			t.Errorf("the function sees %v, want %v", saw.all, want)
		}
		if n := p.commits.Load(); n != 1 {
			t.Errorf("there are %d commits", n)
		}
		// b is known 40 ms after the beginning; the function goes on from there
		if took := time.Since(began); took < 190*time.Millisecond || took > 230*time.Millisecond {
			t.Errorf("it takes %v", took)
		}
	})
}

// TestOnlyReadsPreparesNothing: a transaction that writes nothing has nobody prepare anything.
func TestOnlyReadsPreparesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPreparing(map[store.Key]uint64{"a": 1, "b": 1}, time.Millisecond)
		c, _ := client.New(client.Config{Backend: p, Mode: client.Predicated, PrepareEarly: true})
		err := c.Txn(t.Context(), func(ctx context.Context, tx *client.Tx) error {
			_, _, err := tx.Get(ctx, "a")
			if err == nil {
				_, _, err = tx.Get(ctx, "b")
			}
			return err
		})
		if err != nil || len(p.steps) > 0 {
			t.Errorf("%v; it prepares %q", err, p.steps)
		}
	})
}

// TestWrongGuessesDoNotShow: a predictor that is wrong costs an attempt. The next one goes on with
// what the refusal tells, and the predictor learns it, and what was written.
func TestWrongGuessesDoNotShow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPreparing(map[store.Key]uint64{"a": 3, "b": 1}, 500*time.Millisecond)
		guesses, err := predict.NewLast(predict.LastConfig[string]{Key: func(k string) string { return k }, Public: true})
		if err != nil {
			t.Fatal(err)
		}
		guesses.Learn(t.Context(), "a", val(2).Value)
		guesses.Learn(t.Context(), "b", val(1).Value)
		c, _ := client.New(client.Config{Backend: p, Mode: client.Predicated, PrepareEarly: true, Predictor: guesses})
		var saw seen
		began := time.Now()
		if err := c.Txn(t.Context(), updates(&saw, 0, "a", "b")); err != nil {
			t.Fatal(err)
		}
		if want := []string{"a2", "b1", "a3", "b1"}; !slices.Equal(saw.all, want) {
			t.Errorf("the function sees %v, want %v", saw.all, want)
		}
		if took := time.Since(began); p.commits.Load() != 2 || len(p.steps) > 0 || took > 230*time.Millisecond {
			t.Errorf("after %v there are %d commits, and it prepares %q", took, p.commits.Load(), p.steps)
		}
		for key, want := range map[string]byte{"a": 3, "b": 4} {
			got := guesses.Predict(t.Context(), key)
			if v, ok := got[0].(store.Value); !ok || v.Version.Time != 7 || v.Bytes[0] != want {
				t.Errorf("it has learnt that %s holds %+v, want %d", key, got, want)
			}
		}
	})
}

// TestOnlyTheFirstAttemptPreparesEarly: what a refused attempt has had prepared is still on its way
// to its end when the next one begins, and keeps others away for longer if it is prepared again.
func TestOnlyTheFirstAttemptPreparesEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPreparing(map[store.Key]uint64{"a": 2, "b": 1}, time.Hour)
		c, err := client.New(client.Config{Backend: p, Mode: client.Predicated, PrepareEarly: true})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Txn(t.Context(), updates(&seen{}, 0, "a", "b")); err != nil {
			t.Fatal(err)
		}
		if n := p.commits.Load(); n != 2 {
			t.Errorf("there are %d commits, want 2", n)
		}
		if want := []string{"[a b] [a]"}; !slices.Equal(p.steps, want) {
			t.Errorf("it prepares %q, want %q", p.steps, want)
		}
	})
}

// liar is a predictor that is always wrong, and learns nothing.
type liar struct{ asked map[string]int }

func (l *liar) Predict(_ context.Context, key any) []any {
	l.asked[key.(string)]++
	return []any{val(1).Value}
}

func (l *liar) Learn(context.Context, any, any) {}

// TestWrongPredictorIsNotAskedAgain: a predictor that was wrong about a key is not asked for it
// again in the transaction, though refusals do not tell which guess was wrong. One that may have
// been right is asked once more.
func TestWrongPredictorIsNotAskedAgain(t *testing.T) {
	for _, tc := range []struct {
		reason store.Reason
		asked  int
	}{{store.StaleRead, 1}, {store.Locked, 2}} {
		synctest.Test(t, func(t *testing.T) {
			p := newPreparing(map[store.Key]uint64{"a": 5, "b": 5}, time.Hour)
			commits := 0
			p.fake.commit = func(_ context.Context, reads []store.Read, writes []store.Write) client.Decision {
				time.Sleep(100 * time.Millisecond)
				commits++
				d := client.Decision{Txn: store.Txn{Priority: store.Priority{Began: 9, Client: 9}, Reads: reads, Writes: writes},
					Outcome: store.Outcome{Verdict: store.Aborted, Reason: tc.reason}}
				if commits == 6 {
					d.Outcome = store.Outcome{Verdict: store.Committed}
				}
				return d
			}
			l := &liar{asked: map[string]int{}}
			c, err := client.New(client.Config{Backend: p, Mode: client.Predicated, Predictor: l})
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Txn(t.Context(), updates(&seen{}, 0, "a", "b")); err != nil {
				t.Fatal(err)
			}
			if want := map[string]int{"a": tc.asked, "b": tc.asked}; commits != 6 || !maps.Equal(l.asked, want) {
				t.Errorf("refused as %v: in %d attempts it is asked %v, want %v", tc.reason, commits, l.asked, want)
			}
		})
	}
}

// TestRefutedGuessIsNotGuessedAgain: what a key holds in place of a guess that was refuted is what
// the next attempt goes on with, whatever that was refused for.
func TestRefutedGuessIsNotGuessedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPreparing(map[store.Key]uint64{"a": 5}, time.Hour)
		commit, commits := p.fake.commit, 0
		p.fake.commit = func(ctx context.Context, reads []store.Read, writes []store.Write) client.Decision {
			d := commit(ctx, reads, writes)
			if commits++; commits == 1 {
				d.Outcome, d.Current = store.Outcome{Verdict: store.Aborted, Reason: store.Locked}, nil
			}
			return d
		}
		l := &liar{asked: map[string]int{}}
		c, err := client.New(client.Config{Backend: p, Mode: client.Predicated, Predictor: l,
			QuorumAfter: 50 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		var saw seen
		if err := c.Txn(t.Context(), updates(&saw, time.Second, "a")); err != nil {
			t.Fatal(err)
		}
		if want := []string{"a1", "a5", "a5"}; !slices.Equal(saw.all, want) || l.asked["a"] != 1 {
			t.Errorf("the function sees %v, and the predictor is asked %v", saw.all, l.asked)
		}
	})
}
