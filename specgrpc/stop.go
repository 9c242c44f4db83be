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
// keeps grpc from closing its connection. If a call was undone with more than 32
// KB sent, since a lease before GracefulStop was called, there may be such a
// client, and what it read cannot be seen. Then GracefulStop calls s.Stop when a
// lease is over and no call of the registrars' services runs any more; calls of
// services beside the registrars, and answers that are still being sent, are cut
// with it. A client that has not read for longer is waited for, as grpc does. A
// stream on which no request comes within a lease is cut in the same way: nothing
// runs for it.
func GracefulStop(s *grpc.Server, registrars ...*ServiceRegistrar) {
	lease, called := time.Millisecond, time.Now()
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
		if stuck(registrars, called.Add(-lease)) {
			s.Stop()
		}
	}
}

// stuck reports whether nothing may be left but frames that nobody reads, of calls
// that were undone since then, and streams on which no request has come.
func stuck(registrars []*ServiceRegistrar, since time.Time) bool {
	idle := false
	for _, r := range registrars {
		running := r.running.Load() // before the others: a request may come
		waiting := r.waiting.Load()
		if running > waiting {
			return false
		}
		idle = idle || waiting > 0 || r.unread.Load() >= since.UnixNano()
	}
	return idle
}

// stop refuses speculative callers from now on and aborts their calls.
func (r *ServiceRegistrar) stop() {
	r.mu.Lock()
	r.stopping = true
	calls := make([]*serverCall, 0, len(r.admitted.calls))
	for c := range r.admitted.calls {
		calls = append(calls, c)
	}
	r.mu.Unlock()
	for _, c := range calls {
		c.abort(errStopping)
	}
}
