package spectree

import (
	"math"
	"math/rand/v2"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/foresay/foresay/internal/race"
)

// many is how many calls a task of these tests makes.
const many = 10_000

// wide are limits that do not keep a task of many calls from speculating.
var wide = Limits{Depth: 2 * many, Width: 4, Replays: 64, Runs: 16}

// TestManyCalls checks that what a call costs does not grow with how many there are, however
// they are made and in whatever order they are answered. If it did, a task of 10,000 would
// take hundreds of times as long as the simplest one. Both are played in turns, and the
// shortest of several tries counts, so that other work of the machine does not.
func TestManyCalls(t *testing.T) {
	tests := append(manyCalls(), manyLanes()...)
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			const tries, times = 10, 50
			simple, took := time.Duration(math.MaxInt64), time.Duration(math.MaxInt64)
			for range tries {
				simple, took = min(simple, tests[0].takes(t)), min(took, test.takes(t))
				if race.Enabled || took < times*simple {
					return
				}
			}
			t.Errorf("it takes %v, more than %d times the %v of the simplest one", took, times, simple)
		})
	}
}

// takes returns how long the task takes.
func (test task) takes(t *testing.T) time.Duration {
	s := play(t, Config{Replayable: true, Limits: wide})
	runtime.GC() // of what the one before left
	start := time.Now()
	test.play(s)
	return time.Since(start)
}

// task is a task of many calls.
type task struct {
	name string
	play func(s *scenario)
}

// manyCalls are made in one lane.
func manyCalls() []task {
	return []task{
		{"one lane", func(s *scenario) {
			s.many(one, CallSpec{Predictions: 1})
			s.finish()
		}},
		{"one lane, no predictions", func(s *scenario) {
			s.many(one, CallSpec{})
			s.finish()
		}},
		{"effects", func(s *scenario) {
			s.many(one, CallSpec{Effect: Immediate})
			s.finish()
		}},
		{"effects, predicted", func(s *scenario) {
			s.many(one, CallSpec{Effect: Immediate, Predictions: 1})
			s.finish()
		}},
		{"staged effects that commute", func(s *scenario) {
			s.many(one, CallSpec{Effect: Staged, Conflict: "own", Predictions: 1})
			s.finish()

		}},
		{"ordered", func(s *scenario) {
			s.many(one, CallSpec{Ordered: true, Predictions: 1})
			s.finish()
		}},
		{"equal", func(s *scenario) {
			s.many(same, CallSpec{Predictions: 1})
			s.finish()
		}},
		{"once", func(s *scenario) {
			s.many(one, CallSpec{Effect: Immediate, Once: true})
			s.finish()
		}},
		{"a replay that stands on many guesses", func(s *scenario) {
			s.many(one, CallSpec{Predictions: 1})
			s.Answered(s.read(s.lane(1), "wrong", 1).Call, Actual)
			s.many(one, CallSpec{Predictions: 1})
			s.finish()
		}},
		{"a replay of ordered calls of goroutines that share a lane", func(s *scenario) {
			wrong := s.read(s.lane(1), "wrong", 1)
			s.read(s.lane(1), "other", 0)
			for _, u := range s.many(one, CallSpec{Ordered: true, Predictions: 1}) {
				s.Answered(u.Call, 0)
			}
			s.Answered(wrong.Call, Actual)
			s.many(one, CallSpec{Ordered: true, Predictions: 1})
			s.finish()
		}},
		{"all wrong", func(s *scenario) {
			for _, u := range s.many(one, CallSpec{Predictions: 2}) {
				s.Answered(u.Call, Actual)
			}
			s.Expire(true)
		}},
		{"the caller's word", func(s *scenario) {
			s.caller = CallerOpen
			s.many(one, CallSpec{Effect: Staged, Conflict: "own", Predictions: 1})
			s.ConfirmCaller()
			s.finish()
		}},
	}
}

