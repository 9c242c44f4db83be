package kit

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/foresay/foresay/internal/plant"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
)

type (
	ownGet    struct{ Get }
	ownSubmit struct{ Submit }
)

// book is a client's books, and what the application is told.
type book struct {
	Calls[*ownGet, *ownSubmit]
	t   *testing.T
	env *protocol.Env[store.Message]
}

func newBook(t *testing.T) *book {
	t.Helper()
	l := store.Layout{}
	for i := range 3 {
		id := protocol.ID(10 * (i + 1))
		l.Sites = append(l.Sites, store.Site{
			Name: fmt.Sprint("site", i), Coordinators: []protocol.ID{id}, Shards: []protocol.ID{id + 1},
		})
	}
	calls, err := NewCalls[*ownGet, *ownSubmit](store.Config{ID: 99, Layout: l, MaxWaiting: 2, RoundTrip: time.Second / 4})
	if err != nil {
		t.Fatal(err)
	}
	b := &book{calls, t, protocol.NewEnv[store.Message](nil, 99, rand.New(rand.NewPCG(1, 1)))}
	b.env.Begin(time.Second)
	b.Begin(b.env)
	return b
}

// told returns what the application was told since the last time.
func (b *book) told() (out []store.Message) {
	b.t.Helper()
	for _, e := range b.env.Out {
		if e.Kind == protocol.KindSend && e.To == protocol.App {
			out = append(out, e.Msg)
		}
	}
	b.env.Begin(b.env.Now)
	if err := b.Check(); err != nil {
		b.t.Error(err)
	}
	return out
}

// dones returns whom the application was told of outcomes, and which.
func (b *book) dones() string {
	b.t.Helper()
	var out []string
	for _, m := range b.told() {
		d, ok := m.(store.Done)
		if !ok {
			b.t.Errorf("the application was told %T", m)
		}
		out = append(out, fmt.Sprintf("%d: %v", d.Ref, d.Outcome.Verdict))
	}
	return strings.Join(out, ", ")
}

// submit has the books take a transaction, which is sent at once.
func (b *book) submit(ref uint64, writes ...store.Write) *ownSubmit {
	b.t.Helper()
	s := new(ownSubmit)
	if !b.AddSubmit(b.env, store.Submit{Ref: ref, Writes: writes}, s) {
		return nil
	}
	s.Tries++
	return s
}

// query has the books take a question, which is sent at once.
func (b *book) query(ref uint64, t store.Txn) *ownSubmit {
	b.t.Helper()
	s := new(ownSubmit)
	if !b.AddQuery(b.env, store.Query{Ref: ref, Txn: t}, s) {
		return nil
	}
	s.Tries++
	return s
}

func (b *book) expect(what, want string) {
	b.t.Helper()
	if got := b.dones(); got != want {
		b.t.Errorf("%s: the application is told %q, want %q", what, got, want)
	}
}

// TestConfigs: the client's ID is nobody else's in the layout.
func TestConfigs(t *testing.T) {
	cfg := newBook(t).cfg
	for id, want := range map[protocol.ID]string{10: "a coordinator", 21: "a shard"} {
		cfg.ID = id
		if _, err := NewCalls[*ownGet, *ownSubmit](cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%d: got %v, want %q", id, err, want)
		}
	}
}

// TestWhoWaits: all who wait for a transaction are told how it ended. One of them may go, and the
// others wait on; it ends when nobody is left.
func TestWhoWaits(t *testing.T) {
	b := newBook(t)
	s := b.submit(1, store.Write{Key: "k"})
	if b.query(2, s.Txn) != nil || b.query(3, s.Txn) != nil {
		t.Error("what is on its way is sent anew")
	}
	b.expect("nothing is known", "")
	if got := b.Cancel(b.env, store.Cancel{Ref: 1}); got != nil {
		t.Error("a transaction ends for which others wait")
	}
	b.expect("one goes", "1: unknown")
	b.EndSubmit(b.env, s, store.Done{Outcome: store.Outcome{Verdict: store.Committed}})
	b.expect("it is decided", "2: committed, 3: committed")
	if b.Cancel(b.env, store.Cancel{Ref: 2}) != nil {
		t.Error("what is over is canceled")
	}

	s = b.submit(4, store.Write{Key: "k"})
	if got := b.Cancel(b.env, store.Cancel{Ref: 4}); got != s || b.Submit(s.Txn.ID) != s {
		t.Errorf("the last who waits goes: it is %v that nobody waits for", got)
	}
	b.EndSubmit(b.env, s, store.Done{Outcome: s.Unanswered()})
	b.expect("nobody is left", "4: unknown")
}

