package kit

import (
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/quorum"
	"github.com/foresay/foresay/smr"
)

// Rounds are queries that wait until a majority has answered a question that was asked after they
// came: so nothing was acknowledged before they came that the majority does not know of. What the
// question is, and up to which slot an answer has a query wait, is the protocol's affair. Many
// queries wait for one question. The zero value is ready.
type Rounds struct {
	round   uint64 // the newest question
	heard   map[protocol.ID]roundAnswer
	waiting []roundQueries // in the order in which they came
	held    HeldQueries
}

// roundAnswer is the newest answer of a replica: to which question, and up to which slot it knows
// of something.
type roundAnswer struct {
	round uint64
	slot  smr.Slot
}

type roundQueries struct {
	round   uint64   // the question that they wait for
	known   bool     // it is answered
	slot    smr.Slot // has to be applied
	from    protocol.ID
	queries []Query
}

// maxRounds bounds the questions that are not answered. Queries that come then wait for the next
// one.
const maxRounds = 8

// Take takes queries, which wait at least until a slot is applied. If there is no room it tells the
// client.
func (q *Rounds) Take(
	env *protocol.Env[smr.Message], cfg smr.ReplicaConfig, from protocol.ID, queries []Query, slot smr.Slot,
) bool {
	if !q.held.Take(env, cfg, from, queries) {
		return false
	}
	q.waiting = append(q.waiting, roundQueries{round: q.round + 1, slot: slot, from: from, queries: queries})
	return true
}

// Round returns the number of the newest question.
func (q *Rounds) Round() uint64 { return q.round }

// Waiting reports whether there are queries.
func (q *Rounds) Waiting() bool { return len(q.waiting) > 0 }

// Unanswered reports whether a question that was asked has to be asked again if answers are lost.
func (q *Rounds) Unanswered() bool { return q.Waiting() && q.waiting[0].round <= q.round }

// Due reports whether there are queries for which no question was asked.
func (q *Rounds) Due() bool { return q.Waiting() && q.waiting[len(q.waiting)-1].round > q.round }

// Next begins another question if one is due, and not too many are open.
func (q *Rounds) Next() bool {
	if !q.Due() || q.Unanswered() && q.round-q.waiting[0].round+1 >= maxRounds {
		return false
	}
	q.round++
	return true
}

// Heard takes an answer to a question. One to a question that was not asked is none.
func (q *Rounds) Heard(from protocol.ID, round uint64, slot smr.Slot) {
	if round > q.round {
		return
	}
	if q.heard == nil {
		q.heard = map[protocol.ID]roundAnswer{}
	}
	if h := q.heard[from]; round >= h.round {
		q.heard[from] = roundAnswer{round, max(slot, h.slot)}
	}
}

// Again has all that waits ask anew, of others or in another ballot, and wait for a slot at least.
func (q *Rounds) Again(slot smr.Slot) {
	for i := range q.waiting {
		w := &q.waiting[i]
		w.round, w.known, w.slot = q.round+1, false, max(w.slot, slot)
	}
	q.heard = nil
}

// Answer answers, from the state as it is, the queries whose question a majority of the voters has
// answered and for which enough was applied. It returns how many messages of clients that were.
func (q *Rounds) Answer(env *protocol.Env[smr.Message], s *State, voters []protocol.ID) (n int) {
	for i := range q.waiting {
		w := &q.waiting[i]
		if slot, ok := q.answer(w.round, voters); ok && !w.known {
			w.slot, w.known = max(w.slot, slot), true // what they hear of later does not matter to it
		}
		if i == n && w.known && w.slot <= s.Applied() {
			n++
			q.held.Answer(env, s, w.from, w.queries)
		}
	}
	clear(q.waiting[:n])
	if q.waiting = q.waiting[n:]; len(q.waiting) == 0 {
		q.waiting = nil
	}
	return n
}

// answer returns the last slot that the voters know of who were asked in a round or later; ok is
// false if they are no majority.
func (q *Rounds) answer(round uint64, voters []protocol.ID) (slot smr.Slot, ok bool) {
	n := 0
	for _, id := range voters {
		if h := q.heard[id]; h.round >= round {
			n++
			slot = max(slot, h.slot)
		}
	}
	return slot, n >= quorum.Majority(len(voters))
}
