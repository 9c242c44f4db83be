package dash

import (
	"net/http"
	"sync"
)

// servers knows when the servers that serve a handler are shut down. Shutdown
// waits for requests to end, and does not tell their contexts.
type servers struct {
	mu  sync.Mutex
	all map[*http.Server]chan struct{}
}

// closing returns a channel that is closed when the request's server is shut
// down. Without a server it is nil.
func (s *servers) closing(r *http.Request) <-chan struct{} {
	srv, ok := r.Context().Value(http.ServerContextKey).(*http.Server)
	if !ok {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if c, known := s.all[srv]; known {
		return c
	}
	if s.all == nil {
		s.all = make(map[*http.Server]chan struct{})
	}
	c := make(chan struct{})
	s.all[srv] = c
	srv.RegisterOnShutdown(func() { close(c) })
	return c
}
