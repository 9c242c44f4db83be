package client_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foresay/foresay"
	"github.com/foresay/foresay/bft"
	"github.com/foresay/foresay/bft/client"
	"github.com/foresay/foresay/control"
	smrclient "github.com/foresay/foresay/smr/client"
)

const ms = time.Millisecond

// counting is a client node, and a group: a command is a number, which is added to a sum. It does
// what the real ones do with conditions, after the delay of a confirmation.
type counting struct {
	*client.Client
	telling sync.Mutex
	mu      sync.Mutex
	calls   []bft.Call
	results map[bft.CallID]bft.Result
	sum     int
	first   func(call bft.Call, sum int) *bft.Result // a first reply, nil for none; after 1 ms
	tired   int                                      // the call with this number gets Retry whatever it assumes
	refuse  error                                    // the node takes no calls
}

const confirmed = 20 * ms

func newCounting(t *testing.T, cfg client.Config) *counting {
	t.Helper()
	n := &counting{results: map[bft.CallID]bft.Result{}}
	n.first = func(_ bft.Call, sum int) *bft.Result { return &bft.Result{Outcome: bft.Executed, Value: number(sum)} }
	cfg.Deliver = n.take
	var err error
	if n.Client, err = client.New(cfg); err != nil {
		t.Fatal(err)
	}
	return n
}

// tell gives the client a message, one after the other as a node does.
func (n *counting) tell(msg bft.Message) {
	n.telling.Lock()
	defer n.telling.Unlock()
	n.Receive(msg)
}

func number(n int) []byte { return []byte(strconv.Itoa(n)) }

func (n *counting) take(_ context.Context, msg bft.Message) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.refuse != nil {
		return n.refuse
	}
	call := msg.(bft.Call)
	n.calls = append(n.calls, call)
	r := n.judge(call)
	if r.Outcome == bft.Executed {
		add, _ := strconv.Atoi(string(call.Command))
		n.sum += add
		r.Value = number(n.sum)
	}
	n.results[call.ID] = r
	if first := n.first(call, n.sum); first != nil && r.Outcome == bft.Executed {
		time.AfterFunc(ms, func() { n.tell(bft.First{ID: call.ID, Result: *first}) })
	}
	time.AfterFunc(confirmed, func() { n.tell(bft.Done{ID: call.ID, Result: r}) })
	return nil
}

func (n *counting) judge(call bft.Call) bft.Result {
	if len(n.calls) == n.tired {
		return bft.Result{Outcome: bft.Retry}
	}
	for _, a := range call.Assumes {
		r, ok := n.results[a.Call]
		if !ok {
			return bft.Result{Outcome: bft.Retry}
		}
		if r.Digest() != a.Digest {
			return bft.Result{Outcome: bft.Aborted}
		}
	}
	return bft.Result{Outcome: bft.Executed}
}

// add adds in a task, perhaps with a guess at the sum.
func (n *counting) add(ctx context.Context, add int, guess ...int) (int, error) {
	for _, g := range guess {
		ctx = foresay.Predicting(ctx, number(g))
	}
	b, err := n.Execute(ctx, number(add))
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(string(b))
}

// took runs f in a bubble and checks how long it takes.
func took(t *testing.T, want time.Duration, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		f(t)
		if got := time.Since(began); got != want {
			t.Errorf("it took %v, want %v", got, want)
		}
		time.Sleep(time.Second)
	})
}

// TestDependentCalls: each call goes on at the first reply to the one before it, or at a guess, and
// says what it assumes.
func TestDependentCalls(t *testing.T) {
	for _, test := range []struct {
		name    string
		guessed bool
		want    time.Duration
	}{{"first replies", false, 2*ms + confirmed}, {"guesses", true, confirmed}} {
		t.Run(test.name, func(t *testing.T) {
			took(t, test.want, func(t *testing.T) {
				n := newCounting(t, client.Config{})
				sum, err := foresay.Do(t.Context(), func(ctx context.Context) (sum int, err error) {
					for i := range 3 {
						var guess []int
						if test.guessed {
							guess = []int{sum + i}
						}
						if sum, err = n.add(ctx, i, guess...); err != nil {
							return 0, err
						}
					}
					return sum, nil
				})
				if sum != 3 || err != nil || len(n.calls) != 3 {
					t.Errorf("%d, %v by %d calls", sum, err, len(n.calls))
				}
				for i, c := range n.calls {
					if len(c.Assumes) != min(i, 1) {
						t.Fatalf("call %d assumes %v", i, c.Assumes)
					}
					if i > 0 && c.Assumes[0].Call != n.calls[i-1].ID {
						t.Errorf("call %d assumes %v", i, c.Assumes)
					}
				}
			})
		})
	}
}

