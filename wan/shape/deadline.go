package shape

import (
	"sync"
	"time"
)

// A deadline is a time after which an operation fails. It can be set while operations wait.
type deadline struct {
	mu      sync.Mutex
	timer   *time.Timer
	setting uint64 // how often it was set, so that an old timer that could not be stopped has no say
	passed  bool
	changed chan struct{} // closed and replaced when the deadline passes or is set
}

func newDeadline() *deadline { return &deadline{changed: make(chan struct{})} }

// state returns whether the deadline has passed and, if not, what closes when that may have changed.
func (d *deadline) state() (changed <-chan struct{}, passed bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.changed, d.passed
}

// set replaces the deadline; the zero time is none.
func (d *deadline) set(t time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
	d.setting++
	d.passed = false
	if !t.IsZero() {
		if after := time.Until(t); after <= 0 {
			d.passed = true
		} else {
			setting := d.setting
			d.timer = time.AfterFunc(after, func() { d.pass(setting) })
		}
	}
	d.broadcast()
}

func (d *deadline) pass(setting uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.setting == setting {
		d.passed = true
		d.broadcast()
	}
}

func (d *deadline) broadcast() {
	close(d.changed)
	d.changed = make(chan struct{})
}
