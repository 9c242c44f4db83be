package service

import (
	"fmt"
	"hash/fnv"
	"math/bits"
	"slices"

	"github.com/foresay/foresay/internal/cli/configfile"
	"github.com/foresay/foresay/transport"
)

// MaxGroups bounds the groups of a cluster.
const MaxGroups = 1024

// A Routing says which group of a cluster has a key. It is the same in the files of all replicas
// and clients, and cannot be changed later. The zero value is one group.
type Routing struct {
	// Groups is how many there are, 0 for one. Without Splits, a hash of the key chooses.
	Groups int `json:"groups,omitempty"`
	// Splits are the keys with which the second group begins, the third, and so on: each group has
	// a range.
	Splits []string `json:"splits,omitempty"`
}

// count returns the number of groups.
func (r Routing) count() int {
	if len(r.Splits) > 0 {
		return len(r.Splits) + 1
	}
	return max(r.Groups, 1)
}

// check returns what is wrong with a routing.
func (r Routing) check() error {
	switch {
	case r.Groups < 0 || r.Groups > MaxGroups:
		return configfile.Fieldf("groups", "%d is not 1 to %d", r.Groups, MaxGroups)
	case len(r.Splits) >= MaxGroups:
		return configfile.Fieldf("splits", "there are %d, which makes more than %d groups", len(r.Splits), MaxGroups)
	case len(r.Splits) > 0 && r.Groups != 0 && r.Groups != len(r.Splits)+1:
		return configfile.Fieldf("groups", "%d is not one more than the %d keys in splits", r.Groups, len(r.Splits))
	}
	for i, s := range r.Splits {
		if s == "" || len(s) > MaxKeyBytes {
			return configfile.Fieldf("splits", "%.40q is no key to split at", s)
		}
		if i > 0 && r.Splits[i-1] >= s {
			return configfile.Fieldf("splits", "%.40q does not come after %.40q", s, r.Splits[i-1])
		}
	}
	return nil
}

// of returns the group of a key, from 0 on.
func (r Routing) of(key string) int {
	if n := len(r.Splits); n > 0 {
		i, found := slices.BinarySearch(r.Splits, key)
		if found {
			i++
		}
		return i
	}
	if r.Groups <= 1 {
		return 0
	}
	h := fnv.New64a()
	h.Write([]byte(key))
	// The high bits of FNV's sums of similar keys are similar: they are mixed before they choose.
	sum := h.Sum64()
	sum = (sum ^ sum>>32) * 0x9e3779b97f4a7c15
	sum = (sum ^ sum>>29) * 0xbf58476d1ce4e5b9
	group, _ := bits.Mul64(sum^sum>>32, uint64(r.Groups))
	return int(group)
}

// span returns the groups that may have keys from from up to, but not including, to, from the first
// to the last; an empty to is no end.
func (r Routing) span(from, to string) (first, last int) {
	if len(r.Splits) == 0 {
		if to == from+"\x00" {
			return r.of(from), r.of(from) // one key
		}
		return 0, r.count() - 1
	}
	first, last = r.of(from), len(r.Splits)
	if to != "" {
		last, _ = slices.BinarySearch(r.Splits, to)
	}
	return first, max(first, last)
}

// String names the routing, for the names of disks and clusters: those of different routings would
// take each other's keys for their own.
func (r Routing) String() string {
	switch {
	case len(r.Splits) > 0:
		h := fnv.New32a()
		fmt.Fprintf(h, "%q", r.Splits)
		return fmt.Sprintf("%d groups by range %08x", r.count(), h.Sum32())
	case r.Groups > 1:
		return fmt.Sprintf("%d groups by hash", r.Groups)
	}
	return "one group"
}

// The groups of the nodes that each host has: those of the service, from serviceGroup on but for
// the one that hands out status.
const (
	serviceGroup transport.Group = 1
	statusGroup  transport.Group = 2
	hostGroup    transport.Group = 1 << 20 // beyond those of the service
)

// nodeGroup returns where the nodes of a group are found.
func nodeGroup(i int) transport.Group {
	if i == 0 {
		return serviceGroup
	}
	return statusGroup + transport.Group(i)
}