// TestRefusal: a refusal is no result. What was sent on a wrong guess is refused and made again
// with what its caller has then; what was refused although its caller was right is made again as it
// was.
func TestRefusal(t *testing.T) {
	t.Run("wrong guess", func(t *testing.T) {
		took(t, 2*confirmed, func(t *testing.T) {
			n := newCounting(t, client.Config{})
			n.first = func(bft.Call, int) *bft.Result { return nil }
			sum, err := foresay.Do(t.Context(), func(ctx context.Context) (int, error) {
				sum, err := n.add(ctx, 5, 6)
				if err != nil {
					return 0, err
				}
				return n.add(ctx, sum)
			})
			if sum != 10 || err != nil || n.sum != 10 {
				t.Errorf("%d, %v, the sum is %d", sum, err, n.sum)
			}
		})
	})
	t.Run("retry", func(t *testing.T) {
		took(t, 2*confirmed, func(t *testing.T) {
			n := newCounting(t, client.Config{})
			n.first = func(bft.Call, int) *bft.Result { return nil }
			n.tired = 2
			sum, err := foresay.Do(t.Context(), func(ctx context.Context) (int, error) {
				if _, err := n.add(ctx, 5, 5); err != nil {
					return 0, err
				}
				return n.add(ctx, 1)
			})
			if sum != 6 || err != nil || n.sum != 6 || len(n.calls) != 3 {
				t.Errorf("%d, %v, the sum is %d after %d calls", sum, err, n.sum, len(n.calls))
			}
		})
	})
}

// TestWithdrawn: a first reply that nothing speaks for any more is no guess any more.
func TestWithdrawn(t *testing.T) {
	took(t, confirmed+3*ms, func(t *testing.T) {
		n := newCounting(t, client.Config{})
		n.first = func(bft.Call, int) *bft.Result { return &bft.Result{Outcome: bft.Executed, Value: number(-1)} }
		time.AfterFunc(2*ms, func() { n.tell(bft.Withdrawn{ID: n.calls[0].ID}) })
		var seen []int
		_, err := foresay.Do(t.Context(), func(ctx context.Context) (int, error) {
			sum, err := n.add(ctx, 5)
			n.mu.Lock()
			seen = append(seen, sum)
			n.mu.Unlock()
			time.Sleep(3 * ms)
			if foresay.State(ctx).Discarded == (sum > 0) {
				t.Errorf("on %d the run is discarded: %v", sum, foresay.State(ctx).Discarded)
			}
			return sum, err
		})
		if err != nil || !slices.Equal(seen, []int{-1, 5}) {
			t.Errorf("%v, %v", seen, err)
		}
	})
}

// TestFirstRefusal: a first reply that says that nothing was done is no guess.
func TestFirstRefusal(t *testing.T) {
	took(t, 2*confirmed, func(t *testing.T) {
		n := newCounting(t, client.Config{})
		n.first = func(bft.Call, int) *bft.Result { return &bft.Result{Outcome: bft.Aborted} }
		sum, err := foresay.Do(t.Context(), func(ctx context.Context) (int, error) {
			if sum, err := n.add(ctx, 5); sum != 5 || err != nil {
				t.Errorf("%d, %v", sum, err)
			}
			return n.add(ctx, 6)
		})
		if sum != 11 || err != nil {
			t.Errorf("%d, %v", sum, err)
		}
	})
}

