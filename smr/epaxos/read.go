package epaxos

import (
	"slices"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/quorum"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// reads are queries that wait. A query is no instance: a majority tells what it knows to conflict
// with it, any command that was acknowledged included, and when all that is executed here the state
// is new enough. That is enough for a query of one key, whose commands are executed in one order
// everywhere. One of several keys could see commands of different keys in another order than a
// query elsewhere does, so it takes an instance, which conflicts with everything.
type reads struct {
	round uint64
	queue []read // not asked for yet
	polls []*openPoll
	held  kit.HeldQueries
}

type read struct {
	from    protocol.ID
	queries []kit.Query
}

// openPoll is a question of a majority, for all queries that had come.
type openPoll struct {
	poll
	votes quorum.Votes
	need  deps
	age   int
	reads []read
}

// maxPolls bounds the questions that are not answered. Queries that come then wait for the next
// one.
const maxPolls = 8

func (r *replica) onRead(env *protocol.Env[smr.Message], from protocol.ID, m kit.ReadRequest) {
	if !r.reads.held.Take(env, r.Cfg, from, m.Queries) {
		return
	}
	var one, several []kit.Query
	for _, q := range m.Queries {
		if _, alone := r.queryKeys(q.Body); alone {
			one = append(one, q)
		} else {
			several = append(several, q)
		}
	}
	if len(several) > 0 {
		r.begin(env, &command{Kind: fence}, &proposal{reads: []read{{from, several}}})
	}
	if len(one) > 0 {
		r.reads.queue = append(r.reads.queue, read{from, one})
	}
}

// queryKeys returns the key of a query, none if the state machine does not tell. alone is false if
// a poll is not enough for it.
func (r *replica) queryKeys(query []byte) (keys []string, alone bool) {
	if r.interferer == nil {
		return nil, true // all commands are executed in one order
	}
	keys, ok := r.interferer.Footprint(query)
	return keys, ok && len(keys) == 1
}

// answerReads answers what can be answered, and asks for what has come up.
func (r *replica) answerReads(env *protocol.Env[smr.Message]) {
	l := &r.reads
	if r.active && len(l.queue) > 0 && len(l.polls) < maxPolls {
		r.startPoll(env)
	}
	l.polls = slices.DeleteFunc(l.polls, func(p *openPoll) bool {
		if p.votes.Len() < slowQuorum(len(r.group)) {
			return false
		}
		for k, x := range p.need {
			if r.rows[k].done < x {
				return false
			}
		}
		r.answer(env, p.reads)
		return true
	})
}

func (r *replica) startPoll(env *protocol.Env[smr.Message]) {
	l := &r.reads
	l.round++
	p := &openPoll{reads: l.queue}
	p.head, p.Round, p.All = r.head(), l.round, r.interferer == nil
	l.queue = nil
	var several []read
	for k := range p.reads {
		// What was a query of a fence may be here again.
		rest := p.reads[k].queries[:0:0]
		for _, q := range p.reads[k].queries {
			keys, alone := r.queryKeys(q.Body)
			if !alone {
				several = append(several, read{p.reads[k].from, []kit.Query{q}})
				continue
			}
			rest = append(rest, q)
			for _, key := range keys {
				p.Keys = append(p.Keys, "k"+key)
			}
		}
		p.reads[k].queries = rest
	}
	if len(several) > 0 {
		r.begin(env, &command{Kind: fence}, &proposal{reads: several})
	}
	slices.Sort(p.Keys)
	p.Keys = slices.Compact(p.Keys)
	p.need = r.index.conflicts(footprint{all: p.All, keys: p.Keys})
	p.votes.Add(r.Cfg.ID)
	l.polls = append(l.polls, p)
	r.others(func(id protocol.ID) { r.Admission.SendAhead(env, id, p.poll) })
}

// onPoll tells what conflicts.
func (r *replica) onPoll(env *protocol.Env[smr.Message], from protocol.ID, m poll) {
	r.Admission.SendAhead(env, from, polled{head: r.head(), Round: m.Round,
		Deps: r.index.conflicts(footprint{all: m.All, keys: m.Keys})})
}

func (r *replica) onPolled(from protocol.ID, m polled) {
	if !r.hear(m.Deps) {
		return
	}
	for _, p := range r.reads.polls {
		if p.Round == m.Round && p.votes.Len() < slowQuorum(len(r.group)) && p.votes.Add(from) {
			p.need.join(m.Deps)
		}
	}
}

// answer answers queries from the state as it is.
func (r *replica) answer(env *protocol.Env[smr.Message], all []read) {
	for _, q := range all {
		r.reads.held.Answer(env, r.State, q.from, q.queries)
	}
}

// restart asks again in a new generation.
func (l *reads) restart() {
	for _, p := range l.polls {
		l.queue = append(l.queue, p.reads...)
	}
	l.polls = nil
}
