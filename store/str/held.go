package str

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/foresay/foresay/clock"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr/raft"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/kit"
)

// stage is how far a transaction is at a member.
type stage uint8

const (
	tentative stage = iota // certified for a coordinator of the site, and not in the log
	inLog                  // its entry is in the log, and may be overwritten
	agreed                 // its entry was applied
)

// held is a transaction that may write keys here. Once it has a stamp, reads of its keys in
// snapshots at or above that wait for its outcome. It keeps its stamp from stage to stage.
type held struct {
	part  part // a tentative one has keys, and no values yet
	stage stage
	at    raft.Position // of its entry
	stamp clock.Stamp
	// blind says that the commit may be below this member's stamp, as the member served no reads when
	// the transaction was certified: reads of all snapshots above the transaction's own wait.
	blind bool
	heard time.Duration // when its coordinator was heard of last
	// over is what became of it, as its coordinator has said and the group has not agreed yet.
	over *outcome
	// gaveWay says that a tentative one has given way to one in the log, and released when its
	// coordinator has said that nobody sees it; 0: it has not.
	gaveWay  bool
	released time.Duration
	// before are tentative transactions that have given way to this one, and that their coordinator
	// may still show to others: this member does not give its word until that is over.
	before map[store.TxnID]bool
	// wanted are coordinators that are to finish it, and have asked for this member's word.
	wanted []protocol.ID
}

// stampOf returns what a transaction's commit has to be above at this member: its snapshot, and the
// snapshots of all who have read its keys and not seen it [STR §6.3, PreciseClock].
func (s *server) stampOf(env *protocol.Env[store.Message], p part) clock.Stamp {
	above := max(p.At, s.noted, s.state.books.floor)
	for _, w := range p.Writes {
		above = max(above, s.shown.Above(w.Key))
		above = max(above, s.reads.Above(w.Key))
	}
	if s.mode.physical {
		above = max(above, clock.Stamp(env.Now))
	}
	return above + 1
}

// shownFrom returns the snapshot from which on reads wait for a transaction.
func (h *held) shownFrom() clock.Stamp {
	if h.blind {
		return h.part.At + 1
	}
	return h.stamp
}

// servesAgain makes a member that counts as a reader again blind to what is on its way: its word on
// that may not count.
func (s *server) servesAgain(env *protocol.Env[store.Message]) {
	for _, h := range s.all() {
		if h.stage != tentative {
			h.blind = true
			s.putOwn(env, h)
		}
	}
}

// doesWithout has a leader tell coordinators, which may wait for a member's word, that the member
// serves no reads any more.
func (s *server) doesWithout(env *protocol.Env[store.Message], id protocol.ID) {
	if _, leads := s.group.Leads(); !leads {
		return
	}
	for _, h := range s.all() {
		if slices.Contains(h.part.Readers, id) {
			s.say(env, h)
		}
	}
}

// all returns what is held, in order.
func (s *server) all() []*held {
	var out []*held
	for _, h := range s.held { //pure:ok they are sorted
		out = append(out, h)
	}
	slices.SortFunc(out, func(a, b *held) int { return a.part.ID.Compare(b.part.ID) })
	return out
}

// add holds a transaction.
func (s *server) add(env *protocol.Env[store.Message], h *held) {
	h.heard = env.Now
	s.held[h.part.ID] = h
	s.list(h)
	s.touch(h)
}

// become replaces what is held by the part whose entry is in the log.
func (s *server) become(h *held, p part) {
	s.unlist(h)
	h.part = p
	s.list(h)
}

// list files what is held under its keys.
func (s *server) list(h *held) {
	for _, w := range h.part.Writes {
		s.byKey[w.Key] = append(s.byKey[w.Key], h)
	}
}

func (s *server) unlist(h *held) {
	for _, w := range h.part.Writes {
		left := slices.DeleteFunc(s.byKey[w.Key], func(o *held) bool { return o == h })
		if s.byKey[w.Key] = left; len(left) == 0 {
			delete(s.byKey, w.Key)
		}
	}
}

// drop forgets a transaction.
func (s *server) drop(env *protocol.Env[store.Message], h *held) {
	delete(s.held, h.part.ID)
	s.unlist(h)
	env.Delete(store.TxnKey(ownPrefix, h.part.ID))
	s.touch(h)
	s.unseen(env, h.part.ID)
}

