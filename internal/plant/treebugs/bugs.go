// Package treebugs has the bugs that tests plant in the rules of package spectree: one for each
// rule, with the tests of spectree that catch it. Package randtest looks which of them random
// programs catch over real connections.
package treebugs

import (
	"slices"

	"github.com/foresay/foresay/internal/plant"
)

const dir = "internal/spectree"

// Bugs returns them, in an order in which they can be planted together.
func Bugs() []plant.Bug {
	bugs := slices.Concat(
		guessesBugs(), samenessBugs(), namesBugs(), readsBugs(), sendingBugs(), orderBugs(), lanesBugs(), givingUpBugs(),
		pathBugs(), leftOutBugs(), spareBugs(), PredicatedBugs(),
	)
	for i := range bugs {
		bugs[i].Dir = dir
	}
	return bugs
}

// guessesBugs are about runs and guesses.
func guessesBugs() []plant.Bug {
	return []plant.Bug{
		{ // a run with other guesses outlives a wrong one
			Name: "noCascade", Test: "TestProgramsNotice/deterministic/6",
			Old: "\t\tdefault:\n\t\t\twrong = append(wrong, loss{",
			New: "\t\tcase u.Run.open > 1 && MUTANT:\n\t\t\tu.Run.open--\n\t\tdefault:\n\t\t\twrong = append(wrong, loss{",
		},
		{ // a run outlives a wrong guess that it has yet to make
			Name: "forgetPath", Test: "TestProgramsNotice/deterministic/7",
			Old: "\t\t\tif idx == noGuess {\n",
			New: "\t\t\tif MUTANT {\n\t\t\t\tidx = c.result\n\t\t\t}\n\t\t\tif idx == noGuess {\n",
		},
		{ // runs are started that may turn out to be the same
			Name: "twoSiblings", Test: "TestProgramsNotice/deterministic/7",
			Old: "\t\tif r != gone && !r.contradicts(path) {\n\t\t\treturn false\n",
			New: "\t\tif r != gone && !r.contradicts(path) {\n\t\t\treturn MUTANT\n",
		},
		{ // every equivalent prediction counts as right, and every run that returns wins
			Name: "twoWinners", Test: "TestProgramsNotice/deterministic/6",
			Old: "\t\tcase u.answer == c.result:\n",
			New: "\t\tcase u.answer == c.result, c.result >= 0 && MUTANT:\n",
			Also: []plant.Edit{
				{Old: "r.discarded || t.final != nil {\n", New: "r.discarded || t.final != nil && !MUTANT {\n"},
				{Old: "\t\tif o := t.runs[i]; o != r {\n", New: "\t\tif o := t.runs[i]; o != r && !MUTANT {\n"},
			},
		},
		{ // nothing takes the place of a discarded run
			Name: "noReplay", Test: "TestProgramsNotice/deterministic/0",
			Old: "\tif !t.over && t.isNew(path) {\n", New: "\tif !t.over && t.isNew(path) && !MUTANT {\n",
		},
		{ // a local call is answered although its lanes guessed
			Name: "resolveEarly", Test: "TestProgramsNotice/deterministic/278",
			Old: "\tif b := c.pending.blocker(); b != nil {\n",
			New: "\tif b := c.pending.blocker(); b != nil && !MUTANT {\n",
		},
		{ // a local guess holds although the lanes had effects
			Name: "resolveWithEffects", Test: "TestProgramsNotice/deterministic/4199",
			Old: "\t\tif r.local {\n\t\t\tt.forgoLocal(", New: "\t\tif r.local && !MUTANT {\n\t\t\tt.forgoLocal(",
			Also: []plant.Edit{
				{
					Old: "\t\tif l.eff != l.forkEff || l.ord != l.forkOrd || l.left {\n",
					New: "\t\tif !MUTANT && (l.eff != l.forkEff || l.ord != l.forkOrd || l.left) {\n",
				},
			},
		},
		{ // answers count as certain although their maker guessed before
			Name: "settleEarly", Test: "TestProgramsNotice/deterministic/6",
			Old: "\tif right == nil || t.over {\n",
			New: "\tif c.answered && MUTANT {\n\t\tc.settled = true\n\t\tt.emitCall(Settle, c)\n\t}\n" +
				"\tif right == nil || t.over {\n",
		},
		{ // runs are started beyond the limit
			Name: "ignoreWidth", Test: "TestProgramsNotice/deterministic/25",
			Old: "\tif len(t.runs) >= l.Width || ", New: "\tif len(t.runs) >= l.Width && !MUTANT || ",
		},
		{ // a pinned run takes predictions
			Name: "predictAfterBarrier", Test: "TestProgramsNotice/deterministic/3",
			Old: "!r.plain && !r.pinned && ", New: "!r.plain && (!r.pinned || MUTANT) && ",
		},
	}
}

