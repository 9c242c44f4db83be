package shape_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"runtime/pprof"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/nettest"

	"github.com/foresay/foresay/wan"
	"github.com/foresay/foresay/wan/shape"
)

// rtt is the round trip of the networks of onBoth.
const rtt = 20 * time.Millisecond

// onBoth runs a test on a network in memory in a bubble, where times are exact, and on one of
// sockets.
func onBoth(t *testing.T, test func(t *testing.T, n *shape.Network, exact bool)) {
	sites := wan.Uniform(rtt, "a", "b", "c")
	t.Run("memory", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			n := shape.NewNetwork(sites, 1)
			test(t, n, true)
			if err := n.Close(); err != nil {
				t.Error(err)
			}
		})
	})
	t.Run("loopback", func(t *testing.T) {
		n := shape.NewLoopback(sites, 1)
		test(t, n, false)
		if err := n.Close(); err != nil {
			t.Error(err)
		}
		wantNoGoroutines(t)
	})
}

// wantNoGoroutines wants all goroutines of networks to have ended, but for their last instructions.
func wantNoGoroutines(t testing.TB) {
	t.Helper()
	var stacks bytes.Buffer
	for range 1000 {
		stacks.Reset()
		if err := pprof.Lookup("goroutine").WriteTo(&stacks, 1); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(stacks.String(), "shape.(") {
			return
		}
		wait(t, time.Millisecond)
	}
	t.Errorf("goroutines are left after Close:\n%s", &stacks)
}

// pair connects a to b.
func pair(t testing.TB, n *shape.Network) (a, b net.Conn) {
	t.Helper()
	l, err := n.Listen("b")
	if err != nil {
		t.Fatal(err)
	}
	return dial(t, n, "a", l)
}

// dial connects a site to l.
func dial(t testing.TB, n *shape.Network, from wan.Site, l net.Listener) (client, server net.Conn) {
	t.Helper()
	client, err := n.Dial(context.Background(), from, l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if server, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	return client, server
}

func write(t testing.TB, c net.Conn, s string) {
	t.Helper()
	if n, err := c.Write([]byte(s)); err != nil || n != len(s) {
		t.Fatalf("Write(%q) = %d, %v", s, n, err)
	}
}

// wantRead reads exactly what is wanted.
func wantRead(t testing.TB, c net.Conn, want string) {
	t.Helper()
	got := make([]byte, len(want))
	if _, err := io.ReadFull(c, got); err != nil || string(got) != want {
		t.Fatalf("read %q, %v, want %q", got, err, want)
	}
}

// wantReadError reads a byte and wants an error.
func wantReadError(t testing.TB, c net.Conn, want error) {
	t.Helper()
	if n, err := c.Read(make([]byte, 1)); n != 0 || !errors.Is(err, want) {
		t.Fatalf("Read = %d, %v, want the error %v", n, err, want)
	}
}

// wantSilence reads nothing for a while.
func wantSilence(t testing.TB, c net.Conn, d time.Duration) {
	t.Helper()
	if err := c.SetReadDeadline(time.Now().Add(d)); err != nil {
		t.Fatal(err)
	}
	wantReadError(t, c, os.ErrDeadlineExceeded)
	if err := c.SetReadDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
}

// wantElapsed checks the time since start: exactly, or only that it is not less.
func wantElapsed(t testing.TB, start time.Time, want time.Duration, exact bool) {
	t.Helper()
	if got := time.Since(start); got < want || exact && got != want {
		t.Errorf("took %v, want %v", got, want)
	}
}

func TestHandshakeTakesOneAndAHalfRoundTrips(t *testing.T) {
	onBoth(t, func(t *testing.T, n *shape.Network, exact bool) {
		l, err := n.Listen("b")
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		c, err := n.Dial(t.Context(), "a", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		wantElapsed(t, start, rtt, exact)
		write(t, c, "hello")
		s, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		wantElapsed(t, start, rtt+rtt/2, exact)
		wantRead(t, s, "hello")
		wantElapsed(t, start, rtt+rtt/2, exact)
		write(t, s, "world")
		wantRead(t, c, "world")
		wantElapsed(t, start, 2*rtt, exact)
		if c.RemoteAddr().String() != l.Addr().String() || s.RemoteAddr().String() != c.LocalAddr().String() {
			t.Errorf("addresses do not fit: %v to %v, accepted at %v from %v",
				c.LocalAddr(), c.RemoteAddr(), s.LocalAddr(), s.RemoteAddr())
		}
	})
}

func TestCloseDeliversWhatWasWritten(t *testing.T) {
	onBoth(t, func(t *testing.T, n *shape.Network, exact bool) {
		a, b := pair(t, n)
		start := time.Now()
		write(t, a, "last words")
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
		wantReadError(t, a, net.ErrClosed)
		if _, err := a.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
			t.Errorf("Write after Close: %v", err)
		}
		if err := a.Close(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("second Close: %v", err)
		}
		wantRead(t, b, "last words")
		wantReadError(t, b, io.EOF)
		wantElapsed(t, start, rtt/2, exact)
		wantReadError(t, b, io.EOF)
	})
}

func TestDeadlineAndCloseEndABlockedRead(t *testing.T) {
	onBoth(t, func(t *testing.T, n *shape.Network, exact bool) {
		a, _ := pair(t, n)
		failed := make(chan error)
		read := func() {
			_, err := a.Read(make([]byte, 1))
			failed <- err
		}
		go read()
		start := time.Now()
		if err := a.SetDeadline(start.Add(rtt)); err != nil {
			t.Fatal(err)
		}
		if err := <-failed; !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("the read that met the deadline: %v", err)
		}
		wantElapsed(t, start, rtt, exact)
		if err := a.SetDeadline(time.Time{}); err != nil {
			t.Fatal(err)
		}
		go read()
		a.Close()
		if err := <-failed; !errors.Is(err, net.ErrClosed) {
			t.Errorf("the read that met Close: %v", err)
		}
	})
}