// touch has the requests that wait for a transaction's keys tried again.
func (s *server) touch(h *held) {
	for _, w := range h.part.Writes {
		s.waits.touch(w.Key)
	}
}

// unseen takes note that nobody sees a tentative transaction any more.
func (s *server) unseen(env *protocol.Env[store.Message], id store.TxnID) {
	for _, by := range s.gaveWay[id] {
		if h := s.held[by]; h != nil && h.before[id] {
			delete(h.before, id)
			s.say(env, h)
		}
	}
	delete(s.gaveWay, id)
}

// stored takes note that an entry is in the log here.
func (s *server) stored(env *protocol.Env[store.Message], at raft.Position, command []byte) {
	m, _ := s.state.format.Decode(command)
	switch m := m.(type) {
	case prepare:
		s.isLogged(env, at, m.Part)
	case confirm:
		s.isConfirmed(env, at, m.ID)
	case decide:
		s.wasShown(m.ID, m.Read)
	}
}

// isConfirmed tells a transaction's coordinator that the entry is in the log here which says that
// its client was right.
func (s *server) isConfirmed(env *protocol.Env[store.Message], at raft.Position, id store.TxnID) {
	h := s.held[id]
	if h == nil {
		return
	}
	out := confirmed{Shard: s.self, ID: id, At: at}
	before := h.stage == agreed || h.stage == inLog && s.logHas(h) && h.at.Index < at.Index
	if _, leads := s.group.Leads(); leads && before && !s.proposed[id] && !s.fenced[id] && !s.doubted[id] {
		out.Members, _ = s.group.Members()
	}
	env.Send(h.part.Origin, out)
}

// wasShown takes note of the latest snapshot in which a coordinator has shown what a transaction
// writes, before it was final. Who is to write one of its keys is certified after that.
func (s *server) wasShown(id store.TxnID, at clock.Stamp) {
	h := s.held[id]
	if h == nil { // nobody knows which keys they are
		s.noted = max(s.noted, at)
		return
	}
	for _, w := range h.part.Writes {
		s.shown.Serve(w.Key, at)
	}
}

// isLogged holds a part whose entry is in the log, makes what is certified at the site only give
// way to it, and gives its coordinator this member's word.
func (s *server) isLogged(env *protocol.Env[store.Message], at raft.Position, p part) {
	if s.state.known(s.group.State(env), p.ID).State != waiting {
		return
	}
	h := s.held[p.ID]
	if h == nil {
		h = &held{part: p, stamp: s.stampOf(env, p)}
		s.add(env, h)
	}
	s.become(h, p)
	h.at = at
	h.blind = h.blind || !slices.Contains(p.Readers, s.cfg.ID)
	if h.stage == tentative {
		h.stage = inLog
	}
	s.logged = append(slices.DeleteFunc(s.logged, func(o *held) bool { return o == h }), h)
	s.displace(env, h)
	s.putOwn(env, h)
	s.say(env, h)
}

// displace makes tentative transactions give way that conflict with one in the log [STR Alg. 2
// l. 32]. Their coordinator may have shown them to others.
func (s *server) displace(env *protocol.Env[store.Message], h *held) {
	for _, w := range h.part.Writes {
		for _, o := range s.byKey[w.Key] {
			if o.stage != tentative || o == h || slices.Contains(h.part.Over, o.part.ID) ||
				slices.Contains(o.part.Over, h.part.ID) {
				continue
			}
			if h.before == nil {
				h.before = map[store.TxnID]bool{}
			}
			if !h.before[o.part.ID] {
				h.before[o.part.ID] = true
				s.gaveWay[o.part.ID] = append(s.gaveWay[o.part.ID], h.part.ID)
			}
			o.gaveWay = true
			env.Send(o.part.Origin, displaced{s.self, o.part.ID})
		}
	}
}

func (s *server) putOwn(env *protocol.Env[store.Message], h *held) {
	env.Put(store.TxnKey(ownPrefix, h.part.ID), ownLayout.Encode(ownWord{h.part, h.at, h.stamp, h.blind}))
}

// say gives a transaction's coordinator this member's word, once nobody sees what has given way.
func (s *server) say(env *protocol.Env[store.Message], h *held) {
	if h.stage == tentative || len(h.before) > 0 {
		return
	}
	s.sayTo(env, h.part.Origin, h)
}

