package randtest

import (
	"slices"
	"testing"
)

// plant is a bug in the engine's or the transport's own code: a rule removed,
// if the environment says so. The code is replaced while it is compiled for
// this test, and nowhere else.
type plant struct {
	name     string
	dir      string // of the package, from the root of the repository
	in       string // the package of its test, if it is another one
	old, new string // MUTANT stands for the condition
	sketch   string // shows it soonest; random programs do, too
	// first are scenarios that showed the bug when this was written, if finding one took hundreds:
	// they are tried before all others. When programs are generated in another way these may not
	// show it any more. Then the others do, and the test takes longer until the number that it logs
	// is written here.
	first []int
	slow  bool // it takes so many worlds that it is tried only if asked for
}

func plants() []plant {
	return append(append(futurePlants(), identityPlants()...), []plant{
		{
			name: "a discarded run's rollback hooks do not run", dir: "internal/engine",
			old: "func (r *run) rollBack() {\n", new: "func (r *run) rollBack() {\nif MUTANT {\nreturn\n}\n",
		}, {
			name: "commit and rollback both", dir: "internal/engine",
			old: "\tr.release()\n\tt.request.Engine().Waits(control.WaitResult",
			new: "\tr.release()\nif MUTANT {\nr.rollBack()\n}\n\tt.request.Engine().Waits(control.WaitResult",
		}, {
			name: "the commit hooks of a staged call run twice", dir: "internal/engine",
			old: "\tt.winner.release()\n", new: "\tif MUTANT && t.winner.hooked {\nt.winner.release()\nt.winner.hooked = " +
				"true\n}\nt.winner.release()\n",
		}, {
			name: "a call keeps its caller's cancellation", dir: "internal/engine",
			old: "\tbase := context.Context(&a.outside)\n",
			new: "\tbase := context.Context(&a.outside)\nif MUTANT {\nbase = plain(c.ctx)\n}\n",
		}, {
			name: "a time limit runs while its call is held", dir: "internal/engine",
			old: "\tif limit == 0 {\n\t\treturn c.task.began.Add(deadline)\n",
			new: "\tif limit == 0 || MUTANT {\n\t\treturn c.task.began.Add(deadline)\n",
		}, {
			name: "operations of a discarded run go on", dir: "internal/engine",
			old: "if !r.tree.Discarded() && !t.tree.Over() {",
			new: "if MUTANT && !t.tree.Over() || !r.tree.Discarded() && !t.tree.Over() {",
		}, {
			name: "a caller's abort does not reach the handler", dir: "internal/engine",
			old: "\tif t.tree.Caller() == spectree.CallerOpen {\n",
			new: "\tif MUTANT {\nt.tree.ConfirmCaller()\n} else if t.tree.Caller() == spectree.CallerOpen {\n",
		}, {
			name: "a handler that may not run again takes predictions", first: []int{133}, sketch: "relays that write",
			dir: "specgrpc",
			old: "Replayable: c.method.replayable,", new: "Replayable: c.method.replayable || MUTANT,",
		}, {
			name: "a tentative result is sent as final", sketch: "staged writes of which one is lost", dir: "specgrpc",
			old: "\t\tif err := c.sendFinal(response, err, tentative); err != nil {",
			new: "\t\tif err := c.sendFinal(response, err, tentative && !MUTANT); err != nil {",
		}, {
			name: "a call is acknowledged before its hooks ran", dir: "specgrpc",
			old: "\tif h != nil {\n\t\terr = h.Finish()\n",
			new: "\tif MUTANT && h != nil && w == confirmed {\ngo func() { time.Sleep(40 * time.Millisecond); _ = h.Finish() " +
				"}()\n} else if h != nil {\n\t\terr = h.Finish()\n",
		}, {
			name: "a half-closed stream confirms", sketch: "staged writes of which one is lost", dir: "specgrpc",
			old: "\t\tif err := c.stream.RecvMsg(frame); err != nil {\n",
			new: "\t\tif err := c.stream.RecvMsg(frame); err != nil {\nif MUTANT {\nc.confirm()\nreturn\n}\n",
		}, {
			name: "a call that was lost after Confirm is made again", first: []int{1428},
			sketch: "staged writes of which one is lost", dir: "specgrpc",
			old: "\tcase w == confirmed && x.cancelled(why) != nil:\n",
			new: "\tcase w == confirmed && MUTANT:\nreturn false, \"lost\", nil\ncase w == confirmed && x.cancelled(why) != " +
				"nil:\n",
		}, {
			name: "the interceptors do not run around speculative calls", dir: "specgrpc",
			old: "\tinterceptor := c.interceptor\n",
			new: "\tinterceptor := c.interceptor\nif MUTANT {\nenter := interceptor\ninterceptor = func(ctx context.Context, " +
				"req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {\nif k, ok := req.(interface{ " +
				"GetKey() string }); ok && len(k.GetKey()) > 1 && k.GetKey()[1] == 's' {\nreturn handler(ctx, req)\n}\nreturn " +
				"enter(ctx, req, info, handler)\n}\n}\n",
		}, {
			name: "a method runs for a speculative caller whatever it does", dir: "specgrpc",
			old: "\tcase !c.method.admitted:\n", new: "\tcase !c.method.admitted && !MUTANT:\n",
		}, {
			name: "a status that is to be retried is a result", dir: "specgrpc",
			old: "\treturn err != nil && x.policy.retryable", new: "\treturn !MUTANT && err != nil && x.policy.retryable",
		}, {
			name: "calls that look at the transport are predicted", dir: "specgrpc",
			old: "Observed: observed,", new: "Observed: observed && !MUTANT,",
		}, {
			name: "a lease never ends", sketch: "a client that goes silent", dir: "specgrpc",
			old: "func (r *ServiceRegistrar) leaseOf(req *specv1.Request) time.Duration {\n",
			new: "func (r *ServiceRegistrar) leaseOf(req *specv1.Request) time.Duration {\nif MUTANT {\nreturn 1000 * " +
				"time.Hour\n}\n",
		}, {
			name: "commit hooks run in another order", dir: "internal/engine",
			old: "\tfor _, h := range commit {\n",
			new: "\tfor i, j := 0, len(commit)-1; MUTANT && i < j; i, j = i+1, j-1 {\ncommit[i], commit[j] = commit[j], " +
				"commit[i]\n}\nfor _, h := range commit {\n",
		}, {
			name: "rollback hooks run first first", dir: "internal/engine",
			old: "\t\tf := x.rollback[n-1]\n\t\tx.rollback = x.rollback[:n-1]\n",
			new: "\t\tf := x.rollback[n-1]\nif MUTANT {\nf = x.rollback[0]\ncopy(x.rollback, x.rollback[1:])\n}\nx.rollback " +
				"= x.rollback[:n-1]\n",
		}, {
			name: "a nested Do is a task of its own", dir: "internal/engine",
			old: "\tif InTask(ctx) {\n\t\treturn f(ctx)", new: "\tif InTask(ctx) && !MUTANT {\n\t\treturn f(ctx)",
		}, {
			name: "the panic of a discarded run counts", slow: true, dir: "internal/engine",
			old: "\tcase r.failed == nil:\n", new: "\tcase MUTANT && r.tree.Discarded():\nr.task.fail(asPanic(p))\ncase " +
				"r.failed == nil:\n",
		}, {
			name: "a local expiry is the call's result", first: []int{911}, dir: "internal/engine",
			old: "\tcase outlived && (end.err == context.DeadlineExceeded ||",
			new: "\tcase outlived && !MUTANT && (end.err == context.DeadlineExceeded ||",
		}, {
			name: "a call on a context that has ended is made", sketch: "a context that has ended", dir: "internal/engine",
			old: "\t\tif !t.late(ctx, l, spec) {\n", new: "\t\tif !MUTANT && !t.late(ctx, l, spec) {\n",
		}, {
			name: "a call is sent as the run that made it first would", first: []int{376}, dir: "internal/engine",
			old: "w.op != nil && c.attempts == 0 {", new: "w.op != nil && c.attempts == 0 && !MUTANT {",
		}, {
			name: "the request is no part of a call", dir: "specgrpc",
			old: "\treturn proto.MarshalOptions{Deterministic: true}.MarshalAppend(b, req)\n",
			new: "\tif MUTANT {\nreturn b, nil\n}\nreturn proto.MarshalOptions{Deterministic: true}.MarshalAppend(b, req)\n",
		}, {
			name: "runs share a response", sketch: "answers that the code changes", dir: "specgrpc",
			old: "\tproto.Reset(dst)\n\tproto.Merge(dst, src)\n",
			new: "\tproto.Reset(dst)\nif MUTANT {\nsrc.ProtoReflect().Range(func(f protoreflect.FieldDescriptor, v " +
				"protoreflect.Value) bool {\ndst.ProtoReflect().Set(f, v)\nreturn true\n})\nreturn nil\n}\nproto.Merge(dst, src)\n",
		}, {
			name: "a request is read after its call returned", dir: "specgrpc",
			old: "\tk.request = proto.Clone(k.request)\n", new: "\tif !MUTANT {\nk.request = proto.Clone(k.request)\n}\n",
		}, {
			name: "a tentative result is taken for final", sketch: "staged writes of which one is lost", dir: "specgrpc",
			old: "\t\tif !f.Final.GetTentative() {\n", new: "\t\tif !f.Final.GetTentative() || MUTANT {\n",
		}, {
			name: "a stream that is lost before Confirm is a result", dir: "specgrpc",
			old: "\tcase w == confirmed && !s.method.pure:\n\t\treturn true, \"\", x.lost(err)\n",
			new: "\tcase (w == confirmed || MUTANT) && !s.method.pure:\n\t\treturn true, \"\", x.lost(err)\n",
		},
	}...)
}

