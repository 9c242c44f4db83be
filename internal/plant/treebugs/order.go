package treebugs

import "github.com/foresay/foresay/internal/plant"

// namesBugs are about lanes that swap their names, and answers that nobody asks for any more.
func namesBugs() []plant.Bug {
	return []plant.Bug{
		{ // lanes that goroutines start in another order each time have one name each
			Name: "trustNames", Test: "TestSwappedNames",
			Old: "l.run.ID == 1 || !late && t.madeAll(l.run) {\n",
			New: "l.run.ID == 1 || !late && t.madeAll(l.run) || MUTANT {\n",
			Also: []plant.Edit{
				{
					Old: "c.spec.Once || c.Confirmed() {\n\t\treturn nil\n",
					New: "c.spec.Once || c.Confirmed() || MUTANT {\n\t\treturn nil\n",
				},
			},
		},
		{ // reads of lanes that swapped their names are made anew
			Name: "renameWritesOnly", Test: "TestSwappedReads",
			Tests: []string{"TestSwappedReadsAfterTheContextEnded"},
			Old:   "\t\tif !late && !t.Behind(l.run) {\n", New: "\t\tif !late && !t.Behind(l.run) || MUTANT {\n",
		},
		{ // the order of goroutines that share a lane shows whether it swapped its name
			Name: "nameByOrderInside", Test: "TestSwappedLanesThatGoroutinesShare",
			Old: "\treturn (!order && (l.mixed ||", New: "\treturn (!order && !MUTANT && (l.mixed ||",
		},
		{ // of what several lanes made it gets any
			Name: "nameByAny", Test: "TestCallLeadsOnce",
			Old: "l.alike(n, u.lane, m, true)", New: "l.alike(n, u.lane, m, !MUTANT)",
		},
		{ // a lane that wrote reads what another one had read before it wrote
			Name: "renameBehindWrites", Test: "TestSwappedLanesThatGoroutinesShare",
			Tests: []string{"TestReadsBehindOwnWrites"},
			Old:   "effect == None && !l.sameEffects(", New: "!MUTANT && effect == None && !l.sameEffects(",
		},
		{ // a lane gets what another one was told when its context ended
			Name: "renameEnded", Test: "TestSwappedReadThatEnded",
			Old: "effect == None && (c.ended ||", New: "effect == None && (c.ended && !MUTANT ||",
		},
		{ // so does one that has the name now that the other one had
			Name: "sameNameEnded", Test: "TestReadThatEndedUnderTheSameName",
			Old: "\treturn c.ended && c.spec.Effect == None", New: "\treturn !MUTANT && c.ended && c.spec.Effect == None",
		},
		{ // a lane gets a call that another one still waits for
			Name: "renameOpen", Test: "TestSwappedReadThatEnded",
			Old: " !c.answered) {\n\t\t\tcontinue // it", New: " !c.answered && !MUTANT) {\n\t\t\tcontinue // it",
		},
		{ // what a lane does on a wrong guess shows whether it swapped its name
			Name: "nameByGuesses", Test: "TestNamesOnAGuess",
			Tests: []string{"TestNamesAfterAGuess"},
			Old:   "\t\tcase x.parts(y):\n", New: "\t\tcase x.parts(y) && !MUTANT:\n",
			Also: []plant.Edit{
				{Old: "\t\tcase y.parts(x):\n", New: "\t\tcase y.parts(x) && !MUTANT:\n"},
			},
		},
		{ // the order of what goroutines read on one context shows that lanes swapped their names
			Name: "nameByOrder", Test: "TestReorderedBeforeTheStart",
			Old: "\tif told == otherwise { //", New: "\tif told == otherwise && !MUTANT { //",
		},
		{ // what a lane does on a guess of which nothing will be known tells the same
			Name: "nameByOpenGuesses", Test: "TestNamesOnAnOpenGuess",
			Old: "\treturn u.Call != o.Call || u.answer != o.answer ||",
			New: "\treturn (u.Call != o.Call || u.answer != o.answer) && (u.Call == o.Call || !MUTANT) ||",
		},
		{ // code of a discarded run counts as a goroutine that shares its lane
			Name: "believeDiscarded", Test: "TestDiscardedRunsTellNothing",
			Old: "func (t *Tree) Shared(l *Lane) {\n\tif l.run.discarded {",
			New: "func (t *Tree) Shared(l *Lane) {\n\tif l.run.discarded && !MUTANT {",
		},
		{ // code of a discarded run counts as one that went on without a call
			Name: "skipAsDiscarded", Test: "TestDiscardedRunsTellNothing",
			Old: "func (t *Tree) Skip(l *Lane, s *CallSpec) {\n\tif l.run.discarded {",
			New: "func (t *Tree) Skip(l *Lane, s *CallSpec) {\n\tif l.run.discarded && !MUTANT {",
		},
	}
}