// TestRefused: what cannot be sent is answered at once. The outcome of a transaction that may have
// been sent before is not that it was rejected, whatever is wrong with the question.
func TestRefused(t *testing.T) {
	b := newBook(t)
	bad := store.Write{Key: store.Key(strings.Repeat("k", store.MaxKeyBytes+1))}
	s := b.submit(1, bad)
	if s != nil {
		t.Error("a key that is too long is sent")
	}
	b.expect("a key that is too long", "1: rejected")
	b.submit(2)
	b.expect("nothing to do", "2: committed")
	b.query(3, store.Txn{ID: store.TxnID{Time: 1, Client: 1}, Writes: []store.Write{bad}})
	b.expect("a question about a key that is too long", "3: unknown")
	other := b.submit(4, store.Write{Key: "k"})
	b.submit(5, store.Write{Key: "l"})
	b.submit(6, store.Write{Key: "m"})
	b.expect("too many", "6: rejected")
	gone := other.Txn
	b.EndSubmit(b.env, other, store.Done{Outcome: other.Unanswered()})
	b.submit(7, store.Write{Key: "n"})
	b.expect("there is room", "4: unknown")
	b.query(8, gone)
	b.expect("too many to be asked about", "8: unknown")

	for i, want := range []bool{true, true, false} {
		if got := b.AddGet(b.env, store.Get{Ref: uint64(10 + i), Key: "k"}, new(ownGet)); got != want {
			t.Errorf("read %d is taken: %v", i, got)
		}
	}
	if got := b.told(); len(got) != 1 || !got[0].(store.Got).Full || got[0].(store.Got).Ref != 12 {
		t.Errorf("the third read is told %v", got)
	}
}

// TestVersions: the next version is above all that were seen, but for those that leave no room.
func TestVersions(t *testing.T) {
	b := newBook(t)
	now := uint64(time.Second)
	b.See(now + 5)
	b.See(maxTime)
	if got := b.NextID(b.env.Now); got != (store.TxnID{Time: now + 6, Client: b.ID}) {
		t.Errorf("the next version is %v", got)
	}
	s := new(ownSubmit)
	b.AddSubmit(b.env, store.Submit{Reads: []store.Read{{Key: "k", Version: store.Version{Time: now + 9}}}}, s)
	want := store.TxnID{Time: now + 10, Client: b.ID}
	if s.Txn.ID != want || s.Txn.Priority != (store.Priority{Began: want.Time, Client: b.ID}) {
		t.Errorf("it is transaction %v of priority %v, want %v", s.Txn.ID, s.Txn.Priority, want)
	}
	older := store.Priority{Began: 3, Client: 4}
	s = new(ownSubmit)
	b.AddSubmit(b.env, store.Submit{Priority: older, Writes: []store.Write{{Key: "k"}}}, s)
	if s.Txn.Priority != older {
		t.Errorf("the second attempt has priority %v", s.Txn.Priority)
	}
}