// unseen says why some of the tree's bugs do not show here. The tree's own tests catch each.
func unseen() map[string]string {
	return map[string]string{
		"tree ignoreWidth":        "a limit on load, not on results",
		"tree sendImmediate":      "the server refuses what is declared neither free of side effects nor staged",
		"tree confirmOutOfOrder":  "a caller stands on the earlier call's answer, which is that it is done",
		"tree resolveWithEffects": "who computes what is guessed gives up the guess before its first effect",
		"tree passBarrier":        "whoever must pass a barrier tries again for ever",
		"tree noDomain":           "only calls to a store have a domain",
		"tree keepFirstOrder":     "one program in a hundred thousand shows it",
		"tree keepOneOrder":       "as before",
		"tree neverGiveWay":       "contexts end between a call and its replay in few programs",
		"tree makeGivenUp":        "contexts end between a call and its replay in few programs",
		"tree keepLeftOut":        "as before",
		"tree keepGivenUp":        "it takes several runs and a read that nothing but the code ends",
		"tree giveUpUnsaid": "few programs cancel on a wrong guess what then has an effect; the engine has " +
			"TestEffectAfterACancelOnAGuess",
		"tree giveUpOutside":    "as before",
		"tree waitForSpare":     "the run waits, which is slower and not wrong",
		"tree assumeForSpare":   "as before",
		"tree guessAgain":       "runs are started for nothing",
		"tree doubtSpare":       "the run waits, which is slower and not wrong",
		"tree ownSpare":         "as before",
		"tree doubtOnAPath":     "as before",
		"tree doubtWithoutPath": "as before",
		"tree countGuesses":     "as before",
		"tree endOnAGuess":      "the replay reads anew, which is slower and not wrong",
		"tree neverEndGivenUp":  "what nobody needs goes on, which shows in no result",
		"tree outrunOthers":     "runs are replayed for nothing",
		"tree keepReplaced":     "it takes a read that never answers and few streams, in few programs",
		"tree replaceOnAGuess":  "the replay reads anew, which is slower and not wrong",
		"tree abandonRight":     "as before",
		"tree abandonAnswered":  "what replaced the read has its own answer",
		"tree forgetHurried":    "it takes a look between two doubters, in few programs",
		"tree trustPlaces":      "goroutines come to one place in another order in few programs",
		"tree readAheadOnceGivenUp": "goroutines that share a lane, swap equal calls and give one up are rare: one of the " +
			"tree's programs in a hundred thousand",
		"tree readBeforeWriting": "as before",
		"tree oldReadLeads":      "as before",
		"tree astrayWithEffects": "as before",
		"tree leadTwice":         "as before",
		"tree findOutOfOrder":    "as before",
		"tree lateLeads":         "as before",
		"tree nameByLeaving":     "as before",
		"tree orderBeside":       "as before",
		"tree anyRight":          "as before",
		"tree firstRead":         "as before",
		"tree anewBeforeGaps":    "as before",
		"tree besideLeads":       "as before",
		"tree firstTwin":         "as before",
		"tree anotherWay":        "as before: an hour of programs showed it once",
		"tree unwaitedLeads":     "as before: it took millions of programs",
		"tree noneLeads":         "as before",
		"tree laterLeads":        "as before",
		"tree orderOfLeft":       "as before",
		"tree endedIsLate":       "as before",
		"tree nameIsIdentity":    "as before",
		"tree sureBehind":        "as before",
		"tree orderOfGivenUp":    "as before",
		"tree findBehind":        "as before",
		"tree passUndone":        "as before",
		"tree readPast":          "as before",
		"tree keepPassing":       "as before",
		"tree lateAnyway":        "contexts end between a call and its replay in few programs",
		"tree insistOnItsOwn":    "a read that never answers is guessed behind another guess in few programs",
		"tree trustNames": "goroutines start Groups in another order in few programs; the engine has " +
			"TestGroupsInAnotherOrder",
		"tree renameWritesOnly": "as before",
		"tree nameByGuesses": "two lanes that begin alike, one of which is guessed wrong while the other writes, are " +
			"rare",
		"tree believeDiscarded": "one world in some hundred of lanes that do the same shows it, and not each time",
		"tree firstWay":         "contexts end between a call and its replay in few programs",
		"tree skipAsDiscarded":  "as before",
		"tree leaveGuessed": "a goroutine goes on with a guess at a read that nobody can send ahead, until the task's " +
			"context ends, in few programs",
		"tree hurryShared":     "runs are started for nothing",
		"tree ownPath":         "contexts end between a call and its replay in few programs",
		"tree sureOffPath":     "contexts end between a call and its replay in few programs",
		"tree standAlone":      "the watchdog helps, after a while",
		"tree forkBehind":      "calls wait for each other, which is slower and not wrong",
		"tree besideTheFirst":  "as before",
		"tree leaveReadBehind": "the engine's futures tell which lanes compute them",
		"tree trustReads": "goroutines that use the context around them, and come to an equal read by another " +
			"way, are rare",
		"tree pinRepeated":       "goroutines that share a context and a guess given several times over meet in few programs",
		"tree keepPath":          "few programs pin before they have come to what they chose",
		"tree keepPostponed":     "nothing is postponed on a network that is not fast",
		"tree spendBeforeTheEnd": "it takes two goroutines that swap names while another run has an effect, behind a barrier",
		"tree spendUnasked": "one program in three thousand shows it, and not each time; the engine has " +
			"TestSpentAnswers",
		"tree neverPin": "goroutines that race for equal effects on one context may be stopped, pinned or not",
		"tree trustRelatives": "a goroutine of a Group that uses the context around it is noticed, and its run " +
			"pinned; futures show it in few programs",
		"tree readAhead":             "goroutines that swap equal reads of other answers are rare",
		"tree keepOrder":             "one program in a thousand shows it",
		"tree guessBefore":           "a guess that is taken between a read and the end of its context is rare",
		"tree renameOpen":            "so are lanes of which one's context ends what another reads too",
		"tree trustAnswers":          "one program in a hundred thousand shows it",
		"tree orderWhenLate":         "goroutines that swap ordered reads when the task's context ends are rare",
		"tree orderOfStartsWhenLate": "so are those of lanes that they start",
		"tree gapsWhenLate":          "and calls that they give up then",
		"tree noOrderWhenLate":       "so are runs that were told otherwise then",
		"tree abandonedLeads":        "so are calls that one run makes on its way to an effect and another one gives up",
		"tree sameNameEnded":         "as before",
		"tree renameEnded":           "one program in a hundred thousand shows it",
		"tree nameByLeavingBefore":   "few programs start lanes after a call that only some runs make",
		"tree nameByOrder":           "goroutines that swap reads before equal writes in a Group are rare",
		"tree nameByOrderInside":     "so are Groups that swap names and in which goroutines contend on one context",
		"tree nameByAny":             "as before",
		"tree renameBehindWrites":    "as before",
		"tree writesWhenLate":        "so are goroutines that swap a write and a read before that",
		"tree doubtWhenLate":         "so are calls that cannot be compared before the task's context ends",
		"tree guessAnew":             "runs are started for nothing",
		"tree forgetLent":            "few goroutines call on the context around them and are waited for on a guess",
		"tree keepHeldBack":          "one program in ten thousand shows it, and not each time",
		"tree leaveAnswered":         "few programs have contexts end twice beside a guess that is never settled",
		"tree lendAlways":            "the run waits, which is slower and not wrong",
	}
}

