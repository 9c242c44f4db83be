package machine

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foresay/foresay"
	"github.com/foresay/foresay/control"
	"github.com/foresay/foresay/driver"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/client"
	"github.com/foresay/foresay/store/str"
	"github.com/foresay/foresay/wan"
)

// aheads are tasks over a store that answers at local commits, with a client at each of three sites
// that are 100 ms from each other.
type aheads struct {
	*testing.T
	world   *world
	clients [3]*client.Client
	commits atomic.Int64 // of the first client's, which were sent and are committed for good
	refused atomic.Int64
}

func playAhead(t *testing.T, play func(ctx context.Context, a *aheads)) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, wan.Uniform(100*time.Millisecond, "a", "b", "c"), func(w *world) { w.protocol = str.Protocol() })
		defer w.close()
		a := &aheads{T: t, world: w}
		for i, site := range w.sites {
			a.clients[i] = w.client(site, client.Spec, func(cfg *client.Config) {
				cfg.Attempted = func(x client.Attempted) {
					switch {
					case i > 0:
					case x.Outcome.Verdict == store.Committed:
						a.commits.Add(1)
					default:
						a.refused.Add(1)
					}
				}
			})
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
		defer cancel()
		for _, c := range a.clients { // connections are made, and groups have leaders
			if err := a.add(ctx, c, "warm"); err != nil {
				t.Fatal(err)
			}
		}
		a.commits.Store(0)
		a.refused.Store(0)
		play(ctx, a)
	})
}

// add adds one to a counter.
func (a *aheads) add(ctx context.Context, c *client.Client, key string) error {
	return c.Txn(ctx, func(ctx context.Context, tx *client.Tx) error {
		v, _, err := tx.Get(ctx, key)
		if err != nil {
			return err
		}
		n, _ := strconv.Atoi(string(v))
		return tx.Put(key, strconv.AppendInt(nil, int64(n+1), 10))
	})
}

// want fails unless counters hold what they should, as a client at another site sees it.
func (a *aheads) want(ctx context.Context, want map[string]string) {
	a.Helper()
	for key, n := range want {
		got, err := client.Run(ctx, a.clients[1], func(ctx context.Context, tx *client.Tx) (string, error) {
			v, _, err := tx.Get(ctx, key)
			return string(v), err
		})
		if err != nil || got != n {
			a.Errorf("%s is %q, %v, want %q", key, got, err, n)
		}
	}
}

// do runs a task, and returns how long it took.
func (a *aheads) do(ctx context.Context, f func(ctx context.Context) error) (time.Duration, error) {
	start := time.Now()
	_, err := foresay.Do(ctx, func(ctx context.Context) (struct{}, error) { return struct{}{}, f(ctx) })
	return time.Since(start), err
}

// TestAheadChain: transactions of a task that follow each other take as long as one of them.
func TestAheadChain(t *testing.T) {
	for _, same := range []bool{false, true} {
		t.Run(fmt.Sprintf("same key %v", same), func(t *testing.T) {
			playAhead(t, func(ctx context.Context, a *aheads) {
				chain := func(n int) time.Duration {
					took, err := a.do(ctx, func(ctx context.Context) error {
						for i := range n {
							key := "k"
							if !same {
								key = fmt.Sprint("k", i)
							}
							if err := a.add(ctx, a.clients[0], key); err != nil {
								return err
							}
						}
						return nil
					})
					if err != nil {
						a.Fatal(err)
					}
					return took
				}
				one, eight := chain(1), chain(8)
				a.Logf("a task of one transaction takes %v, of eight %v", one, eight)
				if eight > one*115/100 {
					a.Errorf("eight took %v, one %v", eight, one)
				}
				if same {
					a.want(ctx, map[string]string{"k": "9"})
				} else {
					a.want(ctx, map[string]string{"k0": "2", "k1": "1", "k7": "1"})
				}
				if a.commits.Load() != 9 || a.refused.Load() != 0 {
					a.Errorf("%d transactions are committed, %d were refused", a.commits.Load(), a.refused.Load())
				}
			})
		})
	}
}

