package spectree

// mutation names a rule that a tree breaks. Tests plant these bugs to show that
// the random programs catch them; a Config from outside has none.
type mutation uint8

const (
	sound                mutation = iota
	noCascade                     // a run with other guesses outlives a wrong one
	forgetPath                    // a run outlives a wrong guess that it has yet to make
	twoSiblings                   // runs are started that may turn out to be the same
	twoWinners                    // every equivalent prediction counts as right, and every run that returns wins
	noReplay                      // nothing takes the place of a discarded run
	adoptAcrossEffects            // a call is adopted whatever effects preceded it
	adoptAcrossOrder              // an ordered call is adopted whatever ordered calls preceded it
	swapOccurrences               // equal calls swap places in every other run
	forgetSent                    // a replay sends again what took effect
	forgetOnce                    // a call that is made once is made by each lane
	forgetDivergence              // a run need not make the calls that took effect
	sendBehindWrite               // calls do not wait for the answers of calls with effects
	commuteUnkeyed                // calls without a conflict key commute with those that have one
	sendImmediate                 // calls with immediate effects are sent speculatively
	confirmEarly                  // a call is confirmed although its maker guessed before
	confirmWithoutCaller          // a call is confirmed although the task's caller may be wrong
	confirmOutOfOrder             // effects are confirmed before earlier ones are done
	settleEarly                   // answers count as certain although their maker guessed before
	forgetJoin                    // who waits for a lane does not depend on its guesses
	forgetJoinedEffects           // who waits for a lane does not follow its effects
	resolveEarly                  // a local call is answered although its lanes guessed
	resolveWithEffects            // a local guess holds although the lanes had effects
	ignoreOrder                   // ordered calls do not wait for each other
	predictAfterBarrier           // a pinned run takes predictions
	passBarrier                   // a barrier does not wait
	keepLocalGuess                // a barrier waits for what waits for it
	forgetWake                    // nobody looks at what waited for an answer
	loseRefused                   // a refused call still counts as sent
	ignoreWidth                   // runs are started beyond the limit
	neverPin                      // goroutines that share a lane need not wait before they write
	keepOrder                     // ordered calls of goroutines that share a lane keep the order of one run
	mixLanes                      // calls of one lane are found by another
	keepPath                      // a run that waits at a barrier keeps what it is to assume later
	keepPostponed                 // a call that nobody makes any more stays although it was not really sent
	keepFirstOrder                // a call that is right keeps to the order of a run that is not
	keepOneOrder                  // a call that is right keeps to the order of one run of several that are right so far
	trustPlaces                   // what goroutines that share a lane make in one place is the same call
	neverGiveWay                  // a run makes a call that a right one went on without, whatever followed
	spendEarly                    // an answer counts as spent although a replay may come
	spendUnasked                  // an answer counts as spent although the last run has yet to ask for it
	keepGivenUp                   // a call that the right run gave up goes on since a wrong one waited for it last
	trustRelatives                // a call with effects does not wait for guesses of its lane's relatives
	forgetHurried                 // a call that waited for a while is helped on then or never
	trustNames                    // lanes that goroutines start in another order each time have one name each
	renameWritesOnly              // reads of lanes that swapped their names are made anew
	nameByGuesses                 // what a lane does on a wrong guess tells whether it swapped its name
	pinRepeated                   // goroutines that share a lane wait before they write what took effect
	keepLeftOut                   // a run that went on without what a right one made before an effect goes on beside that
	keepOldReads                  // a read is found after an effect that only the run itself has made
	makeGivenUp                   // an effect that the right run gave up happens after what followed it
	trustReads                    // a read is found after other effects whatever relatives of its lane guessed
	mutations
)

// mutateKey breaks the rules about which calls are the same.
func (t *Tree) mutateKey(k *key, r *Run) {
	switch t.cfg.mutation {
	case adoptAcrossEffects:
		k.eff = nil
	case mixLanes:
		if k.lane != onceLane {
			k.lane = ""
		}
	case swapOccurrences:
		k.occ ^= r.ID & 1
	}
}

// breaks reports whether the tree breaks this rule.
func (t *Tree) breaks(m mutation) bool { return t.cfg.mutation == m }
