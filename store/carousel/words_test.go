package carousel

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"
	"testing"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr/raft"
)

// wordsModel is a state of a group in mode direct: what its members have of the logs of all terms'
// leaders, and the words on one part that they have told the coordinator. A leader says at most one
// word on the part, so its term names the word. Messages are as old as they like: what a leader has
// in its log reaches any member that is not in a later term, also when the leader has crashed.
type wordsModel struct {
	n    uint8
	term uint8 // of the leader that was elected last
	// logs are those of leaders, by their terms, as far as anybody may still get them.
	logs    [maxModelTerm + 1]modelLog
	members [5]modelMember // in some order, as they are alike
	told    uint8          // the words that leaders have told as their group's, by their terms
}

const maxModelTerm = 4

type modelMember struct {
	term uint8
	log  modelLog // on the disk
	led  uint8    // the terms in which it was elected
	said uint8    // the words that it has told the coordinator
	// acked is how much of the log of its term's leader it has acknowledged.
	acked uint8
}

// modelLog is up to eight entries, the first in the lowest bits. Each is a modelEntry.
type modelLog uint32

// modelEntry is a term, and whether the entry is the word on the part or the one with which a
// leader begins. 0: there is none.
type modelEntry uint8

func entryOf(term uint8, word bool) modelEntry {
	e := modelEntry(term << 1)
	if word {
		e |= 1
	}
	return e
}

func (e modelEntry) term() uint8 { return uint8(e >> 1) }

func (e modelEntry) isWord() bool { return e&1 > 0 }

func (l modelLog) at(i int) modelEntry { return modelEntry(l >> (4 * i) & 15) }

func (l modelLog) len() int { return (bits.Len32(uint32(l)) + 3) / 4 }

// last returns the term of the last entry.
func (l modelLog) last() uint8 { return l.at(l.len() - 1).term() }

// with returns the log that ends with an entry at a place.
func (l modelLog) with(i int, e modelEntry) modelLog { return l&(1<<(4*i)-1) | modelLog(e)<<(4*i) }

// word returns the place of the first word among the first n entries, -1 if there is none. What was
// said first stands.
func (l modelLog) word(n int) int {
	for i := range min(n, l.len()) {
		if l.at(i).isWord() {
			return i
		}
	}
	return -1
}

func (l modelLog) has(e modelEntry) bool {
	for i := range l.len() {
		if l.at(i) == e {
			return true
		}
	}
	return false
}

// wordsRules are what the model may leave out, to show that it would notice.
type wordsRules struct {
	// anyTerm has members tell words of earlier terms that a new leader sends.
	anyTerm bool
	// early has leaders say words before they have carried out what earlier leaders have left, so
	// that they do not know of a word in their own logs.
	early bool
}

// leader returns the place of the member that was elected in a term, -1 if it leads no more.
func (w *wordsModel) leader(term uint8) int {
	return slices.IndexFunc(w.members[:w.n], func(m modelMember) bool { return m.term == term && m.led>>term&1 > 0 })
}

// committed returns how many entries of its log the leader of a term knows to be agreed on: up to
// one of its own term that a majority has acknowledged to it [Raft §5.4.2].
func (w *wordsModel) committed(term uint8) int {
	l := w.logs[term]
	for k := l.len(); k > 0 && l.at(k-1).term() == term; k-- {
		n := 0
		for _, m := range w.members[:w.n] {
			if m.term == term && int(m.acked) >= k {
				n++
			}
		}
		if n > int(w.n)/2 {
			return k
		}
	}
	return 0
}

// next returns what can happen next.
func (w wordsModel) next(terms uint8, rules wordsRules) (out []wordsModel) {
	for t := uint8(1); t <= w.term; t++ {
		l := w.logs[t]
		if w.leader(t) >= 0 && (w.committed(t) > 0 && l.word(l.len()) < 0 || rules.early && !l.has(entryOf(t, true))) {
			v := w
			v.logs[t] = l.with(l.len(), entryOf(t, true))
			out = append(out, v)
		}
		for i, m := range w.members[:w.n] {
			if m.term <= t {
				for k := range l.len() {
					out = w.deliver(out, i, t, k, rules)
				}
			}
		}
	}
	if w.term < terms {
		out = w.elect(out)
	}
	return out
}

// deliver adds the state in which a member has got an entry of a leader's log.
func (w wordsModel) deliver(out []wordsModel, i int, term uint8, k int, rules wordsRules) []wordsModel {
	m, l := &w.members[i], w.logs[term]
	if k > 0 && m.log.at(k-1) != l.at(k-1) {
		return out // what is before it does not match
	}
	if m.term < term {
		m.term, m.acked = term, 0
	}
	e := l.at(k)
	if m.log.at(k) != e {
		m.log = m.log.with(k, e)
		if e.isWord() && (e.term() == term || rules.anyTerm) {
			m.said |= 1 << e.term()
		}
	}
	m.acked = max(m.acked, uint8(k+1))
	return append(out, w)
}

// elect adds the states with another leader, for whom any majority has voted whose members lack
// nothing that it has.
func (w wordsModel) elect(out []wordsModel) []wordsModel {
	for set := range 1 << w.n {
		if bits.OnesCount(uint(set)) <= int(w.n)/2 {
			continue
		}
		for lead := range int(w.n) {
			c := w.members[lead]
			v := w
			v.term++
			won := set>>lead&1 > 0
			for i := range v.members[:w.n] {
				m := &v.members[i]
				if set>>i&1 == 0 {
					continue
				}
				if m.log.last() > c.log.last() || m.log.last() == c.log.last() && m.log.len() > c.log.len() {
					won = false
				}
				m.term, m.acked = v.term, 0
			}
			if won {
				v.members[lead].led |= 1 << v.term
				v.logs[v.term] = c.log.with(c.log.len(), entryOf(v.term, false))
				out = append(out, v)
			}
		}
	}
	return out
}

