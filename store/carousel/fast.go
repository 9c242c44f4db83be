package carousel

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/foresay/foresay/internal/wirefmt"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
)

// The fast path: Carousel's Prepare Consensus [Carousel §3.2.2], and what a new leader has to find
// out because of it [§3.2.3].
//
// Say T writes x. Each of the partition's three members prepares T by itself, puts it on its list,
// on disk, and tells the coordinator. The three agree on the versions, so T may be committed
// although the log has nothing of it yet. Now the leader crashes. A new one that knew the log only
// would give x to U (plant "C7: a new leader asks nobody").
//
// The rule: a new leader serves only when it has the lists of a majority, and has put into the log
// what most of them have and the log does not contradict. A member that gives its list away
// promises to prepare nothing more in earlier terms. Otherwise its vote could complete T's
// supermajority after the new leader has looked (plant "C7: who has given its list may go on in the
// old term"). Votes count together only on the same versions, of keys that are written as well: a
// member that lags knows neither what was written last nor who had x before (plants C5).

// fastList is a member's pending-transaction list: what it has prepared on its own, and the group
// has not said its word on. It is on the member's disk, beside the group's state.
type fastList struct {
	entries map[partID]pending
	locks   locks
	since   map[partID]time.Duration
	// promised is the least term in which the member prepares still.
	promised uint64

	// While a leader recovers:
	recovering uint64 // its term; 0: it does not
	current    bool
	lists      map[protocol.ID][]pending
	awaited    map[partID]bool // parts that are to be on record before it serves; nil: not known yet
}

const (
	listPrefix  = "fast/p"
	promisedKey = "fast/t"
)

var (
	pendingLayout = wirefmt.NewLayout("carousel: an entry of the pending-transaction list", pendingFields)
	termLayout    = wirefmt.NewLayout("carousel: a promise", wirefmt.Uint[uint64])
)

func listKey(p partID) []byte { return append([]byte(listPrefix), partKey(p)...) }

// load reads the list from the disk.
func (l *fastList) load(env *protocol.Env[store.Message]) {
	*l = fastList{entries: map[partID]pending{}, locks: locks{}, since: map[partID]time.Duration{}}
	for _, b := range env.Scan([]byte(listPrefix), []byte(listPrefix+"\xff")) {
		p := mustDecode(pendingLayout, b)
		l.entries[p.Part] = p
		l.locks.add(p.Part.ID, p.footprint)
	}
	if b, ok := env.Get([]byte(promisedKey)); ok {
		l.promised = mustDecode(termLayout, b)
	}
}

// add puts an entry on the list.
func (l *fastList) add(env *protocol.Env[store.Message], p pending) {
	l.entries[p.Part] = p
	l.locks.add(p.Part.ID, p.footprint)
	l.since[p.Part] = env.Now
	env.Put(listKey(p.Part), pendingLayout.Encode(p))
}

// drop takes an entry off the list: the group has said its word.
func (l *fastList) drop(env *protocol.Env[store.Message], id partID) {
	if p, ok := l.entries[id]; ok {
		l.locks.remove(id.ID, p.footprint)
		delete(l.entries, id)
		delete(l.since, id)
		env.Delete(listKey(id))
	}
}

// dropAll does that for all parts of a transaction.
func (l *fastList) dropAll(env *protocol.Env[store.Message], id store.TxnID) {
	if len(l.entries) == 0 {
		return
	}
	for step := uint32(1); step <= maxSteps; step++ {
		l.drop(env, partID{id, step})
	}
}

func (l *fastList) sorted() (out []pending) {
	for _, id := range slices.SortedFunc(maps.Keys(l.entries), comparePartIDs) {
		out = append(out, l.entries[id])
	}
	return out
}

// before returns the entries of terms before one.
func (l *fastList) before(term uint64) []pending {
	return slices.DeleteFunc(l.sorted(), func(p pending) bool { return p.Term >= term })
}

func (l *fastList) check() error {
	locks := locks{}
	for _, p := range l.entries { //pure:ok any broken one is an error
		if locks.conflict(p.Part.ID, p.footprint) {
			return fmt.Errorf("part %v is on the list against its conflicts", p.Part)
		}
		locks.add(p.Part.ID, p.footprint)
	}
	return nil
}

// prepareFast prepares a part as a follower. One that conflicts, or is too late, is not answered:
// the leader's word is on its way.
func (s *server) prepareFast(env *protocol.Env[store.Message], m prepareRequest) {
	if p, ok := s.list.entries[m.Part]; ok {
		s.sayFast(env, p, 0)
		return
	}
	term := s.group.Term()
	f := s.footprint(env, m)
	if term < s.list.promised || s.list.recovering != 0 || s.state.knows(m.Part) {
		return
	}
	if s.state.locks.conflict(m.Part.ID, f) || s.list.locks.conflict(m.Part.ID, f) || s.isReserved(env, m) {
		s.reserve(env, m)
		return
	}
	s.sayFast(env, pending{m.Part, term, m.Coord, f}, 0)
}

