package plan

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/foresay/foresay/wan"
)

// A System is a protocol that the model knows, by the name that internal/catalog has for it.
type System string

// The systems.
const (
	Raft      System = "raft"
	Paxos     System = "multipaxos"
	FastPaxos System = "fastpaxos"
	Mencius   System = "mencius" // which acknowledges a command when its own position is fixed
	EPaxos    System = "epaxos"
	Domino    System = "domino"
	// DominoDirect is Domino whose acceptors answer clients, whose replicas all learn, and whose
	// timestamps are arrivals.
	DominoDirect System = "domino-direct"

	PBFT    System = "pbft"    // with tentative execution and early replies
	Zyzzyva System = "zyzzyva" // if all replicas answer
)

// Systems returns all systems that survive the loss of a minority of their replicas.
func Systems() []System {
	return []System{Raft, Paxos, FastPaxos, Mencius, EPaxos, Domino, DominoDirect}
}

// ByzantineSystems returns all systems of which less than a third of the replicas may do as they
// like.
func ByzantineSystems() []System { return []System{PBFT, Zyzzyva} }

// Byzantine reports whether a system is one of these, or their floor.
func (s System) Byzantine() bool {
	return slices.Contains(ByzantineSystems(), s) || s == ByzantineFloor
}

// Leads reports whether it matters to clients which replica leads, or coordinates: in Fast Paxos
// and Domino that concerns the execution only.
func (s System) Leads() bool {
	switch s {
	case Raft, Paxos, FastPaxos, Domino, PBFT, Zyzzyva:
		return true
	}
	return false
}

func (s System) validate() error {
	if slices.Contains(Systems(), s) || s == Floor || s.Byzantine() {
		return nil
	}
	var names []string
	for _, o := range slices.Concat(Systems(), ByzantineSystems()) {
		names = append(names, string(o))
	}
	return fmt.Errorf("plan: unknown system %q (want %s)", s, strings.Join(names, ", "))
}

// A Client is a place from which commands come.
type Client struct {
	Site wan.Site
	// Weight is how much the client counts in quantiles, such as its share of the commands. 0 is 1.
	Weight float64
}

// weight returns the client's weight.
func (c Client) weight() float64 { return cmp.Or(c.Weight, 1) }

// A Setting is a network with replicas and clients in it.
type Setting struct {
	WAN wan.Matrix
	// Replicas are the sites of the replicas, one each. Two replicas may be at one site.
	Replicas []wan.Site
	Clients  []Client
	// Leader is the site of the replica that leads, or coordinates. "" is the first replica's.
	Leader wan.Site
	// Slack is added to the timestamps of Domino's Fast Paxos.
	Slack time.Duration
	// Busy says that other commands come all the time. Domino's replicas then tell all the time
	// which slots they have passed, otherwise when they hear of a command, and execute sooner. What
	// waiting, collisions and conflicts with other commands take is not in the model all the same.
	Busy bool
}

// From returns the setting of a deployment, with a client at every site.
func From(d wan.Deployment) Setting {
	return Setting{WAN: d.Matrix, Replicas: d.Replicas, Clients: Everywhere(d.Matrix)}
}

// Everywhere returns a client for each site of a network.
func Everywhere(m wan.Matrix) []Client {
	var all []Client
	for _, s := range m.Sites() {
		all = append(all, Client{Site: s})
	}
	return all
}

// maxSlack keeps sums of delays from what a Duration cannot hold. Nobody waits that long.
const maxSlack = 24 * time.Hour

// Validate tells what is wrong with the setting, or nil.
func (s Setting) Validate() error {
	if len(s.Replicas) == 0 {
		return errors.New("plan: Setting.Replicas is empty")
	}
	if len(s.Clients) == 0 {
		return errors.New("plan: Setting.Clients is empty")
	}
	for _, r := range s.Replicas {
		if !s.WAN.Has(r) {
			return fmt.Errorf("plan: the replicas' site %q is not in the network", r)
		}
	}
	for _, c := range s.Clients {
		if !s.WAN.Has(c.Site) {
			return fmt.Errorf("plan: the client's site %q is not in the network", c.Site)
		}
		if !(c.Weight >= 0 && c.Weight <= math.MaxFloat32) {
			return fmt.Errorf("plan: the weight of the client at %s is %v", c.Site, c.Weight)
		}
	}
	switch {
	case s.Leader != "" && !slices.Contains(s.Replicas, s.Leader):
		return fmt.Errorf("plan: the leader's site %q has no replica", s.Leader)
	case s.Slack < 0 || s.Slack > maxSlack:
		return fmt.Errorf("plan: Setting.Slack is %v, not from 0 to %v", s.Slack, maxSlack)
	}
	return s.reachable()
}

// reachable tells which link between two of the sites is down.
func (s Setting) reachable() error {
	sites := slices.Clone(s.Replicas)
	for _, c := range s.Clients {
		sites = append(sites, c.Site)
	}
	for _, from := range sites {
		for _, to := range s.Replicas {
			for _, p := range []wan.Path{{From: from, To: to}, {From: to, To: from}} {
				if l, _ := s.WAN.Link(p); l.Down {
					return fmt.Errorf("plan: the link %v is down", p)
				}
			}
		}
	}
	return nil
}

// leader returns the index of the replica that leads.
func (s Setting) leader() int { return max(0, slices.Index(s.Replicas, s.Leader)) }
