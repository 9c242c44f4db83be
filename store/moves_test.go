package store

import (
	"fmt"
	"strings"
	"testing"

	"github.com/foresay/foresay/protocol"
)

// moving has shards 0 and 1 of a topology of three sites with two machines each at two sites.
func moving(t *testing.T) Topology {
	t.Helper()
	top := topology(3)
	top.Placement = [][]string{{"a", "b"}, {"b", "c"}, {"a", "b"}}
	if err := top.Validate(); err != nil {
		t.Fatal(err)
	}
	return top
}

// step returns the topology that a step of a move leads to, if that is valid.
func step(t *testing.T, top Topology, err error) Topology {
	t.Helper()
	if err == nil {
		err = top.Validate()
	}
	if err != nil {
		t.Fatal(err)
	}
	return top
}

// place describes where a shard is: its servers by site, who waits, who leads first, who founded
// it.
func place(t *testing.T, top Topology, shard int) string {
	t.Helper()
	l, err := top.Layout()
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, i := range l.SitesOf(shard) {
		out = append(out, fmt.Sprintf("%s:%d", l.Sites[i].Name, l.Sites[i].Shards[shard]))
	}
	holders := ""
	for _, i := range l.HoldersOf(shard) {
		holders += l.Sites[i].Name
	}
	var founders []protocol.ID
	if l.Founders != nil {
		founders = l.Founders[shard]
	}
	return fmt.Sprintf("%s held by %s, first %s, founders %v", strings.Join(out, " "), holders,
		l.Sites[l.FirstOf(shard)].Name, founders)
}

func TestMoves(t *testing.T) {
	top := moving(t)
	a, b, c := top.Sites[0], top.Sites[1], top.Sites[2]
	id := func(s TopologySite, number int) protocol.ID { return s.ShardID(number) }
	check := func(what, want string) {
		t.Helper()
		if got := place(t, top, 0); got != want {
			t.Errorf("%s: shard 0 is at %s, want %s", what, got, want)
		}
	}
	check("before", fmt.Sprintf("a:%d b:%d held by ab, first a, founders []", id(a, 0), id(b, 0)))
	founders := fmt.Sprintf("founders [%d %d]", id(a, 0), id(b, 0))

	next, err := top.Moving(0, "a", "c")
	top = step(t, next, err)
	check("under way", fmt.Sprintf("a:%d b:%d c:%d held by ab, first a, %s", id(a, 0), id(b, 0), id(c, 3), founders))
	if m, ok := top.UnderWay(); !ok || m != (Move{Shard: 0, From: "a", To: "c", Server: 3}) {
		t.Errorf("under way is %+v", m)
	}
	if top.Removed("a") != nil || top.Epoch != 2 {
		t.Errorf("in epoch %d site a has lost %v", top.Epoch, top.Removed("a"))
	}

	top = step(t, top.Moved(true), nil)
	check("moved", fmt.Sprintf("b:%d c:%d held by bc, first c, %s", id(b, 0), id(c, 3), founders))
	if got := fmt.Sprint(top.Removed("a"), top.Removed("c"), top.Epoch); got != "[{0 0}] [] 3" {
		t.Errorf("servers of a and of c that are gone, and the epoch: %s", got)
	}

	next, err = top.Moving(0, "c", "a")
	top = step(t, step(t, next, err).Moved(true), nil)
	check("moved to where it was", fmt.Sprintf("a:%d b:%d held by ab, first a, %s", id(a, 3), id(b, 0), founders))

	next, err = top.Moving(0, "b", "c")
	top = step(t, step(t, next, err).TakingBack(), nil)
	check("taken back", fmt.Sprintf("a:%d b:%d c:%d held by ab, first a, %s", id(a, 3), id(b, 0), id(c, 4), founders))
	top = step(t, top.Moved(false), nil)
	check("was taken back", fmt.Sprintf("a:%d b:%d held by ab, first a, %s", id(a, 3), id(b, 0), founders))
	if got := fmt.Sprint(top.Removed("a"), top.Removed("b"), top.Removed("c")); got != "[{0 0}] [] [{0 3} {0 4}]" {
		t.Errorf("servers that are gone: %s", got)
	}
	if n, ok := top.FreeServer("c"); n != 5 || !ok {
		t.Errorf("the next server of c has the number %d", n)
	}
}