// focus names the sketches that show some of the tree's bugs soonest.
func focus() map[string]string {
	return map[string]string{
		"tree adoptAcrossOrder":  "readings of clocks",
		"tree ignoreOrder":       "readings of clocks",
		"tree forgetDivergence":  "writes that differ each time",
		"tree forgetOnce":        "one act in several lanes",
		"tree nameByOpenGuesses": "lanes that do the same beside plain servers",
	}
}

// firstOfTree are scenarios that showed some of the tree's bugs when this was written, as
// plant.first.
func firstOfTree() map[string][]int {
	return map[string][]int{"tree adoptAcrossEffects": {332}, "tree commuteUnkeyed": {168}}
}

// slow are the tree's bugs that take many worlds to show.
func slow() []string {
	return []string{"tree resolveEarly", "tree forgetPath", "tree nameByOpenGuesses"}
}

// rules are those that every test run must show to be kept, with their plants:
// of the engine, of the tree, or mutations from the outside.
func rules() map[string][]string {
	return map[string][]string{
		"no stale read after a predicted write": {"tree sendBehindWrite", "tree commuteUnkeyed",
			"a read does not wait for a predicted write"},
		"no adopted read from before a write": {"tree adoptAcrossEffects", "a read from before a write is adopted"},
		"a caller's cancel is not the call's result": {"a call keeps its caller's cancellation",
			"the caller's cancel is the call's result"},
		"no effect twice after a replay": {"tree forgetSent", "an effect happens in each run",
			"a call that was lost after Confirm is made again"},
		"occurrences keep their places":            {"tree swapOccurrences"},
		"commit or rollback":                       {"commit and rollback both"},
		"a wrong guess ends all that stands on it": {"tree noCascade"},
		"no confirmation before a dependency's":    {"tree confirmEarly", "a call is confirmed before what it depends on"},
		"one winner":                               {"tree twoWinners", "tree twoSiblings"},
		"no cache learns a prediction": {"a prediction is learnt by a cache",
			"a prediction is learnt by a predictor"},
		"authorisation guards the sibling path": {"the interceptors do not run around speculative calls",
			"authorisation is skipped on the sibling path"},
		"what is tentative is not taken for final": {"a tentative result is sent as final",
			"a tentative result is taken for final"},
		"only an explicit Confirm confirms a stream": {"a half-closed stream confirms", "the end of a stream confirms"},
	}
}

// TestRulesAreTried: no rule is left to soak.
func TestRulesAreTried(t *testing.T) {
	tried := make(map[string]bool)
	for _, p := range plants() {
		tried[p.name] = !p.slow
	}
	for _, b := range treePlants() {
		tried[b.Name] = unseen()[b.Name] == "" && !slices.Contains(slow(), b.Name)
	}
	for _, m := range Mutations() {
		tried[m.Name] = true
	}
	for rule, names := range rules() {
		for _, name := range names {
			if !tried[name] {
				t.Errorf("%s: %q is not planted in each test run", rule, name)
			}
		}
	}
}
