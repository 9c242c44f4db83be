package shape_test

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"

	"github.com/foresay/foresay/wan"
	"github.com/foresay/foresay/wan/shape"
)

func TestDownHoldsOneDirection(t *testing.T) {
	onBoth(t, func(t *testing.T, n *shape.Network, exact bool) {
		a, b := pair(t, n)
		write(t, a, "left before, ")
		n.SetDown("a", "b", true)
		write(t, a, "held")
		write(t, b, "other direction")
		wantRead(t, b, "left before, ")
		wantRead(t, a, "other direction")
		wantSilence(t, b, 3*rtt)
		a.Close() // the end of the stream is held too
		start := time.Now()
		n.SetDown("a", "b", false)
		wantRead(t, b, "held")
		wantReadError(t, b, io.EOF)
		wantElapsed(t, start, rtt/2, exact)
	})
}

func TestDialWaitsForALinkThatIsDown(t *testing.T) {
	onBoth(t, func(t *testing.T, n *shape.Network, exact bool) {
		l, err := n.Listen("b")
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range []wan.Path{{From: "a", To: "b"}, {From: "b", To: "a"}} {
			n.SetDown(path.From, path.To, true)
			start := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), 2*rtt)
			if _, err := n.Dial(ctx, "a", l.Addr().String()); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("with %v down: %v", path, err)
			}
			cancel()
			wantElapsed(t, start, 2*rtt, exact)
			n.SetDown(path.From, path.To, false)
		}
		n.SetDown("b", "a", true)
		dialed := make(chan error)
		start := time.Now()
		go func() {
			c, err := n.Dial(t.Context(), "a", l.Addr().String())
			if err == nil {
				c.Close()
			}
			dialed <- err
		}()
		wait(t, 3*rtt)
		n.SetDown("b", "a", false)
		if err := <-dialed; err != nil {
			t.Error(err)
		}
		wantElapsed(t, start, 3*rtt+rtt/2, exact)
	})
}

func TestResetEndsBothEndsAtOnce(t *testing.T) {
	onBoth(t, func(t *testing.T, n *shape.Network, exact bool) {
		a, b := pair(t, n)
		l, err := n.Listen("c")
		if err != nil {
			t.Fatal(err)
		}
		other, _ := dial(t, n, "a", l)
		write(t, a, "lost")
		start := time.Now()
		n.Reset("b", "a") // in either order
		for _, c := range []net.Conn{a, b} {
			wantReadError(t, c, syscall.ECONNRESET)
			if _, err := c.Write([]byte("x")); !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("Write: %v", err)
			}
		}
		wantElapsed(t, start, 0, exact)
		write(t, other, "connections to other sites live")
	})
}

func TestCrash(t *testing.T) {
	onBoth(t, func(t *testing.T, n *shape.Network, exact bool) {
		l, err := n.Listen("b")
		if err != nil {
			t.Fatal(err)
		}
		a, b := dial(t, n, "a", l)
		write(t, b, "on its way")
		wait(t, time.Millisecond)
		start := time.Now()
		n.Crash("b")
		if _, err := b.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
			t.Errorf("Write at the crashed site: %v", err)
		}
		wantReadError(t, b, net.ErrClosed)
		if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("Accept at the crashed site: %v", err)
		}
		wantRead(t, a, "on its way")
		wantReadError(t, a, syscall.ECONNRESET)
		wantElapsed(t, start, rtt/2, exact)
		if _, err := n.Dial(t.Context(), "a", l.Addr().String()); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("Dial to the crashed site: %v", err)
		}
		again, err := n.Listen("b")
		if err != nil {
			t.Fatal(err)
		}
		if again.Addr().String() != l.Addr().String() {
			t.Errorf("after the crash the address is %v, before it was %v", again.Addr(), l.Addr())
		}
		a, b = dial(t, n, "a", again)
		write(t, a, "hello again")
		wantRead(t, b, "hello again")
	})
}

func TestCrashEndsDialsAndWhatAwaitsAccept(t *testing.T) {
	onBoth(t, func(t *testing.T, n *shape.Network, _ bool) {
		l, err := n.Listen("b")
		if err != nil {
			t.Fatal(err)
		}
		waiting, err := n.Dial(t.Context(), "a", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		wait(t, rtt)
		dialed := make(chan error)
		go func() {
			_, err := n.Dial(t.Context(), "b", l.Addr().String())
			dialed <- err
		}()
		n.SetDown("b", "b", true)
		go func() {
			_, err := n.Dial(t.Context(), "b", l.Addr().String())
			dialed <- err
		}()
		wait(t, rtt)
		n.Crash("b")
		var failed int
		for range 2 {
			if err := <-dialed; err != nil {
				failed++
				if !errors.Is(err, net.ErrClosed) {
					t.Error(err)
				}
			}
		}
		if failed == 0 {
			t.Error("a dial across a link that is down succeeded")
		}
		wantReadError(t, waiting, syscall.ECONNRESET)
	})
}

func TestListenerThatClosesDuringTheHandshakeResets(t *testing.T) {
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
		l.Close()
		wantReadError(t, c, syscall.ECONNRESET)
		wantElapsed(t, start, 2*rtt, exact)
	})
}

func TestSetLinkHoldsForWhatLeavesLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := shape.NewNetwork(wan.Uniform(rtt, "a", "b"), 1)
		a, b := pair(t, n)
		write(t, a, "slow ")
		link := n.Link("a", "b")
		if want := (wan.Link{Delay: rtt / 2}); link != want {
			t.Errorf("Link = %+v, want %+v", link, want)
		}
		link.Delay = time.Millisecond
		n.SetLink("a", "b", link)
		start := time.Now()
		write(t, a, "fast")
		wantRead(t, b, "slow fast") // in order in spite of it
		wantElapsed(t, start, rtt/2, true)
		start = time.Now()
		write(t, a, "fast")
		wantRead(t, b, "fast")
		wantElapsed(t, start, time.Millisecond, true)
		a.Close()
		b.Close()
	})
}

func TestFaultsAtUnknownSitesPanic(t *testing.T) {
	n := shape.NewNetwork(wan.Uniform(rtt, "a", "b"), 1)
	for name, f := range map[string]func(){
		"SetDown": func() { n.SetDown("a", "x", true) },
		"SetLink": func() { n.SetLink("x", "a", wan.Link{}) },
		"Link":    func() { n.Link("x", "a") },
		"Bytes":   func() { n.Bytes("a", "x") },
		"Reset":   func() { n.Reset("a", "x") },
		"Crash":   func() { n.Crash("x") },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if r, ok := recover().(string); !ok || !strings.Contains(r, `unknown site "x" (the sites are ["a" "b"])`) {
					t.Errorf("recovered %q", r)
				}
			}()
			f()
		})
	}
}

func TestCallsSurviveAReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := shape.NewNetwork(wan.Uniform(rtt, "client", "a"), 1)
		c := connect(t, n, "client", serve(t, n, "a"))
		if _, err := check(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		go func() {
			time.Sleep(rtt / 4)
			n.Reset("client", "a")
		}()
		if took, err := check(t.Context(), c); status.Code(err) != codes.Unavailable || took != rtt/4 {
			t.Errorf("the call in flight: %v after %v", err, took)
		}
		if took, err := check(t.Context(), c, grpc.WaitForReady(true)); err != nil || took != 3*rtt {
			t.Errorf("the next call: %v after %v, want a new connection's three round trips", err, took)
		}
	})
}

func TestKeepaliveFindsABlackHole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := shape.NewNetwork(wan.Uniform(rtt, "client", "a"), 1)
		c := connect(t, n, "client", serve(t, n, "a"), grpc.WithKeepaliveParams(keepalive.ClientParameters{
			Time: 10 * time.Second, Timeout: 3 * time.Second,
		}))
		if _, err := check(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		n.SetDown("a", "client", true)
		start := time.Now()
		if _, err := check(t.Context(), c); status.Code(err) != codes.Unavailable {
			t.Errorf("a call into the black hole: %v", err)
		}
		if took := time.Since(start); took < 10*time.Second || took > 14*time.Second {
			t.Errorf("keepalive took %v", took)
		}
		n.SetDown("a", "client", false)
		if _, err := check(t.Context(), c, grpc.WaitForReady(true)); err != nil {
			t.Errorf("after healing: %v", err)
		}
	})
}

func TestCallsEndAtTheirDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := shape.NewNetwork(wan.Uniform(rtt, "client", "a"), 1)
		c := connect(t, n, "client", serve(t, n, "a"))
		if _, err := check(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		n.SetDown("client", "a", true)
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		if took, err := check(ctx, c); status.Code(err) != codes.DeadlineExceeded || took != 300*time.Millisecond {
			t.Errorf("%v after %v", err, took)
		}
		n.SetDown("client", "a", false)
	})
}

func TestCallsFindARestartedServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := shape.NewNetwork(wan.Uniform(rtt, "client", "a"), 1)
		c := connect(t, n, "client", serve(t, n, "a"))
		if _, err := check(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		n.Crash("a")
		time.Sleep(rtt) // until then the client does not know, and a call would be sent into the old connection
		serve(t, n, "a")
		if _, err := check(t.Context(), c, grpc.WaitForReady(true)); err != nil {
			t.Fatal(err)
		}
	})
}
