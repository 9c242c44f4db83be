package host

import (
	"time"

	"github.com/foresay/foresay/internal/agenda"
	"github.com/foresay/foresay/protocol"
)

// timers are those of one node, by the steady clock. Of those that are due at one moment, the first
// set is the first to run out.
type timers struct {
	agenda agenda.Agenda[protocol.Timer]
	byName map[protocol.Timer]*agenda.Entry[protocol.Timer]
}

func newTimers() *timers {
	return &timers{byName: make(map[protocol.Timer]*agenda.Entry[protocol.Timer])}
}

func (t *timers) set(name protocol.Timer, due time.Duration) {
	e := t.byName[name]
	if e == nil {
		e = &agenda.Entry[protocol.Timer]{Value: name}
		t.byName[name] = e
	}
	t.agenda.Set(e, due)
}

func (t *timers) stop(name protocol.Timer) {
	if e := t.byName[name]; e != nil {
		delete(t.byName, name)
		t.agenda.Remove(e)
	}
}

// next returns when the first timer runs out.
func (t *timers) next() (due time.Duration, ok bool) { return t.agenda.Next() }

// pop takes the first timer if it has run out.
func (t *timers) pop(now time.Duration) (protocol.Timer, bool) {
	e := t.agenda.Pop(now)
	if e == nil {
		return nil, false
	}
	delete(t.byName, e.Value)
	return e.Value, true
}