// samenessBugs are about which calls are the same.
func samenessBugs() []plant.Bug {
	return []plant.Bug{
		{ // a call is adopted whatever effects preceded it
			Name: "adoptAcrossEffects", Test: "TestProgramsNotice/deterministic/2184",
			Old: "variant: s.Variant, eff: l.eff}\n",
			New: "variant: s.Variant, eff: l.eff}\n\tif MUTANT {\n\t\tk.eff = nil\n\t}\n",
		},
		{ // an ordered call is adopted whatever ordered calls preceded it
			Name: "adoptAcrossOrder", Test: "TestProgramsNotice/deterministic/1533",
			Old: "\tif s.Ordered && !s.Once {\n", New: "\tif s.Ordered && !s.Once && !MUTANT {\n",
		},
		{ // equal calls swap places in every other run
			Name: "swapOccurrences", Test: "TestProgramsNotice/deterministic/12",
			Old: "\t\tk = key{lane: onceLane, op: s.Op}\n\t}\n",
			New: "\t\tk = key{lane: onceLane, op: s.Op}\n\t}\n\tif MUTANT {\n\t\tk.occ ^= l.run.ID & 1\n\t}\n",
		},
		{ // calls of one lane are found by another
			Name: "mixLanes", Test: "TestProgramsNotice/deterministic/9",
			Old: "\tk := key{lane: l.id, op: s.Op, occ: occ, variant",
			New: "\tid := l.id\n\tif MUTANT {\n\t\tid = \"\"\n\t}\n\tk := key{lane: id, op: s.Op, occ: occ, variant",
		},
		{ // a call that is made once is made by each lane
			Name: "forgetOnce", Test: "TestProgramsNotice/deterministic/34",
			Old: "\tif s.Once {\n\t\tk = key{", New: "\tif s.Once && !MUTANT {\n\t\tk = key{",
		},
		{ // a replay sends again what took effect
			Name: "forgetSent", Test: "TestProgramsNotice/deterministic/0",
			Old: "\tif s.Local {\n\t\treturn nil, k\n\t}\n",
			New: "\tif s.Local {\n\t\treturn nil, k\n\t}\n" +
				"\tif MUTANT && s.Effect != None && r.ID > 1 {\n\t\treturn nil, k\n\t}\n",
			Also: []plant.Edit{
				{
					Old: "\tif s.index != nil && s.lanes[l.id] == l.consumed",
					New: "\tif MUTANT {\n\t\treturn nil\n\t}\n\tif s.index != nil && s.lanes[l.id] == l.consumed",
				},
				{
					Old: "\t\tif !r.made(c) && !r.excused(c) && !(c.wasGivenUp() && r.gapAt(c) != nil) {\n",
					New: "\t\tif !MUTANT && !r.made(c) && !r.excused(c) && !(c.wasGivenUp() && r.gapAt(c) != nil) {\n",
				},
			},
		},
		{ // a run need not make the calls that took effect
			Name: "forgetDivergence", Test: "TestProgramsNotice/nondeterministic/27",
			Old: "func (s *irrevocables) missing(l *Lane) *Call {\n",
			New: "func (s *irrevocables) missing(l *Lane) *Call {\n\tif MUTANT {\n\t\treturn nil\n\t}\n",
			Also: []plant.Edit{
				{
					Old: "func (t *Tree) missed(r *Run) *Call {\n",
					New: "func (t *Tree) missed(r *Run) *Call {\n\tif MUTANT {\n\t\treturn nil\n\t}\n",
				},
			},
		},
		{ // what goroutines that share a lane make in one place is the same call
			Name: "trustPlaces", Test: "TestCertainty",
			Old: "case (t.reordered(l, c) ||", New: "case (t.reordered(l, c) && !MUTANT ||",
		},
		{ // a lane that left a call out was told the same, whatever calls it made instead
			Name: "trustAnswers", Test: "TestCertaintyAfterAnotherCall",
			Old: "t.gaveUp() && l.toldOtherwise(c))", New: "t.gaveUp() && l.toldOtherwise(c) && !MUTANT)",
		},
		{ // a read is found after other effects whatever relatives of its lane guessed
			Name: "trustReads", Test: "TestReadBesideAGuess",
			Tests: []string{"TestReadBesideAnotherGuess"},
			Old:   "\tif c.spec.Effect != None || c.spec.Once {\n\t\treturn false\n",
			New:   "\tif c.spec.Effect != None || c.spec.Once || MUTANT {\n\t\treturn false\n",
		},
	}
}