// TestAnswers: a read's answer is the newest value that sites have told; each site's first answer
// counts, and those of other servers do not.
func TestAnswers(t *testing.T) {
	b := newBook(t)
	g := new(ownGet)
	b.AddGet(b.env, store.Get{Ref: 7, Key: "k"}, g)
	at := func(time uint64) store.ReadReply {
		return store.ReadReply{Ref: g.Number, Value: store.Value{Version: store.Version{Time: time}}, Pending: time == 2}
	}
	for _, from := range []protocol.ID{10, 12, 99} {
		if got, _ := b.GetOf(from, at(1)); got != nil {
			t.Errorf("%d answers, which is no shard", from)
		}
	}
	var times []uint64
	for _, r := range []struct {
		from protocol.ID
		time uint64
	}{{21, 2}, {21, 9}, {11, 5}, {31, 4}} {
		own, p := b.GetOf(r.from, at(r.time))
		if own == nil {
			continue
		}
		got, n := own.Answer(p.Site, at(r.time))
		if n == 1 {
			first := own.First(p.Site)
			if first.Value.Version != got.Value.Version || !first.Pending || first.Site != 1 || first.Ref != 7 {
				t.Errorf("the first answer is %v", first)
			}
		}
		times = append(times, got.Value.Version.Time)
		if !got.OK || !got.Pending || n != len(times) {
			t.Errorf("after %d answers: %v, of %d", len(times), got, n)
		}
	}
	if !slices.Equal(times, []uint64{2, 5, 5}) {
		t.Errorf("the newest values are those of %v", times)
	}
}

// TestEndsOfReads: a read that was answered may be kept for what comes later; it is answered once.
func TestEndsOfReads(t *testing.T) {
	b := newBook(t)
	kept, ended := new(ownGet), new(ownGet)
	b.AddGet(b.env, store.Get{Ref: 1, Key: "k"}, kept)
	b.AddGet(b.env, store.Get{Ref: 2, Key: "k"}, ended)
	b.AnswerGet(b.env, kept, store.Got{OK: true})
	b.EndGet(b.env, ended, store.Got{})
	if got := b.told(); len(got) != 2 || got[0].(store.Got).Ref != 1 || got[1].(store.Got).Ref != 2 {
		t.Errorf("the application is told %v", got)
	}
	if b.Get(kept.Number) != kept || b.Get(ended.Number) != nil {
		t.Error("the wrong one is kept")
	}
	b.AddGet(b.env, store.Get{Ref: 1, Key: "k"}, new(ownGet)) // numbers may be used again
	b.ForgetGet(b.env, kept)
	b.Cancel(b.env, store.Cancel{Ref: 1})
	if len(b.gets)+len(b.getRefs) > 0 {
		t.Errorf("%d reads are left, and %d numbers", len(b.gets), len(b.getRefs))
	}
	if got := b.told(); len(got) > 0 {
		t.Errorf("who canceled is told %v", got)
	}
}

// TestTired: a call is given up when it was asked often, and long.
func TestTired(t *testing.T) {
	b := newBook(t)
	g := new(ownGet)
	b.AddGet(b.env, store.Get{Ref: 1, Key: "k"}, g)
	s := b.submit(2, store.Write{Key: "k"})
	for _, tc := range []struct {
		tries int
		after time.Duration
		want  bool
	}{{Tries - 1, time.Hour, false}, {Tries, AskFor - 1, false}, {Tries, AskFor, true}} {
		g.Get.Tries, s.Submit.Tries = tc.tries, tc.tries
		now := b.env.Now + tc.after
		if g.Tired(now) != tc.want || s.Tired(now) != tc.want {
			t.Errorf("after %d tries in %v it is given up: %v and %v", tc.tries, tc.after, g.Tired(now), s.Tired(now))
		}
	}
	if read := (&Submit{Txn: store.Txn{Reads: []store.Read{{Key: "k"}}}}); read.Unanswered().Verdict != store.Aborted {
		t.Error("nobody knows what became of a transaction that has no effect")
	}
}

