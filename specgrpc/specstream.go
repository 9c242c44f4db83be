package specgrpc

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"

	"github.com/foresay/foresay/driver"

	specv1 "github.com/foresay/foresay/api/foresay/spec/v1"
)

const (
	// abortGrace is how long a peer may take to end a stream that it has
	// nothing more to do with before the stream is reset. Resets are the last
	// resort: some peers punish them, some proxies disguise them.
	abortGrace = time.Second
	// smallRequestBytes is the size up to which the word that follows a request
	// is sent without waiting for the peer: well within grpc's write quota.
	smallRequestBytes = 16 << 10
)

// counted says as what a stream takes up room.
type counted uint8

const (
	uncounted counted = iota
	countedFirm
	countedGuess
)

// specStream is the client's end of one speculative stream. Its attempt's
// goroutine reads it until the result is in; from then on nobody does, until
// the caller's word is known, is sent, and the rest is drained.
type specStream struct {
	conn    *ClientConn
	method  *method
	attempt *driver.Attempt
	id      attemptID
	stream  grpc.ClientStream
	stop    context.CancelFunc // ends own; nil until that is made
	own     unlimited          // its context; here to save an allocation
	lease   time.Duration
	limit   time.Duration // the call's own time limit, from Confirm on; 0 for none
	small   bool          // the word can be sent without waiting

	opened   atomic.Bool // it counts against the peer's limit
	answered atomic.Bool // the result is in, and stands whatever becomes of the stream

	// In the connection's list, under its mutex.
	listed       bool
	counted      counted
	makesRoom    bool // it is to end, or has, for another call
	older, newer *specStream

	mu        sync.Mutex
	word      word
	why       string // why the client itself gave the stream up, if it did
	reading   bool   // the attempt's goroutine reads, and drains if there is a word when it ends
	armed     bool   // its request has left: words may be sent
	over      bool
	cancelled bool // by cancel
	timer     *time.Timer
	due       time.Time // when the timer counts; zero if it does not
	asked     time.Time // when its request left

	voice sync.Mutex // held while the word is sent
	mute  bool       // the stream has ended: no word leaves any more
	said  bool       // the word has left
}

// resolve gives the stream the caller's word. Only the first word counts.
func (s *specStream) resolve(ok bool) {
	w := aborted
	if ok {
		w = confirmed
		s.limitTo(s.attempt.Limit()) // that of the code which turned out right
	}
	s.give(w, "")
}

// limitTo bounds how long the call takes once its caller is right; 0 is no bound.
func (s *specStream) limitTo(limit time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if limit > 0 && (s.limit == 0 || limit < s.limit) {
		s.limit = limit
	}
}

// late reports whether the server must have undone the call by now: it had no
// word for the length of the lease. The timer may not have told yet, in a
// process that stood still. One clock may have stood still with it. Under mu.
func (s *specStream) late() bool {
	now := time.Now()
	return max(now.Sub(s.asked), now.Round(0).Sub(s.asked.Round(0))) >= s.lease
}

// evict aborts the stream although its caller may be right. It reports false if
// the stream has its word already.
func (s *specStream) evict(why string) bool { return s.give(aborted, why) }

func (s *specStream) give(w word, why string) bool {
	s.mu.Lock()
	if s.over || s.word != noWord {
		s.mu.Unlock()
		return false
	}
	if w == confirmed && s.armed && s.late() {
		s.mu.Unlock()
		s.expire()
		return true
	}
	s.word, s.why = w, why
	reading := s.reading
	if !s.armed {
		// It is aborted while its request is being sent, beside which nothing may be.
		s.mu.Unlock()
		s.conn.half.remove(s)
		s.cancel()
		return true
	}
	switch {
	case w == confirmed && reading && s.limit > 0:
		s.after(s.limit) // an ordinary call from now on
	case w == confirmed && reading:
		s.timer.Stop()
		s.due = time.Time{}
	default:
		s.after(abortGrace)
	}
	s.mu.Unlock()
	s.conn.half.remove(s)
	s.debug("caller's word", "word", w.String(), "reason", why)
	if reading && s.small {
		s.say(w)
		return true
	}
	go func() {
		s.say(w)
		if !reading {
			s.drain(new(specv1.ServerFrame))
		}
	}()
	return true
}

