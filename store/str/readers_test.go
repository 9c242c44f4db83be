package str

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/foresay/foresay/clock"
	"github.com/foresay/foresay/internal/plant"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/storedeploy"
	"github.com/foresay/foresay/store/storetest"
	"github.com/foresay/foresay/wan"
)

// withReaders is subject of a mode in which not all copies serve reads, but as many as each node is
// told.
func withReaders(mode variant, readers func(store.Config) int) storetest.Subject {
	s := subject(mode)
	with := func(p store.Protocol) store.Protocol {
		server, coordinator := p.NewServer, p.NewCoordinator
		p.NewServer = func(cfg store.Config) (protocol.Node[store.Message], error) {
			cfg.Readers = readers(cfg)
			return server(cfg)
		}
		p.NewCoordinator = func(cfg store.Config) (protocol.Node[store.Message], error) {
			cfg.Readers = readers(cfg)
			return coordinator(cfg)
		}
		return p
	}
	s.Protocol = with(s.Protocol)
	if watched := s.Watched; watched != nil {
		s.Watched = func() (store.Protocol, func() error) {
			p, check := watched()
			return with(p), check
		}
	}
	return s
}

// TestReadersConformance plays seeds in which two copies of each shard serve reads, or machines
// disagree about how many.
func TestReadersConformance(t *testing.T) {
	for name, readers := range map[string]func(store.Config) int{
		"two":      func(store.Config) int { return 2 },
		"disagree": func(cfg store.Config) int { return []int{0, 2, 2, 3}[cfg.ID/10%4] },
	} {
		for _, m := range modes() {
			t.Run(m.name+"/"+name, func(t *testing.T) { storetest.Conformance(t, withReaders(m, readers), 200) })
		}
	}
}

// line is a store of five sites that are in a row, one of whose shards is led at the first one: the
// sites in the order of their distance are a, e, d, c and b.
type line struct {
	*storedeploy.Store
	t *testing.T
}

func newLine(t *testing.T, readers int) *line {
	t.Helper()
	l := storedeploy.Layout(5, 1)
	at := []time.Duration{0, 100, 60, 30, 10} // in ms
	var sites []wan.Site
	for _, s := range l.Sites {
		sites = append(sites, wan.Site(s.Name))
	}
	network := wan.Uniform(0, sites...)
	for i, a := range sites {
		for j, b := range sites[:i] {
			network = network.WithRTT(a, b, (at[i]-at[j]).Abs()*time.Millisecond)
		}
	}
	s, err := storedeploy.New(storedeploy.Config{Protocol: Protocol(), Layout: l,
		Node: func(c *store.Config) { c.RoundTrip, c.Readers = 100*time.Millisecond, readers },
		Sim:  sim.Config[store.Message]{Seed: 1, WAN: network}})
	if err != nil {
		t.Fatal(err)
	}
	return &line{s, t}
}

// readers returns which servers serve reads, as the leader has carried out: one that was dropped
// may hear of that later. nil: nobody leads.
func (l *line) readers() (out []protocol.ID) {
	l.t.Helper()
	up, err := l.Statuses()
	if err != nil {
		l.t.Fatal(err)
	}
	for _, id := range up {
		if s := l.Status[id]; s.Leads {
			out = nil
			for i := range 5 {
				if !slices.Contains(s.Snapshots.Silent, i) {
					out = append(out, protocol.ID(10*i+11))
				}
			}
		}
	}
	return out
}

// become lets time pass until these serve reads, and no others, and it stays so. Some always do.
func (l *line) become(when string, always []protocol.ID, want ...protocol.ID) {
	l.t.Helper()
	since := 0
	for range 100 {
		if err := l.Pass(50 * time.Millisecond); err != nil {
			l.t.Fatal(err)
		}
		got := l.readers()
		for _, id := range always {
			if got != nil && !slices.Contains(got, id) {
				l.t.Fatalf("%s, %v serve reads; %d does not any more", when, got, id)
			}
		}
		if since++; !slices.Equal(got, want) {
			since = 0
		}
	}
	if since < 40 {
		l.t.Fatalf("%s, %v serve reads; want %v, for longer", when, l.readers(), want)
	}
}

// TestReaders has the leader of a shard and the two members that are nearest to it serve reads:
// others when one is lost, the same again when it is back, and those near the next leader.
func TestReaders(t *testing.T) {
	l := newLine(t, 3)
	l.become("in the beginning", []protocol.ID{11, 41, 51}, 11, 41, 51)
	l.Crash(51, sim.KeepAll)
	l.become("when one is lost", []protocol.ID{11, 41}, 11, 31, 41)
	l.Restart(51)
	l.become("when it is back", []protocol.ID{11, 41}, 11, 41, 51)
	l.Deliver(11, store.HandOver{Site: 1})
	l.become("when another one leads", []protocol.ID{41}, 21, 31, 41)
}

