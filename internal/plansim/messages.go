package plansim

import (
	"fmt"
	"time"
)

// Messages is how many messages nodes send to each other, clients included.
type Messages struct {
	// Silent is how many are sent in a second in which nobody calls, after a second like that.
	Silent float64
	// PerCommand is how many are sent for each command when clients make 900 calls a second: all of
	// them, those included that are sent anyway.
	PerCommand float64
}

// CountMessages counts a protocol's messages in a setting.
func CountMessages(c Config) (Messages, error) {
	fail := func(err error) (Messages, error) {
		return Messages{}, fmt.Errorf("plansim: %s: %w", c.Protocol.Name, err)
	}
	if err := c.Setting.Validate(); err != nil {
		return Messages{}, err
	}
	w, err := newWorld(c)
	if err != nil {
		return fail(err)
	}
	const silence = 5 * time.Second
	if err := w.Pass(silence); err != nil {
		return fail(err)
	}
	before := w.Stats().Sent
	if err := w.Pass(silence); err != nil {
		return fail(err)
	}
	m := Messages{Silent: float64(w.Stats().Sent-before) / silence.Seconds()}
	before, calls := w.Stats().Sent, w.calls
	if err := w.together(100, results(c.Setting.Clients)); err != nil {
		return fail(err)
	}
	m.PerCommand = float64(w.Stats().Sent-before) / float64(w.calls-calls)
	return m, nil
}
