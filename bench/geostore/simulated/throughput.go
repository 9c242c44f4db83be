package simulated

import (
	"slices"
	"time"

	"github.com/foresay/foresay/bench"
	"github.com/foresay/foresay/internal/storesim"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/plan"
	"github.com/foresay/foresay/wan"
	"github.com/foresay/foresay/workload"
)

// The setting of Carousel's throughput [Carousel §3.4.4]: five sites in one room, each with three
// servers, and eight machines with clients. How many clients a machine has is told of the other
// experiments only [Carousel §3.4.1].
const (
	nearTrip       = 5 * time.Millisecond
	clientMachines = 8
	machineClients = 5
	keyCount       = 10_000_000
	zipfAlpha      = 0.75
	valueBytes     = 64
	// leastRoundTrip is what nodes are told of the network: less would have them take a queue for a
	// failure.
	leastRoundTrip = 100 * time.Millisecond
	// roomOffset bounds how far clocks of one room are apart.
	roomOffset = time.Millisecond
)

// A cpu says how long a server is at work on a message from another node.
type cpu struct {
	name string
	call time.Duration
}

// target is a system that is asked for so many transactions a second.
type target struct {
	system  plan.System
	cpu     cpu
	perS    int
	seed    uint64
	warm    time.Duration
	lasting time.Duration
}

// A role is what a node is there for.
type role int

const (
	clientRole   role = iota // clients, and the agents that work for them
	leaderRole               // of a partition
	followerRole             // of a partition, or any server of one that has no leader
	keylessRole              // servers of groups that only coordinate
	roles
)

// traffic counts what goes from one node to another, of different machines.
type traffic struct {
	codec      protocol.Codec[store.Message]
	buffer     []byte
	roles      map[protocol.ID]role
	on         bool
	calls      [roles]int
	sent, got  [roles]int // bytes
	handled    map[protocol.ID]int
	perMessage time.Duration
}

// serve counts a call, and says how long it takes.
func (t *traffic) serve(c sim.Call[store.Message]) time.Duration {
	if c.Kind != sim.CallReceive || c.From == protocol.App || c.From == c.Node {
		return 0
	}
	from, to := t.roles[c.From], t.roles[c.Node]
	if t.on && (from != clientRole || to != clientRole) {
		var err error
		if t.buffer, err = t.codec.Append(t.buffer[:0], c.Msg); err == nil {
			t.sent[from] += len(t.buffer)
			t.got[to] += len(t.buffer)
		}
		t.calls[to]++
		t.handled[c.Node]++
	}
	if to == clientRole {
		return 0
	}
	return t.perMessage
}

// rolesOf returns what each node of a layout is there for.
func rolesOf(l store.Layout, leads bool) map[protocol.ID]role {
	all := map[protocol.ID]role{} // clients and agents are not in it, and so of the first one
	shards := len(l.Sites[0].Shards)
	for i, s := range l.Sites {
		for k, id := range s.Shards {
			switch {
			case id == 0:
			case k >= shards-l.Keyless:
				all[id] = keylessRole
			case leads && l.FirstOf(k) == i:
				all[id] = leaderRole
			default:
				all[id] = followerRole
			}
		}
	}
	return all
}

// measured is what came of a target.
type measured struct {
	target
	traffic
	nodes              [roles]int
	committed, aborted int
	other              int // neither
	took               []time.Duration
	busiest            float64 // the largest share of the time that a server is at work
}

// run measures it.
func (t target) run() (*measured, error) {
	sites := wan.Uniform(nearTrip, wan.Carousel().Sites()...)
	placement, err := placementOf(sites)
	if err != nil {
		return nil, err
	}
	keys, err := workload.Zipfian(keyCount, zipfAlpha)
	if err != nil {
		return nil, err
	}
	p, _ := storesim.ProtocolOf(t.system)
	m := &measured{target: t, traffic: traffic{codec: p.Codec, handled: map[protocol.ID]int{}, perMessage: t.cpu.call}}
	all, err := populate(setting{system: t.system, wan: sites, placement: placement, agents: clientMachines,
		clients: clientMachines * machineClients, roundTrip: leastRoundTrip, maxOffset: roomOffset, seed: max(t.seed, 1),
		disk: sim.Disk{Latency: bench.SyncTime}, service: m.serve})
	if err != nil {
		return nil, err
	}
	m.roles = rolesOf(all.Layout, all.Protocol.Leads)
	for _, id := range all.IDs() {
		m.nodes[m.roles[id]]++
	}
	m.nodes[clientRole] = clientMachines * len(sites.Sites())
	value := make([]byte, valueBytes)
	all.value = func(store.Key, store.Value) []byte { return value }
	all.ended = func(_ *caller, r result) {
		switch {
		case !m.on:
		case r.verdict == store.Committed:
			m.committed++
			m.took = append(m.took, r.took)
		case r.verdict == store.Aborted:
			m.aborted++
		default:
			m.other++
		}
	}
	all.begin(workload.Retwis{Keys: keys}, time.Duration(len(all.clients))*time.Second/time.Duration(t.perS),
		func() bool { return true })
	if err := all.Pass(t.warm); err != nil {
		return nil, err
	}
	m.on = true
	before := map[protocol.ID]time.Duration{}
	for id := range m.roles {
		before[id] = all.Busy(id)
	}
	if err := all.Pass(t.lasting); err != nil {
		return nil, err
	}
	for id := range m.roles {
		m.busiest = max(m.busiest, (all.Busy(id)-before[id]).Seconds()/t.lasting.Seconds())
	}
	slices.Sort(m.took)
	return m, nil
}