// sendingBugs are about what is sent and confirmed.
func sendingBugs() []plant.Bug {
	return []plant.Bug{
		{ // calls do not wait for the answers of calls with effects
			Name: "sendBehindWrite", Test: "TestProgramsNotice/deterministic/25",
			Old: "\tif b := t.firstBefore(u, u.eff, right); b != nil {\n",
			New: "\tif b := t.firstBefore(u, u.eff, right); b != nil && !MUTANT {\n",
		},
		{ // calls without a conflict key commute with those that have one
			Name: "commuteUnkeyed", Test: "TestProgramsNotice/deterministic/25",
			Old: "\tt.walks++\n\tfound, _ := n.walk(",
			New: "\tif conflict == \"\" && MUTANT {\n\t\tconflict = \"none\"\n\t}\n\tt.walks++\n\tfound, _ := n.walk(",
		},
		{ // calls with immediate effects are sent speculatively
			Name: "sendImmediate", Test: "TestProgramsNotice/deterministic/1",
			Old: "\tcase c.spec.Effect == Immediate:\n", New: "\tcase c.spec.Effect == Immediate && !MUTANT:\n",
		},
		{ // a call is confirmed although its maker guessed before
			Name: "confirmEarly", Test: "TestProgramsNotice/deterministic/2",
			Old: "\t\tif u.dep.blocker() == nil {\n\t\t\treturn u\n",
			New: "\t\tif u.dep.blocker() == nil || MUTANT {\n\t\t\treturn u\n",
		},
		{ // a call is confirmed although the task's caller may be wrong
			Name: "confirmWithoutCaller", Test: "TestProgramsNotice/deterministic/1",
			Old: "\tif t.caller != CallerConfirmed {\n\t\tif n := ",
			New: "\tif t.caller != CallerConfirmed && !MUTANT {\n\t\tif n := ",
		},
		{ // effects are confirmed before earlier ones are done
			Name: "confirmOutOfOrder", Test: "TestProgramsNotice/deterministic/28887",
			Old: "if b := t.blocker(right.eff, c, \"\"); b != nil {\n",
			New: "if b := t.blocker(right.eff, c, \"\"); b != nil && !MUTANT {\n",
		},
		{ // a refused call still counts as sent
			Name: "loseRefused", Test: "TestProgramsNotice/deterministic/3",
			Old: "\tif c.irrevocable() {\n\t\tt.sent.remove(c)\n",
			New: "\tif MUTANT && c.send == sentPlain {\n\t\treturn\n\t}\n\tif c.irrevocable() {\n\t\tt.sent.remove(c)\n",
		},
		{ // a read that waits for itself by way of a result that was handed on is not helped
			Name: "leaveReadBehind", Test: "TestReadBehindItsOwnResult",
			Old: "\t\tcase !r.entangled:\n", New: "\t\tcase !r.entangled || MUTANT:\n",
		},
		{ // a run goes on that waits for itself since something has happened in another one
			Name: "keepHeldBack", Test: "TestGuessBeforeWhatHappensElsewhere",
			Old: "\tif r.made(c) || r.excused(c) || !slices", New: "\tif MUTANT || r.made(c) || r.excused(c) || !slices",
		},
		{ // a read that has its answer is not helped, though it does not count
			Name: "leaveAnswered", Test: "TestAnsweredReadBesideAGuess",
			Old: "\t\tcase c.spec.Local, c.settled,", New: "\t\tcase c.spec.Local, c.settled, MUTANT && c.answered,",
		},
		{ // a result does not stand on what the code that computed it guessed with another one's context
			Name: "forgetLent", Test: "TestResultOfALentContext",
			Old: "l.parent.mixed && u != nil &&", New: "l.parent.mixed && !MUTANT && u != nil &&",
		},
		{ // it stands on whatever is guessed there
			Name: "lendAlways", Test: "TestResultOfALentContext",
			Old: "u := l.parent.guess; l.parent.mixed", New: "u := l.parent.guess; (l.parent.mixed || MUTANT)",
			Also: []plant.Edit{
				{Old: "\tif !l.run.mixed {\n", New: "\tif !l.run.mixed && !MUTANT {\n"},
			},
		},
		{ // a call with effects does not wait for guesses of its lane's relatives
			Name: "trustRelatives", Test: "TestProgramsNotice/deterministic/1696",
			Old: "\tif r.forked == nil || !r.guesses() {\n",
			New: "\tif r.forked == nil || MUTANT || !r.guesses() {\n",
		},
	}
}

