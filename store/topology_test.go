package store

import (
	"fmt"
	"strings"
	"testing"

	"github.com/foresay/foresay/protocol"
)

// topology has three sites with two machines each.
func topology(shards int) Topology {
	t := Topology{Epoch: 1, Shards: shards}
	for i := range 3 {
		s := TopologySite{Name: string(rune('a' + i)), Number: i + 1}
		for j := range 2 {
			s.Machines = append(s.Machines, Machine{
				Name: fmt.Sprintf("%s%d", s.Name, j), Peers: fmt.Sprintf("%s%d:1", s.Name, j),
				Client: fmt.Sprintf("%s%d:2", s.Name, j),
			})
		}
		t.Sites = append(t.Sites, s)
	}
	return t
}

func TestTopologyDealsShards(t *testing.T) {
	top := topology(5)
	l, err := top.Layout()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[protocol.ID]bool{}
	for i, s := range top.Sites {
		for k := range top.Shards {
			j := top.MachineOf(i, k)
			if j != k%2 {
				t.Errorf("shard %d of site %s is at machine %d, want %d", k, s.Name, j, k%2)
			}
			if l.Sites[i].Shards[k] != s.ShardID(k) {
				t.Errorf("shard %d of site %s is node %d, want %d", k, s.Name, l.Sites[i].Shards[k], s.ShardID(k))
			}
			seen[s.ShardID(k)] = true
		}
		for j := range s.Machines {
			seen[s.CoordinatorID(j)], seen[s.GateID(j)] = true, true
		}
	}
	if want := 3 * (5 + 2*2); len(seen) != want {
		t.Errorf("the nodes have %d IDs, want %d", len(seen), want)
	}
	if _, _, ok := top.Find("b1"); !ok {
		t.Error("machine b1 is not found")
	}
}

// IDs of all sites that there can be are members', and differ.
func TestTopologyIDs(t *testing.T) {
	last := protocol.ID(0)
	for n := 1; n <= MaxSiteNumber; n++ {
		s := TopologySite{Number: n}
		if s.ShardID(0) <= last {
			t.Errorf("site %d begins with %d, within the site before", n, s.ShardID(0))
		}
		last = s.GateID(maxSiteMachines - 1)
	}
	if last >= 1<<16 {
		t.Errorf("the last ID is %d, a client's", last)
	}
}

func TestTopologyErrors(t *testing.T) {
	for _, tc := range []struct {
		change func(*Topology)
		want   string
	}{
		{func(t *Topology) { t.Shards = 0 }, "0 shards"},
		{func(t *Topology) { t.Shards = maxTopoShards + 1 }, "1025 shards"},
		{func(t *Topology) { t.Sites = nil }, "0 sites"},
		{func(t *Topology) { t.Sites[1].Name = "" }, "site 2 of 3 has no name"},
		{func(t *Topology) { t.Sites[1].Name = "a" }, `two sites are called "a"`},
		{func(t *Topology) { t.Sites[1].Number = 0 }, `site "b": its number is 0`},
		{func(t *Topology) { t.Sites[1].Number = 1 }, "the number 1 is another site's"},
		{func(t *Topology) { t.Sites[1].Machines = nil }, `site "b": 0 machines`},
		{func(t *Topology) { t.Sites[1].Machines[0].Name = "a0" }, `machine 1: its name "a0" is empty or used twice`},
		{func(t *Topology) { t.Sites[1].Machines[0].Shards = []int{0, 1} }, "either all of its machines"},
		{func(t *Topology) {
			t.Sites[1].Machines[0].Shards, t.Sites[1].Machines[1].Shards = []int{0, 1}, []int{1, 2}
		}, `machine "b1": shard 1 is at machine "b0"`},
		{func(t *Topology) {
			t.Sites[1].Machines[0].Shards, t.Sites[1].Machines[1].Shards = []int{0}, []int{3}
		}, "there is no shard 3"},
		{func(t *Topology) {
			t.Sites[1].Machines[0].Shards, t.Sites[1].Machines[1].Shards = []int{0}, []int{2}
		}, `site "b": no machine has shard 1`},
		{func(t *Topology) {
			t.Sites[1].Machines[0].Peers = "a1:1"
		}, `machine "b0": its address a1:1 is one of machine "a1" too`},
		{func(t *Topology) {
			t.Sites[1].Machines[0].Client = "a1:2"
		}, `machine "b0": its address a1:2 is one of machine "a1" too`},
		{func(t *Topology) {
			t.Sites[1].Machines[1].Client = "b0:1"
		}, `machine "b1": its address b0:1 is one of machine "b0" too`},
		{func(t *Topology) {
			t.Sites[1].Machines[1].Client = "b1:1"
		}, `machine "b1": its address b1:1 is one of machine "b1" too`},
		{func(t *Topology) { t.Sites[0].Fenced, t.Sites[1].Fenced = true, true }, "1 of 3 sites are not fenced"},
	} {
		top := topology(3)
		tc.change(&top)
		if err := top.Validate(); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("got error %v, want one with %q", err, tc.want)
		}
	}
}

// TestTopologyAddresses: a machine may have the address of one that is lost for good, and tests
// with connections of their own need none.
func TestTopologyAddresses(t *testing.T) {
	for _, change := range []func(*Topology){
		func(t *Topology) { t.Sites[0].Fenced, t.Sites[1].Machines[0].Peers = true, "a0:1" },
		func(t *Topology) { t.Sites[2].Fenced, t.Sites[1].Machines[0].Peers = true, "c0:1" },
		func(t *Topology) {
			for _, s := range t.Sites {
				for j := range s.Machines {
					s.Machines[j].Peers, s.Machines[j].Client = "", ""
				}
			}
		},
	} {
		top := topology(3)
		change(&top)
		if err := top.Validate(); err != nil {
			t.Error(err)
		}
	}
}
