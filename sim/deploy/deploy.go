package deploy

import (
	"fmt"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/wan"
)

// Config is what a deployment is made from.
type Config[M any] struct {
	// Sim is the simulation's. Its App gets what answers no call.
	Sim sim.Config[M]
	// Answers tells which call of its application a node's message ends. nil: none does.
	Answers func(msg M) (call uint64, ok bool)
	// Clock is how a node's clock differs from the simulation's time. nil: all are right.
	Clock func(protocol.ID) sim.Clock
	// Wrap puts something around each node, which sees what the node is told. nil: nothing.
	Wrap func(protocol.ID, protocol.Node[M]) protocol.Node[M]
}

// A Deployment is a simulation and the applications at its nodes.
type Deployment[M any] struct {
	*sim.Sim[M]
	config  Config[M]
	sites   map[protocol.ID]wan.Site
	last    map[protocol.ID]uint64 // calls of an application
	waiting map[call]waiting[M]
	err     error
}

// A call is the nth one of a node's application.
type call struct {
	node protocol.ID
	n    uint64
}

type waiting[M any] struct {
	began time.Duration
	then  func(Answer[M])
}

// An Answer is what became of a call.
type Answer[M any] struct {
	Client      protocol.ID // whose application made it
	Site        wan.Site
	Call        uint64
	Msg         M
	Began, Took time.Duration
}

// New returns a deployment without nodes at time 0.
func New[M any](c Config[M]) (*Deployment[M], error) {
	d := &Deployment[M]{
		config: c, sites: map[protocol.ID]wan.Site{}, last: map[protocol.ID]uint64{}, waiting: map[call]waiting[M]{},
	}
	c.Sim.App = d.app
	var err error
	d.Sim, err = sim.New(c.Sim)
	return d, err
}

// Add puts a node in, which build makes, once for each of its incarnations. It is tried first, so
// what one of its results shares with another must not matter.
func (d *Deployment[M]) Add(id protocol.ID, site wan.Site, build func() (protocol.Node[M], error)) error {
	if _, err := build(); err != nil {
		return err
	}
	d.sites[id] = site
	node := sim.Node[M]{ID: id, Site: site, New: func() protocol.Node[M] {
		n, err := build()
		if err != nil {
			panic(err) // the same configuration was right before
		}
		if d.config.Wrap != nil {
			n = d.config.Wrap(id, n)
		}
		return n
	}}
	if d.config.Clock != nil {
		node.Clock = d.config.Clock(id)
	}
	return d.Sim.Add(node)
}

// Site returns where a node is.
func (d *Deployment[M]) Site(id protocol.ID) wan.Site { return d.sites[id] }

// Call has a node's application make a call, and calls then with the answer, once. An application's
// calls are numbered from 1; message makes the call of a number.
func (d *Deployment[M]) Call(client protocol.ID, message func(call uint64) M, then func(Answer[M])) uint64 {
	d.last[client]++
	n := d.last[client]
	d.waiting[call{client, n}] = waiting[M]{d.Now(), then}
	d.Deliver(client, message(n))
	return n
}

// Waiting reports whether a call has no answer yet.
func (d *Deployment[M]) Waiting(client protocol.ID, n uint64) bool {
	_, ok := d.waiting[call{client, n}]
	return ok
}

// Calls returns how many calls an application has made.
func (d *Deployment[M]) Calls(client protocol.ID) int { return int(d.last[client]) }

// Unanswered returns how many calls have no answer yet.
func (d *Deployment[M]) Unanswered() int { return len(d.waiting) }

func (d *Deployment[M]) app(from protocol.ID, msg M) {
	if d.config.Answers != nil {
		if n, ok := d.config.Answers(msg); ok {
			d.answer(call{from, n}, msg)
			return
		}
	}
	if d.config.Sim.App != nil {
		d.config.Sim.App(from, msg)
	}
}

func (d *Deployment[M]) answer(c call, msg M) {
	w, ok := d.waiting[c]
	if !ok {
		d.Fail("client %d: call %d is done twice, or was never made", c.node, c.n)
		return
	}
	delete(d.waiting, c)
	w.then(Answer[M]{Client: c.node, Site: d.sites[c.node], Call: c.n, Msg: msg, Began: w.began, Took: d.Now() - w.began})
}

// Fail notes what must not happen. The first one counts.
func (d *Deployment[M]) Fail(format string, args ...any) {
	if d.err == nil {
		d.err = fmt.Errorf("at %v: "+format, append([]any{d.Now()}, args...)...)
	}
}

// Err returns what has failed, of the simulation or by Fail.
func (d *Deployment[M]) Err() error {
	if err := d.Sim.Err(); err != nil {
		return err
	}
	return d.err
}

// Pass lets time pass, and returns what has failed.
func (d *Deployment[M]) Pass(t time.Duration) error {
	if err := d.Run(t); err != nil {
		return err
	}
	return d.err
}

// Await lets time pass until a condition holds or something fails, for as long as limit at most.
func (d *Deployment[M]) Await(limit time.Duration, cond func() bool) error {
	err := d.RunUntil(limit, func() bool { return cond() || d.err != nil })
	if d.err != nil {
		return d.err
	}
	return err
}
