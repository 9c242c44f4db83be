package carousel

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr/raft"
	"github.com/foresay/foresay/store"
)

// model is a state of a group on the fast path: its members, the terms of its leaders, and two
// parts, 1 and 2, that write the same key. The rules are those of the package.
type model struct {
	n       uint8
	term    uint8      // of the leader that was elected last, which is members[0]
	members [6]modeled // the others in some order, as they are alike
	// proposed is what the leader has said, and its group has not agreed on.
	proposed uint8
	logged   uint8 // what the group has agreed on
	// chosen are the parts that a coordinator can count a supermajority for.
	chosen uint8
	bad    bool // two parts that conflict were recovered

	changes   uint8 // of the group's members that may still come
	changing  bool  // one is proposed, and not agreed on
	behind    bool  // what is proposed is behind that in the log
	recovered bool  // what is proposed was found on lists
}

// modelRules are what the model may leave out, to show that it would notice.
type modelRules struct {
	// wordsMeanwhile has leaders say words on the fast path while a change of the members is proposed.
	wordsMeanwhile bool
	// changesEarly has leaders propose a change before what they have found on lists.
	changesEarly bool
	// anyLists has lists count whoever they are of.
	anyLists bool
}

type modeled struct {
	term    uint8 // the least in which it prepares
	part    uint8 // on its list; 0: none
	entered uint8 // in which term
	lags    bool  // on an older version
	led     bool  // as the leader
	in      bool  // it is a member of the group,
	toBe    bool  // or is to be when the change is agreed on that is proposed
	named   uint8 // by the words of leaders, by their terms
}

var (
	testKey  = store.Key("k")
	newest   = store.Version{Time: 2}
	outdated = store.Version{Time: 1}
)

// members returns the IDs from 1 up to n.
func members(n int) (ids []protocol.ID) {
	for i := range n {
		ids = append(ids, protocol.ID(i+1))
	}
	return ids
}

// pending returns an entry as the rules have it.
func (m modeled) pending() pending {
	v := newest
	if m.lags {
		v = outdated
	}
	return pending{Part: partID{store.TxnID{Time: uint64(m.part)}, 1}, Term: uint64(m.entered),
		footprint: footprint{Writes: []store.Read{{Key: testKey, Version: v}}}}
}

// sorted returns the state with its members in order.
func (w model) sorted() model {
	slices.SortFunc(w.members[1:w.n], func(a, b modeled) int { return cmp.Compare(a.number(), b.number()) })
	return w
}

// counted returns the state with what a coordinator can count.
func (w model) counted() model {
	for part := uint8(1); part <= 2; part++ {
		ta := tally{fast: map[protocol.ID]fastVote{}}
		for i, m := range w.members[:w.n] {
			if m.part == part {
				p := m.pending()
				ta.fast[protocol.ID(i+1)] = fastVote{Term: p.Term, Footprint: p.footprint, Leader: m.led,
					Members: w.named(m.entered)}
			}
		}
		if b, _, ok := ta.ballot(); ok && b.Yes {
			w.chosen |= part
		}
	}
	return w
}

// named returns the members that the word of a term's leader names.
func (w model) named(term uint8) (ids []protocol.ID) {
	for i, m := range w.members[:w.n] {
		if m.named>>term&1 > 0 {
			ids = append(ids, protocol.ID(i+1))
		}
	}
	return ids
}

func (m modeled) number() int {
	n := int(m.named)<<10 | int(m.term)<<8 | int(m.part)<<6 | int(m.entered)<<4
	for i, is := range []bool{m.lags, m.led, m.in, m.toBe} {
		if is {
			n |= 1 << i
		}
	}
	return n
}