// manyLanes make few calls each.
func manyLanes() []task {
	return []task{
		{"lanes", func(s *scenario) {
			s.many(each, CallSpec{Predictions: 1})
			s.finish()
		}},
		{"lanes, joined", func(s *scenario) {
			uses := s.many(each, CallSpec{Predictions: 1})
			s.joinAll(uses)
			s.read(s.lane(1), "last", 1)
			s.finish()
		}},
		{"effects in lanes, joined", func(s *scenario) {
			uses := s.many(each, CallSpec{Effect: Immediate, Conflict: "own", Predictions: 1})
			s.joinAll(uses)
			s.write(s.lane(1), "last", Immediate, 1)
			s.finish()
		}},
		{"effects in lanes that follow each other", func(s *scenario) {
			for i := range many {
				l := s.Fork(s.lane(1))
				s.Call(l, &CallSpec{Op: "w", Effect: Staged, Conflict: strconv.Itoa(i), Predictions: 1})
				s.Join(s.lane(1), l)
			}
			s.finish()
		}},
		{"local", func(s *scenario) {
			s.read(s.lane(1), "first", 1)
			for i := range many {
				l := s.Fork(s.lane(1))
				u := s.Call(s.lane(1), &CallSpec{Op: strconv.Itoa(i), Local: true, Predictions: 1})
				s.Resolve(u.Call, []*Lane{l}, 0)
			}
			s.finish()
		}},
		{"local, each of the one before", func(s *scenario) {
			l := s.lane(1)
			first := s.read(l, "first", 1)
			var uses []*Use
			for i := range many {
				child := s.Fork(l)
				uses = append(uses, s.Call(l, &CallSpec{Op: strconv.Itoa(i), Local: true, Predictions: 1}))
				s.Resolve(uses[i].Call, []*Lane{child}, 0)
				l = s.Fork(l)
			}
			s.Answered(first.Call, 0)
			s.finish()
		}},
		{"lanes within lanes", func(s *scenario) {
			lanes := []*Lane{s.lane(1)}
			for i := range many / 4 {
				lanes = append(lanes, s.Fork(lanes[i]))
				s.Call(lanes[i+1], &CallSpec{Op: "w", Effect: Staged, Conflict: strconv.Itoa(i), Predictions: 1})
			}
			for i := len(lanes) - 1; i > 0; i-- {
				s.Join(lanes[i-1], lanes[i])
			}
			s.write(s.lane(1), "last", Immediate, 0)
			s.finish()
		}},
		{"a replay of all", func(s *scenario) {
			wrong := s.read(s.lane(1), "wrong", 1)
			s.many(each, CallSpec{Predictions: 1})
			s.Answered(wrong.Call, Actual)
			s.read(s.lane(2), "wrong", 0)
			s.many(each, CallSpec{Predictions: 1})
			s.finish()

		}},
		{"a replay of effects", func(s *scenario) {
			for _, u := range s.many(each, CallSpec{Effect: Immediate}) {
				s.Answered(u.Call, Actual)
			}
			s.Answered(s.read(s.lane(1), "wrong", 1).Call, Actual)
			uses := s.many(each, CallSpec{Effect: Immediate})
			for i, u := range uses[:many/2] { // effects beyond those that happened, all lanes but one being behind
				s.Call(u.lane, &CallSpec{Op: "more", Effect: Immediate, Conflict: strconv.Itoa(i)})
			}
			s.read(s.lane(2), "wrong", 0)
			s.finish()
		}},
	}
}

// How the calls of a task differ.
const (
	one  = iota // many operations in one lane
	each        // each in a lane of its own
	same        // the same operation in one lane
)

// many has the newest run make calls.
func (s *scenario) many(how int, spec CallSpec) []*Use {
	l := s.runs[len(s.runs)-1].Main()
	var uses []*Use
	for i := range many {
		in, c := l, spec
		switch how {
		case one:
			c.Op = strconv.Itoa(i)
		case each:
			in = s.Fork(l)
		}
		if c.Conflict != "" {
			c.Conflict = strconv.Itoa(i)
		}
		uses = append(uses, s.Call(in, &c))
	}
	return uses
}

func (s *scenario) joinAll(uses []*Use) {
	for _, u := range uses {
		s.Join(s.lane(1), u.lane)
	}
}

// finish answers the calls in random order, each once it was really sent, and
// has the run return.
func (s *scenario) finish() {
	s.Helper()
	rng := rand.New(rand.NewPCG(1, 2))
	var ready []*Call
	for {
		for _, a := range s.Take() {
			if a.Kind == Confirm || a.Kind == Send && !(a.Speculative && a.Call.Effect() == Staged) {
				ready = append(ready, a.Call)
			}
		}
		if len(ready) == 0 {
			break
		}
		i, last := rng.IntN(len(ready)), len(ready)-1
		c := ready[i]
		ready[i], ready = ready[last], ready[:last]
		if c.predictions > 0 {
			s.Answered(c, 0)
		} else {
			s.Answered(c, Actual)
		}
	}
	s.returned(s.runs[0])
	if !s.Over() || s.final == nil {
		s.Error("the task is not over")
	}
}