// TestMovesOfGroups: groups that only coordinate move as shards do.
func TestMovesOfGroups(t *testing.T) {
	top := moving(t)
	top.Coordinating = [][]string{{"c", "a"}}
	next, err := top.Moving(3, "a", "b")
	top = step(t, step(t, next, err).Moved(true), nil)
	want := fmt.Sprintf("b:%d c:%d held by bc, first c, founders [%d %d]", top.Sites[1].ShardID(4),
		top.Sites[2].ShardID(3), top.Sites[2].ShardID(3), top.Sites[0].ShardID(3))
	if got := place(t, top, 3); got != want {
		t.Errorf("the group is at %s, want %s", got, want)
	}
}

// TestMovesLeaveServersWhereTheyAre: no server goes from one machine of a site to another, as its
// disk does not go with it.
func TestMovesLeaveServersWhereTheyAre(t *testing.T) {
	for name, lists := range map[string][][]int{"dealt": nil, "listed": {{1, 0}, {2}}} {
		top := moving(t)
		top.Placement = [][]string{{"a", "b"}, {"b", "a"}, {"a", "b"}}
		if lists != nil {
			top.Sites[0].Machines[0].Shards, top.Sites[0].Machines[1].Shards = lists[0], lists[1]
		}
		step(t, top, nil)
		at := func(top Topology) map[protocol.ID]int {
			out := map[protocol.ID]int{}
			for i := range top.Sites {
				for j := range top.Sites[i].Machines {
					for _, k := range top.ShardsOf(i, j) {
						out[top.ServerID(i, k)] = j
					}
				}
			}
			return out
		}
		before := at(top)
		for _, m := range []Move{
			{Shard: 0, From: "a", To: "c"}, {Shard: 1, From: "a", To: "c"}, {Shard: 0, From: "c", To: "a"},
		} {
			next, err := top.Moving(m.Shard, m.From, m.To)
			for range 2 {
				top = step(t, next, err)
				now := at(top)
				for id, j := range now {
					if was, ok := before[id]; ok && was != j {
						t.Errorf("%s: server %d was at machine %d, and is at machine %d", name, id, was, j)
					}
				}
				before, next = now, top
				if _, under := top.UnderWay(); under {
					next = top.Moved(true)
				}
			}
		}
	}
}

func TestMovesThatMakeNoSense(t *testing.T) {
	for _, tc := range []struct {
		change func(*Topology)
		want   string
	}{
		{func(t *Topology) { t.Moves = []Move{{Shard: 3, From: "a", To: "c", Server: 3}} }, "there is no shard 3"},
		{func(t *Topology) { t.Moves = []Move{{From: "a", To: "d", Server: 3}} }, `from "a" to "d": want two sites`},
		{func(t *Topology) { t.Moves = []Move{{From: "a", To: "a", Server: 3}} }, `from "a" to "a": want two sites`},
		{func(t *Topology) { t.Moves = []Move{{From: "a", To: "c", Server: 2}} }, "the server's number is 2 (want 3 to 1023"},
		{func(t *Topology) { t.Moves = []Move{{From: "a", To: "c", Server: 1024}} }, "the server's number is 1024"},
		{func(t *Topology) { t.Moves = []Move{{From: "c", To: "a", Server: 3}} }, "site c has no copy to move"},
		{func(t *Topology) { t.Moves = []Move{{From: "a", To: "b", Server: 3}} }, "or site b has one"},
		{func(t *Topology) {
			t.Moves = []Move{{From: "a", To: "c", Server: 3}, {Shard: 1, From: "b", To: "a", Server: 3}}
		}, "it is not done, and another one follows"},
		{func(t *Topology) {
			t.Moves = []Move{{From: "a", To: "c", Server: 3, Done: true}, {Shard: 2, From: "a", To: "c", Server: 3}}
		}, "the server's number is 3 (want 4"},
		{func(t *Topology) {
			t.Placement, t.Moves = nil, []Move{{From: "a", To: "c", Server: 3}}
		}, "all sites have all shards"},
	} {
		top := moving(t)
		tc.change(&top)
		if err := top.Validate(); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("the error is %v, want one with %q", err, tc.want)
		}
	}
	top := moving(t)
	for range 2000 {
		next, err := top.Moving(0, "a", "c")
		if err != nil {
			want, last := "all 1024 numbers of servers of site c have been used", top.Moves[len(top.Moves)-1].Server
			if err.Error() != want || last != 1023 {
				t.Errorf("after server %d the error is %v, want %s", last, err, want)
			}
			return
		}
		top = next.Moved(false)
	}
	t.Error("there is no end to the numbers")
}
