package spectree

import (
	"fmt"
	"testing"
)

// states writes the states of a call (an RPC object) and of what each live or
// discarded run does with its answer (callback objects).
func states(c *Call, uses ...*Use) string {
	names := [...]string{"callee speculative", "caller speculative", "correct", "incorrect"}
	out := "rpc " + names[c.State()]
	for _, u := range uses {
		out += ", callback " + names[u.State()]
	}
	return out
}

// event is something that happens to a task in a table of state transitions.
type event struct {
	name string
	do   func(s *scenario, p *transitions)
	want string // states of rpc, and of callback once there is one
}

// transitions is a client's first RPC, outer, and a second one, rpc, that its
// callback issues; callback is what follows that.
type transitions struct {
	outer, rpc *Use
	callback   bool
}

// TestRPCStates walks along each arrow of [SpecRPC Figure 5 (a)].
func TestRPCStates(t *testing.T) {
	outer := func(predictions int) func(*scenario, *transitions) {
		return func(s *scenario, p *transitions) {
			p.outer = s.read(s.lane(1), "outer", predictions)
			if predictions == 0 {
				s.Answered(p.outer.Call, Actual)
			}
		}
	}
	issue := func(s *scenario, p *transitions) { p.rpc = s.read(s.lane(1), "rpc", 0) }
	tests := []struct {
		name       string
		callerOpen bool
		events     []event
	}{
		{"the caller is a client", false, []event{
			{"issue", issue, "rpc correct"},
		}},
		{"the caller is a correct callback", false, []event{
			{"actual result of the outer RPC", outer(0), ""},
			{"issue", issue, "rpc correct"},
		}},
		{"the caller is a callback that turns out correct", false, []event{
			{"predicted result of the outer RPC", outer(1), ""},
			{"issue", issue, "rpc caller speculative"},
			{"the prediction is correct", func(s *scenario, p *transitions) { s.Answered(p.outer.Call, 0) }, "rpc correct"},
		}},
		{"the caller is a callback that turns out incorrect", false, []event{
			{"predicted result of the outer RPC", outer(1), ""},
			{"issue", issue, "rpc caller speculative"},
			{"the prediction is incorrect", func(s *scenario, p *transitions) {
				s.Answered(p.outer.Call, Actual)
			}, "rpc incorrect"},
		}},
		{"the caller is a speculative RPC that turns out correct", true, []event{
			{"issue", issue, "rpc caller speculative"},
			{"the caller is correct", func(s *scenario, _ *transitions) { s.ConfirmCaller() }, "rpc correct"},
		}},
		{"the caller is a speculative RPC that turns out incorrect", true, []event{
			{"issue", issue, "rpc caller speculative"},
			{"the caller is incorrect", func(s *scenario, _ *transitions) { s.RefuteCaller() }, "rpc incorrect"},
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			walk(t, test.callerOpen, test.events)
		})
	}
}

func walk(t *testing.T, callerOpen bool, events []event) {
	s, p := play(t, Config{Replayable: true, CallerOpen: callerOpen}), &transitions{}
	for _, e := range events {
		e.do(s, p)
		s.skip()
		if e.want == "" {
			continue
		}
		got := states(p.rpc.Call)
		if p.callback {
			got = states(p.rpc.Call, p.rpc)
		}
		if got != e.want {
			t.Errorf("%s: %s, want %s", e.name, got, e.want)
		}
	}
}