func TestBytesForAClosedEndAreAnsweredByAReset(t *testing.T) {
	onBoth(t, func(t *testing.T, n *shape.Network, exact bool) {
		a, b := pair(t, n)
		a.Close()
		wantReadError(t, b, io.EOF)
		start := time.Now()
		write(t, b, "is anybody there?")
		for {
			if _, err := b.Write([]byte("x")); err != nil {
				break
			}
			wait(t, time.Millisecond)
		}
		if took := time.Since(start); exact && (took < rtt || took > rtt+time.Millisecond) {
			t.Errorf("the reset came after %v, want %v", took, rtt)
		}
	})
}

// wait lets time pass.
func wait(t testing.TB, d time.Duration) {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	<-ctx.Done()
}

func TestDialIsRefusedAfterARoundTrip(t *testing.T) {
	onBoth(t, func(t *testing.T, n *shape.Network, exact bool) {
		l, err := n.Listen("b")
		if err != nil {
			t.Fatal(err)
		}
		l.Close()
		start := time.Now()
		if _, err := n.Dial(t.Context(), "a", l.Addr().String()); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("error %v", err)
		}
		wantElapsed(t, start, rtt, exact)
		if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("Accept: %v", err)
		}
		if err := l.Close(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("second Close: %v", err)
		}
	})
}

func TestDialErrors(t *testing.T) {
	n := shape.NewNetwork(wan.Uniform(rtt, "a", "b"), 1)
	l, err := n.Listen("b")
	if err != nil {
		t.Fatal(err)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for _, test := range []struct {
		ctx     context.Context
		from    wan.Site
		address string
		want    string
	}{
		{t.Context(), "x", "b:1", `shape: dial b:1 from x: unknown site "x" (the sites are ["a" "b"])`},
		{t.Context(), "a", "b:7", `shape: dial b:7 from a: no listener ever had this address: connection refused`},
		{cancelled, "a", l.Addr().String(), `shape: dial b:1 from a: context canceled`},
	} {
		if _, err := n.Dial(test.ctx, test.from, test.address); err == nil || err.Error() != test.want {
			t.Errorf("Dial(%q, %q): %v, want %s", test.from, test.address, err, test.want)
		}
	}
	if _, err := n.Listen("x"); err == nil || !strings.Contains(err.Error(), `unknown site "x"`) {
		t.Errorf("Listen(x): %v", err)
	}
	n.Close()
	if _, err := n.Listen("a"); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Listen after Close: %v", err)
	}
	if _, err := n.Dial(t.Context(), "a", "b:1"); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Dial after Close: %v", err)
	}
}

