package carousel

import (
	"math"
	"time"

	"github.com/foresay/foresay/clock"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr/raft"
	"github.com/foresay/foresay/store"
)

// Closed timestamps, and the collection of versions: see DESIGN.md, "Closed timestamps".

// closing is what a serving leader knows of timestamps that it closes.
type closing struct {
	// asked is the latest that it has closed: nothing is prepared at or below it any more. The group
	// may not have it on record yet.
	asked   clock.Stamp
	wanted  time.Duration // when somebody wanted to read at closed timestamps last; 0: never
	began   time.Duration // when it began to serve
	held    map[clock.Stamp]time.Duration
	raising int // entries that raise the horizon, proposed and not applied yet
}

// A leader closes timestamps for so many round trips after somebody wanted that. A snapshot that is
// copied is kept for heldFor times Config.Retain after its last page was asked for; of those there
// are maxHeld at most. An entry removes collectLimit versions at most.
const (
	closesFor    = 64
	heldFor      = 10
	maxHeld      = 64
	collectLimit = 1024
)

// newClosing returns that of a leader that begins to serve.
func newClosing(closed clock.Stamp, now time.Duration) closing {
	return closing{asked: closed, began: now, held: map[clock.Stamp]time.Duration{}}
}

// sweepClosed closes what is past if somebody reads, or if there are versions that no snapshot
// needs any more.
func (s *server) sweepClosed(env *protocol.Env[store.Message]) {
	h := s.horizon(env)
	collects := h > 0 && s.raising == 0 && s.state.values.HasGarbage(s.group.State(env), h)
	reads := s.wanted > 0 && env.Now-s.wanted < s.trips(closesFor)
	if !collects {
		h = 0
	}
	if (reads || collects) && !s.clocks.off() {
		s.close(env, h)
	}
}

// close has the group close all timestamps up to now, and give up the snapshots before a horizon.
func (s *server) close(env *protocol.Env[store.Message], horizon clock.Stamp) {
	at := clock.Stamp(max(env.Now, 0))
	if _, ok := s.propose(env, closed{At: at, Horizon: horizon}); !ok {
		return
	}
	s.asked = max(s.asked, at)
	if horizon > 0 {
		s.raising++
	}
}

// horizon returns before which timestamp versions are given up: what was overwritten Config.Retain
// ago, unless somebody copies a snapshot from before. A leader that has just begun does not know of
// those yet. 0: nothing is.
func (s *server) horizon(env *protocol.Env[store.Message]) clock.Stamp {
	if env.Now-s.began < s.cfg.Retain {
		return 0
	}
	h := clock.Stamp(env.Now - s.cfg.Retain)
	for at, asked := range s.held { //pure:ok the least of all
		if age := env.Now - asked; age > heldFor*s.cfg.Retain || age < 0 {
			delete(s.held, at)
			continue
		}
		h = min(h, at)
	}
	return max(h, 0)
}

// onCloseWanted takes note that somebody reads at closed timestamps, and which snapshot is copied.
func (s *server) onCloseWanted(env *protocol.Env[store.Message], from protocol.ID, m closeWanted) {
	if s.term > 0 && s.where.isMember(s.self, from) {
		s.wantClosed(env, m.Hold)
	}
}

func (s *server) wantClosed(env *protocol.Env[store.Message], hold clock.Stamp) {
	s.wanted = max(env.Now, 1)
	if _, ok := s.held[hold]; hold > 0 && (ok || len(s.held) < maxHeld) {
		s.held[hold] = env.Now
	}
}

// askClosed tells the leader that somebody reads at closed timestamps here. A leader takes note
// itself.
func (s *server) askClosed(env *protocol.Env[store.Message], hold clock.Stamp) {
	if s.term > 0 {
		s.wantClosed(env, hold)
		return
	}
	leader := s.group.Leader().ID
	if leader == 0 || leader == s.cfg.ID || hold == 0 && !s.wanting.isDue(leader, env.Now, s.trips(wantedEvery)) {
		return
	}
	s.wanting = wanting{leader, env.Now}
	env.Send(leader, closeWanted{Hold: hold})
}

// wanting is which leader a member has told that somebody reads at closed timestamps, and when.
type wanting struct {
	told protocol.ID
	at   time.Duration
}

// isDue reports whether a leader is to be told, which is so once in a while.
func (w wanting) isDue(leader protocol.ID, now, while time.Duration) bool {
	return leader != w.told || now-w.at >= while || now < w.at
}

// closedAt returns the timestamp up to which this member may serve snapshots alone.
func (s *server) closedAt(env *protocol.Env[store.Message]) clock.Stamp {
	return s.state.values.Closed(s.group.State(env))
}

// pageBytes is about how much of the state a page of a snapshot looks at; maxCursorBytes is more
// than a cursor takes.
const (
	pageBytes      = 256 << 10
	maxCursorBytes = 3 * store.MaxKeyBytes
)

// onPage serves a page of a snapshot, which is kept as long as somebody asks for pages of it.
func (s *server) onPage(env *protocol.Env[store.Message], from protocol.ID, m store.PageRequest) {
	if m.Shard != s.self || len(m.From) > maxCursorBytes {
		return
	}
	now := uint64(max(env.Now, 1))
	if m.At == 0 {
		m.At = now
	}
	out := store.PageReply{Ref: m.Ref, At: m.At, Reason: store.Ahead}
	if m.At <= now+uint64(s.cfg.MaxOffset) {
		out = s.page(env, clock.Stamp(m.At), m)
	}
	env.Send(from, out)
}

func (s *server) page(env *protocol.Env[store.Message], at clock.Stamp, m store.PageRequest) store.PageReply {
	out := store.PageReply{Ref: m.Ref, At: uint64(at), Reason: store.Locked}
	state := s.group.State(env)
	out.Horizon = uint64(s.state.values.Horizon(state))
	if uint64(at) < out.Horizon {
		out.Reason = store.Old
		return out
	}
	s.askClosed(env, at)
	if at > s.closedAt(env) {
		return out
	}
	page, err := s.state.values.Snapshot(state, at, m.From, pageBytes)
	if err != nil {
		out.Reason = store.Old
		return out
	}
	out.Reason, out.Next = store.NoReason, page.Next
	for _, i := range page.Items {
		out.Items = append(out.Items, store.Item(i))
	}
	return out
}

// wasClosed goes on with the collection while there is more.
func (s *server) wasClosed(env *protocol.Env[store.Message], m closed) {
	if s.term == 0 || m.Horizon == 0 {
		return
	}
	if s.raising = max(s.raising-1, 0); s.state.more && s.raising == 0 {
		if h := s.horizon(env); h > 0 {
			s.close(env, h)
		}
	}
}

// close closes timestamps: what is prepared later is above them, as its leader knows. What is
// prepared already may end at its stamp, so that nothing from there on is closed; what was
// recovered may end at any. No write can come at or below the horizon then.
func (s *state) close(st raft.State, m closed) {
	at := m.At
	for _, p := range s.parts { //pure:ok the least of all
		if p.recovered {
			at = 0
			break
		}
		if !p.ballot.Yes {
			continue
		}
		at = min(at, clock.Stamp(min(p.ballot.Stamp, math.MaxInt64))-1)
	}
	s.values.RaiseClosed(st, at)
	s.more = false
	if m.Horizon > 0 {
		s.values.RaiseHorizon(st, min(m.Horizon, s.values.Closed(st)))
		// Votes and lists name the newest versions of keys: a collection must not change these.
		_, s.more = s.values.CollectOverwritten(st, collectLimit)
	}
}