// TestCallbackStates walks along each arrow of [SpecRPC Figure 5 (b)].
func TestCallbackStates(t *testing.T) {
	issue := func(predictions int) func(*scenario, *transitions) {
		return func(s *scenario, p *transitions) {
			p.rpc = s.read(s.lane(1), "rpc", predictions)
			p.callback = predictions > 0
		}
	}
	predict := func(s *scenario, p *transitions) { s.Predicted(p.rpc.Call); p.callback = true }
	answer := func(match int) func(*scenario, *transitions) {
		return func(s *scenario, p *transitions) { s.Answered(p.rpc.Call, match); p.callback = true }
	}
	outer := func(s *scenario, p *transitions) { p.outer = s.read(s.lane(1), "outer", 1) }
	outerAnswer := func(match int) func(*scenario, *transitions) {
		return func(s *scenario, p *transitions) { s.Answered(p.outer.Call, match) }
	}
	const correct, caller, callee = "rpc correct, callback ", "rpc caller speculative, callback ", "callee speculative"
	tests := []struct {
		name   string
		events []event
	}{
		{"actual result, RPC correct", []event{
			{"issue", issue(0), "rpc correct"},
			{"actual result", answer(Actual), correct + "correct"},
		}},
		{"actual result, RPC speculative, then correct", []event{
			{"outer", outer, ""},
			{"issue", issue(0), "rpc caller speculative"},
			{"actual result", answer(Actual), caller + "caller speculative"},
			{"the caller is correct", outerAnswer(0), correct + "correct"},
		}},
		{"actual result, RPC speculative, then incorrect", []event{
			{"outer", outer, ""},
			{"issue", issue(0), "rpc caller speculative"},
			{"actual result", answer(Actual), caller + "caller speculative"},
			{"the caller is incorrect", outerAnswer(Actual), "rpc incorrect, callback incorrect"},
		}},
		{"client's prediction, correct, RPC correct", []event{
			{"issue", issue(1), correct + callee},
			{"actual result", answer(0), correct + "correct"},
		}},
		{"client's prediction, incorrect", []event{
			{"issue", issue(1), correct + callee},
			{"actual result", answer(Actual), correct + "incorrect"},
		}},
		{"server's prediction, correct", []event{
			{"issue", issue(0), "rpc correct"},
			{"predicted result", predict, correct + callee},
			{"actual result", answer(0), correct + "correct"},
		}},
		{"prediction, correct, RPC speculative, then correct", []event{
			{"outer", outer, ""},
			{"issue", issue(1), caller + callee},
			{"actual result", answer(0), caller + "caller speculative"},
			{"the caller is correct", outerAnswer(0), correct + "correct"},
		}},
		{"prediction, correct, RPC speculative, then incorrect", []event{
			{"outer", outer, ""},
			{"issue", issue(1), caller + callee},
			{"actual result", answer(0), caller + "caller speculative"},
			{"the caller is incorrect", outerAnswer(Actual), "rpc incorrect, callback incorrect"},
		}},
		{"prediction, the RPC's caller correct first", []event{
			{"outer", outer, ""},
			{"issue", issue(1), caller + callee},
			{"the caller is correct", outerAnswer(0), correct + callee},
			{"actual result", answer(0), correct + "correct"},
		}},
		{"prediction, the RPC's caller incorrect", []event{
			{"outer", outer, ""},
			{"issue", issue(1), caller + callee},
			{"the caller is incorrect", outerAnswer(Actual), "rpc incorrect, callback incorrect"},
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) { walk(t, false, test.events) })
	}
}