func (s *server) sayTo(env *protocol.Env[store.Message], to protocol.ID, h *held) {
	m := word{Shard: s.self, ID: h.part.ID, At: h.at, Stamp: h.stamp, Above: h.part.Past, Readers: h.part.Readers}
	if _, leads := s.group.Leads(); leads {
		m.Members, _ = s.group.Members()
		m.Serving, m.Past = s.serving(m.Members), s.state.books.floor
	}
	env.Send(to, m)
}

// wasPrepared takes note that an entry of the log was carried out.
func (s *server) wasPrepared(env *protocol.Env[store.Message], at raft.Position, p part, r result) {
	if r.State != prepared {
		s.isOver(env, p.ID, r)
		return
	}
	o := s.state.open[p.ID]
	if o == nil {
		return // a later entry has ended it, and is carried out, too
	}
	h := s.held[p.ID]
	if h == nil {
		h = &held{part: p, stamp: s.stampOf(env, p)}
		s.add(env, h)
	}
	said := h.stage != tentative && h.at == o.at
	s.become(h, o.part)
	h.at, h.stage = o.at, agreed
	h.blind = h.blind || !slices.Contains(o.part.Readers, s.cfg.ID)
	s.touch(h)
	if !said {
		s.displace(env, h)
		s.putOwn(env, h)
		s.say(env, h)
	}
}

// isOver takes note of a transaction's end, as the group has agreed.
func (s *server) isOver(env *protocol.Env[store.Message], id store.TxnID, r result) {
	if r.State == prepared || r.State == waiting {
		return
	}
	if h := s.held[id]; h != nil {
		s.drop(env, h)
	}
	s.waits.touchPrepare(id)
}

// applied drops parts whose place in the log turned out to hold something else. Those of the site's
// coordinators are tentative again: this server's word may have gone along with them (S20).
func (s *server) applied(env *protocol.Env[store.Message], at raft.Position) {
	for len(s.logged) > 0 && s.logged[0].at.Index <= at.Index {
		h := s.logged[0]
		s.logged = s.logged[1:]
		switch {
		case h.stage != inLog || s.held[h.part.ID] != h:
		case slices.Contains(s.cfg.Layout.Sites[s.place.Site].Coordinators, h.part.Origin):
			h.stage, h.at, h.heard = tentative, raft.Position{}, env.Now
			s.putOwn(env, h)
			s.touch(h)
		default:
			s.drop(env, h)
		}
	}
}

// loadOwn takes over the words that this member has given and that are on its disk, those to
// coordinators of its site too.
func (s *server) loadOwn(env *protocol.Env[store.Message]) {
	for _, b := range env.Scan([]byte(ownPrefix), []byte(ownPrefix[:len(ownPrefix)-1]+"0")) {
		o := read(ownLayout, b)
		h := &held{part: o.part, at: o.at, stamp: o.stamp, blind: o.blind}
		if s.add(env, h); h.at.Index > 0 {
			h.stage, s.logged = inLog, append(s.logged, h)
		}
	}
	for _, h := range s.logged {
		s.displace(env, h)
	}
	slices.SortFunc(s.logged, func(a, b *held) int { return int(a.at.Index) - int(b.at.Index) })
}

// takeOver takes over a state that was on disk, or that has replaced this member's, if there is
// one. Nobody remembers who has read what, here before a restart, or of what was decided in
// between; but it was all at or below the ceiling.
func (s *server) takeOver(env *protocol.Env[store.Message]) {
	if !s.state.loaded {
		return
	}
	s.state.loaded = false
	state := s.group.State(env)
	ceiling := s.state.values.Ceiling(state)
	s.reads.Recorded(ceiling)
	s.noted = max(s.noted, ceiling)
	for _, h := range s.all() {
		if h.stage == agreed && s.state.open[h.part.ID] == nil {
			s.drop(env, h)
		}
	}
	for _, id := range s.openIDs() {
		s.wasPrepared(env, s.state.open[id].at, s.state.open[id].part, result{State: prepared})
	}
	s.applied(env, s.group.Applied())
	s.servesAgain(env) // that entry may have come with the state
	s.waits.touchAll()
}

