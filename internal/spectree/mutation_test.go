package spectree

import "testing"

// TestMutations plants a bug in each rule of the tree and shows that random
// programs catch it by what the tree does: its own invariants are not looked at.
func TestMutations(t *testing.T) {
	rules := []struct {
		mutation mutation
		name     string
		within   int // programs
	}{
		{noCascade, "a wrong guess ends all that stands on it", 1000},
		{forgetPath, "a wrong guess ends runs that have yet to make it", 1000},
		{twoSiblings, "of two live runs one is wrong", 1000},
		{twoWinners, "one run wins when several predictions are equivalent to the answer", 1000},
		{noReplay, "a discarded run is replaced", 1000},
		{adoptAcrossEffects, "a call is adopted only after the same side effects", 10_000},
		{adoptAcrossOrder, "an ordered call is adopted only after the same ordered calls", 60_000},
		{swapOccurrences, "equal calls keep their places", 1000},
		{forgetSent, "no effect twice after a replay", 1000},
		{forgetOnce, "a call that is made once is made once", 1000},
		{forgetDivergence, "a replay makes the calls that took effect", 1000},
		{sendBehindWrite, "a call waits for the answers of earlier side effects", 1000},
		{commuteUnkeyed, "only declared keys commute", 10_000},
		{sendImmediate, "no immediate effect for a speculative caller", 1000},
		{confirmEarly, "no confirmation before a dependency's", 1000},
		{confirmWithoutCaller, "no confirmation before the caller's", 1000},
		{confirmOutOfOrder, "effects are confirmed one after the other", 100_000},
		{settleEarly, "only certain answers are learnt", 1000},
		{forgetJoin, "who waits for a goroutine stands on its guesses", 1000},
		{trustRelatives, "a call with effects waits for the guesses of its lane's relatives", 10_000},
		{forgetHurried, "a call that waited for a while is helped on", 100_000},
		{forgetJoinedEffects, "who waits for a goroutine comes after its effects", 60_000},
		{resolveEarly, "a local answer counts once its goroutine stands on no guess", 10_000},
		{resolveWithEffects, "nobody runs ahead of a goroutine's effects", 100_000},
		{ignoreOrder, "ordered calls wait for each other", 10_000},
		{predictAfterBarrier, "no predictions after a barrier", 1000},
		{passBarrier, "a barrier waits", 1000},
		{keepLocalGuess, "a barrier does not wait for what waits for it", 1000},
		{forgetWake, "what waits for an answer goes on", 1000},
		{loseRefused, "a refused call is sent again", 1000},
		{ignoreWidth, "no more runs than the width", 1000},
		{keepPath, "who waits at a barrier does not wait for what is yet to come", 10_000},
		{keepPostponed, "what was not sent goes with its last user", 10_000},
		{spendEarly, "no answer is spent before the last run", 1000},
		{spendUnasked, "no answer is spent before the last run has it", 10_000},
		{mixLanes, "each lane finds its own calls", 10_000},
	}
	// neverGiveWay shows where code's contexts end: TestGivesWay. trustPlaces shows where
	// calls come in variants: TestCertainty. keepGivenUp shows where the right run gives up what a
	// wrong one waits for: TestGivenUpBeforeAWrongRunEnds. trustNames shows where goroutines start
	// lanes in another order: TestSwappedNames; so do renameWritesOnly and nameByGuesses. makeGivenUp shows where
	// code gives up a call with effects that a run beside it makes: TestOvertakenRuns; keepLeftOut is the other way
	// round: TestRunsThatLeftOut; keepOldReads: TestReadBeforeANewEffect. trustReads shows where
	// a goroutine knows what the lane around its own guessed: TestReadBesideAGuess. neverPin, pinRepeated, keepOrder,
	// keepFirstOrder and keepOneOrder show where goroutines that
	// share a lane make equal calls, or ordered ones: TestMustPin, TestOrderOfSharedLanes,
	// TestOrderOfTheRightRun, TestOrdersOfTwoRuns, TestWhatHappenedNeedsNoPin, TestExplorationFindsStalls and package
	// randtest catch them.
	const elsewhere = 15
	if len(rules)+elsewhere != int(mutations)-1 {
		t.Errorf("%d rules, %d mutations", len(rules), mutations-1)
	}
	for _, rule := range rules {
		t.Run(rule.name, func(t *testing.T) {
			if rule.within > 10_000 && (testing.Short() || raceEnabled) {
				t.Skip("takes many programs")
			}
			e := execution{seed: 1, unchecked: true, mutation: rule.mutation, nondet: rule.mutation == forgetDivergence}
			for range rule.within {
				if problem := e.execute(); problem != "" {
					t.Logf("program %d: %s", e.index, problem)
					return
				}
				e.index++
			}
			t.Errorf("not caught by %d programs", rule.within)
		})
	}
}
