package plan

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/foresay/foresay/wan"
)

// A System is a protocol that the model knows, in one of its modes.
type System string

// The systems.
const (
	// Floor is what no protocol goes below that survives the loss of any site, whether keys are
	// declared, predicted or neither.
	Floor            System = "floor"
	ReplicatedCommit System = "replicatedcommit"
	Layered          System = "layered"
	// CarouselBasic and CarouselFast are the thesis' protocols [Carousel §3.2.1, §3.2.2].
	CarouselBasic System = "carousel-basic"
	CarouselFast  System = "carousel-fast"
	// CarouselDirect is the fast one whose followers tell what they have of their leaders' words, with
	// a group at each client's site that coordinates.
	CarouselDirect System = "carousel-direct"
	TAPIR          System = "tapir" // [TOCS'18]
	// STR reads what is near, and commits when all copies of what it writes have certified it [STR].
	// ClockSIRep is what it is compared with.
	STR        System = "str-internal"
	ClockSIRep System = "str-clocksi-rep"
)

// Systems returns all systems but the floor.
func Systems() []System {
	return []System{ReplicatedCommit, Layered, CarouselBasic, CarouselFast, CarouselDirect, TAPIR, STR, ClockSIRep}
}

func (s System) validate() error {
	if s == Floor || slices.Contains(Systems(), s) {
		return nil
	}
	var names []string
	for _, o := range Systems() {
		names = append(names, string(o))
	}
	return fmt.Errorf("plan: unknown system %q (want %s)", s, strings.Join(names, ", "))
}

// Level is what the system promises of transactions.
func (s System) Level() string {
	switch s {
	case TAPIR:
		return "serializable"
	case STR, ClockSIRep:
		return "snapshot"
	}
	return "strict"
}

// Whole reports whether all sites have all partitions, wherever those of the setting are.
func (s System) Whole() bool { return s == ReplicatedCommit }

// Leads reports whether it matters who leads a partition.
func (s System) Leads() bool {
	return s != ReplicatedCommit && s != TAPIR && s != Floor
}

// A Client is a place from which transactions come.
type Client struct {
	Site wan.Site
	// Weight is how much the client counts in quantiles, such as its share of the transactions. 0 is
	// 1.
	Weight float64
}

// Everywhere returns a client for each site of a network.
func Everywhere(m wan.Matrix) []Client {
	var all []Client
	for _, s := range m.Sites() {
		all = append(all, Client{Site: s})
	}
	return all
}

// A Setting is a network with partitions and clients in it.
type Setting struct {
	WAN wan.Matrix
	// Placement are the sites that have a copy of each partition, by partition; the first of them
	// leads it.
	Placement [][]wan.Site
	Clients   []Client
	Load      Load
	// Readers is how many copies of each partition serve reads, the leader and those that are nearest
	// to it, of STR; 0 is all.
	Readers int
	// Lost is a site that is gone: its copies answer nothing, and the partitions that it led are led
	// by the copy that is named next. Its clients are left out. "" is none.
	Lost wan.Site
}

// Limits of a setting. Those of a store are lower.
const (
	maxPartitions = 4096
	maxCopies     = 15
)

// Validate tells what is wrong with the setting, or nil.
func (s Setting) Validate() error {
	if len(s.Placement) == 0 || len(s.Placement) > maxPartitions {
		return fmt.Errorf("plan: Setting.Placement has %d partitions (want 1 to %d)", len(s.Placement), maxPartitions)
	}
	if len(s.Clients) == 0 {
		return errors.New("plan: Setting.Clients is empty")
	}
	for k, copies := range s.Placement {
		if len(copies) == 0 || len(copies) > maxCopies {
			return fmt.Errorf("plan: partition %d has %d copies (want 1 to %d)", k, len(copies), maxCopies)
		}
		if s.Readers < 0 || s.Readers > len(copies) {
			return fmt.Errorf("plan: Setting.Readers is %d, and partition %d has %d copies", s.Readers, k, len(copies))
		}
		for i, c := range copies {
			if !s.WAN.Has(c) {
				return fmt.Errorf("plan: partition %d: its copy's site %q is not in the network", k, c)
			}
			if slices.Contains(copies[:i], c) {
				return fmt.Errorf("plan: partition %d has two copies at site %q", k, c)
			}
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
	if s.Lost != "" && !s.WAN.Has(s.Lost) {
		return fmt.Errorf("plan: the lost site %q is not in the network", s.Lost)
	}
	for p, l := range s.WAN.Links() {
		if l.Down {
			return fmt.Errorf("plan: the link %v is down", p)
		}
	}
	return s.Load.validate()
}

// weight returns the client's weight.
func (c Client) weight() float64 { return cmp.Or(c.Weight, 1) }
