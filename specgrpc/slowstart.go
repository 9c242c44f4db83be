package specgrpc

import "time"

const (
	// firstStreams is how many speculative streams a connection may have of whose peer nothing is
	// known yet, and growEvery how often that is doubled, as long as calls want more and get them.
	firstStreams = 4
	growEvery    = time.Millisecond
	// suspectAfter is for how long a call waits in vain until speculative streams are reset for it,
	// though no limit is known yet, and mostResets how many of them are, and how many within
	// resetSpan at a known limit: some peers close connections on which much is reset.
	suspectAfter = 2 * time.Millisecond
	mostResets   = 64
	resetSpan    = 30 * time.Second
)

// slowStart bounds the speculative streams of a connection on which no limit has shown. If there
// is one it shows when a call waits for a stream, and by then it is too late: speculative streams
// have what confirmed callers need, and keep it for as long as their calls take, or wait for those.
// So there are few at first, and twice as many each millisecond in which calls got their streams:
// grpc hands out what is left without asking the peer. Confirmed callers go first: while one of
// them waits no speculative stream is opened, unless it is found not to wait for the peer. All is
// under the room's mutex.
type slowStart struct {
	most   int       // speculative streams at once, 0 for firstStreams
	grew   time.Time // when it was raised
	pass   bool      // calls may have a stream now although others wait for one
	resets int       // streams that were reset
	again  time.Time // when a call of a confirmed caller asked for a stream anew, see room.again
}

func (s *slowStart) bound() int { return max(s.most, firstStreams) }

// unproven reports whether a speculative call had better wait: the peer, of whose limit nothing is
// known, may not admit one more stream. Under mu.
func (r *room) unproven(keeps bool) bool {
	switch most := r.start.bound(); {
	case time.Since(r.start.again) < growEvery:
		return true
	case r.wanting+r.unasked > 0 && !r.start.pass:
		return true
	case most >= r.most: // it has admitted that many
		return false
	default:
		return r.entered >= most || keeps && r.kept >= most/4
	}
}

// grow lets more speculative calls have streams: those that there are were no trouble. Under mu.
func (r *room) grow(now time.Time) {
	s := &r.start
	if most := s.bound(); len(r.queue) > 0 && (r.entered > most/2 || r.kept >= most/4) {
		s.most, s.grew = 2*most, now
	}
	s.pass = true
	r.serve()
	s.pass = false
}

// growing reports whether speculative streams wait for a look, or have become more of late. Under
// mu.
func (r *room) growing(now time.Time) bool {
	return len(r.queue) > 0 || r.entered > 0 && now.Sub(r.start.grew) < probeEvery
}

// yields returns how many speculative streams are to be reset for calls that wait in vain. Under
// mu.
func (r *room) yields() int {
	s := &r.start
	n := max(0, min(r.wanting-len(r.line), r.entered-r.opening, mostResets-s.resets))
	s.most = max(firstStreams, r.entered/2)
	s.resets += n
	return n
}