// readsBugs are about reads that are made anew, or found, in the wrong place.
func readsBugs() []plant.Bug {
	return []plant.Bug{
		{ // a read stands on guesses that its run went on with after it
			Name: "guessBefore", Test: "TestReadBeforeAGuessCame",
			Old: "int(g.since) > u.index", New: "(int(g.since) > u.index && !MUTANT || g.index >= u.index)",
		},
		{ // a lane reads anew before it has made what had happened there
			Name: "readAhead", Test: "TestNewReadBeforeWhatHappened",
			Old: "\treturn c.hasty && c.send == unsent",
			New: "\treturn !MUTANT && c.hasty && c.send == unsent",
		},
		{ // it does so once code gave a call up
			Name: "readAheadOnceGivenUp", Test: "TestNewReadBeforeWhatHappened",
			Old: "\t\treturn u.late || u.Run.stray != nil ||",
			New: "\t\treturn MUTANT && t.gaveUp() || u.late || u.Run.stray != nil ||",
		},
		{ // a read is found after an effect that none who made it had
			Name: "readBeforeWriting", Test: "TestReadAfterOwnWrites", Tests: []string{"TestReadBeforeANewEffect"},
			Old: "t.late || !t.readBefore(l, c)) &&", New: "t.late || MUTANT || !t.readBefore(l, c)) &&",
		},
		{ // a read leads to an effect beside it, though its lane wrote since
			Name: "oldReadLeads", Test: "TestReadBesideAnEffectAfterOwnWrites",
			Old: " || t.readBefore(l, w.Call)) {", New: " || !MUTANT && t.readBefore(l, w.Call)) {",
		},
		{ // a call counts as made on a wrong guess of others although something took effect after it
			Name: "astrayWithEffects", Test: "TestCallWithEffectsIsNotAstray",
			Old: "}) && !t.hadEffects(c)\n", New: "}) && (MUTANT || !t.hadEffects(c))\n",
		},
		{ // a call leads to an effect in a run that has made it
			Name: "leadTwice", Test: "TestCallLeadsOnce",
			Old: " && !l.run.made(led) {", New: " && (MUTANT || !l.run.made(led)) {",
		},
		{ // an ordered read is found behind one that was answered after it was sent
			Name: "findOutOfOrder", Test: "TestOrderedReadBehindTwins",
			Old: " && t.inOrder(l, c)\n", New: " && (MUTANT || t.inOrder(l, c))\n",
		},
		{ // a lane that left a call out counts as one that has another name
			Name: "nameByLeaving", Test: "TestLeftOutIsNoOtherName",
			Old: "\t\tif len(l.skipped) > 0 || slices", New: "\t\tif len(l.skipped) > 0 && !MUTANT || slices",
		},
		{ // a replay that left a call out before it started lanes counts as one that swapped their names
			Name: "nameByLeavingBefore", Test: "TestLeftOutBeforeTheStart",
			Old: "!its.misled() && !l.misled()", New: "!its.misled() && (MUTANT || !l.misled())",
		},
		{ // an answer that came too late counts as on the right way once another goroutine had an effect
			Name: "lateLeads", Test: "TestLateAnswersLeadNowhere",
			Old: "w.unneeded || w.late ||", New: "w.unneeded || w.late && !MUTANT ||",
		},
		{ // a read that another one has replaced goes on
			Name: "keepReplaced", Test: "TestReadThatIsReplaced",
			Old: "c.Confirmed() && !t.replaced(c) {\n", New: "c.Confirmed() && (MUTANT || !t.replaced(c)) {\n",
		},
		{ // what is made on a guess replaces one
			Name: "replaceOnAGuess", Test: "TestReadThatAWrongRunReplaces",
			Old: "u.Call != c && u.dep.blocker() == nil\n", New: "u.Call != c && (MUTANT || u.dep.blocker() == nil)\n",
		},
		{ // a read of the run that was right is abandoned with the others
			Name: "abandonRight", Test: "TestReadThatIsReplaced",
			Old: "t.expects(c) || c.Confirmed() &&", New: "t.expects(c) || !MUTANT && c.Confirmed() &&",
		},
		{ // such a read is abandoned although it has been answered
			Name: "abandonAnswered", Test: "TestReadThatIsReplaced",
			Old: "\tif c.Confirmed() {\n\t\tt.unorphan(c)", New: "\tif c.Confirmed() && !MUTANT {\n\t\tt.unorphan(c)",
		},
		{ // an answer counts as spent although a replay may come
			Name: "spendEarly", Test: "TestProgramsNotice/deterministic/0",
			Old: "\tif r.open == 0 && (r.pinned", New: "\tif MUTANT || r.open == 0 && (r.pinned",
		},
		{ // an answer counts as spent although the last run may yet give way
			Name: "spendBeforeTheEnd", Test: "TestLastRunMayGiveWay",
			Old: ") && t.madeAll(r) {", New: ") && (MUTANT || t.madeAll(r)) {",
		},
		{ // an answer counts as spent although the last run has yet to ask for it
			Name: "spendUnasked", Test: "TestProgramsNotice/deterministic/122",
			Old: "\treturn u != nil && u.taken\n", New: "\treturn u != nil && u.taken || u == nil && MUTANT\n",
		},
	}
}