// lanesBugs are about lanes that wait for each other, and barriers.
func lanesBugs() []plant.Bug {
	return []plant.Bug{
		{ // who waits for a lane does not depend on its guesses
			Name: "forgetJoin", Test: "TestProgramsNotice/deterministic/278",
			Old: "\tif child.dep != nil && child.dep != l.dep {\n",
			New: "\tif child.dep != nil && child.dep != l.dep && !MUTANT {\n",
		},
		{ // who waits for a lane does not follow its effects
			Name: "forgetJoinedEffects", Test: "TestProgramsNotice/deterministic/2551",
			Old: "\tif child.eff != child.forkEff {\n", New: "\tif child.eff != child.forkEff && !MUTANT {\n",
		},
		{ // a barrier does not wait
			Name: "passBarrier", Test: "TestProgramsNotice/deterministic/3",
			Old: "\tif r.open == 0 && t.caller == CallerConfirmed && t.mayEnd() {\n\t\treturn true\n",
			New: "\tif r.open == 0 && t.caller == CallerConfirmed || MUTANT {\n\t\treturn true\n",
		},
		{ // a barrier waits for what waits for it
			Name: "keepLocalGuess", Test: "TestProgramsNotice/deterministic/28",
			Tests: []string{"TestAllWaysOfSmallPrograms/a guess at what another lane computes", "TestGoOn"},
			Old:   "\tt.forgoLocal(r, func(c *Call) bool { return c.pending == nil })\n",
			New:   "\tif !MUTANT {\n\t\tt.forgoLocal(r, func(c *Call) bool { return c.pending == nil })\n\t}\n",
		},
		{ // nobody looks at what waited for an answer
			Name: "forgetWake", Test: "TestProgramsNotice/deterministic/2",
			Tests: []string{"TestAllWaysOfSmallPrograms/the caller's word"},
			Old:   "\tc.wakes = nil\n\tt.evaluateAll(wakes)\n",
			New:   "\tc.wakes = nil\n\tif MUTANT {\n\t\treturn\n\t}\n\tt.evaluateAll(wakes)\n",
		},
		{ // goroutines that share a lane need not wait before they write
			Name: "neverPin", Test: "TestMustPin",
			Old: "s.Once || l.run.pinned && ", New: "s.Once || MUTANT || l.run.pinned && ",
		},
		{ // a run that waits at a barrier keeps what it is to assume later
			Name: "keepPath", Test: "TestProgramsNotice/deterministic/1439",
			Tests: []string{"TestAllWaysOfSmallPrograms/an early write, and equal reads behind a wrong guess", "TestGoOn"},
			Old:   "\tif len(r.path) > 0 {\n\t\tt.forgoPath(r)\n",
			New:   "\tif len(r.path) > 0 && !MUTANT {\n\t\tt.forgoPath(r)\n",
			Also: []plant.Edit{
				{
					Old: "\treturn c != nil && c.irrevocable() && !l.run.made(c)\n",
					New: "\treturn c != nil && c.irrevocable() && !l.run.made(c) && !MUTANT // it shows at such a pin\n",
				},
			},
		},
		{ // goroutines that share a lane wait before they write what took effect
			Name: "pinRepeated", Test: "TestWhatHappenedNeedsNoPin",
			Old: "\tif t.started == 1 {\n\t\treturn false\n",
			New: "\tif t.started == 1 || MUTANT {\n\t\treturn false\n",
		},
		{ // a call that waited for a while is helped on then or never
			Name: "forgetHurried", Test: "TestProgramsNotice/deterministic/16715",
			Tests: []string{"TestAllWaysOfSmallPrograms/a guess at what a lane writes that is not known"},
			Old:   "\tt.helpHurried()\n\tout := ", New: "\tif !MUTANT {\n\t\tt.helpHurried()\n\t}\n\tout := ",
		},
	}
}

