package specgrpc

import (
	"time"

	"google.golang.org/grpc"
)

// GracefulStop stops a server without waiting for the word of speculative
// callers: it refuses new ones, undoes every call that is not confirmed, and
// then calls s.GracefulStop, which waits for the rest. Called on its own,
// s.GracefulStop waits until the leases of speculative calls are over.
//
// A client that neither reads what an undone call sent it nor resets the stream
// keeps grpc from closing its connection. If there may be such a client when a
// lease is over, and no call of the registrars' services runs any more,
// GracefulStop calls s.Stop. It cannot see whether frames were read after all:
// one call that was ever undone with more than 32 KB sent is enough, and calls
// of services beside the registrars are cut then.
func GracefulStop(s *grpc.Server, registrars ...*ServiceRegistrar) {
	lease := time.Millisecond
	for _, r := range registrars {
		r.stop()
		lease = max(lease, r.cfg.lease)
	}
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		s.GracefulStop()
	}()
	look := time.NewTicker(lease)
	defer look.Stop()
	for {
		select {
		case <-stopped:
			return
		case <-look.C:
		}
		if stuck(registrars) {
			s.Stop()
		}
	}
}

// stuck reports whether nothing but frames that nobody reads may be left.
func stuck(registrars []*ServiceRegistrar) bool {
	unread := false
	for _, r := range registrars {
		if r.running.Load() > 0 {
			return false
		}
		unread = unread || r.unread.Load()
	}
	return unread
}

// stop refuses speculative callers from now on and aborts their calls.
func (r *ServiceRegistrar) stop() {
	r.mu.Lock()
	r.stopping = true
	calls := make([]*serverCall, 0, len(r.calls))
	for c := range r.calls {
		calls = append(calls, c)
	}
	r.mu.Unlock()
	for _, c := range calls {
		c.abort(errStopping)
	}
}
