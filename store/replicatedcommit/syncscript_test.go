package replicatedcommit

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/storetest"
)

// cut cuts all directions from some nodes to others.
func (s *script) cut(from, to []protocol.ID) {
	for _, a := range from {
		for _, b := range to {
			if a != b {
				s.Sim.Cut(a, b)
			}
		}
	}
}

var scriptClients = []protocol.ID{200, 201, 202}

// newEpoch stops all nodes, and starts them with site c replaced, or fenced.
func (s *script) newEpoch(fence bool) {
	s.t.Helper()
	for _, id := range scriptClients {
		s.Sim.Crash(id, sim.KeepNone)
	}
	if err := s.replace(change{[]int{2}, fence}); err != nil {
		s.t.Fatal(err)
	}
}

// TestCopiesOfEnoughSites: what the lost site and one other committed is known to that one only.
// Whoever copies the third would not have it.
func TestCopiesOfEnoughSites(t *testing.T) {
	s := newScript(t, nil)
	a, b := s.SiteNodes(0), s.SiteNodes(1)
	s.cut(append(slices.Clone(a), 200), b)
	s.cut(s.SiteNodes(2), b)
	d, _ := s.done(200, s.submit(200, "a", "k"))
	want(t, d, store.Committed)
	s.run(roundTrip)

	s.newEpoch(false)
	s.run(roundTrip * 3 / 2) // until the new site is admitted
	s.cut(a, append(append(slices.Clone(b), s.SiteNodes(2)...), 201))
	s.cut(b, a)
	s.run(2 * time.Second)
	if g, _ := s.read(201, "k"); g.OK || g.Value.Present {
		t.Errorf("the others say %+v", g)
	}
	s.Sim.Heal()
	s.settle()
	if g, _ := s.read(201, "k"); string(g.Value.Bytes) != "a" {
		t.Errorf("k is %+v", g)
	}
}

// TestCopiesOfWhatIsDecided: the lost site and a committed, which only b has heard, as b lacks the
// content, which a has. Who copies both before a hears of it has it from neither.
func TestCopiesOfWhatIsDecided(t *testing.T) {
	s := newScript(t, nil)
	a, b := s.Layout.Sites[0], s.Layout.Sites[1]
	s.Sim.Cut(200, 20)
	s.Sim.Cut(30, 10)
	s.cut(a.Shards, b.Shards)
	s.cut(s.SiteNodes(2), b.Shards)
	d, _ := s.done(200, s.submit(200, "a", "k"))
	want(t, d, store.Committed)
	s.run(roundTrip / 2)

	s.newEpoch(false)
	s.cut([]protocol.ID{10}, append(s.SiteNodes(1), s.SiteNodes(2)...))
	n := s.Layout.Sites[2]
	others := append(s.SiteNodes(1), s.SiteNodes(2)...)
	s.cut(a.Coordinators, others)
	s.cut(others, a.Coordinators)
	s.cut(append(slices.Clone(b.Coordinators), n.Coordinators...), a.Shards)
	s.cut(b.Coordinators, n.Shards)
	s.cut(a.Shards, append(slices.Clone(b.Shards), 201))
	s.run(2 * time.Second)
	if g, _ := s.read(201, "k"); g.OK || g.Value.Present {
		t.Errorf("the others say %+v", g)
	}
	s.Sim.Heal()
	s.settle()
	if g, _ := s.read(201, "k"); string(g.Value.Bytes) != "a" {
		t.Errorf("k is %+v", g)
	}
}

// TestNewcomersRemember: a and the lost site refused a transaction, as another had its key
// reserved, and b never heard of it. Its client asks again, where a cannot be reached: b would vote
// for it by now, and so would a newcomer that does not know that it was aborted.
func TestNewcomersRemember(t *testing.T) {
	s := newScript(t, nil)
	s.cut([]protocol.ID{200, 202, 10, 30}, s.SiteNodes(1))
	s.ref++
	s.Sim.Deliver(202, store.Get{Ref: s.ref, Key: "k", Priority: store.Priority{Began: uint64(time.Hour + s.Sim.Now()),
		Client: 1}})
	s.run(roundTrip * 3 / 4)
	d, _ := s.done(200, s.submit(200, "refused", "k"))
	want(t, d, store.Aborted)
	s.run(roundTrip / 2)

	s.newEpoch(false)
	n := s.Layout.Sites[2].Shards[s.Layout.ShardOf("k")]
	if err := s.Sim.RunUntil(2*time.Second, func() bool {
		st := s.Sim.Get(n).(*server)
		return st.admission.admitted && !st.newcomer.syncing
	}); err != nil {
		t.Fatal(err)
	}
	others := append(append(s.SiteNodes(1), s.SiteNodes(2)...), 201)
	s.cut(s.SiteNodes(0), others)
	s.cut(others, s.SiteNodes(0))
	s.ref++
	s.Sim.Deliver(201, store.Query{Ref: s.ref, Txn: d.Txn})
	again, _ := s.done(201, s.ref)
	if got := again.Outcome.Verdict; got != store.Aborted {
		t.Errorf("it is %v", again.Outcome)
	}
}

