package spectree

import (
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/foresay/foresay/internal/race"
)

// many is how many calls a task of these tests makes, at most.
const many = 10_000

// wide are limits that do not keep a task of many calls from speculating.
var wide = Limits{Depth: 2 * many, Width: 4, Replays: 64, Runs: 16}

// TestManyCalls checks that what a call costs does not grow with how many there are, however they
// are made and in whatever order they are answered. If it did, a task would take four times as long
// as four tasks of a quarter of its calls each, or nearly so. These are as much work, so a busy
// machine interrupts them as often. They are played in turns, and the shortest of several tries
// counts.
func TestManyCalls(t *testing.T) {
	for _, test := range append(manyCalls(), manyLanes()...) {
		t.Run(test.name, func(t *testing.T) {
			const tries, parts = 20, 4
			four, one := time.Duration(math.MaxInt64), time.Duration(math.MaxInt64)
			for range tries {
				four, one = min(four, test.takes(t, parts)), min(one, test.takes(t, 1))
				if race.Enabled || 2*one < 5*four {
					return
				}
			}
			t.Errorf("%d calls of one task take %v, as many of %d tasks %v", many, one, parts, four)
		})
	}
}

// takes returns how long so many tasks take that share the calls.
func (test task) takes(t *testing.T, tasks int) time.Duration {
	var all []*sized
	for range tasks {
		all = append(all, &sized{play(t, Config{Replayable: true, Limits: wide}), many / tasks})
	}
	runtime.GC() // of what those before left
	start := time.Now()
	for _, s := range all {
		test.play(s)
	}
	return time.Since(start)
}

// task is a task of many calls.
type task struct {
	name string
	play func(s *sized)
}

// sized is a scenario of so many calls.
type sized struct {
	*scenario
	calls int
}

// manyCalls are made in one lane.
func manyCalls() []task {
	return []task{
		{"one lane", func(s *sized) {
			s.many(one, CallSpec{Predictions: 1})
			s.finish()
		}},
		{"one lane, no predictions", func(s *sized) {
			s.many(one, CallSpec{})
			s.finish()
		}},
		{"effects", func(s *sized) {
			s.many(one, CallSpec{Effect: Immediate})
			s.finish()
		}},
		{"effects, predicted", func(s *sized) {
			s.many(one, CallSpec{Effect: Immediate, Predictions: 1})
			s.finish()
		}},
		{"staged effects that commute", func(s *sized) {
			s.many(one, CallSpec{Effect: Staged, Conflict: "own", Predictions: 1})
			s.finish()

		}},
		{"predicated", func(s *sized) {
			s.many(one, CallSpec{Effect: Predicated, Domain: new(Domain), Predictions: 1})
			s.finish()
		}},
		{"ordered", func(s *sized) {
			s.many(one, CallSpec{Ordered: true, Predictions: 1})
			s.finish()
		}},
		{"equal", func(s *sized) {
			s.many(same, CallSpec{Predictions: 1})
			s.finish()
		}},
		{"once", func(s *sized) {
			s.many(one, CallSpec{Effect: Immediate, Once: true})
			s.finish()
		}},
		{"a replay that stands on many guesses", func(s *sized) {
			s.many(one, CallSpec{Predictions: 1})
			s.Answered(s.read(s.lane(1), "wrong", 1).Call, Actual)
			s.many(one, CallSpec{Predictions: 1})
			s.finish()
		}},
		{"a replay of ordered calls of goroutines that share a lane", func(s *sized) {
			wrong := s.read(s.lane(1), "wrong", 1)
			s.read(s.lane(1), "other", 0)
			for _, u := range s.many(one, CallSpec{Ordered: true, Predictions: 1}) {
				s.Answered(u.Call, 0)
			}
			s.Answered(wrong.Call, Actual)
			s.many(one, CallSpec{Ordered: true, Predictions: 1})
			s.finish()
		}},
		{"all wrong", func(s *sized) {
			for _, u := range s.many(one, CallSpec{Predictions: 2}) {
				s.Answered(u.Call, Actual)
			}
			s.Expire(true)
		}},
		{"the caller's word", func(s *sized) {
			s.caller = CallerOpen
			s.many(one, CallSpec{Effect: Staged, Conflict: "own", Predictions: 1})
			s.ConfirmCaller()
			s.finish()
		}},
	}
}