// TestAheadRefused: one in the middle is refused, as somebody at another site was faster. What
// followed it is undone with it, and made again.
func TestAheadRefused(t *testing.T) {
	playAhead(t, func(ctx context.Context, a *aheads) {
		faster := make(chan error, 1)
		go func() { faster <- a.add(ctx, a.clients[2], "k2") }()
		time.Sleep(45 * time.Millisecond)
		runs := 0
		_, err := a.do(ctx, func(ctx context.Context) error {
			runs++
			for i := range 5 {
				if err := a.add(ctx, a.clients[0], fmt.Sprint("k", i)); err != nil {
					return err
				}
			}
			return nil
		})
		if err := errors.Join(err, <-faster); err != nil {
			a.Fatal(err)
		}
		a.want(ctx, map[string]string{"k0": "1", "k1": "1", "k2": "2", "k3": "1", "k4": "1"})
		if runs < 2 || a.commits.Load() != 5 || a.refused.Load() == 0 {
			a.Errorf("%d runs, %d transactions are committed, %d were refused", runs, a.commits.Load(), a.refused.Load())
		}
	})
}

// guessed is a call that is answered after a while, and was guessed at once.
type guessed struct {
	guess, answer string
	after         time.Duration
}

func (g guessed) Start(_ context.Context, a *driver.Attempt) {
	a.Predict(g.guess)
	time.AfterFunc(g.after, func() { a.Finish(g.answer, nil) })
}
func (g guessed) Equal(a, b any) bool      { return a == b }
func (g guessed) Same(a, b any) bool       { return a == b }
func (g guessed) Accept(v any) (any, bool) { return v, true }

func (g guessed) call(ctx context.Context) (string, error) {
	site, err := control.NewCallSite(control.CallSiteConfig{Name: "/guess", Mode: control.ModeOn,
		Effect: control.EffectNone})
	if err != nil {
		return "", err
	}
	v, err := driver.Perform(ctx, &driver.Operation{CallSite: site, Conn: "conn", Identity: "guess", Request: "guess",
		CanSpeculate: true, Transport: g})
	if err != nil {
		return "", err
	}
	return v.(string), nil
}

// TestAheadGuess: what stands on another guess of the task is not committed before that is known to
// be right, and not at all if it was wrong.
func TestAheadGuess(t *testing.T) {
	for name, x := range map[string]struct {
		guessed
		runs int
	}{
		"right, and known at once":  {guessed{"k", "k", 10 * time.Millisecond}, 1},
		"right, and known late":     {guessed{"k", "k", time.Second}, 1},
		"wrong, and known at once":  {guessed{"wrong", "k", 10 * time.Millisecond}, 2},
		"wrong, and known late":     {guessed{"wrong", "k", time.Second}, 2},
		"wrong, and known too late": {guessed{"wrong", "k", time.Minute}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			playAhead(t, func(ctx context.Context, a *aheads) {
				took, err := a.do(ctx, func(ctx context.Context) error {
					key, err := x.call(ctx)
					if err != nil {
						return err
					}
					for range 3 {
						if err := a.add(ctx, a.clients[0], key); err != nil {
							return err
						}
					}
					return nil
				})
				if err != nil {
					a.Fatal(err)
				}
				a.want(ctx, map[string]string{"k": "3", "wrong": ""})
				if most := x.after + 700*time.Millisecond; took > most || a.commits.Load() != 3 {
					a.Errorf("it took %v (at most %v), %d transactions are committed", took, most, a.commits.Load())
				}
			})
		})
	}
}

