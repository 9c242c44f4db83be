package kit

import (
	"math/rand/v2"
	"testing"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/quorum"
	"github.com/foresay/foresay/smr"
)

// TestRounds has queries come, questions be asked, and answers come late, twice or never, at
// random. A query is answered only after a majority of the voters has answered a question that was
// asked after it came, and up to the slot that they told; and when they all answer, all queries
// are.
func TestRounds(t *testing.T) {
	voters := []protocol.ID{1, 2, 3, 4, 5}
	type query struct {
		after uint64   // the newest question when it came
		slot  smr.Slot // that it waits for by itself
	}
	for seed := range uint64(200) {
		rnd := rand.New(rand.NewPCG(seed, 3))
		state := NewState(&journal{}, group(1))
		env := protocol.NewEnv[smr.Message](nil, 1, rnd)
		cfg := smr.ReplicaConfig{MaxPending: 1000, MaxPendingBytes: 1 << 20}
		var q Rounds
		var queries []query
		answers := map[protocol.ID][]roundAnswer{}
		done, open := 0, 0
		check := func() {
			for _, e := range env.Out[open:] {
				m, ok := e.Msg.(ReadReplies)
				if !ok {
					continue
				}
				for _, r := range m.Items {
					w, n, least := queries[r.ID], 0, smr.Slot(1<<62)
					for _, id := range voters {
						told := smr.Slot(1 << 62)
						for _, a := range answers[id] {
							if a.round > w.after {
								told = min(told, a.slot)
							}
						}
						if told < 1<<62 {
							n++
						}
						least = min(least, told)
					}
					if n < quorum.Majority(len(voters)) || state.Applied() < max(w.slot, least) || int(r.ID) != done {
						t.Fatalf("seed %d: query %d, %+v, is answered as number %d: %d have answered, at least %d, applied are %d", seed,
							r.ID, w, done, n, least, state.Applied())
					}
					done++
				}
			}
			open = len(env.Out)
		}
		answer := func(id protocol.ID, round uint64) {
			a := roundAnswer{round, state.Applied() + smr.Slot(rnd.IntN(3))}
			answers[id] = append(answers[id], a)
			q.Heard(id, a.round, a.slot)
		}
		env.Begin(0)
		for range 300 {
			switch rnd.IntN(5) {
			case 0:
				w := query{q.Round(), state.Applied() + smr.Slot(rnd.IntN(2))}
				queries = append(queries, w)
				q.Take(env, cfg, 9, []Query{{ID: uint64(len(queries) - 1)}}, w.slot)
			case 1:
				q.Next()
			case 2:
				state.Apply(state.Applied()+1, Entry{Kind: NoOp})
			default:
				if q.Round() > 0 {
					answer(voters[rnd.IntN(len(voters))], q.Round()-uint64(rnd.IntN(int(min(q.Round(), 3)))))
				}
			}
			q.Answer(env, state, voters)
			check()
		}
		for range 2 {
			q.Next()
			for _, id := range voters {
				answer(id, q.Round())
			}
			state.Skip(state.Applied() + 10)
			q.Answer(env, state, voters)
			check()
		}
		if done != len(queries) || q.Waiting() {
			t.Fatalf("seed %d: %d of %d queries are answered", seed, done, len(queries))
		}
	}
}

// TestRoundsOfOthers: what was answered before the members changed counts no more, nor what answers
// a question that was not asked; and questions that nobody answers are bounded.
func TestRoundsOfOthers(t *testing.T) {
	state := NewState(&journal{}, group(1))
	env := protocol.NewEnv[smr.Message](nil, 1, nil)
	env.Begin(0)
	cfg := smr.ReplicaConfig{MaxPending: 1000, MaxPendingBytes: 1 << 20}
	var q Rounds
	take := func() { q.Take(env, cfg, 9, []Query{{ID: 1}}, 0) }
	take()
	q.Heard(1, 1, 0)
	q.Heard(2, 1, 0)
	if !q.Next() || q.Answer(env, state, []protocol.ID{1, 2, 3}) != 0 {
		t.Error("a question was answered before it was asked")
	}
	q.Heard(1, 1, 0)
	q.Heard(2, 1, 0)
	if q.Again(0); q.Answer(env, state, []protocol.ID{1, 2, 3}) != 0 {
		t.Error("a query that asks again is answered by earlier words")
	}
	for range 20 {
		take()
		q.Next()
	}
	if q.Round() != maxRounds+1 {
		t.Errorf("%d questions are open", q.Round()-1)
	}
}
