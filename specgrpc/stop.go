package specgrpc

import "google.golang.org/grpc"

// GracefulStop stops a server without waiting for the word of speculative
// callers: it refuses new ones, undoes every call that is not confirmed, and
// then calls s.GracefulStop, which waits for the rest. Called on its own,
// s.GracefulStop waits until the leases of speculative calls are over.
func GracefulStop(s *grpc.Server, registrars ...*ServiceRegistrar) {
	for _, r := range registrars {
		r.stop()
	}
	s.GracefulStop()
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
