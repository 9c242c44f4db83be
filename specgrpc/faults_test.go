package specgrpc_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/foresay/foresay"
	kvpb "github.com/foresay/foresay/api/foresay/testkv/v1"
	"github.com/foresay/foresay/specgrpc"
	"github.com/foresay/foresay/wan"
)

// levels is three services in a row: a purchase at "a" reads at "b" and writes
// at "c", all of it on guesses.
type levels struct {
	*world
	cc         *specgrpc.ClientConn
	conns      []*specgrpc.ClientConn
	registrars []*specgrpc.ServiceRegistrar
	c          *kvServer // where the effect shows
}

const readTakes = 40 * time.Millisecond

func newLevels(w *world) *levels {
	l := &levels{world: w}
	l.c = staging()
	rc, _, addrC := w.kv("c", l.c, specgrpc.Stages(putMethod))
	rb, _, addrB := w.kv("b", &kvServer{get: slow("slow", readTakes)})
	toB, toC := w.dialFrom("a", addrB), w.dialFrom("a", addrC, specgrpc.WithCallSites(staged))
	a := &kvServer{}
	a.put = func(ctx context.Context, r *kvpb.PutRequest) (*kvpb.PutResponse, error) {
		if _, err := guessed(ctx, kvpb.NewTestKVClient(toB), "slow", value("slow")); err != nil {
			return nil, err
		}
		return kvpb.NewTestKVClient(toC).Put(ctx, r)
	}
	ra, _, addrA := w.kv("a", a, specgrpc.Stages(putMethod), specgrpc.AllReplayable())
	l.cc = w.dial(addrA, specgrpc.WithCallSites(staged))
	l.conns = []*specgrpc.ClientConn{l.cc, toB, toC}
	l.registrars = []*specgrpc.ServiceRegistrar{ra, rb, rc}
	return l
}

// buy reads at "b", guessed, and has "a" write.
func (l *levels) buy(ctx context.Context, fromB *specgrpc.ClientConn, prediction string) error {
	_, err := foresay.Do(ctx, func(ctx context.Context) (uint64, error) {
		got, err := guessed(ctx, kvpb.NewTestKVClient(fromB), "slow", &kvpb.GetResponse{Value: prediction})
		if err != nil {
			return 0, err
		}
		res, err := kvpb.NewTestKVClient(l.cc).Put(ctx, &kvpb.PutRequest{Key: got.GetValue()})
		return res.GetVersion(), err
	})
	return err
}

// settled checks that nothing is left anywhere, and that each put was either
// committed or rolled back, the right one committed exactly if it succeeded, or
// perhaps if its outcome is unknown.
func (l *levels) settled(err error) {
	l.Helper()
	time.Sleep(40 * time.Second)
	synctest.Wait()
	for i, c := range l.conns {
		if n := c.HalfOpen(); n != 0 {
			l.Errorf("connection %d has %d half-open streams left", i, n)
		}
	}
	for i, r := range l.registrars {
		if n := r.HalfOpen(); n != 0 {
			l.Errorf("server %d has %d half-open calls left", i, n)
		}
	}
	notes := l.c.notes()
	count := func(prefix string) (n int) {
		for _, s := range notes {
			if strings.HasPrefix(s, prefix) {
				n++
			}
		}
		return n
	}
	puts, commits, rollbacks := count("put "), count("committed "), count("rolled back ")
	right := count("committed value of slow")
	switch {
	case commits > 1, commits != right:
		l.Errorf("committed more than the one right write: %q", notes)
	case err == nil && commits != 1:
		l.Errorf("the call succeeded, but nothing was committed: %q", notes)
	case puts != commits+rollbacks:
		l.Errorf("a write was neither committed nor rolled back: %q", notes)
	}
}

func TestLevels(t *testing.T) {
	for _, prediction := range []string{"value of slow", "wrong"} {
		t.Run(prediction, func(t *testing.T) {
			inWorld(t, func(w *world) {
				l := newLevels(w)
				fromB := w.dial(l.conns[1].Target()[len("passthrough:///"):])
				err := l.buy(w.Context(), fromB, prediction) // connects
				if err == nil {
					l.settled(err)
					l.c.seen = nil
					start := time.Now()
					err = l.buy(w.Context(), fromB, prediction)
					if took := time.Since(start); prediction == "value of slow" && took > readTakes+6*rtt {
						w.Errorf("took %v", took)
					}
				}
				if err != nil {
					w.Error(err)
				}
				l.settled(err)
			})
		})
	}
}

// points are the instants at which something happens to a purchase.
func points() []time.Duration {
	var out []time.Duration
	for d := time.Millisecond; d < 150*time.Millisecond; d += 3 * time.Millisecond {
		out = append(out, d)
	}
	return out
}

