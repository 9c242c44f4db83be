package shape_test

import (
	"context"
	"io"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/foresay/foresay/internal/race"
	"github.com/foresay/foresay/wan"
	"github.com/foresay/foresay/wan/shape"
)

func TestCallsOverLoopback(t *testing.T) {
	n := shape.NewLoopback(wan.Uniform(rtt, "client", "a"), 1)
	t.Cleanup(func() { n.Close() })
	c := connect(t, n, "client", serve(t, n, "a"))
	for i := range 3 {
		want := rtt
		if i == 0 {
			want = 3 * rtt
		}
		if took, err := check(t.Context(), c); err != nil || took < want {
			t.Errorf("call %d: %v after %v, want at least %v", i, err, took, want)
		}
	}
}

// TestLateness prints how much later than configured bytes arrive, and wants it to be of the right
// order.
func TestLateness(t *testing.T) {
	if testing.Short() || race.Enabled {
		t.Skip("a measurement")
	}
	for _, oneWay := range []time.Duration{500 * time.Microsecond, 5 * time.Millisecond, 20 * time.Millisecond} {
		n := shape.NewLoopback(wan.Uniform(2*oneWay, "a", "b"), 1)
		a, b := pair(t, n)
		var late []time.Duration
		sum := time.Duration(0)
		for range 40 {
			start := time.Now()
			write(t, a, "x")
			wantRead(t, b, "x")
			d := time.Since(start) - oneWay
			late = append(late, d)
			sum += d
		}
		slices.Sort(late)
		mean, median := sum/time.Duration(len(late)), late[len(late)/2]
		t.Logf("%v one way: late by %v on average, median %v, at most %v", oneWay, mean, median, late[len(late)-1])
		if late[0] < 0 {
			t.Errorf("%v one way: early by %v", oneWay, -late[0])
		}
		if median > 5*time.Millisecond { // not the mean, which one stall of the machine can spoil
			t.Errorf("%v one way: late by %v as a rule", oneWay, median)
		}
		n.Close()
	}
}

// TestWrapAcrossNetworks stands for two processes, each of which delays what it sends.
func TestWrapAcrossNetworks(t *testing.T) {
	m := wan.Uniform(rtt, "client", "server")
	there, here := shape.NewLoopback(m, 1), shape.NewLoopback(m, 2)
	raw, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l, err := there.WrapListener(raw, wan.Path{From: "server", To: "client"})
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		c, err := l.Accept()
		if err == nil {
			io.Copy(c, c)
			c.Close()
		}
	}()
	start := time.Now()
	c, err := here.WrapDialer(wan.Path{From: "client", To: "server"})(t.Context(), l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	wantElapsed(t, start, rtt, false)
	write(t, c, "echo")
	wantRead(t, c, "echo")
	wantElapsed(t, start, 2*rtt, false)
	if got := here.Bytes("client", "server"); got != 4 {
		t.Errorf("the client's network counts %d bytes", got)
	}
	if got := there.Bytes("server", "client"); got != 4 {
		t.Errorf("the server's network counts %d bytes", got)
	}
	l.Close()
	start = time.Now()
	if _, err := here.WrapDialer(wan.Path{From: "client", To: "server"})(t.Context(), l.Addr().String()); err == nil {
		t.Error("a dial to a closed listener succeeded")
	}
	wantElapsed(t, start, rtt, false)
	c.Close()
	here.Close()
	there.Close()
	wantNoGoroutines(t)
}

// TestWrapOfAPipe wraps what is no socket.
func TestWrapOfAPipe(t *testing.T) {
	n := shape.NewNetwork(wan.Uniform(rtt, "a", "b"), 1)
	raw, b := net.Pipe()
	a, err := n.Wrap(raw, wan.Path{From: "a", To: "b"})
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	write(t, a, "through a pipe")
	a.Close()
	wantRead(t, b, "through a pipe")
	wantReadError(t, b, io.EOF)
	wantElapsed(t, start, rtt/2, false)
	n.Close()
	wantNoGoroutines(t)
}

// TestStrangersAreAtTheListenersSite dials an address of the network without it.
func TestStrangersAreAtTheListenersSite(t *testing.T) {
	n := shape.NewLoopback(wan.Uniform(rtt, "a", "b"), 1)
	l, err := n.Listen("b")
	if err != nil {
		t.Fatal(err)
	}
	dialed := make(chan net.Conn)
	go func() {
		c, err := new(net.Dialer).DialContext(context.Background(), "tcp", l.Addr().String())
		if err != nil {
			t.Error(err)
		}
		dialed <- c
	}()
	s, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	c := <-dialed
	write(t, s, "hello")
	wantRead(t, c, "hello")
	write(t, c, "hello")
	wantRead(t, s, "hello")
	if got := n.Bytes("b", "b"); got != 5 {
		t.Errorf("%d bytes within the site", got)
	}
	a, b := dial(t, n, "a", l) // and the listener still tells both kinds apart
	write(t, a, "from a")
	wantRead(t, b, "from a")
	n.Close()
	c.Close()
	wantNoGoroutines(t)
}

// TestDialersAndStrangersAreNotMixedUp dials both ways at once: what goes to dialers crosses the
// network.
func TestDialersAndStrangersAreNotMixedUp(t *testing.T) {
	n := shape.NewLoopback(wan.Uniform(rtt, "a", "b"), 1)
	l, err := n.Listen("b")
	if err != nil {
		t.Fatal(err)
	}
	const dialers, strangers = 100, 40
	failed := make(chan error)
	for i := range dialers + strangers {
		go func() {
			dial, want := n.DialContext("a"), make([]byte, 7)
			if i%7 < 2 {
				dial = func(ctx context.Context, address string) (net.Conn, error) {
					return new(net.Dialer).DialContext(ctx, "tcp", address)
				}
			}
			c, err := dial(context.Background(), l.Addr().String())
			if err == nil {
				_, err = io.ReadFull(c, want)
				c.Close()
			}
			failed <- err
		}()
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			c.Write([]byte("welcome"))
			c.Close()
		}
	}()
	for range dialers + strangers {
		if err := <-failed; err != nil {
			t.Error(err)
		}
	}
	if got, want := n.Bytes("b", "a"), int64(7*dialers); got != want {
		t.Errorf("%d bytes to dialers, want %d", got, want)
	}
	if got, want := n.Bytes("b", "b"), int64(7*strangers); got != want {
		t.Errorf("%d bytes to strangers, want %d", got, want)
	}
	n.Close()
	wantNoGoroutines(t)
}

// TestSlowReaderDelaysNobodyElse fills a socket whose other end does not read.
func TestSlowReaderDelaysNobodyElse(t *testing.T) {
	n := shape.NewLoopback(wan.Uniform(rtt, "a", "b"), 1)
	l, err := n.Listen("b")
	if err != nil {
		t.Fatal(err)
	}
	slow, stuck := dial(t, n, "a", l)
	fast, other := dial(t, n, "a", l)
	const sizeBytes = 16 << 20 // more than window and socket buffers hold
	written := make(chan error, 1)
	go func() {
		_, err := slow.Write(make([]byte, sizeBytes))
		slow.Close()
		written <- err
	}()
	for range 5 {
		write(t, fast, "x")
		wantRead(t, other, "x")
	}
	select {
	case err := <-written:
		t.Errorf("a write that nobody reads ended: %v", err)
	default:
	}
	if got, err := io.Copy(io.Discard, stuck); err != nil || got != sizeBytes {
		t.Errorf("read %d, %v", got, err)
	}
	if err := <-written; err != nil {
		t.Error(err)
	}
	n.Close()
	wantNoGoroutines(t)
}
