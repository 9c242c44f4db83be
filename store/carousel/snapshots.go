package carousel

import (
	"maps"
	"math"
	"slices"
	"time"

	"github.com/foresay/foresay/clock"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/mvcc"
)

// Read-only transactions at timestamps [Carousel §3.2.4]: see DESIGN.md, "Reads at timestamps".
//
// Say R reads x and y as of 10, and T writes both. R takes no locks. If T is prepared at x when R
// comes, and may get a version up to 10, R waits for T's end (plant "C1: nobody waits for what is
// prepared"). If R comes first, the leader remembers that x was read as of 10, and stamps T above
// that (plant "C1: what is written may be before a read"). T's version is the largest of its
// stamps, so R sees both of T's writes or neither.
//
// A new leader does not know what was read. So a leader serves no read as of a time above a ceiling
// that is in the group's log, and the next one stamps all writes above it (plant "C2: a leader
// begins below the ceiling"). A leader that was deposed and does not know it can therefore serve
// the past only, and needs no lease.

// snapshots is what a serving leader knows of reads at timestamps.
type snapshots struct {
	reads *mvcc.Reads
	// waiting are requests by the transaction that is in their way; the zero one: a ceiling.
	waiting map[store.TxnID][]waiting
	waits   int           // how many
	used    time.Duration // when one was asked for last; 0: never
}

// waiting is a snapshotRequest or a checkRequest that cannot be answered yet.
type waiting struct {
	from  protocol.ID
	ask   store.Message
	since time.Duration
}

// Of these, the first is how many keys a leader remembers the latest read of. Counts of round trips
// are how far ahead of time a ceiling is raised, how much further it is raised then, and how long
// that goes on when nobody reads.
const (
	rememberedReads = 100_000
	ceilingMargin   = 3
	ceilingStep     = 1
	ceilingsFor     = 64
)

// newSnapshots returns those of a leader that begins to serve, with the ceiling that is on record.
func (s *server) newSnapshots(ceiling clock.Stamp) snapshots {
	reads, err := mvcc.NewReads(ceiling, s.trips(ceilingStep), rememberedReads)
	if err != nil {
		panic(err) // the configuration is valid
	}
	return snapshots{reads: reads, waiting: map[store.TxnID][]waiting{}}
}

// onSnapshot serves a read at a timestamp, or says why not, or has it wait.
func (s *server) onSnapshot(env *protocol.Env[store.Message], from protocol.ID, m snapshotRequest) {
	if !s.validReads(m.Reads) || m.At > maxStamp || s.elsewhere(env, from, m.ID) {
		return
	}
	s.snapshot(env, waiting{from, m, env.Now})
}

// maxStamp leaves room for timestamps above it.
const maxStamp = math.MaxInt64 / 2

// validReads reports whether a list of reads is in order, and of this partition.
func (s *server) validReads(reads []store.Read) bool {
	for i, r := range reads {
		if i > 0 && r.Key <= reads[i-1].Key || len(r.Key) > store.MaxKeyBytes ||
			uint32(s.cfg.Layout.ShardOf(r.Key)) != s.self {
			return false
		}
	}
	return len(reads) > 0 && len(reads) <= store.MaxAccesses
}

func (s *server) snapshot(env *protocol.Env[store.Message], w waiting) {
	m := w.ask.(snapshotRequest)
	out := snapshotReply{ID: m.ID, Shard: s.self, At: m.At}
	if m.At > 0 {
		s.used = max(env.Now, 1)
		var on store.TxnID
		var wait bool
		if out.Reason = s.refusesSnapshot(env, m); out.Reason == store.NoReason {
			if on, wait = s.inTheWay(env, m); wait {
				if s.wait(env, w, on) {
					return
				}
				out.Reason = store.Overloaded
			}
		}
	}
	if out.Reason == store.NoReason {
		out.Values, out.Reason = s.valuesAt(env, m)
	}
	env.Send(w.from, out)
}

// refusesSnapshot reports whether clocks are too far apart for a read at a timestamp: the reader's
// is ahead, or this one is not what a strict read may rely on. What was carried out here has passed
// on all clocks, if they keep their bound.
func (s *server) refusesSnapshot(env *protocol.Env[store.Message], m snapshotRequest) store.Reason {
	now := max(env.Now, 0)
	if m.At > clock.Stamp(now+s.cfg.MaxOffset) || m.Strict && (s.clocks.off() || s.state.latest > uint64(now)) {
		return store.Ahead
	}
	return store.NoReason
}

// inTheWay reports whether a read at a timestamp has to wait, and for which transaction's end; the
// zero one is a ceiling.
func (s *server) inTheWay(env *protocol.Env[store.Message], m snapshotRequest) (on store.TxnID, wait bool) {
	for _, r := range m.Reads {
		if id, ok := s.writerUpTo(r.Key, m.At); ok {
			return id, true
		}
	}
	if m.At > s.reads.Ceiling() {
		return store.TxnID{}, true
	}
	return store.TxnID{}, false
}