// next returns what can happen next.
func (w model) next(terms uint8, rules modelRules) (out []model) {
	add := func(v model) { out = append(out, v.sorted()) }
	for i, m := range w.members[:w.n] {
		leads := i == 0
		for part := uint8(1); part <= 2 && w.logged == 0; part++ {
			switch {
			case m.part != 0 && leads && w.proposed == 0:
				// It has prepared the part, or the other one, as a follower: it says its word.
				v := w
				v.propose(part)
				add(v)
			case m.part != 0 || leads && w.proposed != 0:
			case leads:
				v := w
				v.propose(part)
				if !w.changing || rules.wordsMeanwhile {
					v.members[i].part, v.members[i].entered, v.members[i].led = part, w.term, true
					for j := range v.members[:w.n] {
						if v.members[j].in {
							v.members[j].named |= 1 << w.term
						}
					}
				}
				add(v)
			default:
				for _, lags := range []bool{false, true} {
					v := w
					v.members[i].part, v.members[i].entered, v.members[i].lags = part, m.term, lags
					add(v)
				}
			}
		}
	}
	if w.proposed != 0 && !(w.changing && w.behind) {
		v := w
		v.agree()
		add(v)
	}
	w.change(add, rules)
	if w.term < terms {
		w.elect(add, rules)
	}
	return out
}

// propose has the leader say its word.
func (w *model) propose(part uint8) { w.proposed, w.behind = part, w.changing }

// agree has the group agree on it.
func (w *model) agree() {
	w.logged, w.proposed, w.behind, w.recovered = w.proposed, 0, false, false
}

// change adds the states in which another member is proposed, or the end of one, and in which the
// group has agreed on that. The leader stays a member.
func (w model) change(add func(model), rules modelRules) {
	if w.changing {
		w.changed()
		add(w)
		return
	}
	if w.changes == 0 || w.recovered && !rules.changesEarly {
		return
	}
	for j := 1; j < int(w.n); j++ {
		v := w
		v.changes--
		v.changing, v.behind = true, w.recovered
		for i := range v.members[:w.n] {
			v.members[i].toBe = v.members[i].in != (i == j)
		}
		add(v)
	}
}

// changed has the group agree on the change that is proposed, and on all that is before it.
func (w *model) changed() {
	if w.proposed != 0 && !w.behind {
		w.agree()
	}
	for i := range w.members[:w.n] {
		w.members[i].in, w.members[i].toBe = w.members[i].toBe, false
	}
	w.changing, w.behind = false, false
}

// elect adds the states with another leader, which knows of the change that was proposed, or never
// will.
func (w model) elect(add func(model), rules modelRules) {
	kept := w.proposed
	if w.changing {
		v := w
		v.changed()
		v.electOf(v.proposed, add, rules)
		if w.behind {
			kept = 0
		}
		for i := range w.members[:w.n] {
			w.members[i].toBe = false
		}
		w.changing, w.behind = false, false
	}
	w.electOf(kept, add, rules)
}

// electOf adds the states with another leader, whose term any majority of the members has promised.
// What may be in its log is kept.
func (w model) electOf(kept uint8, add func(model), rules modelRules) {
	size := 0
	for _, m := range w.members[:w.n] {
		if m.in {
			size++
		}
	}
	for set := range 1 << w.n {
		v := w
		v.term++
		v.proposed, v.recovered = 0, false
		members := 0
		var lists [][]pending
		for i, m := range w.members[:w.n] {
			if set>>i&1 == 0 {
				continue
			}
			if m.in || rules.anyLists {
				members++
			}
			v.members[i].term = v.term
			var list []pending
			if m.part != 0 {
				list = []pending{m.pending()}
			}
			lists = append(lists, list)
		}
		if members < size/2+1 || len(lists) > members {
			continue
		}
		for leader := range int(w.n) {
			if set>>leader&1 == 0 || !w.members[leader].in {
				continue
			}
			v := v
			v.members[0], v.members[leader] = v.members[leader], v.members[0]
			if kept != 0 {
				u := v
				u.logged = kept
				add(u)
			}
			found := recover(lists, func(p pending) bool { return w.logged == 0 && p.Writes[0].Version == newest })
			v.bad = len(found) > 1
			for _, p := range found {
				v.proposed, v.recovered = uint8(p.Part.ID.Time), true
			}
			add(v)
		}
	}
}

// problem returns what must not be.
func (w model) problem() string {
	switch {
	case w.bad:
		return "two parts that conflict were recovered"
	case w.chosen == 3:
		return "two parts that conflict are prepared"
	case w.chosen != 0 && w.logged != 0 && w.logged != w.chosen:
		return fmt.Sprintf("part %d is prepared, and the group has agreed on part %d", w.chosen, w.logged)
	case w.chosen != 0 && w.logged == 0 && w.proposed != w.chosen:
		return fmt.Sprintf("part %d is prepared, and the leader of term %d does not know", w.chosen, w.term)
	}
	return ""
}