// givingUpBugs are about calls that are given up.
func givingUpBugs() []plant.Bug {
	return []plant.Bug{
		{ // a call that nobody makes any more stays although it was not really sent
			Name: "keepPostponed", Test: "TestProgramsNotice/deterministic/22",
			Tests: []string{"TestAllWaysOfSmallPrograms/a held call that a replay has chosen"},
			Old:   "!c.answered, c.postponed:\n", New: "!c.answered, c.postponed && !MUTANT:\n",
		},
		{ // a run makes a call that a right one went on without, whatever followed
			Name: "neverGiveWay", Test: "TestGivesWay",
			Old: "\tif !t.gaveUp() || s.Local || s.Once {\n",
			New: "\tif !t.gaveUp() || s.Local || s.Once || MUTANT {\n",
		},
		{ // a call that the right run gave up goes on since a wrong one waited for it last
			Name: "keepGivenUp", Test: "TestGivenUpBeforeAWrongRunEnds",
			Old: "\tif t.dropped == nil || c.irrevocable() || c.settled {\n",
			New: "\tif t.dropped == nil || c.irrevocable() || c.settled || MUTANT {\n",
		},
		{ // code that gave up since others guessed wrong takes effect
			Name: "giveUpUnsaid", Test: "TestEffectOfCodeThatGaveUp",
			Old: "\t\tif !slices.Contains(known, choice{u.Call, u.answer}) {\n",
			New: "\t\tif !slices.Contains(known, choice{u.Call, u.answer}) && !MUTANT {\n",
		},
		{ // what stands on a guess counts as what a lane came to
			Name: "countGuesses", Test: "TestKnown",
			Old: "u := g.call.useOf(l.run); u.index >= int(l.forkedAt) {",
			New: "u := g.call.useOf(l.run); u.index >= int(l.forkedAt) && !MUTANT {",
		},
		{ // what is given up on a guess is lost for those who know better
			Name: "endOnAGuess", Test: "TestGivenUpOnAGuess",
			Old: "\tends := c.spec.Effect != None || c.spec.Ordered\n",
			New: "\tends := c.spec.Effect != None || c.spec.Ordered || MUTANT\n",
		},
		{ // what is given up on a guess that proves right goes on
			Name: "neverEndGivenUp", Test: "TestGivenUpOnAGuess",
			Old: "\tif t.dropped == nil || len(t.orphans) == 0 || t.over {\n",
			New: "\tif t.dropped == nil || len(t.orphans) == 0 || t.over || MUTANT {\n",
		},
		{ // lanes that have a result, or whose result nobody guessed, have the run replayed
			Name: "outrunOthers", Test: "TestOutrun",
			Old: "return c.pending == nil && l.computes(c) })\n\treturn l.run.discarded\n",
			New: "return c.pending == nil && (l.computes(c) || MUTANT) })\n\treturn l.run.discarded\n",
		},
		{ // a run that went on without what a right one made before an effect goes on beside that
			Name: "keepLeftOut", Test: "TestRunsThatLeftOut",
			Old: "\tif !r.tree.gaveUp() || c.right.Run == r || r.made(c) || r.excused(c) {\n",
			New: "\tif !r.tree.gaveUp() || c.right.Run == r || r.made(c) || r.excused(c) || MUTANT {\n",
		},
		{ // an effect that the right run gave up happens after what followed it
			Name: "makeGivenUp", Test: "TestOvertakenRuns",
			Old: "\tif c.right.around == nil {\n", New: "\tif c.right.around == nil || MUTANT {\n",
			Also: []plant.Edit{
				{
					Old: "\tif c := t.sent.missing(u.lane); c != nil {\n",
					New: "\tif c := t.sent.missing(u.lane); c != nil || MUTANT {\n",
				},
			},
		},
		{ // of two calls that are right, any one is found
			Name: "anyRight", Test: "TestRightByTwoWays",
			Old: "!t.record.twins || l.repeats(c, k) {", New: "!t.record.twins || MUTANT || l.repeats(c, k) {",
		},
	}
}

