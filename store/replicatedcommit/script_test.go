package replicatedcommit

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/storetest"
	"github.com/foresay/foresay/wan"
)

// script is a world without random clients. A call of do is one transaction's, or a read's, up to
// its answer.
type script struct {
	*world
	t       *testing.T
	answers map[protocol.ID][]message
	ref     uint64
}

func newScript(t *testing.T, configure func(*store.Config)) *script {
	t.Helper()
	return newScriptOf(t, subject(0), storetest.Scenario{Configure: configure})
}

func newScriptOf(t *testing.T, of storetest.Subject, sc storetest.Scenario) *script {
	t.Helper()
	s := &script{t: t, answers: map[protocol.ID][]message{}}
	sc.Seed, sc.Keys, sc.App = 1, 1, s.hear
	w, err := newWorldOf(of, sc)
	if err != nil {
		t.Fatal(err)
	}
	s.world = w
	for i, site := range w.Layout.Sites {
		w.Add(protocol.ID(200+i), wan.Site(site.Name))
	}
	s.run(time.Second) // until all are admitted
	return s
}

func (s *script) hear(from protocol.ID, msg message) { s.answers[from] = append(s.answers[from], msg) }

func (s *script) run(d time.Duration) {
	s.t.Helper()
	if err := s.Sim.Run(d); err != nil {
		s.t.Fatal(err)
	}
}

// submit has a client commit writes of a value to keys, and returns what Done will have as Ref.
func (s *script) submit(client protocol.ID, value string, keys ...store.Key) uint64 {
	return s.submitHeld(client, false, value, keys...)
}

// submitHeld is submit; the client's site may hold its vote back.
func (s *script) submitHeld(client protocol.ID, hold bool, value string, keys ...store.Key) uint64 {
	var b store.Buffer
	for _, k := range keys {
		b.Put(k, []byte(value))
	}
	reads, writes := b.Accesses()
	s.ref++
	s.Sim.Deliver(client, store.Submit{Ref: s.ref, Reads: reads, Writes: writes, Hold: hold})
	return s.ref
}

