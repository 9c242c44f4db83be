package layered

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/sim/deploy"
	"github.com/foresay/foresay/smr/raft"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/kit"
)

// aged returns the prepare of a transaction that began at a time, and was tried then or later. keys
// are written, or read with a ? behind them.
func aged(began, tried uint64, keys ...store.Key) prepare {
	txn := store.Txn{ID: store.TxnID{Time: tried, Client: 1}, Priority: store.Priority{Began: began, Client: 1}}
	m := prepare{Txn: txn, Shards: []uint32{0, 1}, Waits: true}
	for _, k := range keys {
		if name, reads := strings.CutSuffix(string(k), "?"); reads {
			m.Txn.Reads = append(m.Txn.Reads, store.Read{Key: store.Key(name)})
		} else {
			m.Txn.Writes = append(m.Txn.Writes, store.Write{Key: k})
		}
	}
	return m
}

func ends(m prepare, commit bool) decide {
	return decide{ID: m.Txn.ID, Shards: m.Shards, Commit: commit, Reason: store.Fenced}
}

// TestQueue has transactions meet others, in a shard that has loaded its state before each command,
// too. What is said to each is written as the time of its ID and its state.
func TestQueue(t *testing.T) {
	old, young := aged(10, 10, "k"), aged(20, 20, "k")
	only := aged(20, 20, "k")
	only.Only = true
	earlier := aged(10, 33, "k")
	earlier.Waits = false
	for _, tc := range []struct {
		name     string
		commands []any
		want     string // of each command, and behind + who has waited
		wounded  string // at the end
	}{
		{"a younger one waits for an older one", []any{old, young, ends(old, true)},
			"10 prepared; 20 waits; 10 committed + 20 prepared", ""},
		{"one of an earlier version's log does not wait", []any{young, earlier}, "20 prepared; 33 aborted", ""},
		{"nor does its age count", []any{earlier, aged(20, 34, "k")}, "33 prepared; 34 waits", "33"},
		{"a decision is made at once", []any{old, only, ends(old, false)}, "10 prepared; 20 waits; 10 aborted + 20 committed",
			""},
		{"an older one wounds a younger one", []any{young, aged(10, 25, "k")}, "20 prepared; 25 waits", "20"},
		{"an older one wounds those that have read", []any{aged(20, 20, "k?"), aged(30, 30, "k?"), aged(10, 40, "k")},
			"20 prepared; 30 prepared; 40 waits", "20 30"},
		{"one that is tried again wounds what it has left", []any{young, aged(20, 25, "k")}, "20 prepared; 25 waits", "20"},
		{"it would be in vain to wait for an older one that writes what was read", []any{old, aged(20, 20, "k?", "l")},
			"10 prepared; 20 aborted", ""},
		{"but not for a younger one, which is wounded", []any{young, aged(10, 25, "k?", "l"), ends(young, false)},
			"20 prepared; 25 waits; 20 aborted + 25 prepared", ""},
		{"if that is committed after all, it was in vain", []any{young, aged(10, 25, "k?", "l"), ends(young, true)},
			"20 prepared; 25 waits; 20 committed + 25 aborted", ""},
		{"they are woken in order of age", []any{aged(10, 10, "k"), aged(30, 31, "k"), aged(20, 32, "k"), ends(old, false),
			ends(aged(20, 32), false)},
			"10 prepared; 31 waits; 32 waits; 10 aborted + 32 prepared; 32 aborted + 31 prepared", ""},
		{"one that is refused when it is woken lets a younger one go on that has come before it", []any{
			aged(25, 25, "k", "m"), aged(30, 31, "k"), aged(20, 32, "k", "m?"), ends(aged(25, 25), true)},
			"25 prepared; 31 waits; 32 waits; 25 committed + 32 aborted + 31 prepared", ""},
		{"nobody overtakes an older one that waits", []any{old, aged(20, 20, "k", "l"), aged(30, 30, "l")},
			"10 prepared; 20 waits; 30 waits", ""},
		{"an older one goes before those that wait", []any{old, aged(20, 20, "k", "l"), aged(15, 30, "l")},
			"10 prepared; 20 waits; 30 prepared", ""},
		{"one that is refused lets those behind it go on", []any{old, aged(20, 20, "k", "l"), aged(30, 30, "l"),
			giveUp{aged(20, 20).Txn.ID}}, "10 prepared; 20 waits; 30 waits; 20 aborted + 20 aborted + 30 prepared", ""},
		{"who does not wait any more is not given up", []any{old, young, ends(old, true), giveUp{young.Txn.ID}},
			"10 prepared; 20 waits; 10 committed + 20 prepared; 20 prepared", ""},
		{"the anchor aborts one that waits", []any{old, young, ends(young, false), ends(old, true), young},
			"10 prepared; 20 waits; 20 aborted + 20 aborted; 10 committed; 20 aborted", ""},
		{"one that waits comes again", []any{old, young, young, ends(old, false)},
			"10 prepared; 20 waits; 20 waits; 10 aborted + 20 prepared", ""},
	} {
		for _, loaded := range []bool{false, true} {
			s, env := newShard(nil), protocol.NewEnv[store.Message](nil, 1, nil)
			var got []string
			for i, c := range tc.commands {
				if loaded {
					s = newShard(nil)
					s.Load(env)
				}
				b, err := s.format.Append(nil, c)
				if err != nil {
					t.Fatal(err)
				}
				s.Apply(env, raft.Position{Index: uint64(i) + 2, Term: 1}, b)
				var id store.TxnID
				switch c := c.(type) {
				case prepare:
					id = c.Txn.ID
				case decide:
					id = c.ID
				case giveUp:
					id = c.ID
				}
				said := saying(id, s.results[0].result)
				for _, w := range s.results[0].woken {
					said += " + " + saying(w.id, w.result)
				}
				got = append(got, said)
				s.results = nil
			}
			if got := strings.Join(got, "; "); got != tc.want {
				t.Errorf("%s, loaded %v:\n%s, want\n%s", tc.name, loaded, got, tc.want)
			}
			var wounded []string
			for _, waits := range s.queue {
				for _, w := range s.meet(waits).wounds {
					wounded = append(wounded, fmt.Sprint(w.id.Time))
				}
			}
			if got := strings.Join(wounded, " "); got != tc.wounded {
				t.Errorf("%s, loaded %v: %q are wounded, want %q", tc.name, loaded, got, tc.wounded)
			}
		}
	}
}

