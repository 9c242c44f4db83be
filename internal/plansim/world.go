package plansim

import (
	"fmt"
	"slices"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/plan"
	"github.com/foresay/foresay/smr/smrsim"
	"github.com/foresay/foresay/wan"
)

// world is a group of replicas and their clients.
type world struct {
	*smrsim.Group
	leader protocol.ID
	trip   time.Duration // the longest one
	calls  int
}

func newWorld(c Config) (*world, error) {
	s := c.Setting
	w := &world{leader: protocol.ID(1 + max(0, slices.Index(s.Replicas, s.Leader))), trip: longest(s)}
	var sites []wan.Site
	for _, client := range s.Clients {
		sites = append(sites, client.Site)
	}
	var err error
	w.Group, err = smrsim.New(smrsim.Config{
		Protocol: c.Protocol, Place: wan.Deployment{Matrix: s.WAN, Replicas: s.Replicas}, Clients: sites, FirstClient: 1000,
		RoundTrip: w.trip,
		Sim:       sim.Config[smr.Message]{Seed: c.Seed, CheckEvery: 1 << 20, TraceKeep: -1},
		Replica:   func(r *smr.ReplicaConfig) { r.Machine, r.Leader = &tally{}, w.leader },
	})
	if err != nil {
		return nil, err
	}
	if err := w.Pass(2*time.Second + 20*w.trip); err != nil { // to elect, to measure, and to open the sessions
		return nil, err
	}
	if plan.System(c.Protocol.Name).Leads() {
		return w, w.depose()
	}
	return w, nil
}

// longest returns the longest round trip in a setting, but at least 10 ms.
func longest(s plan.Setting) time.Duration {
	sites := slices.Clone(s.Replicas)
	for _, client := range s.Clients {
		sites = append(sites, client.Site)
	}
	return max(s.WAN.MaxRTT(sites), 10*time.Millisecond)
}

// depositions is how many leaders are stopped at most.
const depositions = 50

// depose stops whoever leads for a while until the right one does: protocols that elect do not
// always elect the one that is preferred.
func (w *world) depose() error {
	for n := range depositions {
		w.Deliver(w.leader, smr.StatusQuery{})
		if err := w.Pass(time.Millisecond); err != nil {
			return err
		}
		wrong := w.Status[w.leader].Leader
		switch wrong {
		case w.leader:
			if n == 0 {
				return nil
			}
			return w.Pass(20 * w.trip) // until nothing is left of the others' reigns
		case 0:
		default:
			w.Crash(wrong, sim.KeepAll)
		}
		if err := w.Pass(8 * w.trip); err != nil {
			return err
		}
		if wrong != 0 {
			w.Restart(wrong)
		}
		if err := w.Pass(4 * w.trip); err != nil {
			return err
		}
	}
	return fmt.Errorf("replica %d did not come to lead though %d other leaders were stopped", w.leader, depositions)
}

// call has a client make a call that conflicts with no other one, and notes how long that takes.
func (w *world) call(client int, r *Result) {
	w.calls++
	c := smr.Call{Kind: smr.Propose, Ack: r.Ack, Command: fmt.Appendf(nil, "%016d", w.calls)}
	if r.Ack == smr.AckExecuted {
		c.Kind = smr.Execute
	}
	w.Make(w.Clients[client], c, func(a smrsim.Answer) {
		if a.Outcome != smr.Committed {
			w.Fail("a call was not committed: %v, %s", a.Outcome, a.Reason)
		}
		r.Took = append(r.Took, a.Took)
	})
}

// answered waits until all calls are.
func (w *world) answered() error {
	return w.Await(10*time.Second+20*w.trip, func() bool { return w.Unanswered() == 0 })
}

// alone has calls made one after the other. What they take before the first one of a kind is not
// noted: it finds the slots of others unused for long.
func (w *world) alone(calls int, out []Result) error {
	for i := range out {
		for n := range calls + 1 {
			result := &out[i]
			if n == 0 {
				result = &Result{Ack: result.Ack}
			}
			w.call(i/len(acks()), result)
			if err := w.answered(); err != nil {
				return fmt.Errorf("client at %s: %w", out[i].Client.Site, err)
			}
			// The next one is made when all that this one has set off is over, at another instant
			// of the nodes' beats.
			if err := w.Pass(2*w.trip + time.Duration(1+w.calls%7)*1300*time.Microsecond); err != nil {
				return err
			}
		}
	}
	return nil
}

// together has all clients call, 900 times a second in all, for each kind in turn. The calls of the
// first round trips are not noted.
func (w *world) together(calls int, out []Result) error {
	every := time.Duration(len(w.Clients)) * time.Second / 900
	kinds := len(acks())
	first := int(2*w.trip/every) + 1
	for i := range w.Clients {
		for n := range first + kinds*calls {
			w.After(every*time.Duration(n)+every*time.Duration(i)/time.Duration(len(w.Clients)), func() {
				result := &out[i*kinds+n%kinds]
				if n < first {
					result = &Result{Ack: result.Ack}
				}
				w.call(i, result)
			})
		}
	}
	if err := w.Pass(every * time.Duration(1+first+kinds*calls)); err != nil {
		return err
	}
	return w.answered()
}