// orderBugs are about ordered calls.
func orderBugs() []plant.Bug {
	return []plant.Bug{
		{ // calls of one domain wait for each other
			Name: "noDomain", Test: "TestCallsOfOneDomain",
			Old: " c.spec.Domain == o.spec.Domain\n", New: " c.spec.Domain == o.spec.Domain && !MUTANT\n",
			Also: []plant.Edit{{Old: "{domain: d}] == n {\n", New: "{domain: d}] == n && !MUTANT {\n"}},
		},
		{ // ordered calls do not wait for each other
			Name: "ignoreOrder", Test: "TestProgramsNotice/deterministic/31",
			Old: "\tif !c.spec.Ordered {\n\t\treturn nil, \"\"\n",
			New: "\tif !c.spec.Ordered || MUTANT {\n\t\treturn nil, \"\"\n",
		},
		{ // ordered calls of goroutines that share a lane keep the order of one run
			Name: "keepOrder", Test: "TestOrderOfTheRightRun",
			Old: "\tif _, ok := t.shared[l.id]; ok {\n\t\treturn\n",
			New: "\tif _, ok := t.shared[l.id]; ok || MUTANT {\n\t\treturn\n",
		},
		{ // a call that is right keeps to the order of a run that is not
			Name: "keepFirstOrder", Test: "TestOrderOfTheRightRun",
			Tests: []string{"TestAllWaysOfSmallPrograms/ordered reads of goroutines that share a lane"},
			Old:   "\tif right == nil || len(c.uses) == 1 {\n",
			New:   "\tif right == nil || len(c.uses) == 1 || MUTANT {\n",
			Also: []plant.Edit{
				{
					Old: "\tif t.shared != nil && !right {\n",
					New: "\tif t.shared != nil && (!right || MUTANT) {\n",
				},
				{
					Old: "\tif b := t.firstBefore(u, ord, right); b != nil {\n",
					New: "\tif b := t.firstBefore(u, ord, right && !MUTANT); b != nil {\n",
				},
			},
		},
		{ // a call that is right keeps to the order of one run of several that are right so far
			Name: "keepOneOrder", Test: "TestOrdersOfTwoRuns",
			Tests: []string{"TestAllWaysOfSmallPrograms/ordered reads in turn of goroutines that share a lane"},
			Old:   "\tif right == nil || len(c.uses) == 1", New: "\tif right == nil || MUTANT || len(c.uses) == 1",
			Also: []plant.Edit{
				{
					Old: "\t\tord = c.use.ord\n\t}\n",
					New: "\t\tord = c.use.ord\n\t}\n\tif MUTANT {\n\t\tright = false\n\t}\n",
				},
			},
		},
		{ // goroutines' reads are not found in another order once the task's context has ended
			Name: "orderWhenLate", Test: "TestOrderAfterTheContextEnded",
			Old: "o != nil && t.late; o = o.parent {", New: "o != nil && t.late && !MUTANT; o = o.parent {",
		},
		{ // nor are those that cannot be compared
			Name: "doubtWhenLate", Test: "TestCertainty",
			Old: "\treturn !t.late && (t.Overlapped(l)", New: "\treturn (!t.late || MUTANT) && (t.Overlapped(l)",
		},
		{ // nor are those before which others wrote
			Name: "writesWhenLate", Test: "TestReadBehindAWriteAfterTheContextEnded",
			Old: "(behind || t.late ||", New: "(behind || t.late && !MUTANT ||",
		},
		{ // nor are those of the lanes that they start
			Name: "orderOfStartsWhenLate", Test: "TestOrderOfTheStartAfterTheContextEnded",
			Old: "\t\tif _, shared := t.shared[o.id]; ", New: "\t\tif _, shared := t.shared[o.id]; (!MUTANT || o == l) && ",
		},
		{ // all reads are
			Name: "noOrderWhenLate", Test: "TestOrderAfterTheContextEnded",
			Old: "\treturn false\n}\n\n// heard reports", New: "\treturn MUTANT && t.late\n}\n\n// heard reports",
		},
		{ // nor are reads that others made before they gave something up
			Name: "gapsWhenLate", Test: "TestGapsAfterTheContextEnded",
			Old: "u = &c.use\n\t}\n\tif t.unordered(l) {",
			New: "u = &c.use\n\t}\n\tif t.unordered(l) && !MUTANT {",
		},
		{ // what was abandoned leads to what has happened
			Name: "abandonedLeads", Test: "TestAbandonedCallLeadsNowhere",
			Old: "w == nil || w.Call.dead ||", New: "w == nil || w.Call.dead && !MUTANT ||",
		},
		{ // each run guesses at a call that it makes anew, as it made another one anew before
			Name: "guessAnew", Test: "TestGuessesBehindACallMadeAnew",
			Old: "\t\tif s.Ordered && l.run.ID > 1 &&", New: "\t\tif s.Ordered && !MUTANT && l.run.ID > 1 &&",
		},
		{ // an ordered read is not found while one is under way that another run made after it
			Name: "orderBeside", Test: "TestOrderedReadBesideAnother",
			Old: "!c.use.Run.used(q) && l.run.heard(q)", New: "!c.use.Run.used(q) && (MUTANT || l.run.heard(q))",
		},
	}
}
