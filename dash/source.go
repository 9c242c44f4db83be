package dash

import (
	"encoding/json"
	"sync"
	"sync/atomic"
	"time"
	"weak"
)

const (
	statusEvery = time.Second
	reportEvery = 5 * time.Second
	// taskEvery is how often tasks are looked for, and tasksAtOnce how many of the
	// latest are shown then: more than 60 a second nobody can follow.
	taskEvery   = 50 * time.Millisecond
	tasksAtOnce = 3
)

// source fills the feed of the service that it is part of, while somebody looks.
type source struct {
	cfg  Config
	feed *feed

	changed  atomic.Bool // somebody switched something: the status is due
	mu       sync.Mutex  // only one refreshes
	status   time.Time   // when it was last refreshed
	report   time.Time
	tasks    time.Time
	tasksEnd uint64 // how many tasks had been kept
	looked   bool   // for tasks, before

	history history
}

func newSource(cfg Config) *source {
	s := &source{cfg: cfg, feed: newFeed(service{ID: "0", Up: true, Switch: true})}
	s.history.note(cfg.Control.Status())
	return s
}

// refresh brings the feed up to date. Each stream calls it often; it does what is
// due, once for all.
func (s *source) refresh(now time.Time) {
	if !s.mu.TryLock() {
		return // another stream does it
	}
	defer s.mu.Unlock()
	if s.changed.Swap(false) || now.Sub(s.status) >= statusEvery {
		s.status = now
		if b, ok := s.encode(s.cfg.Control.Status()); ok {
			s.feed.setStatus(b)
		}
	}
	if now.Sub(s.tasks) >= taskEvery {
		s.tasks = now
		s.refreshTasks()
	}
	if s.cfg.Collector != nil && now.Sub(s.report) >= reportEvery {
		if b, ok := s.encode(s.cfg.Collector.Report(s.cfg.Control)); ok {
			s.feed.setReport(b)
		}
		s.report = now
	}
}

// refreshTasks takes the latest of the tasks that ended since.
func (s *source) refreshTasks() {
	reports, total := s.cfg.Control.Tasks(s.tasksEnd)
	atOnce := tasksAtOnce
	if !s.looked {
		atOnce = keptTasks
	}
	s.tasksEnd, s.looked = total, true
	first := max(0, len(reports)-atOnce)
	for i, r := range reports[first:] {
		number := total - uint64(len(reports)-first-i) + 1
		if b, ok := s.encode(newTask(r, number)); ok {
			s.feed.addTask(b)
		}
	}
}

func (s *source) encode(v any) ([]byte, bool) {
	b, err := json.Marshal(v)
	if err != nil {
		s.cfg.Logger.Error("dash: encode for the page", "error", err)
		return nil, false
	}
	return b, true
}

// watch samples the Control from time to time, until nobody refers to the source.
func (s *source) watch() {
	w := weak.Make(s)
	time.AfterFunc(pointEvery, func() {
		if s := w.Value(); s != nil {
			s.sample()
			s.watch()
		}
	})
}

func (s *source) sample() {
	if b, ok := s.encode(s.history.note(s.cfg.Control.Status())); ok {
		s.feed.addPoint(b)
	}
}
