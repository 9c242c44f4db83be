package byzantine

import (
	"fmt"
	"slices"
	"time"

	"github.com/foresay/foresay/bench"
	"github.com/foresay/foresay/bench/table"
	"github.com/foresay/foresay/bft"
	"github.com/foresay/foresay/bft/pbft"
	"github.com/foresay/foresay/bft/zyzzyva"
	"github.com/foresay/foresay/smr/plan"
	"github.com/foresay/foresay/wan"
)

// A System is what serves a program, and how the program uses it.
type System struct {
	Name string
	// Window is how many updates the program has under way at most. A program that waits for
	// confirmed replies has one.
	Window int
}

// The systems, by the paper's names. Without replication one replica serves, of which nobody can
// tell whether it lies; what it says is confirmed.
const (
	norep = "norep"
	plain = "pbft"
	zero  = "pbft-0spec" // goes on with what the program can predict, and has no first replies
	cs    = "pbft-cs"    // goes on with first replies
	zyz   = "zyzzyva"
)

// String names the system as figures do.
func (s System) String() string {
	if s.Name != cs {
		return s.Name
	}
	return fmt.Sprintf("%s (%d)", s.Name, s.Window)
}

func (s System) protocol() bft.Protocol {
	if s.Name == zyz {
		return zyzzyva.Protocol()
	}
	return pbft.Protocol()
}

// speculates reports whether its program goes on with guesses.
func (s System) speculates() bool { return s.Name == cs || s.Name == zero }

// replica completes the configuration of a replica: batches as large as the paper's, and enough
// under way for a window of 1,024.
func (s System) replica(c *bft.ReplicaConfig) {
	c.MaxBatch, c.MaxUnderway, c.CheckpointEvery = maxBatch, 64, 512
	c.NoFirst = s.Name != cs
}

const maxBatch = 64

// Topology is where the client is [PBFT-CS §6.1].
type Topology string

// The topologies.
const (
	PrimaryLocal Topology = "primary-local"
	BackupLocal  Topology = "backup-local"
	Uniform      Topology = "uniform" // at a site of its own
)

// within is the delay within a site, one way, and the least between two.
const within = 40 * time.Microsecond

// A place is a network of four sites of replicas and one without.
type place struct {
	Topology
	delay time.Duration // one way, between two sites
}

func (p place) sites() []wan.Site { return []wan.Site{"a", "b", "c", "d", "e"} }

func (p place) matrix() wan.Matrix {
	m := wan.Uniform(2*max(p.delay, within), p.sites()...)
	for _, s := range p.sites() {
		m = m.WithRTT(s, s, 2*within)
	}
	return m
}

// replicas returns where a system's replicas are, the primary first, and client where the client
// is. Without replication who has a replica at its site has the only one there.
func (p place) replicas(s System) []wan.Site {
	switch {
	case s.Name != norep:
		return p.sites()[:4]
	case p.Topology == Uniform:
		return p.sites()[:1]
	}
	return []wan.Site{p.client()}
}

func (p place) client() wan.Site {
	switch p.Topology {
	case PrimaryLocal:
		return "a"
	case BackupLocal:
		return "b"
	}
	return "e"
}

// cells are those by which rows of all experiments name what was measured, named the same where
// delays are those of a network.
func (s System) cells(topology Topology, delay time.Duration, reads string, durable bool) table.Row {
	row := s.named(string(topology), reads, durable)
	return slices.Insert(row, 2, table.Measure("delay_ms", table.Ms(delay)))
}

func (s System) named(topology, reads string, durable bool) table.Row {
	disk := "no"
	if durable {
		disk = "yes"
	}
	return table.Row{table.Is("system", s.Name), table.Is("topology", topology), table.Is("window", s.Window),
		table.Is("batch", maxBatch), table.Is("reads", reads), table.Is("durable", disk)}
}

// modelled returns what the model says of one call of a system: when its client goes on, and when
// it is confirmed. Disks are not in it.
func (p place) modelled(s System) (next, confirmed time.Duration, err error) {
	system := plan.PBFT
	if s.Name == zyz {
		system = plan.Zyzzyva
	}
	rows, err := plan.Latencies(plan.Setting{WAN: p.matrix(), Replicas: p.replicas(s),
		Clients: []plan.Client{{Site: p.client()}}}, system)
	if err != nil {
		return 0, 0, err
	}
	next, confirmed = rows[0].Latency, rows[1].Latency
	if s.Name != cs {
		next = confirmed
	}
	return next, confirmed, nil
}

// dependent returns how long n updates take that each need the reply to the one before: as long as
// the client waits for what it goes on with, or as a window of them takes to be confirmed.
func (s System) dependent(n int, next, confirmed time.Duration) time.Duration {
	return time.Duration(n-1)*max(next, confirmed/time.Duration(s.Window)) + confirmed
}

// floor returns how long n dependent updates take at least: the first n-1 need a reply of the
// nearest replica, and the last one that of a quorum.
func (p place) floor(n int) (time.Duration, error) {
	rows, err := plan.Latencies(plan.Setting{WAN: p.matrix(), Replicas: p.replicas(System{}),
		Clients: []plan.Client{{Site: p.client()}}}, plan.ByzantineFloor)
	if err != nil {
		return 0, err
	}
	return time.Duration(n-1)*rows[0].Latency + rows[1].Latency, nil
}

// delays are those of the paper [PBFT-CS §6.1], one way.
func delays(o bench.Options) []time.Duration {
	return bench.Pick(o, []time.Duration{15 * time.Millisecond}, []time.Duration{0, 2500 * time.Microsecond,
		15 * time.Millisecond})
}