func saying(id store.TxnID, r result) string {
	return fmt.Sprint(id.Time, " ", [...]string{"prepared", "committed", "aborted", "forgotten", "waits"}[r.State])
}

// TestQueueIsBounded: who finds no room is refused, or the youngest one if that waits already. What
// is decided finds room.
func TestQueueIsBounded(t *testing.T) {
	s, env := newShard(nil), protocol.NewEnv[store.Message](nil, 1, nil)
	for i := range uint64(maxQueue + 3) {
		b, err := s.format.Append(nil, aged(i+1, i+1, "k"))
		if err != nil {
			t.Fatal(err)
		}
		s.Apply(env, raft.Position{Index: i + 2, Term: 1}, b)
	}
	refused := slices.DeleteFunc(s.results, func(e effect) bool { return e.State != aborted })
	if len(s.queue) != maxQueue || len(refused) != 2 || refused[0].Reason != store.Locked {
		t.Errorf("%d transactions wait, and %v are refused", len(s.queue), refused)
	}
	// The oldest one goes before all who wait for another key than its own.
	s.results = nil
	for i, c := range []any{aged(maxQueue+9, maxQueue+9, "l"), aged(1, maxQueue+10, "l"), ends(aged(1, 1), false)} {
		b, err := s.format.Append(nil, c)
		if err != nil {
			t.Fatal(err)
		}
		s.Apply(env, raft.Position{Index: maxQueue + 5 + uint64(i), Term: 1}, b)
	}
	old := s.results[1]
	refusal := word{store.TxnID{Time: maxQueue + 1, Client: 1}, result{aborted, store.Locked}}
	if old.State != waiting || !slices.Equal(old.woken, []word{refusal}) {
		t.Errorf("the oldest one comes to %+v", old)
	}
	if r := s.results[2]; r.State != aborted || len(r.woken) != 1 || r.woken[0].id.Time != 2 {
		t.Errorf("when the first one ends, %+v", r)
	}
}

