package critpath

import (
	"slices"
	"time"
)

// Outcome is what became of the prediction of a call.
type Outcome uint8

// The outcomes.
const (
	Unpredicted Outcome = iota
	Right
	Wrong
)

// Result is a request as it would have been.
type Result struct {
	// End is on the time axis of Request. It is never earlier than Request.Start and the duration
	// of any call that the request waited for, and without Request.Redo and barriers never later
	// than Request.End.
	End time.Duration
	// Extra is how many calls would have been sent in vain: pure calls that stood on a wrong
	// prediction, each once per wrong prediction on which it would have been sent before the actual
	// answer. An engine that finds that a call needs not be repeated, because its request stays the
	// same, sends fewer.
	Extra int
	// ExtraTime is how long these calls take in all if nobody cancels them.
	ExtraTime time.Duration
}

// Span is when a call would have begun and ended.
type Span struct{ Start, End time.Duration }

// schedule is one way in which a request's calls could have been made.
type schedule struct {
	spans []Span
	// ready[k] is when what stands on the first k of Path.ended knows all their answers, or
	// guesses; known[k] when it has all of the answers.
	ready, known []time.Duration
	// written[k] is when the calls with effects among the first k are answered, ordered[k] when the
	// ordered ones are.
	written, ordered []time.Duration
	held             []time.Duration // how long each call waited for answers that were only predicted
	word             []time.Duration // how long the word that confirms each call was taken to take
	// sure[k] is known[k] had no word taken any time; doubt[k] is the longest word among the first k.
	sure, doubt []time.Duration
}

func newSchedule(n int) schedule {
	of := func() []time.Duration { return make([]time.Duration, n+1) }
	return schedule{make([]Span, n), of(), of(), of(), of(), of(), of(), of(), of()}
}

// Replay makes the request's calls again as they would have been with these outcomes.
func (p *Path) Replay(outcome func(call int) Outcome) Result {
	outcome = p.firm(outcome)
	result := Result{End: p.restarted(outcome)}
	for wrong := range p.r.Calls {
		if outcome(wrong) == Wrong {
			p.addExtra(&result, outcome, wrong)
		}
	}
	return result
}

// maxRestarts bounds how often the times of wrong predictions, which depend on each other, are
// worked out.
const maxRestarts = 3

// restarted fills the actual schedule in and returns when the request ends. A wrong prediction has
// the whole program begin again, so what other strands have not sent by then waits until it has
// computed as far as that.
func (p *Path) restarted(outcome func(int) Outcome) time.Duration {
	p.restarts = p.restarts[:0]
	end := p.run(&p.actual, outcome)
	for range maxRestarts {
		var at []time.Duration
		for i := range p.r.Calls {
			if p.r.Redo && outcome(i) == Wrong && p.redo[i] > 0 {
				at = append(at, p.actual.spans[i].End)
			}
		}
		if slices.Equal(at, p.restarts) {
			break
		}
		p.restarts = at
		end = p.run(&p.actual, outcome)
	}
	p.restarts = p.restarts[:0]
	return end
}

// Held returns how long a call, as it would have been in the last Replay, waited for answers that
// were only predicted.
func (p *Path) Held(call int) time.Duration { return p.actual.held[call] }

// Holding is Replay where some of the pure calls are not sent while something that they stand on is
// only predicted.
func (p *Path) Holding(held []bool, outcome func(call int) Outcome) Result {
	p.holding = held
	defer func() { p.holding = nil }()
	return p.Replay(outcome)
}

// Schedule is Replay for a picture: it tells also when each call would have been made. Calls after
// a wrong prediction are shown as they are repeated.
func (p *Path) Schedule(outcome func(call int) Outcome) ([]Span, Result) {
	result := p.Replay(outcome)
	return append([]Span(nil), p.actual.spans...), result
}

// firm leaves out what is not predicted whatever is said.
func (p *Path) firm(outcome func(int) Outcome) func(int) Outcome {
	return func(i int) Outcome {
		if p.r.Calls[i].Firm {
			return Unpredicted
		}
		return outcome(i)
	}
}