// writerUpTo returns the transaction, if there is one, that is prepared to write a key and may get
// a version at or below a timestamp. The version of one that was recovered may have been told, and
// is not known here: it may be any.
func (s *server) writerUpTo(key store.Key, at clock.Stamp) (id store.TxnID, ok bool) {
	if l := s.state.locks[key]; l != nil && !l.writer.IsZero() {
		for _, p := range s.state.partsOf(l.writer) {
			if p.ballot.writes(key) && (p.recovered || p.ballot.Stamp <= uint64(at)) {
				return l.writer, true
			}
		}
	}
	if l := s.flyingLocks[key]; l != nil && !l.writer.IsZero() {
		for step := uint32(1); step <= maxSteps; step++ {
			p := s.flying[partID{l.writer, step}]
			if p != nil && p.Ballot.writes(key) && p.Ballot.Stamp <= uint64(at) {
				return l.writer, true
			}
		}
	}
	return store.TxnID{}, false
}

// valuesAt serves a read. From then on what is written is later. A strict one sees nothing that was
// overwritten since: that may have been told, as of another time.
func (s *server) valuesAt(env *protocol.Env[store.Message], m snapshotRequest) ([]store.Value, store.Reason) {
	var out []store.Value
	state := s.group.State(env)
	for _, r := range m.Reads {
		v := s.state.values.Newest(state, r.Key)
		if m.At > 0 && v.Version.Time > uint64(m.At) {
			if m.Strict {
				return nil, store.StaleRead
			}
			var err error
			if v, err = s.state.values.Get(state, r.Key, m.At); err != nil {
				return nil, store.Old
			}
		}
		if !m.Values && v.Version != r.Version {
			return nil, store.StaleRead
		}
		if m.Values {
			out = append(out, v)
		}
	}
	if m.At > 0 {
		s.note(m.Reads, m.At)
	}
	return out, store.NoReason
}

// note has what is written from now on be later than these reads, which are not above the ceiling.
func (s *server) note(reads []store.Read, at clock.Stamp) {
	for _, r := range reads {
		s.reads.Serve(r.Key, at)
	}
}

// wait has a request wait for a transaction's end, or a ceiling; false: too many wait.
func (s *server) wait(env *protocol.Env[store.Message], w waiting, on store.TxnID) bool {
	if s.waits >= s.cfg.MaxWaiting {
		return false
	}
	s.waiting[on] = append(s.waiting[on], w)
	s.waits++
	if on.IsZero() {
		at := clock.Stamp(0)
		switch m := w.ask.(type) {
		case snapshotRequest:
			at = m.At
		case checkRequest:
			at = m.At
		}
		s.raise(env, at)
	}
	return true
}

// raise has the group put a ceiling on record, unless that is under way.
func (s *server) raise(env *protocol.Env[store.Message], at clock.Stamp) {
	if c, ok := s.reads.Raise(at); ok {
		if _, ok := s.propose(env, raised{c}); !ok {
			s.reads.Failed()
		}
	}
}

// wake looks again at what has waited for a transaction's end, or for a ceiling.
func (s *server) wake(env *protocol.Env[store.Message], id store.TxnID) {
	woken := s.waiting[id]
	delete(s.waiting, id)
	s.waits -= len(woken)
	for _, w := range woken {
		switch w.ask.(type) {
		case snapshotRequest:
			s.snapshot(env, w)
		case checkRequest:
			s.checkAt(env, w)
		}
	}
}

// sweepSnapshots has ceilings rise as long as somebody reads, so that nobody waits for them, and
// tells who has waited for long to ask otherwise.
func (s *server) sweepSnapshots(env *protocol.Env[store.Message]) {
	if s.used > 0 && env.Now-s.used < s.trips(ceilingsFor) && !s.clocks.off() {
		s.raise(env, clock.Stamp(max(env.Now, 0)+s.trips(ceilingMargin)))
	}
	for _, id := range slices.SortedFunc(maps.Keys(s.waiting), store.TxnID.Compare) {
		var left []waiting
		for _, w := range s.waiting[id] {
			m, ok := w.ask.(snapshotRequest)
			if env.Now-w.since <= s.trips(askAfter) && env.Now >= w.since {
				left = append(left, w)
				continue
			}
			if s.waits--; ok {
				env.Send(w.from, snapshotReply{ID: m.ID, Shard: s.self, At: m.At, Reason: store.Locked})
			}
		}
		if s.waiting[id] = left; len(left) == 0 {
			delete(s.waiting, id)
		}
		if id.IsZero() && len(left) == 0 {
			s.reads.Failed() // what was to raise it may be lost
		}
	}
}