// explore looks at all states of so many servers that can come to be, of which the first ones are
// members of the group. It returns how many there are, and the first problem.
func explore(servers, members int, terms, changes uint8, rules modelRules) (states int, problem string) {
	begin := model{n: uint8(servers), term: 1, changes: changes}
	for i := range servers {
		begin.members[i] = modeled{term: 1, in: i < members}
	}
	seen := map[model]bool{begin: true}
	isNew := func(v model) bool {
		if seen[v] {
			return false
		}
		seen[v] = true
		return true
	}
	queue := []model{begin}
	for ; len(queue) > 0; states++ {
		w := queue[0]
		queue = queue[1:]
		for _, v := range w.next(terms, rules) {
			if !isNew(v) {
				continue // before counting, which takes longest
			}
			counted := v.counted()
			if counted != v && !isNew(counted) {
				continue
			}
			if p := counted.problem(); p != "" {
				return states, fmt.Sprintf("%s: %+v, after %+v", p, counted, w)
			}
			queue = append(queue, counted)
		}
	}
	return states, ""
}

// TestRecoveryIsRight explores the fast path and its recovery, exhaustively: whatever members have
// prepared, on whichever versions, and whoever is elected by whom, what a coordinator can count a
// supermajority for is what the group agrees on [Carousel §3.2.3].
func TestRecoveryIsRight(t *testing.T) {
	for _, tc := range []struct {
		members int
		terms   uint8
	}{{3, 3}, {4, 2}, {5, 2}, {6, 2}} {
		n, problem := explore(tc.members, tc.members, tc.terms, 0, modelRules{})
		t.Logf("%d members, %d terms: %d states", tc.members, tc.terms, n)
		if problem != "" || n < 1000 {
			t.Errorf("%d members, %d states: %s", tc.members, n, problem)
		}
	}
}

// TestRecoveryAcrossChanges is TestRecoveryIsRight of a group whose members change: a server
// becomes one, and another one is none any more.
func TestRecoveryAcrossChanges(t *testing.T) {
	for _, tc := range []struct {
		servers, members int
		terms, changes   uint8
		rules            modelRules
		wrong            bool
	}{
		{4, 3, 2, 2, modelRules{}, false},
		{4, 4, 2, 1, modelRules{wordsMeanwhile: true}, true},
		{4, 4, 3, 1, modelRules{changesEarly: true}, true},
		{4, 3, 2, 1, modelRules{anyLists: true}, true},
	} {
		n, problem := explore(tc.servers, tc.members, tc.terms, tc.changes, tc.rules)
		t.Logf("%d servers, %d members, %d terms, %d changes, %+v: %d states; %s", tc.servers, tc.members, tc.terms,
			tc.changes, tc.rules, n, problem)
		switch {
		case tc.wrong && problem == "":
			t.Errorf("%+v goes unnoticed in %d states", tc.rules, n)
		case !tc.wrong && problem != "":
			t.Errorf("%d members: %s", tc.members, problem)
		case !tc.wrong && n < 1000:
			t.Errorf("%d members: only %d states", tc.members, n)
		}
	}
}

// TestRecover: lists that differ.
func TestRecover(t *testing.T) {
	entry := func(id, term uint64, version store.Version) pending {
		return pending{Part: partID{store.TxnID{Time: id}, 1}, Term: term,
			footprint: footprint{Writes: []store.Read{{Key: testKey, Version: version}}}}
	}
	a, b := entry(1, 1, newest), entry(2, 1, newest)
	all := func(pending) bool { return true }
	for _, tc := range []struct {
		name  string
		lists [][]pending
		fits  func(pending) bool
		want  []pending
	}{
		{"both have it", [][]pending{{a}, {a}}, all, []pending{a}},
		{"one has it", [][]pending{{a}, nil}, all, nil},
		{"a majority of three has it", [][]pending{{a}, nil, {a}}, all, []pending{a}},
		{"they differ", [][]pending{{a}, {b}}, all, nil},
		{"of another term", [][]pending{{a}, {entry(1, 2, newest)}}, all, nil},
		{"on another version", [][]pending{{a}, {entry(1, 1, outdated)}}, all, nil},
		{"the log has a conflict", [][]pending{{a}, {a}}, func(pending) bool { return false }, nil},
	} {
		got := recover(tc.lists, tc.fits)
		if !slices.EqualFunc(got, tc.want, func(p, q pending) bool { return p.Part == q.Part }) {
			t.Errorf("%s: recovered %v, want %v", tc.name, got, tc.want)
		}
	}
}