// done waits for an outcome.
func (s *script) done(client protocol.ID, ref uint64) (store.Done, time.Duration) {
	s.t.Helper()
	begun := s.Sim.Now()
	var d store.Done
	err := s.Sim.RunUntil(time.Minute, func() bool {
		for _, m := range s.answers[client] {
			if got, ok := m.(store.Done); ok && got.Ref == ref {
				d = got
				return true
			}
		}
		return false
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return d, s.Sim.Now() - begun
}

// read waits for what a majority has under a key.
func (s *script) read(client protocol.ID, key store.Key) (store.Got, time.Duration) {
	s.t.Helper()
	s.ref++
	ref, begun := s.ref, s.Sim.Now()
	s.Sim.Deliver(client, store.Get{Ref: ref, Key: key})
	var g store.Got
	err := s.Sim.RunUntil(time.Minute, func() bool {
		i := slices.IndexFunc(s.answers[client], func(m message) bool {
			got, ok := m.(store.Got)
			return ok && got.Ref == ref
		})
		if i >= 0 {
			g = s.answers[client][i].(store.Got)
		}
		return i >= 0
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return g, s.Sim.Now() - begun
}

func (s *script) crashSite(i int) {
	for _, id := range s.SiteNodes(i) {
		s.Sim.Crash(id, sim.KeepAll)
	}
}

func (s *script) restartSite(i int) {
	for _, id := range s.SiteNodes(i) {
		s.Sim.Restart(id)
	}
}

// settle waits until nothing is left to do anywhere, and looks at the sites.
func (s *script) settle() {
	s.t.Helper()
	if err := s.Sim.RunUntil(3*time.Minute, s.Quiet); err != nil {
		s.t.Fatalf("%s\n%v", s.Unquiet(), err)
	}
	if err := s.EqualSites(); err != nil || s.Err != nil {
		s.t.Fatal(err, s.Err)
	}
}

func want(t *testing.T, d store.Done, v store.Verdict) {
	t.Helper()
	if d.Outcome.Verdict != v {
		t.Fatalf("%v: got %+v, want %v", d.Txn.ID, d.Outcome, v)
	}
}

// TestBlockedUntilTheSiteReturns: two transactions, each with a yes and a no, and a third site that
// is gone. Both block, with a typed outcome; other keys do not. When the site is back both are
// decided: it votes for one of them at most [R3].
func TestBlockedUntilTheSiteReturns(t *testing.T) {
	s := newScript(t, nil)
	s.crashSite(2)
	a, b := s.submit(200, "a", "k"), s.submit(201, "b", "k")
	doneA, _ := s.done(200, a)
	doneB, _ := s.done(201, b)
	for _, d := range []store.Done{doneA, doneB} {
		want(t, d, store.Blocked)
		if !slices.Equal(d.Outcome.Sites, []string{"c"}) {
			t.Errorf("waits for the sites %q, not c", d.Outcome.Sites)
		}
	}
	free, _ := s.done(200, s.submit(200, "free", "other"))
	want(t, free, store.Committed)
	if g, took := s.read(200, "k"); !g.OK || !g.Pending || took > 3*roundTrip {
		t.Errorf("a read of a blocked key gave %+v after %v", g, took)
	}
	s.restartSite(2)
	committed := 0
	for i, d := range []store.Done{doneA, doneB} {
		s.ref++
		client := protocol.ID(200 + i)
		s.Sim.Deliver(client, store.Query{Ref: s.ref, Txn: d.Txn})
		switch d, _ = s.done(client, s.ref); d.Outcome.Verdict {
		case store.Committed:
			committed++
		case store.Aborted:
		default:
			t.Errorf("%v is %+v", d.Txn.ID, d.Outcome)
		}
	}
	s.settle()
	if g, _ := s.read(200, "k"); committed > 1 || g.Value.Present != (committed == 1) {
		t.Errorf("%d committed, and k is %+v", committed, g)
	}
}

// TestFencedSite: the site does not come back. With all others stopped it is fenced, and what waits
// for it is aborted; an old process of the site that turns up is not listened to.
func TestFencedSite(t *testing.T) {
	s := newScript(t, nil)
	d, _ := s.done(202, s.submit(202, "first", "k", "l"))
	want(t, d, store.Committed)
	s.crashSite(2)
	a, b := s.submit(200, "a", "k"), s.submit(201, "b", "k")
	doneA, _ := s.done(200, a)
	doneB, _ := s.done(201, b)
	want(t, doneA, store.Blocked)
	want(t, doneB, store.Blocked)

	s.Sim.Crash(200, sim.KeepNone)
	s.Sim.Crash(201, sim.KeepNone)
	s.restartSite(2) // with the old layout
	for _, id := range s.SiteNodes(2) {
		s.Sim.Pause(id, time.Hour, true)
	}
	s.crashSite(0)
	s.crashSite(1)
	s.Layout.Sites = slices.Clone(s.Layout.Sites)
	s.Layout.Sites[2].Fenced = true
	s.restartSite(0)
	s.restartSite(1)
	s.Sim.Restart(200)
	s.Sim.Restart(201)
	s.run(time.Second)
	for _, id := range s.SiteNodes(2) {
		s.Sim.Resume(id)
	}
	for i, d := range []store.Done{doneA, doneB} {
		s.ref++
		client := protocol.ID(200 + i)
		s.Sim.Deliver(client, store.Query{Ref: s.ref, Txn: d.Txn})
		d, _ = s.done(client, s.ref)
		want(t, d, store.Aborted)
	}
	d, _ = s.done(200, s.submit(200, "later", "k"))
	want(t, d, store.Committed)
	s.settle()
	if g, _ := s.read(201, "k"); string(g.Value.Bytes) != "later" {
		t.Errorf("k is %+v", g)
	}
	if _, err := newServer(store.Config{ID: 31, Layout: s.Layout}); err == nil {
		t.Error("a server of a fenced site starts")
	}
}

// TestSilentSiteDecides is the same, but the third site has voted for one of the two and only
// cannot say so: that one committed.
func TestSilentSiteDecides(t *testing.T) {
	s := newScript(t, nil)
	for _, from := range s.SiteNodes(2) {
		for _, to := range append(s.Nodes(), 200, 201) {
			if !slices.Contains(s.SiteNodes(2), to) {
				s.Sim.Cut(from, to)
			}
		}
	}
	a := s.submit(200, "a", "k")
	s.run(time.Millisecond) // site c hears of it first
	b := s.submit(201, "b", "k")
	doneA, _ := s.done(200, a)
	doneB, _ := s.done(201, b)
	want(t, doneA, store.Blocked)
	want(t, doneB, store.Blocked)
	s.Sim.Heal()
	s.ref++
	s.Sim.Deliver(200, store.Query{Ref: s.ref, Txn: doneA.Txn})
	doneA, _ = s.done(200, s.ref)
	want(t, doneA, store.Committed)
	s.ref++
	s.Sim.Deliver(201, store.Query{Ref: s.ref, Txn: doneB.Txn})
	doneB, _ = s.done(201, s.ref)
	want(t, doneB, store.Aborted)
	if g, _ := s.read(201, "k"); string(g.Value.Bytes) != "a" || g.Value.Version != doneA.Txn.ID {
		t.Errorf("k is %+v", g)
	}
	s.settle()
}

// TestLostAnswer: the client hears nothing of its commit, and learns of it later by asking.
func TestLostAnswer(t *testing.T) {
	s := newScript(t, func(c *store.Config) { c.Retain = 20 * time.Second })
	for _, id := range s.Nodes() {
		s.Sim.Cut(id, 200)
	}
	d, _ := s.done(200, s.submit(200, "a", "k", "l"))
	want(t, d, store.Unknown)
	s.Sim.Heal()
	s.ref++
	s.Sim.Deliver(200, store.Query{Ref: s.ref, Txn: d.Txn})
	again, _ := s.done(200, s.ref)
	want(t, again, store.Committed)
	s.settle()

	// Everybody has forgotten it now. That is no abort.
	s.ref++
	s.Sim.Deliver(200, store.Query{Ref: s.ref, Txn: d.Txn})
	again, _ = s.done(200, s.ref)
	want(t, again, store.Unknown)
	s.settle()
}

// TestClientIsGone: a transaction that reached one site only is decided without its client, by the
// merits that it has at the others, and its locks go.
func TestClientIsGone(t *testing.T) {
	s := newScript(t, nil)
	s.Sim.Cut(200, 20)
	s.Sim.Cut(200, 30)
	s.submit(200, "a", "k", "l")
	s.run(5 * time.Millisecond)
	s.Sim.Crash(200, sim.KeepNone)
	s.run(20 * time.Millisecond)
	if s.Quiet() {
		t.Fatal("no site voted")
	}
	s.settle()
	if len(s.Versions["k"]) != 1 || len(s.Versions["l"]) != 1 {
		t.Errorf("it was applied as %v", s.Versions)
	}
}

// TestLostDiskIsRefused: a server with a new disk under an old ID does not take part. The others go
// on.
func TestLostDiskIsRefused(t *testing.T) {
	s := newScript(t, nil)
	d, _ := s.done(200, s.submit(200, "a", "k", "l"))
	want(t, d, store.Committed)
	s.Sim.LoseDisk(11)
	s.Sim.Restart(11)
	s.run(time.Second)
	if len(s.answers[11]) != 1 || !strings.Contains(s.answers[11][0].(store.Refused).Reason,
		"knows another disk of server 11") {
		t.Errorf("the server said %v", s.answers[11])
	}
	d, _ = s.done(200, s.submit(200, "b", "k", "l"))
	want(t, d, store.Committed)
	if g, _ := s.read(201, "k"); string(g.Value.Bytes) != "b" {
		t.Errorf("k is %+v", g)
	}
}

// TestLostDiskMustBeRefused: a site's yes, which only the client heard, made a commit. With an
// empty disk that may take part it becomes a no, and what was acknowledged is lost; as it may not,
// the transaction waits instead.
func TestLostDiskMustBeRefused(t *testing.T) {
	s := newScript(t, nil)
	for _, from := range s.SiteNodes(2) {
		for _, to := range append(s.SiteNodes(0), s.SiteNodes(1)...) {
			s.Sim.Cut(from, to)
		}
	}
	b := s.blindYes()
	for _, id := range s.SiteNodes(2) {
		s.Sim.LoseDisk(id)
		s.Sim.Restart(id)
	}
	s.yesIsMissed(b)
}

// blindYes commits a transaction by the yes of the last site, which its client alone hears, against
// another one that the site in the middle has voted for, and returns what the end of that is told
// as.
func (s *script) blindYes() (other uint64) {
	s.t.Helper()
	s.Sim.Cut(201, 10)
	s.Sim.Cut(201, 30)
	other = s.submit(201, "b", "k")
	s.run(time.Millisecond)
	d, _ := s.done(200, s.submit(200, "a", "k"))
	want(s.t, d, store.Committed)
	return other
}

// yesIsMissed checks that neither transaction has taken the key, as long as the yes is missing.
func (s *script) yesIsMissed(other uint64) {
	s.t.Helper()
	s.run(time.Second)
	s.Sim.Heal()
	s.done(201, other)
	s.run(20 * time.Second)
	if g, _ := s.read(200, "k"); !g.Pending || g.Value.Present {
		s.t.Errorf("k is %+v", g)
	}
}

// TestBoundOnTransactions: until a site that is gone counts as away, and is owed what it misses,
// the others remember all that it has to learn, up to a bound. Then they take no more.
func TestBoundOnTransactions(t *testing.T) {
	const bound = 5
	s := newScript(t, func(c *store.Config) { c.MaxTxns = bound })
	s.crashSite(2)
	crashed := s.Sim.Now()
	for n := range bound + 3 {
		d, _ := s.done(200, s.submit(200, "a", "k"))
		want(t, d, store.Committed)
		if after := s.Sim.Now() - crashed; (after > leastAway) != (n >= bound) {
			t.Errorf("transaction %d commits %v after the site went", n+1, after)
		}
		s.run(roundTrip)
	}
	s.restartSite(2)
	s.settle()
	d, _ := s.done(200, s.submit(200, "b", "k"))
	want(t, d, store.Committed)
	s.settle()
}