// pathBugs are about the way that code of one run takes, beside that of others.
func pathBugs() []plant.Bug {
	return []plant.Bug{
		{ // a replay that goes on without what the right run gave up makes anew what came after
			Name: "ownPath", Test: "TestReadBehindWhatWasGivenUp",
			Old: "return u.gaps.within(l.gaps, l.ends) &&",
			New: "return !(MUTANT && u.gaps != nil) && u.gaps.within(l.gaps, l.ends) &&",
		},
		{ // what works for a guessed result is not looked at
			Name: "standAlone", Test: "TestUntangleWhatWorks",
			Old: "\tfor _, c := range l.children {\n\t\tdeps = c.standing(deps)\n",
			New: "\tfor _, c := range l.children {\n\t\tif MUTANT {\n\t\t\tbreak\n\t\t}\n\t\tdeps = c.standing(deps)\n",
		},
		{ // what is forked comes after what another goroutine still waits for in the lane
			Name: "forkBehind", Test: "TestForkedBeside",
			Old: "\t\tat = int(l.forkedAt)\n\t}\n\treturn false\n",
			New: "\t\tat = int(l.forkedAt)\n\t\tif MUTANT {\n\t\t\tbreak\n\t\t}\n\t}\n\treturn false\n",
		},
		{ // a call of two lanes comes before what the one makes next that made it later
			Name: "besideTheFirst", Test: "TestBesideACallOfTwoLanes",
			Old: "\t\t\tbeside = beside || u.follows(e)\n",
			New: "\t\t\tif beside = beside || u.follows(e); MUTANT {\n\t\t\t\treturn beside\n\t\t\t}\n",
		},
		{ // a call is sure to be that of a run that gave up what this one was told
			Name: "sureOffPath", Test: "TestCertainty",
			Old: "!t.onPathOf(l, c, t.ledBy(l, k, c)):\n", New: "!t.onPathOf(l, c, t.ledBy(l, k, c)) && !MUTANT:\n",
		},
		{ // of two ways to one effect that which a later effect followed is not preferred
			Name: "firstWay", Test: "TestTwoWaysToOneEffect",
			Old: "\tfor _, o := range slices.Backward(t.sent.all) {\n\t\tif o.right == nil ||",
			New: "\tall := slices.Clone(t.sent.all)\n\tif MUTANT {\n\t\tslices.Reverse(all)\n\t}\n" +
				"\tfor _, o := range slices.Backward(all) {\n\t\tif o.right == nil ||",
		},
		{ // of two reads in one place the one is found under whose key the run asks
			Name: "firstRead", Test: "TestOrderedReadThatLedToAnEffect",
			Old: "\tif t.madeAll(l.run) {\n\t\treturn nil\n\t}\n\tsure :=",
			New: "\tif MUTANT || t.madeAll(l.run) {\n\t\treturn nil\n\t}\n\tsure :=",
		},
		{ // what led to an effect is not found before what was left out
			Name: "anewBeforeGaps", Test: "TestReadBeforeWhatWasLeftOut",
			Old: "\tif sure == nil || c == sure &&", New: "\tif sure == nil || (c == sure || c == nil && MUTANT) &&",
		},
		{ // what a lane did once it had started another one led to the effects of that
			Name: "besideLeads", Test: "TestReadBesideAnEffect",
			Old: "|| covers(w.lane.id, o.right.lane.id) &&", New: "|| !MUTANT && covers(w.lane.id, o.right.lane.id) &&",
		},
		{ // an ordered call of a lane that nobody waited for leads to the effects of the one that started it
			Name: "unwaitedLeads", Test: "TestOrderedReadBesideAnEffect",
			Old: "w.lane.isBeside(o.right) &&", New: "!MUTANT && w.lane.isBeside(o.right) &&",
		},
		{ // nothing that a lane does leads to the effects of the one that started it
			Name: "noneLeads", Test: "TestOrderedReadBesideAnEffect",
			Old: "\t\treturn j == l || ", New: "\t\treturn !MUTANT && j == l || !MUTANT && ",
		},
		{ // what was waited for after an effect, or by others, led to it
			Name: "laterLeads", Test: "TestOrderedReadBesideAnEffect",
			Old: "\treturn l != o.lane && covers", New: "\treturn !(MUTANT && l.waitedFor) && l != o.lane && covers",
		},
		{ // a call that comes too late is made, though the run that was right went on without it
			Name: "lateAnyway", Test: "TestLateByTheWayWithout",
			Old: "c != nil && !t.GivesWay(l, s) {", New: "c != nil && (MUTANT || !t.GivesWay(l, s)) {",
		},
		{ // a doubter that gives up another call leaves alone who guesses at its answer
			Name: "insistOnItsOwn", Test: "TestDoubterThatGivesUpAnother",
			Old: "\tif c == u.Call || slices.ContainsFunc(u.Call.uses",
			New: "\tif c == u.Call || !MUTANT && slices.ContainsFunc(u.Call.uses",
		},
		{ // of two reads in one place any is found, once something has happened
			Name: "firstTwin", Test: "TestOrderedReadOnItsPath",
			Old: "\tc := find(false)\n", New: "\tc := find(MUTANT && t.Behind(l.run))\n",
		},
		{ // a run that made other reads than those that led to what takes effect goes on
			Name: "anotherWay", Test: "TestReadByAnotherWay",
			Old: "u := t.byAnotherWay(r, c); u != nil", New: "u := t.byAnotherWay(r, c); !MUTANT && u != nil",
		},
	}
}