// say sends the word. If it cannot be sent the stream is over, and reading it
// tells why.
func (s *specStream) say(w word) {
	frame := s.id.abort()
	if w == confirmed {
		frame = s.id.confirm()
	}
	s.voice.Lock()
	defer s.voice.Unlock()
	if s.mute {
		return
	}
	if s.said = s.stream.SendMsg(frame) == nil; s.said {
		_ = s.stream.CloseSend()
	}
}

// silence keeps a word that has not left from leaving, and reports whether one has.
func (s *specStream) silence() (said bool) {
	s.voice.Lock()
	defer s.voice.Unlock()
	s.mute = true
	return s.said
}

// limitOver is why a confirmed call is given up.
const limitOver = "the call's time limit is over"

// tick runs when the timer tells that the stream's time is up: its lease, the
// call's time limit, or the grace to end it. The timer may have told of one and
// been set for the next before anybody heard it.
func (s *specStream) tick() {
	s.mu.Lock()
	early := s.due.IsZero() || time.Now().Before(s.due)
	s.mu.Unlock()
	if !early {
		s.expire()
	}
}

// expire ends a stream whose time is up.
func (s *specStream) expire() {
	s.mu.Lock()
	if s.over {
		s.mu.Unlock()
		return
	}
	switch {
	case s.word == noWord:
		s.word, s.why = aborted, "no word for the length of its lease, "+s.lease.String()
	case s.word == confirmed && s.why == "":
		s.why = limitOver
	}
	reading := s.reading
	s.mu.Unlock()
	s.debug("stream reset")
	s.cancel()
	if !reading {
		s.end()
	}
}

// drop resets the stream: the context that the interceptors gave it ended.
func (s *specStream) drop() {
	s.mu.Lock()
	if s.over || !s.reading {
		s.mu.Unlock()
		return
	}
	if s.word == noWord {
		s.word, s.why = aborted, "its context ended"
	}
	s.mu.Unlock()
	s.cancel()
}

// beat notes that the server is alive.
func (s *specStream) beat() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.word == noWord && s.timer != nil {
		s.after(s.lease)
	}
}

// settle ends the reading, with the result at hand, and reports whether there
// is a word already, so that the attempt's goroutine drains the stream.
func (s *specStream) settle() {
	s.mu.Lock()
	waits := s.word == noWord
	if waits {
		s.reading = false
		s.answered.Store(true)
	} else {
		s.after(abortGrace)
	}
	s.mu.Unlock()
	if waits && s.conn.half.room.tight() {
		s.conn.half.dismiss(s)
	}
}

// after has tick run after d, in place of what was to come. Under mu.
func (s *specStream) after(d time.Duration) {
	s.due = time.Now().Add(d)
	if s.timer == nil {
		s.timer = time.AfterFunc(d, s.tick)
	} else {
		s.timer.Reset(d)
	}
}

// drainIfResolved reads the rest of the stream if that is left to the attempt's
// goroutine.
func (s *specStream) drainIfResolved() {
	s.mu.Lock()
	mine := s.reading && !s.over
	s.mu.Unlock()
	if mine {
		s.drain(new(specv1.ServerFrame))
	}
}

// drain waits for the end of the stream. What the server sends after its result
// does not count; frame is room for it.
func (s *specStream) drain(frame *specv1.ServerFrame) {
	for range maxPredictions {
		if s.stream.RecvMsg(frame) != nil {
			break
		}
		s.debug("frame after the result")
	}
	s.end()
}

// end releases what the stream holds. It may be called again.
func (s *specStream) end() {
	s.mu.Lock()
	s.over = true
	if s.timer != nil {
		s.timer.Stop()
	}
	s.mu.Unlock()
	s.cancel()
	s.conn.half.ended(s)
}

// cancel ends the stream's context, and the one that it is to get.
func (s *specStream) cancel() {
	s.mu.Lock()
	s.cancelled = true
	stop := s.stop
	s.mu.Unlock()
	if stop != nil {
		stop()
	}
}

// ends gives the stream what ends its context, which may have come too late.
func (s *specStream) ends(stop context.CancelFunc) {
	s.mu.Lock()
	s.stop = stop
	cancelled := s.cancelled
	s.mu.Unlock()
	if cancelled {
		stop()
	}
}

func (s *specStream) debug(msg string, args ...any) {
	l := s.conn.cfg.logger
	if l.Enabled(context.Background(), slog.LevelDebug) {
		l.Debug("specgrpc: "+msg, append(args, "method", s.method.name, "target", s.conn.cc.Target(), "call",
			s.id.String())...)
	}
}

// gaveUp returns why the client itself gave the stream up, if it did.
func (s *specStream) gaveUp() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.why
}