// TestAheadShown: what a task does outside of the store waits until all before it is final.
func TestAheadShown(t *testing.T) {
	playAhead(t, func(ctx context.Context, a *aheads) {
		_, err := a.do(ctx, func(ctx context.Context) error {
			for i := range 3 {
				if err := a.add(ctx, a.clients[0], "k"); err != nil {
					return err
				}
				_, err := foresay.Act(ctx, fmt.Sprint(i), func(ctx context.Context) (struct{}, error) {
					a.want(ctx, map[string]string{"k": fmt.Sprint(i + 1)})
					return struct{}{}, nil
				})
				if err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			a.Fatal(err)
		}
	})
}

// TestAheadGivenUp: a task ends with its context while its transactions are on their way. What it
// leaves behind is a beginning of what it would have done, and in nobody's way.
func TestAheadGivenUp(t *testing.T) {
	for _, after := range []time.Duration{1, 20, 60, 100, 149, 151, 200} {
		t.Run((after * time.Millisecond).String(), func(t *testing.T) {
			playAhead(t, func(ctx context.Context, a *aheads) {
				short, cancel := context.WithTimeout(ctx, after*time.Millisecond)
				defer cancel()
				_, err := a.do(short, func(ctx context.Context) error {
					for i := range 4 {
						if err := a.add(ctx, a.clients[0], fmt.Sprint("k", i)); err != nil {
							return err
						}
					}
					time.Sleep(20 * time.Millisecond)
					return nil
				})
				start := time.Now()
				sum := 0
				for i := range 4 {
					n, err := client.Run(ctx, a.clients[1], func(ctx context.Context, tx *client.Tx) (int, error) {
						v, _, err := tx.Get(ctx, fmt.Sprint("k", i))
						if err != nil {
							return 0, err
						}
						return len(v), tx.Put(fmt.Sprint("k", i), []byte("2"))
					})
					if err != nil {
						a.Fatal(err)
					}
					if n > 0 && sum != i {
						a.Errorf("k%d is written, and something before it is not", i)
					}
					sum += n
				}
				if took := time.Since(start); took > 4*time.Second {
					a.Errorf("others had to wait %v", took)
				}
				a.Logf("%v: %d are committed, %v", after*time.Millisecond, sum, err)
			})
		})
	}
}

// TestAheadFirst: a client that has just begun hears of its first local commit without waiting for
// sites that are far away, whether it is one of a task or Tentative.
func TestAheadFirst(t *testing.T) {
	playAhead(t, func(ctx context.Context, a *aheads) {
		put := func(ctx context.Context, tx *client.Tx) error { return tx.Put("first", []byte("x")) }
		told := func(start time.Time, how string) {
			if took := time.Since(start); took > 10*time.Millisecond {
				t.Errorf("%s: the first local commit takes %v", how, took)
			}
		}
		final, start := make(chan struct{}), time.Now()
		c := a.world.client(a.world.sites[0], client.Spec)
		if err := c.Txn(ctx, put, client.Tentative{Final: func() { close(final) }}); err != nil {
			t.Fatal(err)
		}
		told(start, "Tentative")
		<-final
		start = time.Now()
		c = a.world.client(a.world.sites[0], client.Spec)
		first := true
		if _, err := a.do(ctx, func(ctx context.Context) error {
			if err := c.Txn(ctx, put); err != nil || !first {
				return err
			}
			first = false
			told(start, "in a task")
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	})
}

// TestTentative: code hears of a local commit, and then of what became of it.
func TestTentative(t *testing.T) {
	type heard struct {
		what string
		at   time.Duration
		err  error
	}
	for name, x := range map[string]struct {
		allow  bool
		rival  bool          // somebody at another site writes the same key, 45 ms before
		close  time.Duration // when the connection is closed; 0: it stays open
		want   []string
		within time.Duration // that Txn returns
	}{
		"final":       {allow: true, want: []string{"allow", "speculated", "final"}, within: 20 * time.Millisecond},
		"not allowed": {want: []string{"allow", "final"}, within: 200 * time.Millisecond},
		"refused": {allow: true, rival: true, want: []string{"allow", "speculated", "apology"},
			within: 20 * time.Millisecond},
		"not allowed, and refused": {rival: true, want: []string{"allow", "allow", "final"},
			within: 600 * time.Millisecond},
		"nobody can be asked": {allow: true, close: 50 * time.Millisecond,
			want: []string{"allow", "speculated", "apology"}, within: 20 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			playAhead(t, func(ctx context.Context, a *aheads) {
				all := make(chan heard, 10)
				start := time.Now()
				hears := func(what string, err error) { all <- heard{what, time.Since(start), err} }
				if x.rival {
					go func() { _ = a.add(ctx, a.clients[2], "k") }()
					time.Sleep(45 * time.Millisecond)
				}
				start = time.Now()
				err := a.clients[0].Txn(client.WithClass(ctx, "buy"), func(ctx context.Context, tx *client.Tx) error {
					tx.Note("price", 7)
					v, _, err := tx.Get(ctx, "k")
					if err != nil {
						return err
					}
					return tx.Put("k", append(v, '1'))
				}, client.Tentative{
					Allow: func(i client.TentativeInfo) bool {
						if i.Notes["price"] != 7 || i.CommitRate != 1 || i.Told != 0 {
							a.Errorf("it is said to be %+v", i)
						}
						hears("allow", nil)
						return x.allow
					},
					Speculated: func() { hears("speculated", nil) }, Final: func() { hears("final", nil) },
					Apology: func(err error) { hears("apology", err) },
				})
				if took := time.Since(start); err != nil || took > x.within {
					a.Errorf("%v after %v, want within %v", err, took, x.within)
				}
				if x.close > 0 {
					time.Sleep(x.close)
					a.world.stop[2]() // the first client's connection
				}
				time.Sleep(20 * time.Second)
				close(all)
				var got []string
				for h := range all {
					got = append(got, h.what)
					if h.what == "apology" && (errors.As(h.err, new(*client.AbortedError)) != x.rival ||
						errors.As(h.err, new(*client.UnknownError)) == x.rival) {
						a.Errorf("the apology is for %v", h.err)
					}
				}
				if fmt.Sprint(got) != fmt.Sprint(x.want) {
					a.Errorf("heard %v, want %v", got, x.want)
				}
			})
		})
	}
}

// TestAheadSees: a transaction sees what the task's transactions before it have written, also where
// readers elsewhere have pushed their commits above its snapshot meanwhile.
func TestAheadSees(t *testing.T) {
	for gap := 140; gap <= 160; gap += 4 {
		t.Run(fmt.Sprint(gap), func(t *testing.T) {
			playAhead(t, func(ctx context.Context, a *aheads) {
				reading, stop := context.WithCancel(ctx)
				for _, c := range []*client.Client{a.clients[0], a.clients[2]} {
					go func() {
						for reading.Err() == nil {
							_ = c.Txn(reading, func(ctx context.Context, tx *client.Tx) error {
								_, _, err := tx.Get(ctx, "k")
								return err
							})
							time.Sleep(time.Millisecond)
						}
					}()
				}
				time.Sleep(time.Second)
				saw := ""
				_, err := foresay.Do(ctx, func(ctx context.Context) (string, error) {
					err := a.clients[1].Txn(ctx, func(_ context.Context, tx *client.Tx) error { return tx.Put("k", []byte("x")) })
					if err != nil {
						return "", err
					}
					return client.Run(ctx, a.clients[1], func(ctx context.Context, tx *client.Tx) (string, error) {
						if _, _, err := tx.Get(ctx, "o"); err != nil {
							return "", err
						}
						time.Sleep(time.Duration(gap) * time.Millisecond)
						v, _, err := tx.Get(ctx, "k")
						saw = string(v)
						return saw, errors.Join(err, tx.Put("z", v))
					})
				})
				stop()
				if err != nil || saw != "x" {
					a.Errorf("it saw %q: %v", saw, err)
				}
			})
		})
	}
}

// TestAheadEnds: where a task ends with its context just when its first transaction is final, what
// its error says is not committed is not.
func TestAheadEnds(t *testing.T) {
	for n := range 12 {
		playAhead(t, func(ctx context.Context, a *aheads) {
			short, cancel := context.WithTimeout(ctx, time.Duration(149+n%3)*time.Millisecond)
			defer cancel()
			failed := -1
			_, err := foresay.Do(short, func(ctx context.Context) (struct{}, error) {
				failed = -1
				for i := range 3 {
					if err := a.add(ctx, a.clients[0], fmt.Sprint("k", i)); err != nil {
						failed = i
						return struct{}{}, err
					}
				}
				return struct{}{}, nil
			})
			time.Sleep(5 * time.Second)
			if err != nil && !client.MayHaveCommitted(err) && failed >= 0 {
				a.want(ctx, map[string]string{fmt.Sprint("k", failed): ""})
			}
		})
	}
}