// TestRename: who waits for a transaction, or asks for it, hears of the one that took its place.
// Its tries begin anew, and its old name is nobody's.
func TestRename(t *testing.T) {
	b := newBook(t)
	s := b.submit(1, store.Write{Key: "k"})
	old := s.Txn
	b.query(2, old)
	b.Rename(b.env, s, b.NextID(b.env.Now))
	if s.Tries != 0 || s.Txn.ID == old.ID || b.Submit(old.ID) != nil || b.Submit(s.Txn.ID) != s || b.Waiting() != 1 {
		t.Errorf("renamed from %v to %v, tried %d times, %d wait", old.ID, s.Txn.ID, s.Tries, b.Waiting())
	}
	s.Tries++
	b.expect("it is on its way", "")
	b.EndSubmit(b.env, s, store.Done{Outcome: s.Outcome(store.Decided{Verdict: store.Unknown})})
	b.expect("a coordinator does not know it", "1: unknown, 2: unknown")
	reads := &ownSubmit{Submit{Txn: store.Txn{Reads: []store.Read{{Key: "k"}}}}}
	if o := reads.Outcome(store.Decided{Verdict: store.Unknown}); o.Verdict != store.Aborted {
		t.Errorf("a transaction without effects that a coordinator does not know is %v", o.Verdict)
	}
}

// TestAsk: sites that have answered are not asked again.
func TestAsk(t *testing.T) {
	b := newBook(t)
	g := new(ownGet)
	b.AddGet(b.env, store.Get{Ref: 1, Key: "k"}, g)
	asked := func() (to []protocol.ID) {
		b.env.Begin(b.env.Now)
		b.Ask(b.env, &g.Get)
		for _, e := range b.env.Out {
			if m, ok := e.Msg.(store.ReadRequest); !ok || m.Ref != g.Number || m.Key != "k" {
				t.Errorf("%d is sent %v", e.To, e.Msg)
			}
			to = append(to, e.To)
		}
		return to
	}
	if got := asked(); !slices.Equal(got, []protocol.ID{11, 21, 31}) {
		t.Errorf("%v are asked first", got)
	}
	g.Answer(1, store.ReadReply{Ref: g.Number})
	if got := asked(); !slices.Equal(got, []protocol.ID{11, 31}) || g.Tries != 2 {
		t.Errorf("%v are asked then, at try %d", got, g.Tries)
	}
}

// TestNear: the nearest site is the one whose reads take least. One that is late once stays near,
// and one that is silent does not, until it answers.
func TestNear(t *testing.T) {
	ms := time.Millisecond
	n, all := NewNear(newBook(t).cfg.Layout), []int{0, 1, 2}
	if got := n.Site(all); got != store.NoSite {
		t.Errorf("site %d is near before anybody has answered", got)
	}
	for site, took := range []time.Duration{50 * ms, 10 * ms, 30 * ms} {
		n.Answered(store.Place{Site: site}, took, time.Second)
	}
	for _, step := range []struct {
		what string
		do   func()
		want int
	}{
		{"all have answered", func() {}, 1},
		{"it waits once", func() { n.Answered(store.Place{Site: 1}, 200*ms, time.Second) }, 1},
		{"it waits for very long once", func() { n.Answered(store.Place{Site: 1}, time.Hour, 100*ms) }, 1},
		{"it is silent", func() { n.Silent(1, time.Second) }, 2},
		{"it answers", func() { n.Answered(store.Place{Site: 1}, 12*ms, time.Second) }, 1},
		{"a site answers at once", func() { n.Answered(store.Place{Site: 0}, 0, time.Second) }, 0},
	} {
		if step.do(); n.Site(all) != step.want {
			t.Errorf("%s: site %d is near, want %d; %v", step.what, n.Site(all), step.want, n)
		}
	}
	if got := n.Site([]int{1, 2}); got != 1 {
		t.Errorf("of two sites %d is nearer", got)
	}
}

