package str

import (
	"slices"
	"time"

	"github.com/foresay/foresay/clock"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
)

// copies are the snapshots of the whole shard that somebody copies, with when a page of each was
// asked for last. Only a leader keeps versions for them.
type copies struct {
	of map[clock.Stamp]time.Duration // nil: it has never led
	// began is when this server began to lead: it does not know what its predecessor kept.
	began time.Duration
}

const (
	// pageBytes is about how much of the state a page of a snapshot looks at; maxCursorBytes is more
	// than a cursor takes.
	pageBytes      = 256 << 10
	maxCursorBytes = 3 * store.MaxKeyBytes
	// A snapshot is kept for copyTimes Config.Retain after its last page was asked for; of those there
	// are maxCopies at most.
	copyTimes = 10
	maxCopies = 64
)

// onPage serves a page of a snapshot of the whole shard. That is a read of all its keys: it is
// noted as one, and waits for everybody who may still turn out to be in the snapshot. It also waits
// for this server's clock, lest all commits be above a time that is far away.
func (s *server) onPage(env *protocol.Env[store.Message], from protocol.ID, m store.PageRequest) {
	if m.Shard != s.self || len(m.From) > maxCursorBytes {
		return
	}
	now := uint64(max(env.Now, 1))
	if m.At == 0 {
		m.At = now
	}
	out := store.PageReply{Ref: m.Ref, At: m.At}
	switch {
	case m.At > now+uint64(s.cfg.MaxAhead):
		out.Reason = store.Ahead
	case m.At > now:
		out.Reason = store.Locked
	default:
		out = s.page(env, clock.Stamp(m.At), m)
	}
	env.Send(from, out)
}

func (s *server) page(env *protocol.Env[store.Message], at clock.Stamp, m store.PageRequest) store.PageReply {
	state := s.group.State(env)
	out := store.PageReply{Ref: m.Ref, At: uint64(at), Horizon: uint64(s.state.values.Horizon(state))}
	switch {
	case s.deaf():
		out.Reason = store.Fenced
		return out
	case uint64(at) < out.Horizon:
		out.Reason = store.Old
		return out
	}
	s.keep(env, at)
	if at > s.reads.Ceiling() {
		s.wantCeiling(env, at)
		out.Reason = store.Locked
		return out
	}
	s.noted = max(s.noted, at)
	if s.mayChange(at) {
		out.Reason = store.Locked
		return out
	}
	page, err := s.state.values.Snapshot(state, at, m.From, s.mode.page())
	if err != nil {
		out.Reason = store.Old
		return out
	}
	out.Next = page.Next
	for _, i := range page.Items {
		out.Items = append(out.Items, store.Item(i))
	}
	return out
}

// mayChange reports whether somebody may commit at or below a timestamp, or has, and the group has
// not carried it out here.
func (s *server) mayChange(at clock.Stamp) bool {
	for _, h := range s.held { //pure:ok any one is enough
		if h.over == nil && h.shownFrom() <= at || h.over != nil && h.over.Commit && h.over.At <= at {
			return true
		}
	}
	return false
}

// keep has the leader keep the versions of a snapshot that is copied.
func (s *server) keep(env *protocol.Env[store.Message], at clock.Stamp) {
	if s.group.Current() {
		s.copies.add(at, env.Now)
	} else if leader := s.group.Leader().ID; leader != 0 && leader != s.cfg.ID {
		env.Send(leader, raise{Shard: s.self, Keep: at})
	}
}

func (c *copies) add(at clock.Stamp, now time.Duration) {
	if _, ok := c.of[at]; ok || len(c.of) < maxCopies {
		c.of[at] = now
	}
}

// lead begins anew, as a leader does.
func (c *copies) lead(now time.Duration) { *c = copies{map[clock.Stamp]time.Duration{}, now} }

// horizon returns before which timestamp versions are given up: what was overwritten retain ago,
// unless a snapshot from before is copied. 0: nothing is.
func (c *copies) horizon(now, retain time.Duration) clock.Stamp {
	if now-c.began < retain {
		return 0
	}
	h := clock.Stamp(now - retain)
	for at, asked := range c.of { //pure:ok the least of all
		if age := now - asked; age > copyTimes*retain || age < 0 { // its clock may be set back
			delete(c.of, at)
			continue
		}
		h = min(h, at)
	}
	return max(h, 0)
}

// onRaise does what a member asks for.
func (s *server) onRaise(env *protocol.Env[store.Message], from protocol.ID, m raise) {
	members, _ := s.group.Members()
	if !s.group.Current() || !slices.Contains(members, from) || m.At > clock.Stamp(env.Now+s.cfg.MaxAhead) {
		return
	}
	if m.Admit && slices.Contains(s.state.books.deaf, from) && s.wants(env, from) {
		s.propose(env, reader{Server: from, Serves: true})
	}
	if m.Keep > 0 {
		s.copies.add(m.Keep, env.Now)
	}
	if m.At > 0 {
		s.raised = env.Now
		s.raise(env, m.At)
	}
}