// settled returns the state with its members in order, what leaders tell, and without what nobody
// can get any more.
func (w wordsModel) settled() wordsModel {
	least := w.term
	for _, m := range w.members[:w.n] {
		least = min(least, m.term)
	}
	for t := uint8(1); t <= w.term; t++ {
		if lead := w.leader(t); lead >= 0 {
			if i := w.logs[t].word(w.committed(t)); i >= 0 {
				w.told |= 1 << w.logs[t].at(i).term()
			}
		}
		if t < least {
			w.logs[t] = 0
		}
	}
	for i := range w.members[:w.n] {
		m := &w.members[i]
		if m.led &= 1 << m.term; w.leader(m.term) < 0 {
			m.acked = 0
		}
	}
	slices.SortFunc(w.members[:w.n], func(a, b modelMember) int {
		return cmp.Or(cmp.Compare(a.term, b.term), cmp.Compare(a.log, b.log), cmp.Compare(a.led, b.led),
			cmp.Compare(a.said, b.said), cmp.Compare(a.acked, b.acked))
	})
	return w
}

// agreed returns the words, by their terms, that the coordinator can take for the group's: it has
// heard what members have said in any order, and knows the last word of each that has come.
func (w *wordsModel) agreed() (words uint8) {
	all := uint8(0)
	for _, m := range w.members[:w.n] {
		all |= m.said
	}
	for heard := uint8(1); heard <= w.term; heard++ {
		if all>>heard&1 == 0 {
			continue
		}
		for _, alone := range []bool{false, true} {
			ta := tally{stored: map[protocol.ID]storedVote{}}
			for i, m := range w.members[:w.n] {
				said := m.said & (2<<heard - 1) // up to that term
				if alone {
					said &= 1 << heard
				}
				if said == 0 {
					continue
				}
				term := uint64(bits.Len8(said) - 1)
				ta.stored[protocol.ID(i+1)] = storedVote{Members: members(int(w.n)), Ballot: ballot{Yes: true, Stamp: term},
					At: raft.Position{Index: 1, Term: term}} // two words may be at one place
			}
			if b, ok := ta.agreed(); ok {
				words |= 1 << b.Stamp
			}
		}
	}
	return words
}

// problem returns what must not be, of a state in which the coordinator takes some words for the
// group's.
func (w *wordsModel) problem(agreed uint8) string {
	all := agreed | w.told
	if bits.OnesCount8(all) > 1 {
		return fmt.Sprintf("words of terms %b are agreed on, as members say, and those of %b, as leaders say", agreed, w.told)
	}
	if all == 0 {
		return ""
	}
	word := entryOf(uint8(bits.Len8(all)-1), true)
	l := w.logs[w.term]
	if i := l.word(l.len()); word.term() < w.term && (i < 0 || l.at(i) != word) {
		return fmt.Sprintf("the word of term %d is agreed on, and the leader of term %d has the log %x", word.term(), w.term,
			l)
	}
	return ""
}

// exploreWords looks at all states that can come to be, and returns how many there are, how many of
// them have a word that is agreed on, and the first problem.
func exploreWords(n int, terms uint8, rules wordsRules) (states, agreed int, problem string) {
	begin := wordsModel{n: uint8(n), term: 1}
	first := modelLog(0).with(0, entryOf(1, false))
	begin.logs[1] = first
	for i := range n {
		begin.members[i] = modelMember{term: 1, log: first, acked: 1}
	}
	begin.members[0].led = 1 << 1
	begin = begin.settled()
	seen := map[wordsModel]bool{begin: true}
	queue := []wordsModel{begin}
	for len(queue) > 0 {
		w := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		for _, v := range w.next(terms, rules) {
			v = v.settled()
			if seen[v] {
				continue
			}
			words := v.agreed()
			if p := v.problem(words); p != "" {
				return len(seen), agreed, fmt.Sprintf("%s: %+v, after %+v", p, v, w)
			}
			if words != 0 {
				agreed++
			}
			seen[v] = true
			queue = append(queue, v)
		}
	}
	return len(seen), agreed, ""
}

// TestWordsAreRight explores what members of a group say to coordinators in mode direct,
// exhaustively: whichever messages arrive, whoever is elected by whom and whoever forgets what was
// not on disk, the word of a majority on one entry is the group's, whether or not its leader knows,
// and so is what leaders tell.
func TestWordsAreRight(t *testing.T) {
	for _, tc := range []struct {
		members int
		terms   uint8
		rules   wordsRules
		wrong   bool
	}{
		{3, 4, wordsRules{}, false},
		{5, 2, wordsRules{}, false},
		{3, 4, wordsRules{anyTerm: true}, true},
		{3, 3, wordsRules{early: true}, true},
	} {
		states, agreed, problem := exploreWords(tc.members, tc.terms, tc.rules)
		t.Logf("%d members, %d terms, %+v: %d states, %d with a word; %s", tc.members, tc.terms, tc.rules, states, agreed,
			problem)
		switch {
		case tc.wrong && problem == "":
			t.Errorf("%+v goes unnoticed in %d states", tc.rules, states)
		case !tc.wrong && problem != "":
			t.Errorf("%d members: %s", tc.members, problem)
		case !tc.wrong && (states < 1000 || agreed < 100):
			t.Errorf("%d members: only %d states, %d of them with a word", tc.members, states, agreed)
		}
	}
}