// TestBallot: when a partition has prepared a part.
func TestBallot(t *testing.T) {
	on := func(v store.Version) footprint {
		return footprint{Reads: []store.Read{{Key: "r"}}, Writes: []store.Read{{Key: testKey, Version: v}}}
	}
	lead := fastVote{Term: 4, Leader: true, Stamp: 9, Footprint: on(newest), Members: members(3)}
	follow := fastVote{Term: 4, Footprint: on(newest), Members: members(3)}
	lags := fastVote{Term: 4, Footprint: on(outdated)} // a blind write, through a follower that lags
	before := fastVote{Term: 3, Footprint: on(newest)}
	for _, tc := range []struct {
		name    string
		durable *ballot
		fast    []fastVote
		ok, yes bool
	}{
		{"all three", nil, []fastVote{lead, follow, follow}, true, true},
		{"one is no member", nil, []fastVote{lead, {}, follow, follow}, false, false},
		{"one more is no member", nil, []fastVote{lead, follow, follow, follow}, true, true},
		{"two of three", nil, []fastVote{lead, follow}, false, false},
		{"without the leader", nil, []fastVote{follow, follow, follow}, false, false},
		{"one lags", nil, []fastVote{lead, follow, lags}, false, false},
		{"one is in another term", nil, []fastVote{lead, follow, before}, false, false},
		{"the group has agreed", &ballot{Yes: true}, nil, true, true},
		{"the group has refused", &ballot{Reason: store.Locked}, []fastVote{follow, follow}, true, false},
	} {
		ta := tally{durable: tc.durable, fast: map[protocol.ID]fastVote{}}
		for i, v := range tc.fast {
			ta.fast[protocol.ID(i+1)] = v
		}
		if b, _, ok := ta.ballot(); ok != tc.ok || b.Yes != tc.yes {
			t.Errorf("%s: the ballot is %+v, known %v", tc.name, b, ok)
		}
	}
}

// TestAgreed: members' words on what they have on disk make a word of the group if a majority has
// one entry: at one place and of one term.
func TestAgreed(t *testing.T) {
	yes := ballot{Yes: true, Stamp: 5}
	word := func(index, term uint64, b ballot) storedVote {
		return storedVote{At: raft.Position{Index: index, Term: term}, Ballot: b}
	}
	for _, tc := range []struct {
		name    string
		members int
		stored  []storedVote
		ok, yes bool
	}{
		{"nobody", 3, nil, false, false},
		{"one of three", 3, []storedVote{word(4, 2, yes)}, false, false},
		{"two of three", 3, []storedVote{word(4, 2, yes), word(4, 2, yes)}, true, true},
		{"two of three refuse", 3, []storedVote{word(4, 2, ballot{}), word(4, 2, ballot{})}, true, false},
		{"one of three, and one that is no member", 3, []storedVote{word(4, 2, yes), word(5, 2, yes),
			word(6, 2, yes), word(4, 2, yes)}, false, false},
		{"two of four", 4, []storedVote{word(4, 2, yes), word(4, 2, yes)}, false, false},
		{"two of five", 5, []storedVote{word(4, 2, yes), word(4, 2, yes)}, false, false},
		{"the same place, and another leader's entry", 3, []storedVote{word(4, 2, yes), word(4, 3, yes)}, false, false},
		{"the same leader's, at other places", 3, []storedVote{word(4, 2, yes), word(5, 2, yes)}, false, false},
		{"another one is overwritten", 3, []storedVote{word(4, 2, yes), word(4, 3, ballot{}), word(4, 3, ballot{})},
			true, false},
	} {
		ta := tally{stored: map[protocol.ID]storedVote{}}
		for i, v := range tc.stored {
			v.Members = members(tc.members)
			ta.stored[protocol.ID(i+1)] = v
		}
		if b, ok := ta.agreed(); ok != tc.ok || b.Yes != tc.yes {
			t.Errorf("%s: the word is %+v, known %v", tc.name, b, ok)
		}
	}
}