// TestQueueIsBoundedByBytes: transactions that write much wait in smaller numbers, and the youngest
// make room for an older one.
func TestQueueIsBoundedByBytes(t *testing.T) {
	s, env := newShard(nil), protocol.NewEnv[store.Message](nil, 1, nil)
	for i, began := range []uint64{1, 10, 11, 12, 13, 5} {
		m := aged(began, began, "k")
		if m.Txn.Writes[0].Bytes = make([]byte, 2<<20); began == 10 || began == 11 {
			m.Txn.Writes[0].Bytes = make([]byte, maxQueueBytes/2-9)
		}
		b, err := s.format.Append(nil, m)
		if err != nil {
			t.Fatal(err)
		}
		s.Apply(env, raft.Position{Index: uint64(i) + 2, Term: 1}, b)
	}
	var waits []uint64
	for _, other := range s.queue {
		waits = append(waits, other.id.Time)
	}
	want := []uint64{5, 10}
	if !slices.Equal(waits, want) || len(s.results[5].woken) != 1 || s.results[3].State != aborted {
		t.Errorf("%v wait, want %v; results are %+v", waits, want, s.results)
	}
}

// TestRefusedInVain: who would wait in vain is told that older ones go first. In the end its client
// pauses then, and does not try again as for what is decided already.
func TestRefusedInVain(t *testing.T) {
	s, env := newShard(nil), protocol.NewEnv[store.Message](nil, 1, nil)
	for i, m := range []prepare{aged(10, 10, "k"), aged(20, 20, "k?", "l")} {
		b, err := s.format.Append(nil, m)
		if err != nil {
			t.Fatal(err)
		}
		s.Apply(env, raft.Position{Index: uint64(i) + 2, Term: 1}, b)
	}
	if r := s.results[1].result; r != (result{aborted, store.Reserved}) {
		t.Errorf("it comes to %+v", r)
	}
}

// TestOneWoundIsEnough: many that wait for the same younger one wound it once in a sweep, and one
// that comes again from the same coordinator is answered once.
func TestOneWoundIsEnough(t *testing.T) {
	w := newTown(t, 1)
	s := w.Get(w.servers[0]).(*server)
	now := uint64(w.Now())
	tell := func(ref uint64, m prepare) {
		b, err := s.shard.format.Append(nil, m)
		if err != nil {
			t.Fatal(err)
		}
		w.Deliver(w.servers[0], kit.Ask{Ref: ref, Command: b})
		w.pass(30 * time.Millisecond)
	}
	tell(1, aged(now, now, "k"))
	for n := range uint64(3) {
		tell(n+2, aged(n+1, now+n+1, "k"))
	}
	tell(9, aged(1, now+1, "k"))
	if len(s.shard.queue) != 3 || len(s.late[store.TxnID{Time: now + 1, Client: 1}]) != 1 {
		t.Fatalf("%d wait; late are %v", len(s.shard.queue), s.late)
	}
	env := protocol.NewEnv[store.Message](nil, 1, rand.New(rand.NewPCG(1, 1)))
	env.Begin(w.Now())
	s.sweep(env)
	wounds := 0
	for _, e := range env.Out {
		if _, ok := e.Msg.(wound); ok {
			wounds++
		}
	}
	if wounds != 1 {
		t.Errorf("one is wounded %d times in a sweep", wounds)
	}
}

// TestThoseThatWaitLeaveRoom: a server where as many wait as it may have commands under way takes
// the decisions that they wait for.
func TestThoseThatWaitLeaveRoom(t *testing.T) {
	w := newTown(t, 1)
	s := w.Get(w.servers[0]).(*server)
	if _, leads := s.group.Leads(); !leads {
		t.Fatal("the first server does not lead")
	}
	s.cfg.MaxTxns = 2
	for n := range uint64(4) {
		m := aged(n+1, n+1, "k")
		s.late[m.Txn.ID] = []kit.Question{{From: 9, Ref: n}}
	}
	b, err := s.shard.format.Append(nil, ends(aged(1, 1), true))
	if err != nil {
		t.Fatal(err)
	}
	env := protocol.NewEnv[store.Message](nil, 1, rand.New(rand.NewPCG(1, 1)))
	s.Receive(env, 9, kit.Ask{Shard: uint32(s.place.Index), Ref: 5, Command: b})
	for _, e := range env.Out {
		if m, ok := e.Msg.(kit.Elsewhere); ok {
			t.Errorf("it takes no decision: %+v", m)
		}
	}
}