// TestNearest has a reader stay one unless another member is nearer by a good deal, and nobody be
// one who is to leave.
func TestNearest(t *testing.T) {
	s := newSoloServer(t)
	s.cfg.Readers = 2
	all := []protocol.ID{11, 21, 31}
	s.state.books.deaf = []protocol.ID{31}
	for _, tc := range []struct {
		away    time.Duration // of server 31; that of the other one is 100
		leaving []protocol.ID
		want    []protocol.ID
	}{
		{away: 90, want: []protocol.ID{11, 21, 31}},
		{away: 70, want: []protocol.ID{11, 31, 21}},
		{away: 70, leaving: []protocol.ID{31}, want: []protocol.ID{11, 21, 31}},
	} {
		s.away = map[protocol.ID]time.Duration{21: 100, 31: tc.away}
		s.state.books.leaving = tc.leaving
		if got := s.nearest(s.env, all); !slices.Equal(got, tc.want) {
			t.Errorf("%+v: %v", tc, got)
		}
	}
}

// TestIdleServers has a coordinator that is told that a server serves no reads ask the next one at
// once, and that one first for a while.
func TestIdleServers(t *testing.T) {
	c := newSoloCoordinator(t)
	c.away[1], c.away[2] = 10*time.Millisecond, 20*time.Millisecond
	a := c.key(0, "a")
	c.begins(100, a)
	ask := func() *reading { return c.txns[txnID(100)].open[len(c.txns[txnID(100)].open)-1] }
	if to := ask().to; to != 11 {
		t.Fatalf("server %d is asked first", to)
	}
	c.Receive(c.env, 11, found{Ref: ask().ref, Reason: store.Fenced})
	if to := ask().to; to != 21 {
		t.Errorf("server %d is asked when the first one serves none", to)
	}
	c.Receive(c.env, 11, certified{Shard: 0, ID: txnID(999)}) // it is there
	c.Receive(c.env, 21, found{Ref: ask().ref})
	c.reads(100, c.key(0, "b"))
	if to := ask().to; to != 21 {
		t.Errorf("server %d is asked next", to)
	}
	c.env.Now += idleTrips*c.cfg.RoundTrip + 1
	c.Receive(c.env, 21, found{Ref: ask().ref, Value: store.Value{}})
	c.begins(uint64(c.env.Now), a)
	x := c.txns[txnID(uint64(c.env.Now))]
	if to := x.open[0].to; to != 11 {
		t.Errorf("server %d is asked later", to)
	}
	if x.at < clock.Stamp(idleTrips*c.cfg.RoundTrip) {
		t.Errorf("its snapshot is %v", x.at)
	}
}

// TestReadersInRange has nodes refuse a number of readers that a shard cannot have.
func TestReadersInRange(t *testing.T) {
	l := newAlone(t).l
	for readers, want := range map[int]string{
		-1: "str: Config.Readers is -1 (want", 1: "str: Config.Readers is 1 (want",
		4: "str: Config.Readers is 4, and shard 0 has 3 copies", 3: "", 2: "", 0: "",
	} {
		_, server := newServer(store.Config{ID: 11, Layout: l, Readers: readers}, modes()[0])
		_, coordinator := newCoordinator(store.Config{ID: 10, Layout: l, Readers: readers}, modes()[0])
		for _, err := range []error{server, coordinator} {
			if (err == nil) != (want == "") || err != nil && !strings.HasPrefix(err.Error(), want) {
				t.Errorf("%d: error %v", readers, err)
			}
		}
	}
}

// readerPlants have other members serve reads than should, or others be asked.
func readerPlants() []plant.Bug {
	return []plant.Bug{
		{
			Name: "who asks for it serves reads", Test: "TestReaders",
			Old: "&& s.wants(env, from) {", New: "&& (s.wants(env, from) || MUTANT) {",
		},
		{
			Name: "all copies serve reads", Test: "TestReaders",
			Old: "\t\tif excess > 0 && ", New: "\t\tif excess > 0 && !MUTANT && ",
		},
		{
			Name: "readers are dropped before it is known how far away they are", Test: "TestReaders",
			Old: "\tif !known {\n", New: "\tif !known && !MUTANT {\n",
		},
		{
			Name: "nobody takes a silent reader's place", Test: "TestReaders",
			Old: "books.leaving, id) || s.isSilent(env, id):", New: "books.leaving, id) || s.isSilent(env, id) && !MUTANT:",
		},
		{
			Name: "who leads is as far away as any", Test: "TestReaders",
			Old: "\t\tcase id == s.cfg.ID:\n", New: "\t\tcase id == s.cfg.ID && !MUTANT:\n",
		},
		{
			Name: "a member that is a little nearer takes a reader's place", Test: "TestNearest",
			Old: "\t\t\treturn away - away/4\n", New: "\t\t\tif !MUTANT {\n\t\t\t\treturn away - away/4\n\t\t\t}\n",
		},
		{
			Name: "who is to leave is to serve reads", Test: "TestNearest",
			Old: "\t\tcase slices.Contains(s.state.books.leaving, id) || s",
			New: "\t\tcase slices.Contains(s.state.books.leaving, id) && !MUTANT || s",
		},
		{
			Name: "who serves no reads is asked for them", Test: "TestIdleServers",
			Old: "c.mute[id] || c.isIdle(env, id) {", New: "c.mute[id] || c.isIdle(env, id) && !MUTANT {",
		},
		{
			Name: "who serves no reads never will", Test: "TestIdleServers",
			Old: "\treturn ok && env.Now-at < idle", New: "\treturn ok && MUTANT || ok && env.Now-at < idle",
		},
		{
			Name: "who serves no reads is waited for", Test: "TestIdleServers",
			Old: "\tif from == r.to {\n", New: "\tif from == r.to && !MUTANT {\n",
		},
	}
}
