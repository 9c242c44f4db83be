package smrtest

import (
	"slices"
	"testing"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/smrsim"
	"github.com/foresay/foresay/wan"
)

// A Deployed is a group in a test, which ends with what fails.
type Deployed struct {
	*smrsim.Group
	// Done is what became of the calls of Call and One, in order.
	Done []smrsim.Answer
	t    testing.TB
}

// Deploy returns a group at the place of a paper (wan.Preset), after the time that it takes to
// elect, to measure and to open the sessions.
func Deploy(t testing.TB, preset string, c smrsim.Config) *Deployed {
	t.Helper()
	d := &Deployed{t: t}
	var err error
	if c.Place.Replicas == nil {
		if c.Place, err = wan.Preset(preset); err != nil {
			t.Fatal(err)
		}
	}
	c.Sim.Seed = max(c.Sim.Seed, 1)
	if d.Group, err = smrsim.New(c); err != nil {
		t.Fatal(err)
	}
	d.Run(2 * time.Second)
	return d
}

// Run lets time pass.
func (d *Deployed) Run(t time.Duration) {
	d.t.Helper()
	if err := d.Pass(t); err != nil {
		d.t.Fatal(err)
	}
}

// Call has a client make a call, whose answer comes to Done.
func (d *Deployed) Call(client protocol.ID, c smr.Call) smr.CallID {
	return d.Make(client, c, func(a smrsim.Answer) { d.Done = append(d.Done, a) })
}

// One makes a call, lets a second pass and returns the answer, which must be that it is committed,
// and the only one.
func (d *Deployed) One(client protocol.ID, c smr.Call) smrsim.Answer {
	d.t.Helper()
	d.Done = nil
	d.Call(client, c)
	d.Run(time.Second)
	if len(d.Done) != 1 || d.Done[0].Outcome != smr.Committed {
		d.t.Fatalf("client %d: %+v", client, d.Done)
	}
	return d.Done[0]
}

// Statuses asks the replicas that are up how they are.
func (d *Deployed) Statuses() map[protocol.ID]smr.Status {
	d.t.Helper()
	all, err := d.Group.Statuses()
	if err != nil {
		d.t.Fatal(err)
	}
	return all
}

// Ask asks one replica how it is, and lets a moment pass.
func (d *Deployed) Ask(id protocol.ID) smr.Status {
	d.t.Helper()
	d.Deliver(id, smr.StatusQuery{})
	d.Run(5 * time.Millisecond)
	return d.Status[id]
}

// Load has each client make so many calls a second for a while, the first ones spread over a time,
// and returns the answers, in order. All must be commits, within three seconds.
func (d *Deployed) Load(perSecond int, spread, lasting time.Duration, call func() smr.Call) []smrsim.Answer {
	d.t.Helper()
	d.Done = nil
	calls := 0
	for i, id := range d.Clients {
		for at := time.Duration(i) * spread / time.Duration(len(d.Clients)); at < lasting; at += time.Second / time.Duration(
			perSecond) {
			calls++
			d.After(at, func() { d.Call(id, call()) })
		}
	}
	d.Run(lasting + 3*time.Second)
	if len(d.Done) != calls {
		d.t.Fatalf("%d calls of %d are done", len(d.Done), calls)
	}
	for _, a := range d.Done {
		if a.Outcome != smr.Committed {
			d.t.Fatalf("client %d: %v, %s", a.Client, a.Outcome, a.Reason)
		}
	}
	return d.Done
}

// Took returns how long calls took, in order of that.
func Took(answers []smrsim.Answer) []time.Duration {
	var took []time.Duration
	for _, a := range answers {
		took = append(took, a.Took)
	}
	slices.Sort(took)
	return took
}

// Percentile returns what a share of times does not exceed, 0 of none.
func Percentile(took []time.Duration, share float64) time.Duration {
	took = slices.Sorted(slices.Values(took))
	if len(took) == 0 {
		return 0
	}
	return took[min(int(share*float64(len(took))), len(took)-1)]
}