// TestQueueLeavesNothing gives a shard commands by chance, and in the end aborts all transactions.
func TestQueueLeavesNothing(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 5))
		s, env := newShard(nil), protocol.NewEnv[store.Message](nil, 1, nil)
		var all []prepare
		index := uint64(2)
		apply := func(c any) {
			b, err := s.format.Append(nil, c)
			if err != nil {
				t.Fatal(err)
			}
			s.Apply(env, raft.Position{Index: index, Term: 1}, b)
			index++
			if rng.IntN(4) == 0 {
				s = newShard(nil)
				s.Load(env)
			}
			for _, waits := range s.queue {
				if !s.meet(waits).waits {
					t.Fatalf("seed %d: after %+v %v waits for nobody", seed, c, waits.id)
				}
			}
		}
		for range 60 {
			n := uint64(len(all) + 1)
			switch {
			case n == 1 || rng.IntN(2) == 0:
				var keys []store.Key
				for _, k := range []store.Key{"a", "b", "c"} {
					if how := rng.IntN(3); how > 0 {
						keys = append(keys, k+store.Key([]string{"", "?"}[how-1]))
					}
				}
				m := aged(1+rng.Uint64N(n), n, keys...)
				m.Only = rng.IntN(3) == 0
				all = append(all, m)
				apply(m)
			case rng.IntN(4) == 0:
				apply(giveUp{all[rng.IntN(len(all))].Txn.ID})
			default:
				apply(ends(all[rng.IntN(len(all))], rng.IntN(2) == 0))
			}
		}
		for _, m := range all {
			apply(ends(m, false))
		}
		if n := len(s.queue) + len(s.open) + len(s.locks); n > 0 {
			t.Fatalf("seed %d: %d transactions wait, %d are open, %d keys are locked", seed, len(s.queue), len(s.open),
				len(s.locks))
		}
		for k := range env.Scan([]byte(waitPrefix), []byte{waitPrefix[0] + 1}) {
			t.Fatalf("seed %d: %q is left on disk", seed, k)
		}
	}
}

// TestDeadlock has two transactions each wait for the other, at different shards: the younger one
// is wounded long before anybody has waited for too long.
func TestDeadlock(t *testing.T) {
	w := newTown(t, 2) // y's shard is led at a, x's at b
	for client := range w.Clients {
		w.read(client, "x", false)
		w.commit(client, nil, store.Write{Key: "x"}, store.Write{Key: "y"}) // its coordinator learns who leads
	}
	w.pass(time.Second)
	var older, younger deploy.Answer[store.Message]
	both := []store.Write{{Key: "x", Bytes: []byte("1")}, {Key: "y", Bytes: []byte("1")}}
	send := func(client int, began uint64, to *deploy.Answer[store.Message]) {
		w.Call(w.Clients[client], func(ref uint64) store.Message {
			return store.Submit{Ref: ref, Priority: store.Priority{Began: began, Client: 1}, Writes: both}
		}, func(a deploy.Answer[store.Message]) { *to = a })
	}
	send(0, 2, &younger)
	send(1, 1, &older)
	w.pass(2 * time.Second)
	a, b := older.Msg.(store.Done).Outcome, younger.Msg.(store.Done).Outcome
	if a.Verdict != store.Committed || b.Verdict != store.Aborted || b.Reason != store.Reserved {
		t.Errorf("the older one is %v (%v), the younger one %v (%v)", a.Verdict, a.Reason, b.Verdict, b.Reason)
	}
	if most := 8 * 20 * time.Millisecond; older.Took > most {
		t.Errorf("the older one takes %v, want %v at most", older.Took, most)
	}
}

// TestWaitEnds: one that waits for another that stays undecided is refused before that is decided.
// One that waits for less long is told when the other is decided.
func TestWaitEnds(t *testing.T) {
	const trip = 20 * time.Millisecond
	w := newTown(t, 2)
	w.read(0, "y", false)
	leads := w.Get(w.servers[0]).(*server)
	hold := func() prepare {
		m := aged(1, uint64(w.Now()), "y")
		b, err := leads.shard.format.Append(nil, m)
		if err != nil {
			t.Fatal(err)
		}
		w.Deliver(leads.cfg.ID, kit.Ask{Ref: 1, Command: b})
		w.pass(2 * trip)
		if len(leads.shard.open) != 1 {
			t.Fatal("nothing is prepared")
		}
		return m
	}
	hold() // there is no coordinator that knows of it
	o, took := w.commit(0, nil, store.Write{Key: "y"})
	if least, most := waitFor*trip, (waitFor+5)*trip; o.Reason != store.Locked || took < least || took > most {
		t.Errorf("who waits is %v (%v) after %v, want refused after %v to %v", o.Verdict, o.Reason, took, least, most)
	}
	w.pass(2 * time.Second)

	m := hold()
	w.After(3*trip, func() {
		b, err := leads.shard.format.Append(nil, ends(m, false))
		if err != nil {
			t.Error(err)
		}
		w.Deliver(leads.cfg.ID, kit.Ask{Ref: 2, Command: b})
	})
	if o, took := w.commit(0, nil, store.Write{Key: "y"}); o.Verdict != store.Committed || took != 4*trip {
		t.Errorf("who waits is %v (%v) after %v, want committed after %v", o.Verdict, o.Reason, took, 4*trip)
	}
}

