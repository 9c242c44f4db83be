package shape_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foresay/foresay/wan"
	"github.com/foresay/foresay/wan/shape"
)

func TestAsymmetricDelays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := wan.Uniform(0, "client", "a").
			WithLink(wan.Path{From: "client", To: "a"}, wan.Link{Delay: 300 * time.Millisecond}).
			WithLink(wan.Path{From: "a", To: "client"}, wan.Link{Delay: 40 * time.Millisecond})
		n := shape.NewNetwork(m, 1)
		c := connect(t, n, "client", serve(t, n, "a"))
		for i, want := range []time.Duration{3 * 340 * time.Millisecond, 340 * time.Millisecond} {
			if got, err := check(t.Context(), c); err != nil || got != want {
				t.Errorf("call %d: %v, %v, want %v", i, got, err, want)
			}
		}
	})
}

func TestCallsWithinASiteTakeNoTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := shape.NewNetwork(wan.SpecRPC(), 1)
		c := connect(t, n, "oregon", serve(t, n, "oregon"))
		for i := range 3 {
			if got, err := check(t.Context(), c); err != nil || got != 0 {
				t.Errorf("call %d: %v, %v, want 0", i, got, err)
			}
		}
	})
}

// withLink returns two sites, of which one sends to the other over l.
func withLink(l wan.Link) wan.Matrix {
	return wan.Uniform(0, "a", "b").WithLink(wan.Path{From: "a", To: "b"}, l)
}

func TestBandwidth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := shape.NewNetwork(withLink(wan.Link{Delay: 50 * time.Millisecond, BytesPerSecond: 1_000_000}), 1)
		l, err := n.Listen("b")
		if err != nil {
			t.Fatal(err)
		}
		a1, b1 := dial(t, n, "a", l)
		a2, b2 := dial(t, n, "a", l)
		start := time.Now()
		for range 1000 {
			write(t, a1, string(make([]byte, 1000)))
		}
		write(t, a2, "x") // behind the rest: connections share the link
		got := make([]byte, 1_000_000)
		if _, err := io.ReadFull(b1, got[:1448]); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took != 52*time.Millisecond { // two writes
			t.Errorf("the first segment took %v", took)
		}
		if _, err := io.ReadFull(b1, got[1448:]); err != nil {
			t.Fatal(err)
		}
		wantElapsed(t, start, 1050*time.Millisecond, true)
		wantRead(t, b2, "x")
		wantElapsed(t, start, 1050*time.Millisecond+time.Microsecond, true)

		start = time.Now()
		write(t, a1, string(make([]byte, 14480))) // one write leaves in segments
		if _, err := io.ReadFull(b1, got[:1448]); err != nil {
			t.Fatal(err)
		}
		wantElapsed(t, start, 50*time.Millisecond+1448*time.Microsecond, true)
		n.Close()
	})
}

// arrivals writes a message every 3 ms and returns what each took.
func arrivals(t *testing.T, n *shape.Network) (took []time.Duration) {
	a, b := pair(t, n)
	for range 50 {
		time.Sleep(3 * time.Millisecond)
		start := time.Now()
		write(t, a, "x")
		wantRead(t, b, "x")
		took = append(took, time.Since(start))
	}
	a.Close()
	b.Close()
	return took
}

func TestJitterIsRepeatable(t *testing.T) {
	link := wan.Link{Delay: 10 * time.Millisecond, Jitter: 5 * time.Millisecond, Loss: 0.1}
	run := func(seed uint64) (took []time.Duration) {
		synctest.Test(t, func(t *testing.T) { took = arrivals(t, shape.NewNetwork(withLink(link), seed)) })
		return took
	}
	first := run(1)
	if again := run(1); !slices.Equal(first, again) {
		t.Errorf("the same seed gave\n%v and\n%v", first, again)
	}
	if other := run(2); slices.Equal(first, other) {
		t.Errorf("another seed gave the same %v", first)
	}
	jittered, lost := 0, 0
	for _, d := range first {
		switch {
		case d < link.Delay:
			t.Errorf("a message took %v", d)
		case d < link.Delay+link.Jitter:
			jittered++
		case d >= link.Delay+link.Timeout():
			lost++
		default:
			t.Errorf("a message took %v", d)
		}
	}
	if jittered < 30 || lost == 0 {
		t.Errorf("of 50 messages %d were jittered and %d lost", jittered, lost)
	}
}

func TestCallsRepeatWithJitter(t *testing.T) {
	run := func() (took []time.Duration) {
		synctest.Test(t, func(t *testing.T) {
			link := wan.Link{Delay: 10 * time.Millisecond, Jitter: 2 * time.Millisecond}
			n := shape.NewNetwork(wan.Uniform(0, "client", "a").
				WithLink(wan.Path{From: "client", To: "a"}, link).
				WithLink(wan.Path{From: "a", To: "client"}, link), 7)
			c := connect(t, n, "client", serve(t, n, "a"))
			for range 50 {
				d, err := check(t.Context(), c)
				if err != nil {
					t.Fatal(err)
				}
				took = append(took, d)
			}
		})
		return took
	}
	first := run()
	for range 5 {
		if again := run(); !slices.Equal(first, again) {
			t.Fatalf("two runs took\n%v and\n%v", first, again)
		}
	}
}

func TestThousandsOfConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const conns = 3000
		n := shape.NewNetwork(wan.Uniform(rtt, "a", "b"), 1)
		l, err := n.Listen("b")
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				go func() {
					io.Copy(c, c)
					c.Close()
				}()
			}
		}()
		took := make(chan time.Duration)
		for range conns {
			go func() {
				c, err := n.Dial(t.Context(), "a", l.Addr().String())
				if err != nil {
					t.Error(err)
					took <- 0
					return
				}
				start := time.Now()
				write(t, c, "ping")
				wantRead(t, c, "ping")
				took <- time.Since(start)
				c.Close()
			}()
		}
		for range conns {
			// The first bytes wait for Accept, which happens when they arrive.
			if d := <-took; d != rtt {
				t.Fatalf("an echo took %v", d)
			}
		}
		n.Close()
	})
}

// TestPause: it takes its time, none if none is wanted, and no longer than its context.
func TestPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone := errors.New("gone")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(4*time.Second, func() { cancel(gone) })
		for _, c := range []struct {
			d, want time.Duration
			err     error
		}{
			{-time.Second, 0, nil}, {3 * time.Second, 3 * time.Second, nil}, {3 * time.Second, time.Second, gone}, {0, 0, gone},
		} {
			began := time.Now()
			if err := shape.Pause(ctx, c.d); err != c.err || time.Since(began) != c.want {
				t.Errorf("%v took %v: %v, want %v: %v", c.d, time.Since(began), err, c.want, c.err)
			}
		}
	})
}
