package client_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foresay/foresay/bft"
	"github.com/foresay/foresay/bft/client"
	smrclient "github.com/foresay/foresay/smr/client"
)

func newClient(deliver func(context.Context, bft.Message) error) *client.Client {
	c, err := client.New(client.Config{Deliver: deliver})
	if err != nil {
		panic(err)
	}
	return c
}

// over returns a client of a node that answers each call as a test says: nothing for nil.
func over(answer func(bft.Call) []bft.Message) *client.Client {
	var c *client.Client
	c = newClient(func(_ context.Context, msg bft.Message) error {
		for _, m := range answer(msg.(bft.Call)) {
			go c.Receive(m)
		}
		return nil
	})
	return c
}

func rejected(err error) bool { return errors.As(err, new(*client.RejectedError)) }
func unknown(err error) bool  { return errors.As(err, new(*client.UnknownError)) }

func TestOutcomes(t *testing.T) {
	for outcome, is := range map[bft.Outcome]func(error) bool{
		bft.Executed: func(err error) bool { return err == nil }, bft.Aborted: rejected, bft.Retry: rejected,
		bft.Gone: unknown,
	} {
		c := over(func(call bft.Call) []bft.Message {
			return []bft.Message{bft.Done{ID: call.ID, Result: bft.Result{Outcome: outcome, Value: call.Command}}}
		})
		value, err := c.Execute(t.Context(), []byte("v"))
		if !is(err) || string(value) != "v" {
			t.Errorf("%v: got %q, %v", outcome, value, err)
		}
	}
}

func TestFirstReplies(t *testing.T) {
	var c *client.Client
	c = newClient(func(_ context.Context, msg bft.Message) error {
		id := msg.(bft.Call).ID
		go func() {
			c.Receive(bft.First{ID: id, Result: bft.Result{Value: []byte("guess")}})
			c.Receive(bft.Withdrawn{ID: id})
			c.Receive(bft.Done{ID: id, Result: bft.Result{Outcome: bft.Executed, Value: []byte("truth")}})
			c.Receive(bft.First{ID: id, Result: bft.Result{Value: []byte("late")}})
		}()
		return nil
	})
	heard := make(chan string, 10)
	_, err := c.Start(t.Context(), bft.Call{}, client.Hearer{
		First:     func(r bft.Result) { heard <- string(r.Value) },
		Withdrawn: func() { heard <- "withdrawn" },
		Done:      func(r bft.Result, err error) { heard <- fmt.Sprint(string(r.Value), err) },
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"guess", "withdrawn", "truth<nil>"} {
		if got := <-heard; got != want {
			t.Errorf("heard %q, want %q", got, want)
		}
	}
}

// TestNobodyAnswers: who gives up learns that the outcome is unknown, and so do all when the client
// is closed.
func TestNobodyAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := over(func(bft.Call) []bft.Message { return nil })
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := c.Execute(ctx, nil); !unknown(err) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("after the deadline: %v", err)
		}
		ended := make(chan error, 1)
		go func() {
			_, err := c.Read(t.Context(), nil)
			ended <- err
		}()
		synctest.Wait()
		c.Close(nil)
		if err := <-ended; !unknown(err) || !strings.Contains(err.Error(), "the client is closed") {
			t.Errorf("closed: %v", err)
		}
		if _, err := c.Execute(t.Context(), nil); !rejected(err) {
			t.Errorf("after that: %v", err)
		}
	})
}

// TestOpenCallsAreBounded: a node that answers nobody is not given more and more.
func TestOpenCallsAreBounded(t *testing.T) {
	var last bft.CallID
	c := newClient(func(_ context.Context, msg bft.Message) error {
		last = msg.(bft.Call).ID
		return nil
	})
	start := func() error {
		_, err := c.Start(t.Context(), bft.Call{}, client.Hearer{Done: func(bft.Result, error) {}})
		return err
	}
	for range client.MaxOpen {
		if err := start(); err != nil {
			t.Fatal(err)
		}
	}
	if err := start(); !rejected(err) || !strings.Contains(err.Error(), "overload") {
		t.Errorf("one more: %v", err)
	}
	c.Receive(bft.Done{ID: last})
	if err := start(); err != nil {
		t.Errorf("after one is done: %v", err)
	}
}

func TestTyped(t *testing.T) {
	c := over(func(call bft.Call) []bft.Message {
		return []bft.Message{bft.Done{ID: call.ID, Result: bft.Result{Outcome: bft.Executed, Value: call.Command}}}
	})
	encode := func(n int) ([]byte, error) {
		if n < 0 {
			return nil, errors.New("negative")
		}
		return []byte(strconv.Itoa(n)), nil
	}
	typed := client.Typed[int, int, int]{Client: c, Coding: smrclient.Coding[int, int, int]{Command: encode, Query: encode,
		Result: func(b []byte) (int, error) { return strconv.Atoi(string(b)) }}}
	if n, err := typed.Execute(t.Context(), 4); n != 4 || err != nil {
		t.Errorf("got %d, %v", n, err)
	}
	if n, err := typed.Read(t.Context(), 5); n != 5 || err != nil {
		t.Errorf("got %d, %v", n, err)
	}
	if _, err := typed.Execute(t.Context(), -1); !rejected(err) {
		t.Errorf("got %v", err)
	}
}

func Example() {
	// A node that executes everything at once.
	c := over(func(call bft.Call) []bft.Message {
		return []bft.Message{bft.Done{ID: call.ID, Result: bft.Result{Outcome: bft.Executed, Value: []byte("done")}}}
	})
	value, err := c.Execute(context.Background(), []byte("command"))
	fmt.Println(string(value), err)
	// Output: done <nil>
}