// TestDoneOfOneThatWaits: whatever is asked about a transaction that waits, the leader goes on.
func TestDoneOfOneThatWaits(t *testing.T) {
	w := newTown(t, 1)
	leads := w.Get(w.servers[0]).(*server)
	waits := aged(20, 20, "k")
	for _, command := range []any{aged(10, 10, "k"), waits, waits, done{waits.Txn.ID}, ends(waits, false)} {
		b, err := leads.shard.format.Append(nil, command)
		if err != nil {
			t.Fatal(err)
		}
		w.Deliver(leads.cfg.ID, kit.Ask{Ref: 1, Command: b})
		w.pass(40 * time.Millisecond)
	}
	if _, ok := leads.group.Leads(); !ok || len(leads.late) != 0 || len(leads.shard.queue) != 0 {
		t.Errorf("leads %v; %d are asked about, %d wait", ok, len(leads.late), len(leads.shard.queue))
	}
}

// TestWaitIsNoSilence: how long a transaction has waited does not count when its server finds that
// its coordinator may be gone.
func TestWaitIsNoSilence(t *testing.T) {
	const trip, waited = 20 * time.Millisecond, 5
	w := newTown(t, 2)
	leads := w.Get(w.servers[0]).(*server)
	ask := func(command any) {
		b, err := leads.shard.format.Append(nil, command)
		if err != nil {
			t.Fatal(err)
		}
		w.Deliver(leads.cfg.ID, kit.Ask{Ref: 1, Command: b})
		w.pass(2 * trip)
	}
	holds, waits := aged(10, 10, "y"), aged(20, 20, "y")
	ask(holds)
	ask(waits) // nobody is at either
	w.pass((waited - 2) * trip)
	if len(leads.shard.queue) != 1 {
		t.Fatal("nothing waits")
	}
	ask(ends(holds, false))
	voted := w.Now()
	if err := w.Await(time.Minute, func() bool { return len(leads.shard.open) == 0 }); err != nil {
		t.Fatal(err)
	}
	if took := w.Now() - voted; took < 12*trip {
		t.Errorf("it waits for %v, and is finished %v after the vote, want %v at least", waited*trip, took, 12*trip)
	}
}

// TestWaitsWhereAnotherLeads: one that waits at a leader that hands over is sent to the next one,
// and is told there when it need not wait any more. No timer has to have it asked for again.
func TestWaitsWhereAnotherLeads(t *testing.T) {
	const trip = 20 * time.Millisecond
	w := newTown(t, 2)
	w.read(0, "y", false)
	first := w.Get(w.servers[0]).(*server)
	held := aged(1, uint64(w.Now()), "y")
	tell := func(to protocol.ID, command any) {
		b, err := first.shard.format.Append(nil, command)
		if err != nil {
			t.Error(err)
		}
		w.Deliver(to, kit.Ask{Ref: 1, Command: b})
	}
	tell(w.servers[0], held)
	w.pass(2 * trip)
	w.After(trip, func() { w.Deliver(w.servers[0], store.HandOver{Ref: 9, Site: 1}) })
	w.After(4*trip, func() {
		if _, leads := w.Get(w.servers[1]).(*server).group.Leads(); !leads {
			t.Error("the next one does not lead")
		}
		tell(w.servers[1], ends(held, false))
	})
	// A client asks again after six round trips.
	if o, took := w.commit(0, nil, store.Write{Key: "y"}); o.Verdict != store.Committed || took < 4*trip || took > 6*trip {
		t.Errorf("who waits is %v (%v) after %v, want committed after 4 to 6 round trips", o.Verdict, o.Reason, took)
	}
}
