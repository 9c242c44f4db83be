package plansim

import (
	"fmt"
	"slices"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/plan"
	"github.com/foresay/foresay/wan"
)

// world is a group of replicas and their clients.
type world struct {
	*sim.Sim[smr.Message]
	leader  protocol.ID
	clients []protocol.ID
	trip    time.Duration // the longest one
	calls   smr.CallID
	done    map[smr.CallID]func() // is told of those that are not done
	status  smr.Status
	err     error
}

func newWorld(c Config) (*world, error) {
	s := c.Setting
	w := &world{
		leader: protocol.ID(1 + max(0, slices.Index(s.Replicas, s.Leader))), trip: longest(s), done: map[smr.CallID]func(){},
	}
	var err error
	if w.Sim, err = sim.New(sim.Config[smr.Message]{Seed: c.Seed, WAN: s.WAN, App: w.app, CheckEvery: 1 << 20, TraceKeep: -1}); err != nil {
		return nil, err
	}
	var members []smr.Member
	for i := range s.Replicas {
		members = append(members, smr.Member{ID: protocol.ID(i + 1)})
	}
	for i, m := range members {
		err := w.add(m.ID, s.Replicas[i], func() (protocol.Node[smr.Message], error) {
			return c.Protocol.NewReplica(smr.ReplicaConfig{ID: m.ID, Members: members, Machine: &counter{}, RoundTrip: w.trip, Leader: w.leader})
		})
		if err != nil {
			return nil, err
		}
	}
	for i, client := range s.Clients {
		id, near := protocol.ID(1000+i), slices.Index(s.Replicas, s.WAN.Nearest(client.Site, s.Replicas))
		w.clients = append(w.clients, id)
		err := w.add(id, client.Site, func() (protocol.Node[smr.Message], error) {
			return c.Protocol.NewClient(smr.ClientConfig{ID: id, Members: members, RoundTrip: w.trip, Nearest: members[near].ID})
		})
		if err != nil {
			return nil, err
		}
	}
	if err := w.pass(2*time.Second + 20*w.trip); err != nil { // to elect, to measure, and to open the sessions
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
		if err := w.pass(time.Millisecond); err != nil {
			return err
		}
		wrong := w.status.Leader
		switch wrong {
		case w.leader:
			if n == 0 {
				return nil
			}
			return w.pass(20 * w.trip) // until nothing is left of the others' reigns
		case 0:
		default:
			w.Crash(wrong, sim.KeepAll)
		}
		if err := w.pass(8 * w.trip); err != nil {
			return err
		}
		if wrong != 0 {
			w.Restart(wrong)
		}
		if err := w.pass(4 * w.trip); err != nil {
			return err
		}
	}
	return fmt.Errorf("replica %d did not come to lead though %d other leaders were stopped", w.leader, depositions)
}

func (w *world) add(id protocol.ID, site wan.Site, build func() (protocol.Node[smr.Message], error)) error {
	if _, err := build(); err != nil {
		return err
	}
	return w.Add(sim.Node[smr.Message]{ID: id, Site: site, New: func() protocol.Node[smr.Message] {
		node, err := build()
		if err != nil {
			panic(err) // it was right before
		}
		return node
	}})
}

func (w *world) app(_ protocol.ID, msg smr.Message) {
	switch msg := msg.(type) {
	case smr.Done:
		done := w.done[msg.ID]
		delete(w.done, msg.ID)
		if msg.Outcome != smr.Committed {
			w.err = fmt.Errorf("a call was not committed: %v, %s", msg.Outcome, msg.Reason)
		} else if done != nil {
			done()
		}
	case smr.Status:
		w.status = msg
	case smr.Refused:
		w.err = fmt.Errorf("a replica is refused: %s", msg.Reason)
	}
}

func (w *world) pass(d time.Duration) error {
	if err := w.Run(d); err != nil {
		return err
	}
	return w.err
}

// call has a client make a call that conflicts with no other one, and notes how long that takes.
func (w *world) call(client int, r *Result) {
	w.calls++
	c := smr.Call{ID: w.calls, Kind: smr.Propose, Ack: r.Ack, Command: fmt.Appendf(nil, "%016d", w.calls)}
	if r.Ack == smr.AckExecuted {
		c.Kind = smr.Execute
	}
	began := w.Now()
	w.done[c.ID] = func() { r.Took = append(r.Took, w.Now()-began) }
	w.Deliver(w.clients[client], c)
}

// answered waits until all calls are.
func (w *world) answered() error {
	err := w.RunUntil(10*time.Second+20*w.trip, func() bool { return len(w.done) == 0 || w.err != nil })
	if w.err != nil {
		return w.err
	}
	return err
}

// alone has calls made one after the other. What they take before the first one of a kind is not
// noted: it finds the slots of others unused for long.
func (w *world) alone(calls int, out []Result) error {
	for i := range out {
		for n := range calls + 1 {
			if w.call(i/len(acks()), &out[i]); n == 0 {
				w.done[w.calls] = nil
			}
			if err := w.answered(); err != nil {
				return fmt.Errorf("client at %s: %w", out[i].Client.Site, err)
			}
			// The next one is made when all that this one has set off is over, at another instant
			// of the nodes' beats.
			if err := w.pass(2*w.trip + time.Duration(1+w.calls%7)*1300*time.Microsecond); err != nil {
				return err
			}
		}
	}
	return nil
}

// together has all clients call, 900 times a second in all, for each kind in turn. The calls of the
// first round trips are not noted.
func (w *world) together(calls int, out []Result) error {
	every := time.Duration(len(w.clients)) * time.Second / 900
	kinds := len(acks())
	first := int(2*w.trip/every) + 1
	for i := range w.clients {
		for n := range first + kinds*calls {
			w.After(every*time.Duration(n)+every*time.Duration(i)/time.Duration(len(w.clients)), func() {
				if w.call(i, &out[i*kinds+n%kinds]); n < first {
					w.done[w.calls] = nil
				}
			})
		}
	}
	if err := w.pass(every * time.Duration(1+first+kinds*calls)); err != nil {
		return err
	}
	return w.answered()
}
