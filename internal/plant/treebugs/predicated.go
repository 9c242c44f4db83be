package treebugs

import "github.com/foresay/foresay/internal/plant"

// PredicatedBugs are about calls that their servers refuse if their callers guessed wrong. Bugs has
// them too.
func PredicatedBugs() []plant.Bug {
	return []plant.Bug{
		{ // one is sent on guesses that its server cannot check
			Name: "sendOnForeignGuesses", Test: "TestPredicatedCallsAreHeld",
			Tests: []string{"TestProgramsNotice/predicated/0"},
			Old:   "\tcase g.domain != nil && !c.checkable(u.answer, g.domain):\n",
			New:   "\tcase g.domain != nil && !MUTANT && !c.checkable(u.answer, g.domain):\n",
		},
		{ // or on one at a call that its server has not got
			Name: "sendOnUnsent", Test: "TestRefusedPredicatedCall",
			Old: "\treturn c.spec.Domain == d && c.send != unsent && !c.postponed\n",
			New: "\treturn c.spec.Domain == d && (MUTANT || c.send != unsent && !c.postponed)\n",
		},
		{ // or for a caller that may be wrong
			Name: "sendForOpenCaller", Test: "TestPredicatedCallsAreHeld/caller",
			Tests: []string{"TestProgramsNotice/predicated/0"},
			Old:   "\tif t.caller == CallerConfirmed {\n\t\tfor _, u := range c.uses {\n\t\t\tif u != first {",
			New:   "\tif t.caller == CallerConfirmed || MUTANT {\n\t\tfor _, u := range c.uses {\n\t\t\tif u != first {",
		},
		{ // or on a guess at what code has yet to compute
			Name: "sendOnLocalGuess", Test: "TestPredicatedCallsAreHeld/future",
			Old: "\t\tif c.pending == nil || c.pending.match != u.answer {\n\t\t\treturn c\n",
			New: "\t\tif MUTANT && c.pending == nil {\n\t\t\treturn nil\n\t\t}\n\t\tif c.pending == nil || c.pending.match != " +
				"u.answer {\n\t\t\treturn c\n",
		},
		{ // what another run sent a call on is left out
			Name: "skipForOthers", Test: "TestPredicatedCallOfAnotherRun",
			Old: " && c.noted().sentFor == u {", New: " && (c.noted().sentFor == u || MUTANT) {",
		},
		{ // nothing is left out, so that a call costs more the more there are before it
			Name: "skipNothing", Test: "TestPredicatedCalls",
			Old: "\t\tif g.stop == nil {\n\t\t\tg.stop = u.dep.top()\n",
			New: "\t\tif MUTANT {\n\t\t\treturn nil\n\t\t}\n\t\tif g.stop == nil {\n\t\t\tg.stop = u.dep.top()\n",
		},
		{ // one that may yet take effect is forgotten
			Name: "forgetUndecided", Test: "TestPredicatedCallOutlivesItsRun",
			Tests: []string{"TestProgramsNotice/predicated/0"},
			Old:   ">= before || c.undecided() ||\n", New: ">= before || c.undecided() && !MUTANT ||\n",
			Also: []plant.Edit{{Old: "\tif c.undecided() { // its", New: "\tif c.undecided() && !MUTANT { // its"}},
		},
		{ // the task ends before it is decided
			Name: "finishUndecided", Test: "TestPredicatedCallBesideAnotherWay/end",
			Old: "\tif !t.mayEnd() && !t.late {\n", New: "\tif !t.mayEnd() && !t.late && !MUTANT {\n",
		},
		{ // a call that took effect is not found again by its place
			Name: "takesEffectUnseen", Test: "TestProgramsNotice/predicated/0",
			Old: "\tt.unorphan(c)\n\tt.sent.add(c)\n", New: "\tt.unorphan(c)\n\tif !MUTANT {\n\t\tt.sent.add(c)\n\t}\n",
		},
		{ // nor is one that may yet
			Name: "makeBesideUndecided", Test: "TestProgramsNotice/predicated/0",
			Old: "c != nil && c.undecided() && !c.dead && !c.doomed() {",
			New: "c != nil && !MUTANT && c.undecided() && !c.dead && !c.doomed() {",
		},
		{ // what a call with an answer was sent on does not count as true
			Name: "doubtWhatItRestsOn", Test: "TestPredicatedCalls",
			Old: "\t\tif o := d.Call; o.undecided() && !o.dead && ",
			New: "\t\tif o := d.Call; !MUTANT && o.undecided() && !o.dead && ",
		},
		{ // a call counts as certain as soon as it is sent
			Name: "certainAtOnce", Test: "TestProgramsNotice/predicated/0",
			Old: " || c.holds() {\n\t\tt.takesEffect(c)", New: " || c.holds() || MUTANT {\n\t\tt.takesEffect(c)",
		},
		{ // an answer that says nothing is taken for one
			Name: "sureOfNothing", Test: "TestUnsurePredicatedCall",
			Old: "\tif c.answered && !c.noted().unsure || ", New: "\tif c.answered && (!c.noted().unsure || MUTANT) || ",
		},
		{ // a run that returned does not notice that a call has such an answer for which it waited
			Name: "forgetUnsure", Test: "TestUnsureAnswerEnds",
			Old: "\tundecided := c.undecided() //", New: "\tundecided := c.undecided() && !MUTANT //",
		},
		{ // what may be another domain's effect is taken for one of this
			Name: "oneDomainOfTwo", Test: "TestFollowedPredictionsOfTwoDomains",
			Old: "\t\tif others {\n", New: "\t\tif others && !MUTANT {\n",
		},
		{ // a call that moves to another domain is still counted by the one it was of
			Name: "countWhereItWas", Test: "TestFollowedPredictionsOfTwoDomains",
			Old:  "\tt.unanswered.forget(c)\n\tc.spec.Domain = d\n",
			New:  "\tif !MUTANT {\n\t\tt.unanswered.forget(c)\n\t}\n\tc.spec.Domain = d\n",
			Also: []plant.Edit{{Old: "\tif counted {\n", New: "\tif counted && !MUTANT {\n"}},
		},
		{ // a withdrawn guess discards a run that has sent one
			Name: "withdrawSentAhead", Test: "TestWithdrawnGuessOfAPredicatedCall",
			Old: "\t\t\tif r.sentAhead {\n", New: "\t\t\tif r.sentAhead && !MUTANT {\n",
		},
		{ // what was sent on a call that was refused counts as if it had not been
			Name: "forgetRefusals", Test: "TestProgramsNotice/predicated/0",
			Old: "\t\tn.refusals++ //", New: "\t\tif !MUTANT {\n\t\t\tc.terms.refusals++\n\t\t}\n\t\t//",
		},
		{ // nobody looks at a call again once those are sent that it is to be sent on
			Name: "forgetThoseSentOn", Test: "TestPredicatedCallsAreHeld/before",
			Old: "\t\tt.freed = append(t.freed, c.wakes...) // from now on",
			New: "\t\tif MUTANT {\n\t\t\treturn\n\t\t}\n\t\tt.freed = append(t.freed, c.wakes...) // from now on",
		},
		{ // or once it is known what code computed
			Name: "forgetResolved", Test: "TestPredicatedCallsAreHeld/future",
			Old: "\tt.freed = append(t.freed, c.wakes...) // what it stands on is known now\n",
			New: "\tif !MUTANT {\n\t\tt.freed = append(t.freed, c.wakes...)\n\t}\n",
		},
		{ // what follows another task's effects does not wait for them
			Name: "forgetOthersEffects", Test: "TestReadBehindAnotherTasksEffects",
			Old: "\tif u.Call.basis(idx).effects {\n", New: "\tif u.Call.basis(idx).effects && !MUTANT {\n",
		},
		{ // a barrier is passed while it is open which way is right
			Name: "passUndecided", Test: "TestPredicatedCallBesideAnotherWay/barrier",
			Old: "func (t *Tree) mayEnd() bool { return ", New: "func (t *Tree) mayEnd() bool { return MUTANT || ",
		},
	}
}