// leftOutBugs are about what one run gave up and another one did not make, or got the answer of.
func leftOutBugs() []plant.Bug {
	return []plant.Bug{
		{ // the end of a call that the run that was right gave up leads astray
			Name: "endedIsLate", Test: "TestEndedIsGivenUp",
			Old: "if u.late && !(ended && u.without) {", New: "if u.late && (MUTANT || !(ended && u.without)) {",
		},
		{ // once something has happened, a call is sure to be that of a run that left nothing out
			Name: "sureBehind", Test: "TestCertainty",
			Old: "\treturn led == c\n", New: "\treturn led == c || MUTANT\n",
		},
		{ // what lanes with other names ask is the same, whoever asks
			Name: "nameIsIdentity", Test: "TestCertaintyUnderAnotherName",
			Old: "\tcase c.key.lane != l.id:", New: "\tcase c.key.lane != l.id && !MUTANT:",
		},
		{ // what the run gave up comes before its ordered reads
			Name: "orderOfGivenUp", Test: "TestOrderedReadBehindAGivenUpCall",
			Old: "u.before && !u.gaveUp && !u.unneeded })", New: "u.before && (MUTANT || !u.gaveUp && !u.unneeded) })",
		},
		{ // a call that was given up, and one that was not made, are two orders of calls
			Name: "orderOfLeft", Test: "TestLeftOutIsNoOtherOrder",
			Old: "return o != u && (o.gaveUp ||", New: "return o != u && (o.gaveUp && !MUTANT ||",
		},
		{ // once something has happened, an ordered read is found by its place
			Name: "findBehind", Test: "TestOrderedReadBehindAnEffect",
			Old: "\tfind := func(behind bool) *Call {\n",
			New: "\tfind := func(behind bool) *Call {\n\t\tif MUTANT && behind {\n" +
				"\t\t\treturn t.confirmedWhere(k, func(c *Call) bool { return t.onPathOf(l, c, true) })\n\t\t}\n",
		},
		{ // an effect on the way with a read does not wait for what followed on the way without it
			Name: "passUndone", Test: "TestEffectBeforeWhatFollowed",
			Old: "\tif c := u.passed(); c != nil {\n", New: "\tif c := u.passed(); c != nil && !MUTANT {\n",
		},
		{ // nor does a read
			Name: "readPast", Test: "TestEffectBeforeWhatFollowed",
			Old: "t.sent.missing(u.lane) == nil && u.passed() == nil\n",
			New: "t.sent.missing(u.lane) == nil && (MUTANT || u.passed() == nil)\n",
		},
		{ // a run that has made such an effect goes on
			Name: "keepPassing", Test: "TestEffectOnTheWayWithARead",
			Old: "|| o.spec.Effect != None && !o.irrevocable() && u.passes(c) {\n",
			New: "|| o.spec.Effect != None && !o.irrevocable() && u.passes(c) && !MUTANT {\n",
		},
		{ // code of another lane that gave up, with this context, since others guessed wrong takes effect
			Name: "giveUpOutside", Test: "TestEffectBehindAnOuterGap",
			Old: "p.gaps != c.forkGaps && p.dep", New: "p.gaps != c.forkGaps && !MUTANT && p.dep",
		},
		{ // code goes on with a guess at a read that is not made before another lane's guess is known
			Name: "leaveGuessed", Test: "TestGuessedReadBesideAGuess",
			Old: "\t\tcase u.answer != Waiting:\n\t\t\treturn u.relatives ||",
			New: "\t\tcase u.answer != Waiting && MUTANT:\n\t\t\treturn false\n" +
				"\t\tcase u.answer != Waiting:\n\t\t\treturn u.relatives ||",
		},
		{ // in a lane that goroutines share runs are started for reads that are under way
			Name: "hurryShared", Test: "TestReadInASharedLane",
			Old: "u.mixed && c.send == unsent\n", New: "u.mixed && (MUTANT || c.send == unsent)\n",
		},
	}
}

