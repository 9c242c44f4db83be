package dash

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"
)

const (
	// streamEvery is how often a stream looks for news.
	streamEvery = 50 * time.Millisecond
	// pingEvery is the longest that a stream is silent.
	pingEvery = 2 * time.Second
	// patience is how long a page may take to read before it is given up.
	patience = 15 * time.Second
)

// stream writes what is new to one page. It keeps nothing: while the page does
// not read, the stream waits, and then goes on with what is new then.
type stream struct {
	w       http.ResponseWriter
	rc      *http.ResponseController
	feeds   []*feed
	may     bool            // the requester may switch
	refresh func(time.Time) // brings the feeds up to date; or nil
	sent    []cursor
	told    uint64 // how often the feeds' services had changed
	writes  uint64
	wrote   time.Time // the last time
}

// run writes until the context is done, closing is closed, or the page is gone.
func (s *stream) run(ctx context.Context, closing <-chan struct{}) {
	h := s.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Accel-Buffering", "no") // a proxy would delay the events
	if err := s.rc.Flush(); errors.Is(err, http.ErrNotSupported) {
		http.Error(s.w, "dash: events: something that wraps this handler has a ResponseWriter without Flush or Unwrap",
			http.StatusInternalServerError)
		return
	}
	s.sent = make([]cursor, len(s.feeds))
	if !s.write("retry: 1000\n\n") {
		return
	}
	ticker := time.NewTicker(streamEvery)
	defer ticker.Stop()
	for {
		if s.refresh != nil {
			s.refresh(time.Now())
		}
		if !s.news() {
			return
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		case <-closing:
			return
		}
	}
}

// news writes what is new, and reports whether the page is still there.
func (s *stream) news() bool {
	before := s.writes
	if !s.services() {
		return false
	}
	for i, f := range s.feeds {
		id := f.id()
		n := f.since(&s.sent[i])
		ok := (n.points == nil || s.event(id, "points", array(n.points))) &&
			(n.status == nil || s.event(id, "status", n.status)) &&
			(n.report == nil || s.event(id, "report", n.report))
		for _, t := range n.tasks {
			ok = ok && s.event(id, "task", t)
		}
		if !ok {
			return false
		}
	}
	if s.writes == before {
		if time.Since(s.wrote) < pingEvery {
			return true
		}
		if !s.write(":\n\n") {
			return false
		}
	}
	return s.rc.Flush() == nil
}

// services tells of all services if one of them changed.
func (s *stream) services() bool {
	list, told := make([]service, len(s.feeds)), uint64(0)
	for i, f := range s.feeds {
		about, n := f.described(s.may)
		list[i] = about
		told += n
	}
	if told == s.told {
		return true
	}
	s.told = told
	b, err := json.Marshal(list)
	return err == nil && s.event("", "services", b)
}

// event writes one event. The id says which service it is of.
func (s *stream) event(id, kind string, data []byte) bool {
	return s.write(fmt.Sprintf("id: %s\nevent: %s\ndata: ", id, kind)) && s.writeBytes(data) && s.write("\n\n")
}

func (s *stream) write(text string) bool { return s.writeBytes([]byte(text)) }

func (s *stream) writeBytes(b []byte) bool {
	s.writes++
	s.wrote = time.Now()
	// Not all connections have deadlines; then the request's context must do.
	_ = s.rc.SetWriteDeadline(s.wrote.Add(patience))
	_, err := s.w.Write(b)
	return err == nil
}

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
