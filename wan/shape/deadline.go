package shape

import (
	"sync"
	"time"
)

// A deadline is a time after which operations fail. It can be set while they wait.
type deadline struct {
	mu      sync.Mutex
	timer   *time.Timer
	setting *setting
}

// A setting is one value of a deadline.
type setting struct {
	over   chan struct{} // closed when the deadline passes, or is set anew
	passed bool          // which of them it was; written before over closes
}

func newDeadline() *deadline { return &deadline{setting: newSetting()} }

func newSetting() *setting { return &setting{over: make(chan struct{})} }

// current returns the setting that operations have to heed.
func (d *deadline) current() *setting {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.setting
}

// hasPassed reports whether the deadline passed while s was its setting.
func (s *setting) hasPassed() bool {
	select {
	case <-s.over:
		return s.passed
	default:
		return false
	}
}

// set replaces the deadline; the zero time is none.
func (d *deadline) set(t time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
	if !d.setting.hasPassed() {
		close(d.setting.over)
	}
	s := newSetting()
	d.setting = s
	if t.IsZero() {
		return
	}
	if after := time.Until(t); after > 0 {
		d.timer = time.AfterFunc(after, func() { d.pass(s) })
	} else {
		s.passed = true
		close(s.over)
	}
}

// pass is called when the deadline s is reached, or just after it was replaced.
func (d *deadline) pass(s *setting) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.setting == s {
		s.passed = true
		close(s.over)
	}
}