// onWordWanted says once more what this member has on its disk.
func (s *server) onWordWanted(env *protocol.Env[store.Message], from protocol.ID, m wordWanted) {
	h := s.held[m.ID]
	if h == nil || h.stage == tentative {
		return
	}
	if from != h.part.Origin && !slices.Contains(h.wanted, from) && siteOf(s.cfg.Layout, from) >= 0 {
		h.wanted = append(h.wanted, from)
	}
	if len(h.before) == 0 {
		s.sayTo(env, from, h)
	}
	for _, id := range slices.SortedFunc(maps.Keys(h.before), store.TxnID.Compare) {
		if o := s.held[id]; o != nil {
			env.Send(o.part.Origin, displaced{s.self, id})
		}
	}
	if !s.group.Current() {
		return
	}
	for _, id := range m.Missing {
		s.doWithout(env, id)
	}
}

// onOutcome takes the outcome from the coordinator, so that whoever waits for the transaction need
// not wait until the group has it on record.
func (s *server) onOutcome(env *protocol.Env[store.Message], m outcome) {
	s.wasShown(m.ID, m.Read)
	h := s.held[m.ID]
	switch {
	case h == nil:
	case h.stage == tentative:
		if !m.Commit {
			s.drop(env, h)
		}
	case h.over == nil:
		h.over = &m
		s.touch(h)
	}
}

// onRelease takes note that nobody sees a tentative transaction any more. One that has given way
// may be prepared all the same: its coordinator may have been started again, and not know it. Then
// this server's word went along, and stands (S20), so the transaction is held until the group has
// spoken.
func (s *server) onRelease(env *protocol.Env[store.Message], from protocol.ID, m release) {
	h := s.held[m.ID]
	if h != nil && h.stage == tentative && h.part.Origin == from {
		if h.gaveWay {
			h.released = cmp.Or(h.released, env.Now)
		} else {
			s.drop(env, h)
		}
	}
	s.unseen(env, m.ID)
	s.waits.dropCertify(m.ID)
}

// sweepTentative has the group refuse what is certified at the site only and was given up: unless
// it is prepared, when its entry comes here by and by.
func (s *server) sweepTentative(env *protocol.Env[store.Message]) {
	for _, h := range s.all() {
		if h.stage != tentative {
			continue
		}
		silent := env.Now-h.heard > tentativeTrips*s.cfg.RoundTrip
		if silent {
			s.noted = max(s.noted, s.reads.Ceiling()) // its coordinator may count on that: see vouchesUntil
		}
		if silent || h.released > 0 && env.Now-h.released > releasedTrips*s.cfg.RoundTrip {
			s.fence(env, h.part.ID)
		}
		if h.gaveWay && h.released == 0 {
			env.Send(h.part.Origin, displaced{s.self, h.part.ID})
		}
	}
}

// fence has the group refuse a transaction that is not prepared.
func (s *server) fence(env *protocol.Env[store.Message], id store.TxnID) {
	if s.group.Current() {
		if !s.fenced[id] {
			s.propose(env, fence{id})
		}
		return
	}
	if leader := s.group.Leader().ID; leader != 0 && leader != s.cfg.ID {
		command := kit.Encoded(s.state.format, fence{id})
		env.Send(leader, kit.Ask{Shard: s.self, Command: command}) // what it answers is in the log, too
	}
}

func (s *server) checkHeld() error {
	n := 0
	for id, h := range s.held { //pure:ok any broken one is an error
		if h.part.ID != id || h.stamp <= h.part.At || (h.stage == agreed) != (s.state.open[id] != nil) {
			return fmt.Errorf("str: server %d: %v is held as %v in stage %d, stamped %v", s.cfg.ID, id, h.part, h.stage, h.stamp)
		}
	}
	for key, all := range s.byKey { //pure:ok likewise
		n += len(all)
		for _, h := range all {
			if s.held[h.part.ID] != h {
				return fmt.Errorf("str: server %d: %q is kept for %v, which is not held", s.cfg.ID, key, h.part.ID)
			}
		}
	}
	if len(s.state.open) > len(s.held) {
		return fmt.Errorf("str: server %d: %d transactions are prepared, and %d held", s.cfg.ID, len(s.state.open),
			len(s.held))
	}
	return nil
}