// TestNearest: the nearest site's coordinator is asked first, then that of the next nearest one, as
// one who takes a transaction over; a site that was silent is not home until it answers.
func TestNearest(t *testing.T) {
	b := newBook(t)
	c, _, err := NewNearestCalls("own", b.cfg, func() *ownGet { return new(ownGet) },
		func() *ownSubmit { return new(ownSubmit) })
	if err != nil {
		t.Fatal(err)
	}
	env := b.env
	c.Begin(env)
	answer := func(from protocol.ID, after time.Duration) {
		g := new(ownGet)
		c.AddGet(env, store.Get{Ref: 1, Key: "k"}, g)
		c.Read(env, g)
		env.Begin(env.Now + after)
		own, p := c.GetOf(from, store.ReadReply{Ref: g.Number})
		if own != g {
			t.Fatal("nobody waits for the answer")
		}
		out, n := c.Heard(env, p, &g.Get, store.ReadReply{Ref: g.Number})
		if n != 1 || out.Site != p.Site {
			t.Errorf("after one answer: %v of %d", out, n)
		}
		c.EndGet(env, g, out)
	}
	answer(31, 30*time.Millisecond)
	answer(21, 10*time.Millisecond)
	answer(11, 20*time.Millisecond)
	s := new(ownSubmit)
	c.AddSubmit(env, store.Submit{Ref: 2, Writes: []store.Write{{Key: "k"}}}, s)
	s.Site = c.Home()
	env.Begin(env.Now)
	c.Send(env, s)
	c.Expire(env, SubmitTimer{s.Txn.ID})
	c.Expire(env, SubmitTimer{s.Txn.ID})
	var asked []string
	for _, e := range env.Out {
		if m, ok := e.Msg.(store.CommitRequest); ok {
			asked = append(asked, fmt.Sprint(e.To, m.Recover))
		}
	}
	if want := []string{"20 false", "10 true", "30 true"}; !slices.Equal(asked, want) {
		t.Errorf("asked %v, want %v", asked, want)
	}
	if got := c.Home(); got != 2 {
		t.Errorf("home is %d after 1 and 0 were silent", got)
	}
	for range 2 {
		c.Expire(env, SubmitTimer{s.Txn.ID})
	}
	var again []int
	for _, e := range env.Out {
		if p, ok := c.Coordinator(e.To); ok {
			again = append(again, p.Site)
		}
	}
	if want := []int{1, 0, 2, 0, 1}; !slices.Equal(again, want) {
		t.Errorf("coordinators of sites %v are asked in the end, want %v", again, want)
	}
	answer(21, time.Millisecond)
	if got := c.Home(); got != 1 {
		t.Errorf("home is %d after 1 has answered", got)
	}
	env.Begin(env.Now)
	if c.Receive(env, protocol.App, store.Cancel{Ref: 2}); c.Waiting() != 0 || len(env.Out) == 0 {
		t.Errorf("a transaction that nobody waits for: %d wait, %v", c.Waiting(), env.Out)
	}
}