// TestRunStates checks the states of a run, which is all callbacks of one path.
func TestRunStates(t *testing.T) {
	s := play(t, Config{Replayable: true, CallerOpen: true})
	r := s.run(1)
	var got []State
	look := func() { got = append(got, r.State()) }
	look()
	u := s.read(r.Main(), "a", 1)
	look()
	s.Answered(u.Call, 0)
	look()
	s.ConfirmCaller()
	look()
	if want := []State{CallerSpeculative, CalleeSpeculative, CallerSpeculative, Correct}; fmt.Sprint(got) != fmt.Sprint(
		want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestFigure6 is the paper's bad scenario: two dependent RPCs and a local
// operation, each prediction of a server wrong. [SpecRPC §3.2, Figure 6]
func TestFigure6(t *testing.T) {
	s := play(t, replayable)
	rpc1 := s.read(s.lane(1), "rpc1", 0)
	s.want("start run 1", "send call 1")
	s.Predicted(rpc1.Call) // creates callback1
	s.want("resume run 1 call 1 answer 0")
	rpc2 := s.read(s.lane(1), "rpc2 of the predicted result", 0)
	s.want("send call 2 speculatively")
	s.Predicted(rpc2.Call) // creates callback2
	s.want("resume run 1 call 2 answer 0")

	// rpc2 finishes before rpc1: callback2 is abandoned, callback'2 created.
	s.Answered(rpc2.Call, Actual)
	s.want("discard run 1 call 2", "start run 2")
	s.answers(s.read(s.lane(2), "rpc1", 0), 0)
	s.answers(s.read(s.lane(2), "rpc2 of the predicted result", 0), Actual)
	s.want("adopt run 2 call 1", "adopt run 2 call 2")
	s.returned(s.run(2))
	s.want("offer run 2")

	// rpc1 finishes: the whole subtree of callback1 is abandoned.
	s.Answered(rpc1.Call, Actual)
	s.want("discard run 2 call 1", "start run 3")
	s.answers(s.read(s.lane(3), "rpc1", 0), Actual)
	s.want("adopt run 3 call 1", "settle call 1") // callback'1
	again := s.read(s.lane(3), "rpc2 of the actual result", 0)
	s.want("send call 3")
	s.Predicted(again.Call) // creates callback''2
	s.want("resume run 3 call 3 answer 0")

	// rpc'2 finishes: callback''2 is abandoned, callback'''2 created.
	s.Answered(again.Call, Actual)
	s.want("discard run 3 call 3", "start run 4")
	s.answers(s.read(s.lane(4), "rpc1", 0), Actual)
	s.answers(s.read(s.lane(4), "rpc2 of the actual result", 0), Actual)
	s.want("adopt run 4 call 1", "adopt run 4 call 3", "settle call 3")
	s.returned(s.run(4))
	s.want("abandon call 2", "final run 4", "commit run 4")
}

// TestOnePathIsActual checks that of the tree of predictions one path is left,
// from the root to a leaf, whatever is answered and in whatever order. [SpecRPC §3.2]
func TestOnePathIsActual(t *testing.T) {
	for _, order := range [][2]int{{0, 1}, {1, 0}} {
		for match := range 4 {
			s := play(t, replayable)
			a := s.read(s.lane(1), "a", 2)
			b := s.read(s.lane(1), "b", 2)
			for id := 2; id <= len(s.runs); id++ { // each run makes both calls
				s.read(s.lane(id), "a", 2)
				s.read(s.lane(id), "b", 2)
			}
			if len(s.runs) != 4 {
				t.Fatalf("%d runs for two calls with two predictions each", len(s.runs))
			}
			for _, i := range order {
				s.Answered([]*Use{a, b}[i].Call, match>>i&1)
				s.skip()
			}
			if len(s.runs) != 1 || s.runs[0].State() != Correct {
				t.Errorf("order %v, results %b: %d runs are left", order, match, len(s.runs))
			}
		}
	}
}

// TestIncorrectPredictions checks that what stands on a right prediction is
// kept, and what stands on a wrong one is discarded with all that depends on
// it, and nothing else. [SpecRPC §3.3]
func TestIncorrectPredictions(t *testing.T) {
	s := play(t, replayable)
	a := s.read(s.lane(1), "a", 1)
	b := s.read(s.lane(1), "b", 1)
	s.read(s.lane(1), "c", 1)
	s.Answered(a.Call, 0)
	s.want("start run 1", "send call 1", "send call 2 speculatively", "send call 3 speculatively", "settle call 1",
		"confirm call 2")
	s.Answered(b.Call, Actual)
	s.want("discard run 1 call 2", "start run 2")
	if s.run(2).Open() != 0 {
		t.Error("the new run stands on guesses")
	}
}

// TestForwardProgress checks that a new callback gets the actual result if no
// prediction was correct, so that the task comes to its end without an accurate
// predictor. [SpecRPC §3.3]
func TestForwardProgress(t *testing.T) {
	s := play(t, replayable)
	const calls = 5
	for !s.Over() {
		r := s.runs[0]
		done := 0
		for ; done < calls; done++ {
			u := s.read(r.Main(), fmt.Sprint(done), 3)
			if u.Answer() != Actual {
				s.Answered(u.Call, Actual)
				break
			}
		}
		if done == calls {
			s.returned(r)
		}
		s.skip()
	}
	if s.final == nil || s.started > 3*calls+1 {
		t.Errorf("%d runs", s.started)
	}
}

// TestStatesTravel checks that requests carry their caller's state, that what
// becomes of a caller is told to each callee whose state it changes, and that
// these pass it on, hop by hop. [SpecRPC §3.4]
func TestStatesTravel(t *testing.T) {
	for _, right := range []bool{true, false} {
		// A client calls A on the strength of a prediction, A calls B, B calls C.
		client := play(t, replayable)
		first := client.read(client.lane(1), "first", 1)
		client.read(client.lane(1), "A", 0)
		client.want("start run 1", "send call 1", "send call 2 speculatively")
		var hops []*scenario
		for _, callee := range []string{"B", "C"} {
			hop := play(t, Config{CallerOpen: true, Depth: 1})
			hop.read(hop.lane(1), callee, 0)
			hop.want("start run 1", "send call 1 speculatively")
			hops = append(hops, hop)
		}
		if right {
			client.Answered(first.Call, 0)
			client.want("settle call 1", "confirm call 2")
			for _, hop := range hops {
				hop.ConfirmCaller()
				hop.want("confirm call 1")
			}
			continue
		}
		client.Answered(first.Call, Actual)
		client.want("discard run 1 call 1", "start run 2")
		client.Expire(true) // the replay does not make the call
		client.want("abandon call 2")
		for _, hop := range hops {
			hop.RefuteCaller()
			hop.want("discard run 1", "abandon call 1")
		}
	}
}

// TestSpecBlock checks that an operation that causes side effects blocks until
// the speculation is known to be correct, and fails if it is not. [SpecRPC §3.5.2]
func TestSpecBlock(t *testing.T) {
	s := play(t, replayable)
	a := s.read(s.lane(1), "a", 1)
	if s.Barrier(s.lane(1)) {
		t.Error("a speculative callback does not block")
	}
	s.Answered(a.Call, 0)
	s.want("start run 1", "send call 1", "settle call 1", `release run 1 lane ""`)

	s = play(t, replayable)
	a = s.read(s.lane(1), "a", 1)
	s.Barrier(s.lane(1))
	s.Answered(a.Call, Actual)
	s.want("start run 1", "send call 1", "discard run 1 call 1", "start run 2")
}

// TestResultsAreActual checks that nobody outside gets a result that stands on
// a prediction, of the task's own or of its caller. [SpecRPC §2, getResult]
func TestResultsAreActual(t *testing.T) {
	s := play(t, Config{Replayable: true, CallerOpen: true})
	a := s.read(s.lane(1), "a", 1)
	s.returned(s.run(1))
	s.want("start run 1", "send call 1 speculatively", "offer run 1")
	s.Answered(a.Call, 0)
	s.want("final run 1")
	s.ConfirmCaller()
	s.want("confirm call 1", "settle call 1", "commit run 1")
}