// atEachPoint has f happen at each point of a purchase, of which ctx is given
// to f and must end it within 40 s.
func atEachPoint(t *testing.T, f func(l *levels, cancel context.CancelFunc), codes ...codes.Code) {
	for _, d := range points() {
		t.Run(d.String(), func(t *testing.T) {
			inWorld(t, func(w *world) {
				l := newLevels(w)
				fromB := w.dial(l.conns[1].Target()[len("passthrough:///"):])
				ctx, cancel := context.WithCancel(w.Context())
				defer cancel()
				done := make(chan error, 1)
				go func() { done <- l.buy(ctx, fromB, "value of slow") }()
				time.Sleep(d)
				f(l, cancel)
				select {
				case err := <-done:
					if err != nil && !slices.Contains(codes, statusCode(err)) {
						w.Errorf("got %v, want one of %v", err, codes)
					}
					l.settled(err)
				case <-time.After(40 * time.Second):
					cancel()
					w.Errorf("still waiting: %v", <-done)
				}
			})
		})
	}
}

// statusCode is the code of a status or of a context's error.
func statusCode(err error) codes.Code {
	if _, ok := status.FromError(err); ok {
		return status.Code(err)
	}
	switch {
	case errors.Is(err, context.Canceled):
		return codes.Canceled
	case errors.Is(err, context.DeadlineExceeded):
		return codes.DeadlineExceeded
	}
	return codes.Unknown
}

func TestCancellationAtEachPoint(t *testing.T) {
	atEachPoint(t, func(_ *levels, cancel context.CancelFunc) { cancel() }, codes.Canceled)
}

func TestCrashAtEachPoint(t *testing.T) {
	for _, site := range []wan.Site{"a", "b", "c"} {
		t.Run(string(site), func(t *testing.T) {
			atEachPoint(t, func(l *levels, _ context.CancelFunc) { l.net.Crash(site) }, codes.Unavailable)
		})
	}
}

func TestResetAtEachPoint(t *testing.T) {
	for _, pair := range [][2]wan.Site{{"client", "a"}, {"client", "b"}, {"a", "b"}, {"a", "c"}} {
		t.Run(string(pair[0]+"-"+pair[1]), func(t *testing.T) {
			atEachPoint(t, func(l *levels, _ context.CancelFunc) { l.net.Reset(pair[0], pair[1]) }, codes.Unavailable)
		})
	}
}

func TestClientCrashAtEachPoint(t *testing.T) {
	atEachPoint(t, func(l *levels, cancel context.CancelFunc) {
		l.net.Crash("client")
		cancel() // the process is gone
	}, codes.Canceled, codes.Unavailable)
}

func TestDeadlineAtEachPoint(t *testing.T) {
	for _, d := range points() {
		t.Run(d.String(), func(t *testing.T) {
			inWorld(t, func(w *world) {
				l := newLevels(w)
				fromB := w.dial(l.conns[1].Target()[len("passthrough:///"):])
				ctx, cancel := context.WithTimeout(w.Context(), d)
				defer cancel()
				err := l.buy(ctx, fromB, "value of slow")
				if err != nil && statusCode(err) != codes.DeadlineExceeded && statusCode(err) != codes.Unavailable {
					w.Errorf("got %v, want DeadlineExceeded", err)
				}
				l.settled(err) // an error's outcome may be unknown, as of a plain call
			})
		})
	}
}

// A partition is noticed by nobody but the leases: each side gives up by itself.
func TestPartitionWhileHalfOpen(t *testing.T) {
	inWorld(t, func(w *world) {
		impl := staging()
		r, _, addr := w.kv("a", impl, specgrpc.Stages(putMethod), specgrpc.WithMaxLease(3*time.Second))
		_, _, slowAddr := w.kv("b", &kvServer{get: slow("slow", 8*time.Second)})
		cc := w.dial(addr, specgrpc.WithCallSites(staged))
		fromB := w.dial(slowAddr)
		ctx, cancel := context.WithTimeout(w.Context(), 20*time.Second)
		defer cancel()
		done := make(chan error)
		go func() {
			_, err := foresay.Do(ctx, func(ctx context.Context) (uint64, error) {
				if _, err := guessed(ctx, kvpb.NewTestKVClient(fromB), "slow", value("slow")); err != nil {
					return 0, err
				}
				res, err := kvpb.NewTestKVClient(cc).Put(ctx, &kvpb.PutRequest{Key: "k"})
				return res.GetVersion(), err
			})
			done <- err
		}()
		time.Sleep(time.Second)
		wantNotes(w, impl, "put k=")
		w.net.SetDown("client", "a", true)
		w.net.SetDown("a", "client", true)
		time.Sleep(3 * time.Second)
		wantNotes(w, impl, "put k=", "rolled back k")
		if r.HalfOpen() != 0 {
			w.Error("the server still waits")
		}
		w.net.SetDown("client", "a", false)
		w.net.SetDown("a", "client", false)
		if err := <-done; err != nil {
			w.Error(err)
		}
		wantNotes(w, impl, "put k=", "rolled back k", "put k=", "committed k")
		w.quiet(cc, r)
	})
}
