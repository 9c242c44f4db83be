package smrtest

import (
	"fmt"
	"io"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/wan"
)

// A Scenario is one simulated life of a group. Its zero fields have defaults; Protocol is required.
type Scenario struct {
	Protocol smr.Protocol
	Seed     uint64
	Faults   sim.Faults
	Replicas int // 0 is 3
	Clients  int // 0 is 4
	// FaultEvery is the mean time between two faults, which last a little less; 0 is 600 ms.
	FaultEvery time.Duration
	// For is how long faults strike; 0 is 6 s. Afterwards everything must come in order within
	// Settle; 0 is 5 s.
	For, Settle time.Duration
	Disk        sim.Disk // of replicas; its zero value is one of 1 to 2 ms
	// RoundTrip is what nodes are told that the longest round trip takes. 0: as long as it does.
	RoundTrip time.Duration
	// Calls is how many calls each client has under way at a time, which it makes together. 0 is 1.
	Calls int
	// Idle is how long the last client waits between two calls at most, so that it does not hear of
	// what the others saw happen. 0: as the others, which hardly wait.
	Idle time.Duration
	// ValueBytes makes commands of clients so much larger. 0: nothing is added.
	ValueBytes int
	// BytesPerSecond is the bandwidth between any two sites, and QueueBytes how much may wait for
	// it; what is more is lost. 0: no bound.
	BytesPerSecond int64
	QueueBytes     int
	// Configure changes the configuration of a replica before it is made. nil: nothing.
	Configure func(*smr.ReplicaConfig)
	// Script does what it likes in the middle of the run, beside the faults. nil: nothing.
	Script func(*World)
	Trace  io.Writer // gets a line for each thing that happens; nil: nobody
	// Explain gets how the simulation stands when the run has ended or failed, as sim.Explain tells
	// it. nil: nobody.
	Explain io.Writer
	Replay  string // the command that repeats the run, for failures to name

	brief bool // keeps nothing of what happened
	// codecChance is how many of the messages and records go through the codec, so that they share
	// no memory with others. 0 is a tenth.
	codecChance float64
	// vouch gives each replica a host that beats, as in a process that has several groups, and
	// passes what the host says on. nil: no hosts.
	vouch func(host vouch) vouch
}

// A Report is what a scenario came to.
type Report struct {
	Seed    uint64
	Faults  sim.Faults
	Hash    uint64
	Steps   uint64
	Crashes int
	// LostWrites is how many writes crashes lost, as they were not durable.
	LostWrites int
	// Calls of clients by their outcomes, and the state's size in commands at the end.
	Committed, Rejected, Unknown, Commands int
	// Gap is the longest time in which no call was committed while faults struck.
	Gap time.Duration
}

func (r Report) String() string {
	return fmt.Sprintf("seed %d, faults %v: %d steps, %d crashes, %d calls committed, %d rejected, %d unknown, %d "+
		"commands, longest gap %v, hash %016x",
		r.Seed, r.Faults, r.Steps, r.Crashes, r.Committed, r.Rejected, r.Unknown, r.Commands, r.Gap, r.Hash)
}

// Bounds of scenarios.
const (
	maxReplicas = 9
	roundTrip   = 20 * time.Millisecond // between any two sites
	firstClient = protocol.ID(1001)
	admin       = protocol.ID(1000)
)

func (sc *Scenario) setDefaults() error {
	if sc.Protocol.NewReplica == nil || sc.Protocol.NewClient == nil {
		return fmt.Errorf("smrtest: Scenario.Protocol is missing")
	}
	if sc.Replicas < 0 || sc.Replicas > maxReplicas {
		return fmt.Errorf("smrtest: Scenario.Replicas is %d, not 1 to %d", sc.Replicas, maxReplicas)
	}
	if sc.Replicas == 0 {
		sc.Replicas = 3
	}
	if sc.Clients == 0 {
		sc.Clients = 4
	}
	if sc.Disk == (sim.Disk{}) {
		sc.Disk = sim.Disk{Latency: time.Millisecond, Jitter: time.Millisecond}
	}
	if sc.FaultEvery == 0 {
		sc.FaultEvery = 600 * time.Millisecond
	}
	if sc.For == 0 {
		sc.For = 6 * time.Second
	}
	if sc.Settle == 0 {
		sc.Settle = 5 * time.Second
	}
	return nil
}

// Play runs a scenario. An error is a *sim.Failure or says which promise was broken; the report is
// of the run up to there.
func Play(sc Scenario) (Report, error) {
	if err := sc.setDefaults(); err != nil {
		return Report{}, err
	}
	w, err := newWorld(sc)
	if err != nil {
		return Report{}, err
	}
	err = w.run()
	report := w.report()
	if sc.Explain != nil {
		if e := w.Sim.Explain(sc.Explain); e != nil {
			return report, fmt.Errorf("smrtest: Scenario.Explain: %w", e)
		}
	}
	if err != nil {
		if _, ok := err.(*sim.Failure); !ok {
			err = fmt.Errorf("%s: seed %d, faults %v: %w\nrepeat it with: %s", sc.Protocol.Name, sc.Seed, sc.Faults, err,
				sc.Replay)
		}
	}
	return report, err
}

// sites returns the sites of a scenario: as many as members can be.
func sites() []wan.Site {
	var out []wan.Site
	for i := range maxReplicas {
		out = append(out, wan.Site(fmt.Sprintf("s%d", i+1)))
	}
	return out
}