// TestPlants leaves out one rule at a time, in the source: the test that is named must notice.
func TestPlants(t *testing.T) {
	bugs := []plant.Bug{{
		Name: "a call that is canceled ends it for all", Test: "TestWhoWaits",
		Old: "\tif len(s.refs) == 1 {\n", New: "\tif len(s.refs) == 1 || MUTANT {\n",
	}, {
		Name: "a transaction that may have been sent is rejected", Test: "TestRefused",
		Old: "\treturn c.add(env, m.Ref, m.Txn, own, store.Unknown)\n",
		New: "\tif MUTANT {\n\t\treturn c.add(env, m.Ref, m.Txn, own, store.Rejected)\n\t}\n" +
			"\treturn c.add(env, m.Ref, m.Txn, own, store.Unknown)\n",
	}, {
		Name: "any version is believed", Test: "TestVersions",
		Old: "\tif time < maxTime {\n", New: "\tif time < maxTime || MUTANT {\n",
	}, {
		Name: "a site answers twice", Test: "TestAnswers",
		Old: "!found || own.get().Answers[p.Site] != nil ||", New: "!found || own.get().Answers[p.Site] != nil && !MUTANT ||",
	}, {
		Name: "what a read is forgotten with is another one's number", Test: "TestEndsOfReads",
		Old: "\tif c.getRefs[g.Ask.Ref] == g.Number {\n", New: "\tif c.getRefs[g.Ask.Ref] == g.Number || MUTANT {\n",
	}}
	bugs = append(bugs, plant.Bug{
		Name: "a silent coordinator is asked again", Test: "TestNearest",
		Old: "\tif s.Tries > 0 {\n", New: "\tif s.Tries > 0 && !MUTANT {\n",
	}, plant.Bug{
		Name: "the site is asked that is next in the layout", Test: "TestNearest",
		Old: "c.near.Site(left); at != store.NoSite {", New: "c.near.Site(left); at != store.NoSite && !MUTANT {",
	}, plant.Bug{
		Name: "a silent site stays home", Test: "TestNearest",
		Old: "\t\t\tc.Silent(own", New: "\t\t\tif MUTANT {\n\t\t\t\tclear(c.near)\n\t\t\t}\n\t\t\tc.Silent(own",
	}, plant.Bug{
		Name: "who asked for a renamed transaction is forgotten", Test: "TestRename",
		Old: "\t\tc.submitRefs[ref] = id\n", New: "\t\tif !MUTANT {\n\t\t\tc.submitRefs[ref] = id\n\t\t}\n",
	}, plant.Bug{
		Name: "a site that was late once is not near", Test: "TestNear",
		Old: "\tcase old == 0 || took < old:\n", New: "\tcase old == 0 || took < old || MUTANT:\n",
	})
	bugs = append(bugs, plant.Bug{
		Name: "ties are in any order", Test: "TestArrivalsAreInOrder",
		Old: "\treturn cmp.Or(cmp.Compare(a.At, b.At), a.ID.Compare(b.ID),",
		New: "\tif MUTANT {\n\t\treturn cmp.Or(cmp.Compare(a.At, b.At), b.ID.Compare(a.ID))\n\t}\n" +
			"\treturn cmp.Or(cmp.Compare(a.At, b.At), a.ID.Compare(b.ID),",
	}, plant.Bug{
		Name: "a time that is far ahead is waited for", Test: "TestArrivalsAreBounded",
		Old: "\tat.At = min(at.At, env.Now+h.most)",
		New: "\tif !MUTANT {\n\t\tat.At = min(at.At, env.Now+h.most)\n\t}\n\tat.At = max(at.At, 0)",
	}, plant.Bug{
		Name: "there is always room", Test: "TestArrivalsAreBounded",
		Old: "\tcase len(h.queue) >= h.max:\n", New: "\tcase len(h.queue) >= h.max && !MUTANT:\n",
	}, plant.Bug{
		Name: "a clock that was set back is waited for", Test: "TestArrivalsAreBounded",
		Old: "|| h.queue[n].At > env.Now+h.most) {", New: "|| h.queue[n].At > env.Now+h.most && !MUTANT) {",
	}, plant.Bug{
		Name: "reservations are of any age", Test: "TestReservationsAreByAge",
		Old: "\t\tif !q.Priority.Before(mine) {\n", New: "\t\tif !q.Priority.Before(mine) && !MUTANT {\n",
	}, plant.Bug{
		Name: "a queue has no bound", Test: "TestReservationsAreBounded",
		Old: "\tcase r.n >= r.cfg.MaxWaiting || i == MaxQueue:\n",
		New: "\tcase (r.n >= r.cfg.MaxWaiting || i == MaxQueue) && !MUTANT:\n",
	}, plant.Bug{
		Name: "a reservation from before the clock was set back lasts", Test: "TestReservationsEndWhateverTheClock",
		Old: "\treturn q.until > now && q.until <= now+ReserveFor*r.cfg.RoundTrip\n",
		New: "\treturn q.until > now && (MUTANT || q.until <= now+ReserveFor*r.cfg.RoundTrip)\n",
	})
	bugs = slices.Concat(bugs, begunPlants(), groupCallPlants())
	for i := range bugs {
		bugs[i].Dir = "store/kit"
	}
	plant.Catch(t, bugs)
}