// sayFast tells the coordinator what the member has prepared. It is on the list, on disk, before.
func (s *server) sayFast(env *protocol.Env[store.Message], p pending, stamp uint64) {
	if _, ok := s.list.entries[p.Part]; !ok {
		// Promised: another one leads, or is about to. A conflict: a leader that has said otherwise as
		// a follower.
		if p.Term < s.list.promised || s.list.locks.conflict(p.Part.ID, p.footprint) {
			return
		}
		s.list.add(env, p)
	} else if stamp > 0 && s.list.entries[p.Part].Term != p.Term {
		return
	}
	out := fastVote{Ref: partRef{s.self, p.Part.Step}, ID: p.Part.ID, Term: p.Term, Leader: stamp > 0, Stamp: stamp,
		Footprint: p.footprint}
	if out.Leader {
		out.Members, _ = s.group.Members()
	}
	env.Send(s.where.leader(p.Coord), out)
}

// sweepList has the leader say its word on what is on the list for long: it may never have heard of
// it.
func (s *server) sweepList(env *protocol.Env[store.Message]) {
	if s.list.recovering != 0 {
		s.askMissingLists(env)
		s.maybeRecover(env, s.list.recovering)
	}
	for _, p := range s.list.sorted() {
		at, ok := s.list.since[p.Part]
		switch leader := s.group.Leader().ID; {
		case s.state.knows(p.Part):
			s.list.drop(env, p.Part)
		case !ok:
			s.list.since[p.Part] = env.Now
		case env.Now-at > s.trips(askAfter) && leader != 0:
			m := prepareRequest{Part: p.Part, Coord: p.Coord}
			for _, r := range p.Reads {
				m.Reads = append(m.Reads, r.Key)
			}
			for _, w := range p.Writes {
				m.Writes = append(m.Writes, w.Key)
			}
			env.Send(leader, m)
		}
	}
}

// askLists begins a new leader's recovery: it asks all members what they have prepared in earlier
// terms.
func (s *server) askLists(env *protocol.Env[store.Message], term uint64) {
	l := &s.list
	l.recovering, l.current, l.awaited = term, false, nil
	l.lists = map[protocol.ID][]pending{}
	s.promise(env, term)
	l.lists[s.cfg.ID] = l.before(term)
	s.askMissingLists(env)
}

func (s *server) askMissingLists(env *protocol.Env[store.Message]) {
	members, _ := s.group.Members()
	for _, id := range members {
		if _, ok := s.list.lists[id]; !ok && s.list.awaited == nil {
			env.Send(id, listWanted{Term: s.list.recovering})
		}
	}
}

// promise has the member prepare nothing more in terms before one.
func (s *server) promise(env *protocol.Env[store.Message], term uint64) {
	if term > s.list.promised {
		s.list.promised = term
		env.Put([]byte(promisedKey), termLayout.Encode(term))
	}
}

func (s *server) onListWanted(env *protocol.Env[store.Message], from protocol.ID, m listWanted) {
	if !s.where.isMember(s.self, from) || !s.fast {
		return
	}
	s.promise(env, m.Term)
	env.Send(from, listReply{m.Term, s.list.before(m.Term)})
}

func (s *server) onListReply(env *protocol.Env[store.Message], from protocol.ID, m listReply) {
	if !s.where.isMember(s.self, from) || s.list.recovering == 0 || m.Term != s.list.recovering ||
		s.list.awaited != nil {
		return
	}
	s.list.lists[from] = m.List
	s.maybeRecover(env, m.Term)
}

// maybeRecover prepares what may be prepared on the fast path, once f+1 lists are there and the
// state has all that earlier leaders have had the group agree on.
func (s *server) maybeRecover(env *protocol.Env[store.Message], term uint64) {
	l := &s.list
	members, _ := s.group.Members()
	var lists [][]pending
	for _, id := range slices.Sorted(maps.Keys(l.lists)) {
		if slices.Contains(members, id) { // as of all changes that earlier leaders have had agreed
			lists = append(lists, l.lists[id])
		}
	}
	if l.recovering != term || !l.current || l.awaited != nil || len(lists) < len(members)/2+1 {
		return
	}
	l.awaited = map[partID]bool{}
	for _, p := range recover(lists, func(p pending) bool { return s.state.fits(s.group.State(env), p) }) {
		l.awaited[p.Part] = true
		e := &prepared{Part: p.Part, Coord: p.Coord, Recovered: true,
			Ballot: ballot{Yes: true, Stamp: s.stamp(env, p.footprint), footprint: p.footprint}}
		if !s.fly(env, e) {
			l.awaited = nil // the next sweep tries again
			return
		}
	}
	s.maybeServe(env)
}

// fits reports whether a part that is on lists can be prepared: the group has said nothing on it,
// it conflicts with nothing that is prepared, and the versions are the newest, of what is read and
// of what is written. If it does not fit, no leader has prepared it.
func (s *state) fits(keys protocol.Keys, p pending) bool {
	if s.knows(p.Part) || s.locks.conflict(p.Part.ID, p.footprint) {
		return false
	}
	for _, r := range slices.Concat(p.Reads, p.Writes) {
		if s.values.Newest(keys, r.Key).Version != r.Version {
			return false
		}
	}
	return true
}

// wasRecovered takes note that a part is on record.
func (s *server) wasRecovered(env *protocol.Env[store.Message], id partID) {
	delete(s.list.awaited, id)
	s.maybeServe(env)
}

func (s *server) maybeServe(env *protocol.Env[store.Message]) {
	if l := &s.list; l.recovering != 0 && l.awaited != nil && len(l.awaited) == 0 {
		term := l.recovering
		l.stopRecovery()
		s.serve(env, term)
	}
}

func (l *fastList) stopRecovery() {
	l.recovering, l.current, l.lists, l.awaited = 0, false, nil, nil
}
