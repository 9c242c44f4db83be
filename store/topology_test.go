package store

import (
	"fmt"
	"strings"
	"testing"
	"time"

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

// Sites have the shards of the placement only, dealt to their machines, and its first sites lead.
func TestTopologyPlaces(t *testing.T) {
	top := topology(4)
	top.Placement = [][]string{{"b", "a"}, {"c", "a"}, {"a", "b"}, {"c"}}
	l, err := top.Layout()
	if err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprint(top.ShardsOf(0, 0), top.ShardsOf(0, 1), top.ShardsOf(1, 0), top.ShardsOf(1, 1), top.ShardsOf(2, 0),
		top.ShardsOf(2, 1))
	if want := "[0 2] [1] [0] [2] [1] [3]"; got != want {
		t.Errorf("the machines have the shards %s, want %s", got, want)
	}
	var sites, first []string
	for k := range top.Shards {
		sites, first = append(sites, fmt.Sprint(l.SitesOf(k))), append(first, fmt.Sprint(l.FirstOf(k)))
	}
	if got, want := fmt.Sprint(sites, first), "[[0 1] [0 2] [0 1] [2]] [1 2 0 2]"; got != want {
		t.Errorf("shards are at the sites, and led at %s, want %s", got, want)
	}
	shards, _ := l.Places()
	if len(shards) != 7 || l.Whole() {
		t.Errorf("%d servers, want 7; the layout is whole: %t", len(shards), l.Whole())
	}
	if top.MachineOf(0, 3) != -1 || top.MachineOf(2, 3) != 1 {
		t.Errorf("shard 3 is at the machines %d of a and %d of c, want -1 and 1", top.MachineOf(0, 3), top.MachineOf(2, 3))
	}
}

// TestCoordinatingGroups: groups that only coordinate are shards behind the others, without keys.
func TestCoordinatingGroups(t *testing.T) {
	trips := [][]int{{0, 30, 20, 10}, {30, 0, 5, 7}, {20, 5, 0, 5}, {10, 7, 5, 0}}
	trip := func(a, b int) time.Duration { return time.Duration(trips[a][b]) }
	for _, tc := range []struct {
		sites int
		trip  func(a, b int) time.Duration
		want  string
	}{
		{4, nil, "[[0 1 2] [1 2 3] [2 3 0] [3 0 1]]"},
		{4, trip, "[[0 3 2] [1 2 3] [2 3 1] [3 2 1]]"},
		{2, trip, "[[0 1] [1 0]]"},
		{1, nil, "[[0]]"},
	} {
		if got := fmt.Sprint(Coordinating(tc.sites, tc.trip)); got != tc.want {
			t.Errorf("%d sites have the groups %s, want %s", tc.sites, got, tc.want)
		}
	}
	top := topology(4)
	plain, err := top.Layout()
	if err != nil {
		t.Fatal(err)
	}
	top.Coordinating = Names([]string{"a", "b", "c"}, [][]int{{2, 1}, {0, 1, 2}})
	l, err := top.Layout()
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(l.SitesOf(4), l.FirstOf(4), l.SitesOf(5), l.FirstOf(5), l.Keyless); got != "[1 2] 2 [0 1 2] 0 2" {
		t.Errorf("the groups are at the sites, and led at %s", got)
	}
	for i := range 200 {
		if key := Key(fmt.Sprint("key", i)); l.ShardOf(key) != plain.ShardOf(key) {
			t.Errorf("%s is in shard %d, and was in %d", key, l.ShardOf(key), plain.ShardOf(key))
		}
	}
	for k := range 4 {
		if l.FirstOf(k) != plain.FirstOf(k) {
			t.Errorf("shard %d is led first at %d, and was at %d", k, l.FirstOf(k), plain.FirstOf(k))
		}
	}
	if got := fmt.Sprint(top.ShardsOf(0, 0), top.ShardsOf(0, 1)); got != "[0 2 5] [1 3]" {
		t.Errorf("the first site's machines have the shards %s", got)
	}
	if l.Keyless = 6; l.Validate() == nil {
		t.Error("a layout in which no shard has keys is valid")
	}
}

// The ring is that of Carousel's evaluation: a leader at each site, the next sites follow.
func TestRing(t *testing.T) {
	sites := []string{"a", "b", "c", "d", "e"}
	for _, tc := range []struct {
		shards, replicas int
		leaders          []string
		want             string
	}{
		{5, 3, nil, "[[a b c] [b c d] [c d e] [d e a] [e a b]]"},
		{3, 1, nil, "[[a] [b] [c]]"},
		{3, 2, []string{"e", "b"}, "[[e a] [b c] [e a]]"},
		{3, 6, nil, "6 replicas of each shard at different sites (there are 5 sites)"},
		{3, 0, nil, "0 replicas of each shard at different sites (there are 5 sites)"},
		{3, 3, []string{"a", "x"}, `the leader "x" is no site (they are a, b, c, d, e)`},
	} {
		at, err := Ring(sites, tc.shards, tc.replicas, tc.leaders)
		got := fmt.Sprint(at)
		if err != nil {
			got = err.Error()
		}
		if got != tc.want {
			t.Errorf("Ring of %d shards, %d replicas, leaders %q: %s, want %s", tc.shards, tc.replicas, tc.leaders, got, tc.want)
		}
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
		{func(t *Topology) { t.Coordinating = [][]string{{"a", "d"}} }, `shard 3 at "d", which is no site`},
		{func(t *Topology) { t.Coordinating = [][]string{{"a"}, {}} }, "no site for shard 4"},
		{func(t *Topology) { t.Placement = [][]string{{"a"}} }, "a placement of 1 shards (there are 3)"},
		{func(t *Topology) { t.Placement = [][]string{{"a"}, {}, {"b"}} }, "no site for shard 1"},
		{func(t *Topology) { t.Placement = [][]string{{"a"}, {"d"}, {"b"}} }, `shard 1 at "d", which is no site`},
		{func(t *Topology) { t.Placement = [][]string{{"a"}, {"b"}, {"c", "a", "c"}} }, "two copies of shard 2 at site c"},
		{func(t *Topology) {
			t.Placement = [][]string{{"a"}, {"a", "b"}, {"c"}}
			t.Sites[1].Machines[0].Shards, t.Sites[1].Machines[1].Shards = []int{1}, []int{2}
		}, `machine "b1": its site b has no copy of shard 2`},
		{func(t *Topology) {
			t.Placement = [][]string{{"a"}, {"b", "a"}, {"c"}}
			t.Sites[0].Fenced = true
		}, "no site that takes part has shard 0"},
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