// run fills a schedule in and returns when the request ends.
func (p *Path) run(s *schedule, outcome func(int) Outcome) time.Duration {
	s.ready[0], s.known[0], s.written[0], s.ordered[0], s.sure[0] = p.r.Start, p.r.Start, p.r.Start, p.r.Start, p.r.Start
	filled := 0
	guessed := p.r.Start // when all answers that were predicted so far are there
	// fill computes ready and known up to k. All calls that it needs have their spans: they are
	// earlier in order.
	fill := func(k int) {
		for ; filled < k; filled++ {
			i := p.ended[filled]
			from := s.spans[i].End
			switch outcome(i) {
			case Right: // is there when the program asks, though the call may be held
				from = s.spans[i].Start - s.held[i]
			case Wrong:
				from += p.redo[i]
			case Unpredicted:
			}
			s.ready[filled+1] = max(s.ready[filled], from)
			s.known[filled+1] = max(s.known[filled], s.spans[i].End)
			s.sure[filled+1] = max(s.sure[filled], s.spans[i].End-s.word[i])
			s.doubt[filled+1] = max(s.doubt[filled], s.word[i])
			s.written[filled+1], s.ordered[filled+1] = s.written[filled], s.ordered[filled]
			if p.r.Calls[i].Effects {
				s.written[filled+1] = max(s.written[filled], s.spans[i].End)
			}
			if p.r.Calls[i].Ordered {
				s.ordered[filled+1] = max(s.ordered[filled], s.spans[i].End)
			}
		}
	}
	for _, i := range p.order {
		c, k := &p.r.Calls[i], p.stands[i]
		fill(k)
		start := s.ready[k] + p.gap[i]
		until := s.written[k]
		switch {
		case c.Barrier:
			until = max(guessed, s.known[k])
		case !c.Pure || p.holding != nil && p.holding[i]:
			until = s.known[k]
		case c.Ordered:
			until = max(until, s.ordered[k])
		}
		s.held[i] = max(until-start, 0)
		start += s.held[i]
		for _, at := range p.restarts {
			if start > at {
				start = max(start, at+p.redo[i])
			}
		}
		if c.Again {
			again := s.again(k, start, c.Duration())
			s.held[i] += again - start
			start = again
		}
		end := start + c.Duration()
		s.word[i] = 0
		if c.Staged && s.known[k] > start {
			end, s.word[i] = s.known[k]+c.Duration(), c.Duration()
		}
		s.spans[i] = Span{start, end}
		if outcome(i) == Right {
			guessed = max(guessed, end)
		}
	}
	n := len(p.r.Calls)
	k := p.stands[n]
	fill(k)
	return max(s.ready[k]+p.gap[n], s.known[k])
}

// again returns when an Again call is sent for good that would begin at start. How long the words
// take that confirm staged calls is not known. If they took less than they are taken to take, it
// might begin on a guess; then it is taken to do so as late as that may be.
func (s *schedule) again(k int, start, took time.Duration) time.Duration {
	switch known := s.known[k]; {
	case known > start:
		return max(known, start+took)
	case s.doubt[k] > 0 && s.sure[k] > start-s.doubt[k]:
		return max(start, min(s.sure[k], start)+took)
	}
	return start
}

// Stretch returns when the request would have ended had each call taken so much longer, or shorter
// if that is negative, and all else as long as it did.
func (p *Path) Stretch(longer func(call int) time.Duration) time.Duration {
	s := &p.actual
	s.known[0] = p.r.Start
	filled := 0
	fill := func(k int) {
		for ; filled < k; filled++ {
			s.known[filled+1] = max(s.known[filled], s.spans[p.ended[filled]].End)
		}
	}
	for _, i := range p.order {
		fill(p.stands[i])
		start := s.known[p.stands[i]] + p.gap[i]
		s.spans[i] = Span{start, start + max(p.r.Calls[i].Duration()+longer(i), 0)}
	}
	n := len(p.r.Calls)
	fill(p.stands[n])
	return s.known[p.stands[n]] + p.gap[n]
}

// addExtra adds what would have been sent on a wrong prediction before the actual answer came: what
// begins before that if the prediction were right and all others are as they are.
func (p *Path) addExtra(result *Result, outcome func(int) Outcome, wrong int) {
	p.run(&p.flipped, func(i int) Outcome {
		if i == wrong {
			return Right
		}
		return outcome(i)
	})
	refuted := p.actual.spans[wrong].End
	for i, c := range p.r.Calls {
		if c.Pure && (p.holding == nil || !p.holding[i]) && p.StandsOn(i, wrong) && p.flipped.spans[i].Start < refuted {
			result.Extra++
			result.ExtraTime += c.Duration()
		}
	}
}