// TestDecide: the decision is a function of the commit request on record and the ballots.
func TestDecide(t *testing.T) {
	at := func(key store.Key, v store.Version) []store.Read { return []store.Read{{Key: key, Version: v}} }
	p, q := partRef{0, 1}, partRef{1, 1}
	record := &commitRecord{Parts: []partRef{p, q}, Reads: at("r", newest), Writes: []store.Write{{Key: "w"}}}
	yesP := ballot{Yes: true, Stamp: 5, footprint: footprint{Reads: at("r", newest)}}
	yesQ := ballot{Yes: true, Stamp: 8, footprint: footprint{Writes: at("w", newest)}}
	staleP := ballot{Yes: true, Stamp: 5, footprint: footprint{Reads: at("r", outdated)}}
	no := ballot{Reason: store.Locked}
	for _, tc := range []struct {
		name   string
		record *commitRecord
		votes  map[partRef]ballot
		want   verdict
		why    store.Reason
		stamp  uint64
	}{
		{"all have prepared", record, map[partRef]ballot{p: yesP, q: yesQ}, commits, 0, 8},
		{"one has not", record, map[partRef]ballot{p: yesP}, waits, 0, 0},
		{"there is no request", nil, map[partRef]ballot{p: yesP, q: yesQ}, waits, 0, 0},
		{"one refuses", record, map[partRef]ballot{q: no}, aborts, store.Locked, 0},
		{"one refuses before the request", nil, map[partRef]ballot{q: no}, waits, 0, 0},
		{"one refuses that the request does not name", record, map[partRef]ballot{p: yesP, q: yesQ, {2, 1}: no},
			commits, 0, 8},
		{"the client has read from a replica that lags", record, map[partRef]ballot{p: staleP, q: yesQ}, aborts,
			store.StaleRead, 0},
		{"what was read was not prepared", record, map[partRef]ballot{p: {Yes: true}, q: yesQ}, aborts, store.StaleRead, 0},
		{"what is written was not prepared", record, map[partRef]ballot{p: yesP, q: {Yes: true}}, aborts,
			store.StaleWrite, 0},
		{"a step is missing", &commitRecord{Parts: []partRef{p, q, {1, 2}}}, map[partRef]ballot{p: yesP, q: yesQ},
			waits, 0, 0},
	} {
		if v, why, stamp := decide(tc.record, tc.votes); v != tc.want || why != tc.why || stamp != tc.stamp {
			t.Errorf("%s: the decision is %v, %v, %d, want %v, %v, %d", tc.name, v, why, stamp, tc.want, tc.why, tc.stamp)
		}
	}
}

// TestLocks: what is added and removed again leaves nothing.
func TestLocks(t *testing.T) {
	id := func(n uint64) store.TxnID { return store.TxnID{Time: n} }
	reads := footprint{Reads: []store.Read{{Key: testKey}}}
	writes := footprint{Writes: []store.Read{{Key: testKey}}}
	l := locks{}
	l.add(id(1), reads)
	l.add(id(2), reads)
	if l.conflict(id(3), reads) || !l.conflict(id(3), writes) || !l.conflict(id(1), writes) {
		t.Error("two readers: others may read, and nobody may write")
	}
	l.remove(id(2), reads)
	if l.conflict(id(1), writes) || !l.conflict(id(3), writes) {
		t.Error("one reader: it may write")
	}
	l.add(id(1), writes)
	if l.conflict(id(1), reads) || !l.conflict(id(3), reads) || !l.writes(testKey) {
		t.Error("a writer: it may read")
	}
	l.remove(id(1), reads)
	l.remove(id(1), writes)
	if len(l) != 0 {
		t.Errorf("%d keys are left", len(l))
	}
}
