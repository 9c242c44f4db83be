package client_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/client"
)

// node answers calls as a test says.
type node struct {
	mu     sync.Mutex
	got    []smr.Message
	answer func(smr.Call) *smr.Done
	err    error
	client *client.Client

	cancelled *smr.Done // what becomes of a call that is cancelled; nil for no word
}

func newNode(answer func(smr.Call) *smr.Done) (*node, *client.Client) {
	n := &node{answer: answer}
	n.client = client.New(n.deliver)
	return n, n.client
}

func (n *node) deliver(_ context.Context, msg smr.Message) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.got = append(n.got, msg)
	if n.err != nil {
		return n.err
	}
	if c, ok := msg.(smr.Cancel); ok && n.cancelled != nil {
		d := *n.cancelled
		d.ID, d.Reason = c.ID, c.Reason
		go n.client.Receive(d)
	}
	if c, ok := msg.(smr.Call); ok {
		if d := n.answer(c); d != nil {
			d.ID = c.ID
			go n.client.Receive(*d)
		}
	}
	return nil
}

func TestOutcomes(t *testing.T) {
	for _, tc := range []struct {
		name string
		done smr.Done
		want func(error) bool
	}{
		{"committed", smr.Done{Outcome: smr.Committed, Slot: 7, Result: []byte("r")}, func(err error) bool {
			return err == nil
		}},
		{"rejected", smr.Done{Outcome: smr.Rejected, Reason: "overload"}, func(err error) bool {
			_, ok := errors.AsType[*client.RejectedError](err)
			return ok && err.Error() == "execute: rejected: overload"
		}},
		{"unknown", smr.Done{Outcome: smr.Unknown, Reason: "the session is gone"}, func(err error) bool {
			_, ok := errors.AsType[*client.UnknownError](err)
			return ok && err.Error() == "execute: outcome unknown: the session is gone"
		}},
		{"no outcome", smr.Done{}, func(err error) bool {
			_, ok := errors.AsType[*client.UnknownError](err)
			return ok
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, c := newNode(func(smr.Call) *smr.Done { d := tc.done; return &d })
			got, err := c.Execute(t.Context(), []byte("c"))
			if !tc.want(err) {
				t.Errorf("Execute returned error %v", err)
			}
			if string(got) != string(tc.done.Result) {
				t.Errorf("Execute returned %q, want %q", got, tc.done.Result)
			}
		})
	}
}

func TestDeadlineIsUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, c := newNode(func(smr.Call) *smr.Done { return nil })
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := c.Propose(ctx, nil)
		if _, ok := errors.AsType[*client.UnknownError](err); !ok || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got error %v, want an UnknownError for a deadline", err)
		}
		if got := n.got[len(n.got)-1]; got != (smr.Cancel{ID: 1, Reason: "nobody answered in time"}) {
			t.Errorf("the node got %v last, want to be told that nobody waits", got)
		}
		c.Receive(smr.Done{ID: 1, Outcome: smr.Committed}) // too late, and nobody's
	})
}

// The node is asked whether a call that nobody waits for was sent, and waits as long as the caller.
func TestDeadlineOfACallThatWasNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, c := newNode(func(smr.Call) *smr.Done { return nil })
		n.cancelled = new(smr.NotSent("nobody was there"))
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		_, err := c.Propose(ctx, nil)
		if rejected, ok := errors.AsType[*client.RejectedError](err); !ok || !rejected.Unsent ||
			!errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got error %v, want a RejectedError of a call that was not sent, for a deadline", err)
		}
		if call := n.got[0].(smr.Call); call.Patience != time.Hour {
			t.Errorf("the node has a patience of %v", call.Patience)
		}
	})
}

// Who is interrupted is told why, and whether the call was sent.
func TestInterrupt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, c := newNode(func(smr.Call) *smr.Done { return nil })
		n.cancelled = &smr.Done{Outcome: smr.Rejected}
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				_, err := c.Propose(t.Context(), nil)
				if _, ok := errors.AsType[*client.RejectedError](err); !ok || !strings.Contains(err.Error(), "wrong door") {
					t.Errorf("got error %v, want a RejectedError with the reason", err)
				}
			})
		}
		synctest.Wait()
		c.Interrupt(t.Context(), errors.New("wrong door"))
		wg.Wait()
	})
}

func TestNodeThatTakesNothing(t *testing.T) {
	n, c := newNode(nil)
	n.err = errors.New("queue full")
	_, err := c.Read(t.Context(), nil)
	if _, ok := errors.AsType[*client.RejectedError](err); !ok || !errors.Is(err, n.err) {
		t.Errorf("got error %v, want a RejectedError for %v", err, n.err)
	}
}

func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := newNode(func(smr.Call) *smr.Done { return nil })
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				err := c.Reconfigure(context.Background(), smr.Change{Remove: 1})
				if _, ok := errors.AsType[*client.UnknownError](err); !ok {
					t.Errorf("got error %v of a call when the client was closed, want an UnknownError", err)
				}
			})
		}
		synctest.Wait()
		c.Close(nil)
		wg.Wait()
		if _, err := c.Propose(t.Context(), nil); err == nil {
			t.Error("a closed client takes calls")
		}
	})
}

func TestConcurrentCallsGetTheirOwnAnswers(t *testing.T) {
	_, c := newNode(func(call smr.Call) *smr.Done { return &smr.Done{Outcome: smr.Committed, Result: call.Command} })
	var wg sync.WaitGroup
	for i := range 100 {
		wg.Go(func() {
			want := strconv.Itoa(i)
			if got, err := c.Execute(t.Context(), []byte(want)); err != nil || string(got) != want {
				t.Errorf("got %q, %v, want %q", got, err, want)
			}
		})
	}
	wg.Wait()
}

func TestTyped(t *testing.T) {
	_, c := newNode(func(call smr.Call) *smr.Done { return &smr.Done{Outcome: smr.Committed, Result: call.Command} })
	bad := errors.New("odd")
	encode := func(n int) ([]byte, error) {
		if n < 0 {
			return nil, bad
		}
		return strconv.AppendInt(nil, int64(n), 10), nil
	}
	typed := client.Typed[int, int, int]{c, client.Coding[int, int, int]{
		Command: encode, Query: encode,
		Result: func(b []byte) (int, error) {
			if string(b) == "13" {
				return 0, bad
			}
			return strconv.Atoi(string(b))
		},
	}}
	if got, err := typed.Execute(t.Context(), 4); got != 4 || err != nil {
		t.Errorf("Execute(4) = %d, %v", got, err)
	}
	if got, err := typed.Read(t.Context(), 5); got != 5 || err != nil {
		t.Errorf("Read(5) = %d, %v", got, err)
	}
	for _, n := range []int{-1, 13} {
		if _, err := typed.Execute(t.Context(), n); !errors.Is(err, bad) {
			t.Errorf("Execute(%d) returned error %v, want %v", n, err, bad)
		}
	}
	_, err := typed.Propose(t.Context(), -1)
	if _, ok := errors.AsType[*client.RejectedError](err); !ok {
		t.Errorf("Propose(-1) returned error %v, want a RejectedError", err)
	}
}

func Example() {
	var c *client.Client
	// A host runs the client node; this one answers at once.
	c = client.New(func(_ context.Context, msg smr.Message) error {
		if call, ok := msg.(smr.Call); ok {
			go c.Receive(smr.Done{ID: call.ID, Outcome: smr.Committed, Slot: 1, Result: []byte("done")})
		}
		return nil
	})
	result, err := c.Execute(context.Background(), []byte("put x 1"))
	fmt.Printf("%s %v\n", result, err)
	// Output: done <nil>
}
