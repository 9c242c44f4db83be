package domino

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// A Path is how a client has its commands agreed on.
type Path uint8

const (
	// Measured is whichever is faster by the delays that the client measures [Thesis §4.3.6].
	Measured Path = iota
	// OnlyDFP is Domino's Fast Paxos, unless it does not work.
	OnlyDFP
	// OnlyDM is Domino's Mencius.
	OnlyDM
)

// Options choose between variants of the protocol. The zero value is the thesis' Domino. Nodes of a
// group should have the same, but no promise depends on it: what differs costs time only, most of
// all AllLearn at the coordinator and not at the others, which then learn of what was executed by
// asking for it. So they can be changed node by node.
type Options struct {
	// Slack is added to the timestamps of DFP, which makes votes that come too late rarer and
	// execution later [Thesis §4.3.4].
	Slack time.Duration
	// AdaptSlack has slack as long as would have been enough for all votes of four windows, but for
	// those that it would have taken more than an eighth of a round trip for. Slack is the least
	// then.
	AdaptSlack bool
	// Percentile, in (0, 1], is that of the delays in the last Window by which arrivals are
	// predicted. 0 is 0.95. Ways are compared by the median.
	Percentile float64
	Window     time.Duration // 0 is a second
	// Probe is the time between two measurements of a delay. 0 is a fifth of a round trip, but at
	// least 20 ms.
	Probe time.Duration
	Path  Path
	// Batch is how many commands a client has in one slot at most. 0 is 1024, 1 is a slot for each,
	// whatever ReplicaConfig.MaxBatch says of those that go through an owner.
	Batch int

	// Direct makes acceptors of DM answer the client themselves, beyond the thesis. It costs a
	// message more and saves the way back to the owner.
	Direct bool
	// AllLearn makes all replicas count the votes of DFP. Otherwise only the coordinator does, and
	// tells the others [Thesis §4.3.3].
	AllLearn bool
	// Arrival makes the owner of a track use the time at which a majority will have its proposal,
	// rather than that at which it will know [Thesis §4.3.5].
	Arrival bool
}

func (o Options) withDefaults(roundTrip time.Duration) (Options, error) {
	switch {
	case o.Slack < 0:
		return o, fmt.Errorf("domino: Options.Slack is %v", o.Slack)
	case !(o.Percentile >= 0 && o.Percentile <= 1):
		return o, fmt.Errorf("domino: Options.Percentile is %v, not in (0, 1]", o.Percentile)
	case o.Window < 0:
		return o, fmt.Errorf("domino: Options.Window is %v", o.Window)
	case o.Probe < 0:
		return o, fmt.Errorf("domino: Options.Probe is %v", o.Probe)
	case o.Path > OnlyDM:
		return o, fmt.Errorf("domino: Options.Path is %d", o.Path)
	case o.Batch < 0:
		return o, fmt.Errorf("domino: Options.Batch is %d", o.Batch)
	}
	o.Percentile = cmp.Or(o.Percentile, 0.95)
	o.Window = cmp.Or(o.Window, time.Second)
	o.Batch = cmp.Or(min(o.Batch, maxSubmit), maxSubmit)
	o.Probe = cmp.Or(o.Probe, max(roundTrip/5, 20*time.Millisecond))
	return o, nil
}

// Protocol returns the thesis' Domino as a member of its family.
func Protocol() smr.Protocol {
	return New("domino", "Domino: clients have commands accepted by their predicted arrival times, in one round trip "+
		"to a supermajority.", Options{})
}

// Direct returns Domino with what goes beyond the thesis: acceptors answer clients, all replicas
// learn, and timestamps are arrivals.
func Direct() smr.Protocol {
	return New("domino-direct", "Domino in which acceptors answer clients themselves, all replicas learn, timestamps "+
		"are arrivals, and slack adapts.",
		DirectOptions())
}

// DirectOptions are those of Direct. Its slack adapts: without any, one command in twenty-five
// comes late in a real network, and all that are executed after it wait for the coordinator.
func DirectOptions() Options {
	return Options{Direct: true, AllLearn: true, Arrival: true, AdaptSlack: true}
}

// String returns a short text of the options that differ from the thesis' Domino, such as "direct,
// all learn, slack 8ms"; "" for the zero Options.
func (o Options) String() string {
	var parts []string
	add := func(is bool, format string, args ...any) {
		if is {
			parts = append(parts, fmt.Sprintf(format, args...))
		}
	}
	add(o.Direct, "direct")
	add(o.AllLearn, "all learn")
	add(o.Arrival, "arrival")
	add(o.Slack != 0, "slack %v", o.Slack)
	add(o.AdaptSlack, "slack adapts")
	add(o.Percentile != 0, "percentile %v", o.Percentile)
	add(o.Window != 0, "window %v", o.Window)
	add(o.Probe != 0, "probe %v", o.Probe)
	add(o.Path == OnlyDFP, "dfp only")
	add(o.Path == OnlyDM, "dm only")
	add(o.Batch != 0, "batch %d", o.Batch)
	return strings.Join(parts, ", ")
}

// New returns a variant of the protocol under a name. What is wrong with the options is told where
// nodes are made.
func New(name, doc string, o Options) smr.Protocol {
	return smr.Protocol{
		Name:       name,
		Doc:        doc,
		NewReplica: kit.NodeOf(func(cfg smr.ReplicaConfig) (*replica, error) { return newReplica(cfg, o) }),
		NewClient:  kit.NodeOf(func(cfg smr.ClientConfig) (*client, error) { return newClient(cfg, o) }),
		Salvage:    kit.SalvageOf(func(cfg smr.ReplicaConfig) (*replica, error) { return newReplica(cfg, o) }),
		Learns:     true,
		Codec:      codec(),
	}
}
