package specgrpc_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/foresay/foresay"
	kvpb "github.com/foresay/foresay/api/foresay/testkv/v1"
	"github.com/foresay/foresay/specgrpc"
	"github.com/foresay/foresay/wan"
)

// The lease of a server that hears nothing is 15 s, and pauses are longer.
const (
	pauseTakes   = 18 * time.Second
	pastAnyLease = time.Minute
)

// pausing is a client whose read at "b" takes readTakes, and whose write at "a"
// is staged meanwhile, on a right guess.
type pausing struct {
	*world
	impl       *kvServer
	cc, fromB  *specgrpc.ClientConn
	registrars []*specgrpc.ServiceRegistrar
}

func newPausing(
	w *world, lease time.Duration, put func(ctx context.Context, r *kvpb.PutRequest) (*kvpb.PutResponse, error),
) *pausing {
	p := &pausing{world: w, impl: staging()}
	if put != nil {
		p.impl.put = put
	}
	ra, _, addrA := w.kv("a", p.impl, specgrpc.Stages(putMethod))
	rb, _, addrB := w.kv("b", &kvServer{get: slow("slow", readTakes)})
	p.cc = w.dial(addrA, specgrpc.WithCallSites(staged), specgrpc.WithLease(lease))
	p.fromB = w.dial(addrB)
	p.registrars = []*specgrpc.ServiceRegistrar{ra, rb}
	if _, err := kvpb.NewTestKVClient(p.cc).Get(w.Context(), &kvpb.GetRequest{Key: "warm"}); err != nil {
		w.Fatal(err)
	}
	if _, err := kvpb.NewTestKVClient(p.fromB).Get(w.Context(), &kvpb.GetRequest{Key: "warm"}); err != nil {
		w.Fatal(err)
	}
	return p
}

func (p *pausing) buy(ctx context.Context) (uint64, error) {
	return foresay.Do(ctx, func(ctx context.Context) (uint64, error) {
		got, err := guessed(ctx, kvpb.NewTestKVClient(p.fromB), "slow", value("slow"))
		if err != nil {
			return 0, err
		}
		res, err := kvpb.NewTestKVClient(p.cc).Put(ctx, &kvpb.PutRequest{Key: got.GetValue()})
		return res.GetVersion(), err
	})
}

// hold keeps back, for so long, what travels between the client and these sites.
func (p *pausing) hold(after, d time.Duration, sites ...wan.Site) {
	set := func(down bool) {
		for _, s := range sites {
			p.net.SetDown("client", s, down)
			p.net.SetDown(s, "client", down)
		}
	}
	time.AfterFunc(after, func() { set(true) })
	time.AfterFunc(after+d, func() { set(false) })
}

// once checks that the write succeeded and took effect once.
func (p *pausing) once(what string, version uint64, err error) {
	p.Helper()
	p.quiet(p.cc, p.registrars...)
	commits := 0
	for _, n := range p.impl.notes() {
		if n == "committed value of slow" {
			commits++
		}
	}
	if err != nil || version != 7 || commits != 1 {
		p.Errorf("%s: got version %d, %v; %d commits: %q", what, version, err, commits, p.impl.notes())
	}
}

// TestPaused: a process that stood still, or could not be reached, for longer
// than the lease finds its staged calls undone, and makes them plainly.
func TestPaused(t *testing.T) {
	for what, sites := range map[string][]wan.Site{"client": {"a", "b"}, "server": {"a"}} {
		for _, lease := range []time.Duration{15 * time.Second, pastAnyLease} {
			t.Run(fmt.Sprintf("%s, lease %v", what, lease), func(t *testing.T) {
				for after := 2 * time.Millisecond; after < readTakes+4*rtt; after += 5 * time.Millisecond {
					inWorld(t, func(w *world) {
						p := newPausing(w, lease, nil)
						p.hold(after, pauseTakes, sites...)
						version, err := p.buy(w.Context())
						p.once(fmt.Sprint("after ", after), version, err)
					})
				}
			})
		}
	}
}

// TestPausedAtABarrier: what the handler would have done after its barrier is
// done by the plain call.
func TestPausedAtABarrier(t *testing.T) {
	inWorld(t, func(w *world) {
		var p *pausing
		p = newPausing(w, pastAnyLease, func(ctx context.Context, r *kvpb.PutRequest) (*kvpb.PutResponse, error) {
			if err := foresay.Barrier(ctx); err != nil {
				return nil, err
			}
			p.impl.note("committed %s", r.GetKey())
			return &kvpb.PutResponse{Version: 7}, nil
		})
		p.hold(20*time.Millisecond, pauseTakes, "a", "b")
		version, err := p.buy(w.Context())
		p.once("at a barrier", version, err)
	})
}

// TestWordAtTheEndOfTheLease: a word that is given when the lease ends, at the
// client or at the server, counts or does not, and is no time limit of the call's.
func TestWordAtTheEndOfTheLease(t *testing.T) {
	for lease := readTakes - 2*rtt; lease <= readTakes+2*rtt; lease += rtt / 2 {
		for range 10 {
			inWorld(t, func(w *world) {
				p := newPausing(w, lease, nil)
				version, err := p.buy(w.Context())
				p.once(fmt.Sprint("lease ", lease), version, err)
			})
			inWorld(t, func(w *world) {
				var p *pausing
				p = newPausing(w, lease, func(ctx context.Context, r *kvpb.PutRequest) (*kvpb.PutResponse, error) {
					if err := foresay.Barrier(ctx); err != nil {
						return nil, err
					}
					p.impl.note("committed %s", r.GetKey())
					return &kvpb.PutResponse{Version: 7}, nil
				})
				version, err := p.buy(w.Context())
				p.once(fmt.Sprint("at a barrier, lease ", lease), version, err)
			})
		}
	}
}