// TestDecisionsThatStandOnLostVotes: site a has decided by the lost site's yes, and b has refused.
// What b hears first must not be that the lost vote counts as a no.
func TestDecisionsThatStandOnLostVotes(t *testing.T) {
	for _, fence := range []bool{true, false} {
		s := newScript(t, nil)
		s.Sim.Cut(201, 10)
		s.Sim.Cut(201, 30)
		s.submit(201, "b", "k") // which b alone hears of, so that it refuses the other one
		s.run(time.Millisecond)
		s.Sim.Cut(10, 20)
		s.Sim.Cut(30, 20)
		d, _ := s.done(200, s.submit(200, "a", "k"))
		want(t, d, store.Committed)
		s.run(roundTrip / 2)

		s.newEpoch(fence)
		s.cut(s.SiteNodes(0), s.SiteNodes(1))
		s.run(roundTrip * 3 / 2) // until a new site is admitted
		s.cut(s.SiteNodes(0), s.SiteNodes(2))
		err := s.Sim.Run(5 * time.Second)
		if err == nil {
			s.Sim.Heal()
			err = s.Sim.RunUntil(time.Minute, s.Quiet)
		}
		if err == nil {
			err = s.EqualSites()
		}
		if err != nil {
			t.Errorf("fenced %v: %v", fence, err)
		}
		if g, _ := s.read(201, "k"); string(g.Value.Bytes) != "a" {
			t.Errorf("fenced %v: k is %+v", fence, g)
		}
	}
}

// TestForgottenWhileANewcomerCopies: a server is told again of a transaction that everybody has
// carried out and forgotten. It wants the content, which a newcomer cannot speak of before it has
// copied this server, which has to be done with the transaction first.
func TestForgottenWhileANewcomerCopies(t *testing.T) {
	for _, isNew := range []bool{false, true} {
		cfg := store.Config{ID: 21, Layout: layout(3, 2), Epoch: 1}
		if isNew {
			cfg.Layout.Sites[2].Since = 1
		}
		n, err := newServer(cfg)
		if err != nil {
			t.Fatal(err)
		}
		n.admission.admitted = true
		env := protocol.NewEnv[message](nil, 1, rand.New(rand.NewPCG(1, 1)))
		id := store.TxnID{Time: 5, Client: 1}
		for _, step := range []func(){
			func() { n.Start(env, nil) },
			func() { n.Receive(env, 20, decide{ID: id, Shards: []uint32{0}, Commit: true}) },
			func() { n.Receive(env, 11, content{ID: id, Old: true}) },
		} {
			env.Begin(time.Hour)
			step()
		}
		if got := n.txns[id].settled(); got != isNew {
			t.Errorf("with a newcomer %v: settled %v", isNew, got)
		}
	}
}

// TestCopyInPages: a newcomer that crashes goes on where it was, and copies deletions too.
// Meanwhile the store goes on.
func TestCopyInPages(t *testing.T) {
	s := newScript(t, nil)
	const keys, size = 6000, 1000
	var all []store.Key
	for i := range keys {
		all = append(all, store.Key(fmt.Sprintf("%06d", i)))
	}
	for part := range slices.Chunk(all, 1000) {
		d, _ := s.done(200, s.submit(200, strings.Repeat("x", size), part...))
		want(t, d, store.Committed)
	}
	var b store.Buffer
	b.Delete(all[7])
	_, writes := b.Accesses()
	s.ref++
	s.Sim.Deliver(200, store.Submit{Ref: s.ref, Writes: writes})
	d, _ := s.done(200, s.ref)
	want(t, d, store.Committed)
	s.settle()

	s.newEpoch(false)
	server := s.Layout.Sites[2].Shards[0]
	pages := 0
	for s.status(server).Syncing {
		s.run(3 * roundTrip)
		s.Sim.Crash(server, sim.KeepAll)
		s.Sim.Restart(server)
		s.run(roundTrip)
		if pages++; pages == 2 {
			d, _ := s.done(200, s.submit(200, "y", all[:100]...))
			want(t, d, store.Committed)
		}
		if pages > 50 {
			t.Fatal("it does not get on")
		}
	}
	if pages < keys*size/2/maxPageBytes/3 {
		t.Errorf("it took %d pages", pages)
	}
	s.settle()
	if st := s.status(server); st.Syncing || !st.Admitted || st.Epoch != 1 {
		t.Errorf("in the end: %+v", st)
	}
}