// deep is how many lanes there are within each other: what one costs grows with how deep it is.
const deep = 10

// manyLanes make few calls each.
func manyLanes() []task {
	return []task{
		{"lanes", func(s *sized) {
			s.many(each, CallSpec{Predictions: 1})
			s.finish()
		}},
		{"lanes, joined", func(s *sized) {
			uses := s.many(each, CallSpec{Predictions: 1})
			s.joinAll(uses)
			s.read(s.lane(1), "last", 1)
			s.finish()
		}},
		{"effects in lanes, joined", func(s *sized) {
			uses := s.many(each, CallSpec{Effect: Immediate, Conflict: "own", Predictions: 1})
			s.joinAll(uses)
			s.write(s.lane(1), "last", Immediate, 1)
			s.finish()
		}},
		{"effects in lanes that follow each other", func(s *sized) {
			for i := range s.calls {
				l := s.Fork(s.lane(1))
				s.Call(l, &CallSpec{Op: "w", Effect: Staged, Conflict: strconv.Itoa(i), Predictions: 1})
				s.Join(s.lane(1), l)
			}
			s.finish()
		}},
		{"local", func(s *sized) {
			s.read(s.lane(1), "first", 1)
			for i := range s.calls {
				l := s.Fork(s.lane(1))
				u := s.Call(s.lane(1), &CallSpec{Op: strconv.Itoa(i), Local: true, Predictions: 1})
				s.Resolve(u.Call, []*Lane{l}, 0)
			}
			s.finish()
		}},
		{"local, each of the one before", func(s *sized) {
			l := s.lane(1)
			first := s.read(l, "first", 1)
			var uses []*Use
			for i := range s.calls {
				if i%deep == 0 {
					l = s.lane(1)
				}
				child := s.Fork(l)
				uses = append(uses, s.Call(l, &CallSpec{Op: strconv.Itoa(i), Local: true, Predictions: 1}))
				s.Resolve(uses[i].Call, []*Lane{child}, 0)
				l = s.Fork(l)
			}
			s.Answered(first.Call, 0)
			s.finish()
		}},
		{"lanes within lanes", func(s *sized) {
			var lanes, parents []*Lane
			for i := range s.calls {
				parent := s.lane(1)
				if i%deep > 0 {
					parent = lanes[i-1]
				}
				lanes, parents = append(lanes, s.Fork(parent)), append(parents, parent)
				s.Call(lanes[i], &CallSpec{Op: "w", Effect: Staged, Conflict: strconv.Itoa(i), Predictions: 1})
			}
			for i, l := range slices.Backward(lanes) {
				s.Join(parents[i], l)
			}
			s.write(s.lane(1), "last", Immediate, 0)
			s.finish()
		}},
		{"a replay of all", func(s *sized) {
			wrong := s.read(s.lane(1), "wrong", 1)
			s.many(each, CallSpec{Predictions: 1})
			s.Answered(wrong.Call, Actual)
			s.read(s.lane(2), "wrong", 0)
			s.many(each, CallSpec{Predictions: 1})
			s.finish()

		}},
		{"a replay of effects", func(s *sized) {
			for _, u := range s.many(each, CallSpec{Effect: Immediate}) {
				s.Answered(u.Call, Actual)
			}
			s.Answered(s.read(s.lane(1), "wrong", 1).Call, Actual)
			uses := s.many(each, CallSpec{Effect: Immediate})
			for i, u := range uses[:s.calls/2] { // effects beyond those that happened, all lanes but one being behind
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
func (s *sized) many(how int, spec CallSpec) []*Use {
	l := s.runs[len(s.runs)-1].Main()
	var uses []*Use
	for i := range s.calls {
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

func (s *sized) joinAll(uses []*Use) {
	for _, u := range uses {
		s.Join(s.lane(1), u.lane)
	}
}

// finish answers the calls in random order, each once it was really sent, and
// has the run return.
func (s *sized) finish() {
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