// TestNotCarriedOut: what the node or the client has no room for is refused while its caller stands
// on guesses, and an error like others when it does not.
func TestNotCarriedOut(t *testing.T) {
	full := errors.New("full")
	took(t, confirmed, func(t *testing.T) {
		n := newCounting(t, client.Config{})
		_, err := foresay.Do(t.Context(), func(ctx context.Context) (int, error) {
			sum, err := n.add(ctx, 5)
			if err != nil {
				return 0, err
			}
			n.mu.Lock()
			n.refuse = full
			n.mu.Unlock()
			return n.add(ctx, sum)
		})
		if !rejected(err) || !errors.Is(err, full) {
			t.Errorf("the error is %v", err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		n := newCounting(t, client.Config{})
		n.Close(full)
		_, err := foresay.Do(t.Context(), func(ctx context.Context) (int, error) { return n.add(ctx, 5) })
		if !rejected(err) {
			t.Errorf("closed: %v", err)
		}
	})
	n := newCounting(t, client.Config{MaxBytes: 8})
	for name, f := range map[string]func(context.Context) error{
		"Do": func(ctx context.Context) error {
			_, err := n.Do(ctx, bft.Call{Command: make([]byte, 9)}, nil)
			return err
		},
		"Execute": func(ctx context.Context) error { _, err := n.Execute(ctx, make([]byte, 9)); return err },
		"Read":    func(ctx context.Context) error { _, err := n.Read(ctx, make([]byte, 9)); return err },
		"Start": func(ctx context.Context) error {
			_, err := n.Start(ctx, bft.Call{Command: make([]byte, 9)},
				client.Hearer{Done: func(bft.Result, error) {}})
			return err
		},
	} {
		_, inTask := foresay.Do(t.Context(), func(ctx context.Context) (int, error) { return 0, f(ctx) })
		if err := f(t.Context()); !rejected(err) || !rejected(inTask) {
			t.Errorf("%s of too many bytes: %v, in a task %v", name, err, inTask)
		}
	}
}

// TestUnknownOutcomes: a task that is cancelled with calls under way says that it is not known what
// becomes of them, and so does one whose client is closed or whose session is over.
func TestUnknownOutcomes(t *testing.T) {
	for name, end := range map[string]func(n *counting, cancel func()){
		"cancelled": func(_ *counting, cancel func()) { cancel() },
		"closed":    func(n *counting, _ func()) { n.Close(nil) },
		"gone": func(n *counting, _ func()) {
			for _, c := range n.calls {
				n.tell(bft.Done{ID: c.ID, Result: bft.Result{Outcome: bft.Gone}})
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			took(t, 5*ms, func(t *testing.T) {
				n := newCounting(t, client.Config{})
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				time.AfterFunc(5*ms, func() { end(n, cancel) })
				_, err := foresay.Do(ctx, func(ctx context.Context) (int, error) {
					if _, err := n.add(ctx, 5); err != nil {
						return 0, err
					}
					return n.add(ctx, 6)
				})
				if !unknown(err) {
					t.Errorf("the error is %v", err)
				}
			})
		})
	}
}

// TestUnknownAfterAGuess: what was sent on a guess at a call whose session is over may have been
// carried out, though its caller goes on with an error. So the task says so, whatever its code
// does.
func TestUnknownAfterAGuess(t *testing.T) {
	took(t, 5*ms, func(t *testing.T) {
		n := newCounting(t, client.Config{})
		time.AfterFunc(5*ms, func() {
			for _, c := range n.calls {
				n.tell(bft.Done{ID: c.ID, Result: bft.Result{Outcome: bft.Gone}})
			}
		})
		_, err := foresay.Do(t.Context(), func(ctx context.Context) (int, error) {
			if _, err := n.add(ctx, 5, 5); err != nil {
				return 0, nil
			}
			return n.add(ctx, 6)
		})
		if !errors.Is(err, foresay.ErrUnfinished) {
			t.Errorf("the error is %v", err)
		}
	})
}

// TestGuesses: a task's code guesses results, as values of a typed client's or as bytes, and so
// does a predictor; what cannot be a result is none.
func TestGuesses(t *testing.T) {
	typed := func(n *counting) client.Typed[int, int, int] {
		return client.Typed[int, int, int]{Client: n.Client,
			Guess: func(r int) ([]byte, error) { return number(r), nil },
			Coding: smrclient.Coding[int, int, int]{
				Command: func(c int) ([]byte, error) { return number(c), nil },
				Query:   func(q int) ([]byte, error) { return number(q), nil },
				Result:  func(b []byte) (int, error) { return strconv.Atoi(string(b)) },
			}}
	}
	for _, test := range []struct {
		name  string
		guess any
		cfg   client.Config
		right bool
	}{
		{"value", 5, client.Config{}, true},
		{"bytes", []byte("5"), client.Config{}, true},
		{"neither", "5", client.Config{}, false},
		{"predictor", "5", client.Config{Predictors: []control.Predictor{always("5")}}, true},
		{"off", 5, client.Config{Mode: control.ModeOff}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			want := 2 * confirmed
			if test.right {
				want = confirmed
			}
			took(t, want, func(t *testing.T) {
				n := newCounting(t, test.cfg)
				n.first = func(bft.Call, int) *bft.Result { return nil }
				sum, err := foresay.Do(t.Context(), func(ctx context.Context) (int, error) {
					sum, err := typed(n).Execute(foresay.Predicting(ctx, test.guess), 5)
					if err != nil {
						return 0, err
					}
					return typed(n).Read(foresay.Predicting(ctx, 10), sum)
				})
				if sum != 10 || err != nil {
					t.Errorf("%d, %v", sum, err)
				}
			})
		})
	}
}

type always string

func (a always) Predict(context.Context, any) []any { return []any{[]byte(a)} }
func (a always) Learn(context.Context, any, any)    {}

// TestOwnMemory: a result is the caller's own, and a command may be changed when a call returns.
func TestOwnMemory(t *testing.T) {
	took(t, confirmed, func(t *testing.T) {
		n := newCounting(t, client.Config{})
		_, err := foresay.Do(t.Context(), func(ctx context.Context) (int, error) {
			command := number(5)
			for range 2 {
				b, err := n.Execute(foresay.Predicting(ctx, number(5)), command)
				if err != nil {
					return 0, err
				}
				clear(b)
				clear(command)
			}
			return 0, nil
		})
		if got := n.calls[0].Command; err != nil || !bytes.Equal(got, number(5)) {
			t.Errorf("the command is %q, %v", got, err)
		}
	})
}

// TestNotInTasks: what nobody could take back is not for the code of a task.
// TestMembersAreAnotherCall: code that makes a change of the members where it made a command has
// diverged, though the bytes are the same.
func TestMembersAreAnotherCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newCounting(t, client.Config{})
		n.first = func(bft.Call, int) *bft.Result { return nil }
		runs := 0
		_, err := foresay.Do(t.Context(), func(ctx context.Context) (int, error) {
			runs++
			if _, err := n.Do(ctx, bft.Call{Command: number(1), Members: runs > 1}, nil); err != nil {
				return 0, err
			}
			return n.add(ctx, 5, 7)
		})
		if !errors.Is(err, foresay.ErrDiverged) {
			t.Errorf("%v after %d runs", err, runs)
		}
	})
}

func TestNotInTasks(t *testing.T) {
	n := newCounting(t, client.Config{})
	_, err := foresay.Do(t.Context(), func(ctx context.Context) (int, error) {
		if _, err := n.Start(ctx, bft.Call{}, client.Hearer{}); !rejected(err) {
			t.Errorf("Start: %v", err)
		}
		if _, err := n.Do(ctx, bft.Call{Assumes: []bft.Assumption{{Call: 1}}}, nil); !rejected(err) {
			t.Errorf("Do with conditions: %v", err)
		}
		return 0, nil
	})
	if err != nil || len(n.calls) > 0 {
		t.Errorf("%v, calls %v", err, n.calls)
	}
}

// TestConfig: what is wrong with a configuration is named.
func TestConfig(t *testing.T) {
	for want, cfg := range map[string]client.Config{
		"client: Config.Deliver is missing": {},
		"client: Config.MaxBytes is -1": {MaxBytes: -1,
			Deliver: func(context.Context, bft.Message) error { return nil }},
	} {
		if _, err := client.New(cfg); fmt.Sprint(err) != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