// TestNewcomersAskLittle: a newcomer does not ask about transactions that it has copied and that
// are known to be carried out everywhere, of which there are as many as others remember.
func TestNewcomersAskLittle(t *testing.T) {
	s := newScript(t, func(c *store.Config) { c.Retain = time.Hour })
	const txns = 2000
	for i := range txns {
		s.submit(200+protocol.ID(i%2), "v", store.Key(fmt.Sprint("k", i)))
		s.run(5 * time.Millisecond)
	}
	s.run(3 * time.Second)
	s.newEpoch(false)
	server := s.Layout.Sites[2].Shards[0]
	before, began := s.Sim.Steps(), s.Sim.Now()
	for s.status(server).Syncing {
		if s.run(roundTrip); s.Sim.Now()-began > time.Minute {
			t.Fatal("it does not get on")
		}
	}
	s.run(5 * time.Second)
	// What nodes do when nothing happens is a few steps a round trip.
	idle := 20 * uint64((s.Sim.Now()-began)/roundTrip)
	if steps := s.Sim.Steps() - before; steps > idle+txns/2 {
		t.Errorf("with %d transactions to copy there were %d steps", txns, steps)
	}
	if st := s.status(server); st.Txns < txns/len(s.Layout.Sites[2].Shards)/2 {
		t.Errorf("the newcomer remembers %d transactions", st.Txns)
	}
}

// TestNewcomerIsNotOutrun: a newcomer copies the transactions of earlier epochs, however fast
// others are made meanwhile.
func TestNewcomerIsNotOutrun(t *testing.T) {
	const page = 128
	s := newScriptOf(t, subject(page), storetest.Scenario{
		CheckEvery: 1000, // which takes longer, the more transactions there are
		Configure:  func(c *store.Config) { c.Retain = time.Hour },
	})
	var keys []store.Key // of the newcomer's shard
	for i := 0; len(keys) < 250; i++ {
		if key := store.Key(fmt.Sprint("k", i)); s.Layout.ShardOf(key) == 0 {
			keys = append(keys, key)
		}
	}
	made := 0
	load := func() {
		const perMillisecond = 3 // more than 2500 a second, which are copied from each of two sources
		for range perMillisecond {
			s.submit(200+protocol.ID(made%2), "v", keys[made%len(keys)])
			made++
		}
		s.run(time.Millisecond)
	}
	for range 150 {
		load()
	}
	s.run(time.Second)
	s.newEpoch(false)
	server := s.Layout.Sites[2].Shards[0]
	began, before := s.Sim.Now(), made
	for s.status(server).Syncing {
		for range 50 {
			load()
		}
		if s.Sim.Now()-began > 2*time.Second {
			t.Fatalf("%d transactions were made before, %d since, and it copies still", before, made-before)
		}
	}
}

// TestLostDiskOfANewcomer: what it refused is forgotten with its disk, so it is refused as others
// are.
func TestLostDiskOfANewcomer(t *testing.T) {
	s := newScript(t, nil)
	d, _ := s.done(200, s.submit(200, "a", "k", "l"))
	want(t, d, store.Committed)
	s.newEpoch(false)
	server := s.Layout.Sites[2].Shards[0]
	s.run(roundTrip * 3 / 2)
	if st := s.status(server); !st.Syncing || !st.Admitted || st.Needed != 2 || st.Copied != 0 {
		t.Fatalf("a newcomer: %+v", st)
	}
	s.Sim.LoseDisk(server)
	s.Sim.Restart(server)
	s.run(time.Second)
	if st := s.status(server); st.Admitted || !strings.Contains(st.Refused, "knows another disk") {
		t.Errorf("with another disk: %+v", st)
	}
}

// TestEpochWhileANewcomerCopies: what it still has to copy is on its disk, whatever the layout says
// of it by then.
func TestEpochWhileANewcomerCopies(t *testing.T) {
	s := newScript(t, nil)
	d, _ := s.done(200, s.submit(200, "a", "k", "l"))
	want(t, d, store.Committed)
	s.newEpoch(false)
	server := s.Layout.Sites[2].Shards[0]
	s.run(roundTrip * 3 / 2)
	for _, id := range scriptClients {
		s.Sim.Crash(id, sim.KeepNone)
	}
	s.Layout.Sites[2].Since = 0
	if err := s.replace(change{}); err != nil {
		t.Fatal(err)
	}
	if st := s.status(server); !st.Syncing || st.Epoch != 2 {
		t.Errorf("in the next epoch: %+v", st)
	}
	s.settle()
	if st := s.status(server); st.Syncing {
		t.Errorf("in the end: %+v", st)
	}
	s.cut(s.SiteNodes(0), []protocol.ID{201})
	if g, _ := s.read(201, "k"); string(g.Value.Bytes) != "a" {
		t.Errorf("k is %+v", g)
	}
}

// TestEpochs: a server does not start with an epoch that is over, and does with the right one.
func TestEpochs(t *testing.T) {
	s := newScript(t, nil)
	s.Epoch = 3
	s.Sim.Crash(11, sim.KeepAll)
	s.Sim.Restart(11)
	s.run(time.Second)
	s.Epoch = 2
	s.Sim.Crash(11, sim.KeepAll)
	s.Sim.Restart(11)
	s.run(time.Second)
	if st := s.status(11); !strings.Contains(st.Refused, "started with epoch 2, and its disk is of epoch 3") {
		t.Errorf("with an old epoch: %+v", st)
	}
	s.Epoch = 3
	s.Sim.Crash(11, sim.KeepAll)
	s.Sim.Restart(11)
	s.run(time.Second)
	if st := s.status(11); st.Refused != "" || !st.Admitted || st.Epoch != 3 {
		t.Errorf("with the right one: %+v", st)
	}
}