// spareBugs are about lanes that a run does without.
func spareBugs() []plant.Bug {
	return []plant.Bug{
		{ // a run waits for guesses of lanes that it does without
			Name: "waitForSpare", Test: "TestGuessesOfSpareLanes",
			Old: "\t\tif !spare(u.lane) {\n\t\t\treturn\n",
			New: "\t\tif !spare(u.lane) || MUTANT {\n\t\t\treturn\n",
		},
		{ // it waits for those that these lanes have yet to take
			Name: "assumeForSpare", Test: "TestAssumedForSpareLanes",
			Old: "\tt.prefer(r)\n\tt.forgoPath(r)\n",
			New: "\tt.prefer(r)\n\tif !MUTANT {\n\t\tt.forgoPath(r)\n\t}\n",
		},
		{ // these lanes take them in its replay
			Name: "guessAgain", Test: "TestAssumedForSpareLanes",
			Old: "\t\tch.call.spec.NoPrediction = true\n", New: "\t\tch.call.spec.NoPrediction = !MUTANT\n",
		},
		{ // a doubter waits for what it doubts in such a lane
			Name: "doubtSpare", Test: "TestDoubtOfWhatIsSpare",
			Old: "\tvar first *Use\n", New: "\tif MUTANT && r.doubts() != nil {\n\t\treturn\n\t}\n\tvar first *Use\n",
		},
		{ // a doubter goes on with guesses that the run may never come to
			Name: "doubtOnAPath", Test: "TestDoubterLeavesWhatIsYetToBeMade",
			Old: "!chosen || yet {\n", New: "!chosen || yet || MUTANT {\n",
		},
		{ // there is no doubter that only these tell from another run
			Name: "doubtWithoutPath", Test: "TestDoubterLeavesWhatIsYetToBeMade",
			Old: "range []bool{false, true} {\n\t\tpath :=", New: "range []bool{false, !MUTANT} {\n\t\tpath :=",
		},
		{ // what such a lane guesses counts as what others went on with that waited for its parent
			Name: "ownSpare", Test: "TestOwnGuesses",
			Old: "\tfor ; l != nil; before, joined, l = int(l.forkedAt), int(l.parentJoined), l.parent {\n",
			New: "\tfor ; l != nil; before, joined, l = int(l.forkedAt), int(l.parentJoined), l.parent {\n" +
				"\t\tfor _, j := range l.joined[:joined] {\n\t\t\tif MUTANT && covers(j.id, o.lane.id) {\n" +
				"\t\t\t\treturn true\n\t\t\t}\n\t\t}\n",
		},
	}
}