func TestWriteWaitsForTheWindow(t *testing.T) {
	onBoth(t, func(t *testing.T, n *shape.Network, _ bool) {
		a, b := pair(t, n)
		n.SetDown("a", "b", true)
		big := make([]byte, 5<<20)
		if err := a.SetWriteDeadline(time.Now().Add(rtt)); err != nil {
			t.Fatal(err)
		}
		sent, err := a.Write(big)
		if !errors.Is(err, os.ErrDeadlineExceeded) || sent != 4<<20 {
			t.Fatalf("Write = %d, %v, want 4 MiB and a timeout", sent, err)
		}
		if err := a.SetWriteDeadline(time.Time{}); err != nil {
			t.Fatal(err)
		}
		written := make(chan error, 1)
		go func() {
			_, err := a.Write(big)
			a.Close()
			written <- err
		}()
		n.SetDown("a", "b", false)
		got, err := io.Copy(io.Discard, b)
		if err != nil || got != int64(sent+len(big)) {
			t.Errorf("read %d, %v, want %d", got, err, sent+len(big))
		}
		if err := <-written; err != nil {
			t.Error(err)
		}
		if got := n.Bytes("a", "b"); got != int64(sent+len(big)) {
			t.Errorf("Bytes = %d", got)
		}
	})
}

func TestBytesAreCountedPerDirection(t *testing.T) {
	onBoth(t, func(t *testing.T, n *shape.Network, _ bool) {
		a, b := pair(t, n)
		write(t, a, "12345")
		write(t, b, "123")
		wantRead(t, b, "12345")
		wantRead(t, a, "123")
		for _, test := range []struct {
			from, to wan.Site
			want     int64
		}{{"a", "b", 5}, {"b", "a", 3}, {"a", "c", 0}, {"a", "a", 0}} {
			if got := n.Bytes(test.from, test.to); got != test.want {
				t.Errorf("Bytes(%s, %s) = %d, want %d", test.from, test.to, got, test.want)
			}
		}
		if got := n.TotalBytes(); got != 8 {
			t.Errorf("TotalBytes = %d, want 8", got)
		}
	})
}

func TestCloseOfTheNetworkEndsEverything(t *testing.T) {
	for name, newNetwork := range backEnds() {
		t.Run(name, func(t *testing.T) {
			n := newNetwork(wan.Uniform(0, "a", "b"), 1)
			l, err := n.Listen("b")
			if err != nil {
				t.Fatal(err)
			}
			a, b := dial(t, n, "a", l)
			n.SetDown("a", "b", true)
			failed := make(chan error)
			for _, f := range []func() error{
				func() error { _, err := a.Read(make([]byte, 1)); return err },
				func() error { _, err := b.Read(make([]byte, 1)); return err },
				func() error { _, err := a.Write(make([]byte, 8<<20)); return err },
				func() error { _, err := l.Accept(); return err },
				func() error { _, err := n.Dial(context.Background(), "a", l.Addr().String()); return err },
			} {
				go func() { failed <- f() }()
			}
			n.Close()
			for range 5 {
				if err := <-failed; !errors.Is(err, net.ErrClosed) {
					t.Errorf("an operation ended with %v", err)
				}
			}
			if err := n.Close(); !errors.Is(err, net.ErrClosed) {
				t.Errorf("second Close: %v", err)
			}
		})
	}
}

// backEnds returns the constructors of networks by name.
func backEnds() map[string]func(wan.Matrix, uint64) *shape.Network {
	return map[string]func(wan.Matrix, uint64) *shape.Network{
		"memory":   shape.NewNetwork,
		"loopback": shape.NewLoopback,
	}
}

func TestConnConformance(t *testing.T) {
	for name, newNetwork := range backEnds() {
		t.Run(name, func(t *testing.T) {
			nettest.TestConn(t, func() (c1, c2 net.Conn, stop func(), err error) {
				n := newNetwork(wan.Uniform(0, "a", "b"), 1)
				l, err := n.Listen("b")
				if err != nil {
					return nil, nil, nil, err
				}
				if c1, err = n.Dial(t.Context(), "a", l.Addr().String()); err != nil {
					return nil, nil, nil, err
				}
				c2, err = l.Accept()
				return c1, c2, func() { n.Close() }, err
			})
		})
	}
}
