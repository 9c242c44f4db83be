package str

import (
	"slices"
	"testing"

	"github.com/foresay/foresay/internal/plant"
	"github.com/foresay/foresay/store/storetest"
)

// stampPlants have commits come too early, or too late.
func stampPlants() []plant.Bug {
	return []plant.Bug{
		{
			Name: "a stamp does not count reads (S5)", Test: "TestSeedsNotice/1",
			Old: "\t\tabove = max(above, s.reads.Above(w.Key))\n",
			New: "\t\tif !MUTANT {\n\t\t\tabove = max(above, s.reads.Above(w.Key))\n\t\t}\n",
		},
		{
			Name: "what was read of a transaction is not noted with its outcome (S5)", Test: "TestSeedsNotice/87",
			Old: "\ts.wasShown(m.ID, m.Read)\n\th := s.held[m.ID]\n",
			New: "\tif !MUTANT {\n\t\ts.wasShown(m.ID, m.Read)\n\t}\n\th := s.held[m.ID]\n",
			Also: []plant.Edit{{
				Old: "\t\ts.wasShown(m.ID, m.Read)\n\t\ts.isOver(",
				New: "\t\tif !MUTANT {\n\t\t\ts.wasShown(m.ID, m.Read)\n\t\t}\n\t\ts.isOver(",
			}, {
				Old: "\t\ts.wasShown(m.ID, m.Read)\n\t}\n}\n\n// isConfirmed",
				New: "\t\tif !MUTANT {\n\t\t\ts.wasShown(m.ID, m.Read)\n\t\t}\n\t}\n}\n\n// isConfirmed",
			}},
		},
		{
			Name: "a local commit is not above what was read from another one", Test: "TestLocalAboveReads",
			Old: "\t\t\tabove = max(above, x.read)\n",
			New: "\t\t\tif !MUTANT {\n\t\t\t\tabove = max(above, x.read)\n\t\t\t}\n",
		},
		{
			Name: "what was read of a transaction is forgotten once it is final", Test: "TestLocalAboveReads",
			Old: "\t\te.read, e.final = max(e.read, x.read), max",
			New: "\t\tif !MUTANT {\n\t\t\te.read = max(e.read, x.read)\n\t\t}\n\t\te.read, e.final = e.read, max",
		},
		{
			Name: "reads of what the site has no copy of are not noted (S4)", Test: "TestReadsElsewhereAreNoted",
			Old: "\t\tc.table.readAt(r.key, r.t.at) // (S4)\n",
			New: "\t\tif !MUTANT {\n\t\t\tc.table.readAt(r.key, r.t.at)\n\t\t}\n",
		},
		{
			Name: "what is certified without a server of the site may be in a snapshot that lacks it",
			Test: "TestCertifiedApart",
			Old:  "\tif t.apart {\n", New: "\tif t.apart && !MUTANT {\n",
		},
		{
			Name: "nobody remembers what was read before a restart (S22)", Test: "TestSeedsNotice/1083",
			Old: "\ts.noted = max(s.noted, ceiling)\n",
			New: "\tif !MUTANT {\n\t\ts.noted = max(s.noted, ceiling)\n\t}\n",
		},
		{
			Name: "a state that is loaded is taken over behind what follows it", Test: "TestWordsStay",
			Old: "\ts.takeOver(env) // first", New: "\tif !MUTANT {\n\t\ts.takeOver(env)\n\t} // first",
		},
		{
			Name: "a reader is dropped and the floor is where it was (S19)", Test: "TestSeedsNotice/70",
			Old: "\t\tb.floor = max(b.floor, g.values.Ceiling(state))\n",
			New: "\t\tif !MUTANT {\n\t\t\tb.floor = max(b.floor, g.values.Ceiling(state))\n\t\t}\n",
		},
		{
			Name: "a reader that is silent is done without, as if it had said something (S6)", Test: "TestSameTimestamp",
			Old: "\t\tcase slices.Contains(w.leader.Serving, id):\n",
			New: "\t\tcase slices.Contains(w.leader.Serving, id) && !MUTANT:\n",
		},
		{
			Name: "a commit is as early as its local one", Test: "TestSeedsNotice/1",
			Old: "\t\tat, certain = max(at, stamp), certain && sure\n",
			New: "\t\tif !MUTANT {\n\t\t\tat = max(at, stamp)\n\t\t}\n\t\tcertain = certain && sure\n",
		},
		{
			Name: "a server's clock does not count for commits", Test: "TestClocks",
			Old: "\tif s.mode.physical {\n\t\tabove", New: "\tif s.mode.physical && !MUTANT {\n\t\tabove",
		},
	}
}

// readPlants have snapshots show what they must not.
func readPlants() []plant.Bug {
	return []plant.Bug{
		{
			Name: "who serves again knows what is on its way", Test: "TestServesAgain",
			Old: "\t\t\th.blind = true\n", New: "\t\t\th.blind = !MUTANT\n",
		},
		{
			Name: "who serves again by a copy of the state knows what is on its way", Test: "TestServesAgainByCopy",
			Old: "\ts.servesAgain(env) // that", New: "\tif !MUTANT {\n\t\ts.servesAgain(env)\n\t} // that",
		},
		{
			Name: "a word to a coordinator is not on disk (S20)", Test: "TestCertifiedIsOnDisk",
			Old: "\t\ts.putOwn(env, h) // whoever", New: "\t\tif !MUTANT {\n\t\t\ts.putOwn(env, h)\n\t\t} // whoever",
		},
		{
			Name: "who reads what is local does not depend on it", Test: "TestSeedsNotice/1",
			Old: "\t\tc.depend(t, r.by)\n", New: "\t\tif !MUTANT {\n\t\t\tc.depend(t, r.by)\n\t\t}\n",
		},
		{
			Name: "who depends on a later commit goes on (S8)", Test: "TestSeedsNotice/1",
			Old: "\t\tif d.limitOf(t.id) < at && c", New: "\t\tif d.limitOf(t.id) < at && !MUTANT && c",
		},
		{
			Name: "who depends on what is aborted goes on", Test: "TestSeedsNotice/10",
			Old: "\t\tc.abortAs(env, d, store.Cascade, store.StaleRead)\n\t}\n\tfor _, on",
			New: "\t\tif MUTANT {\n\t\t\tdelete(d.on, t.id)\n" +
				"\t\t\tcontinue\n\t\t}\n\t\tc.abortAs(env, d, store.Cascade, store.StaleRead)\n\t}\n\tfor _, on",
		},
		{
			Name: "who reads by way of another one does not hear of commits (S3)", Test: "TestConflictAcrossReads",
			Old: "\t\t\t\tseen[id] = d\n\t\t\t\twalk(d)\n",
			New: "\t\t\t\tseen[id] = d\n\t\t\t\tif !MUTANT {\n\t\t\t\t\twalk(d)\n\t\t\t\t}\n",
		},
		{
			Name: "a commit without a reader is below what that has served (S19)", Test: "TestDroppedReader",
			Old: "\t\t\tcertain, at = false, max(at, w.leader.Past+1)\n",
			New: "\t\t\tif certain = false; !MUTANT {\n\t\t\t\tat = max(at, w.leader.Past+1)\n\t\t\t}\n",
		},
		{
			Name: "what was served before counts only if somebody serves now (S19)", Test: "TestNoReaders",
			Old: "\tcertain, at = true, w.leader.Above+1 // whoever",
			New: "\tif certain = true; !MUTANT {\n\t\tat = w.leader.Above + 1\n\t} // whoever",
		},
		{
			Name: "a coordinator forgets its commits (S3)", Test: "TestOwnCommits",
			Old: "\t\tif c.table.written(w.Key) > t.at {\n",
			New: "\t\tif c.table.written(w.Key) > t.at && !MUTANT {\n",
		},
		{
			Name: "stacked writes are no dependency (S8)", Test: "TestStackedWrites",
			Old: "\t\tc.depend(t, x) // (S8)\n",
			New: "\t\tif MUTANT {\n\t\t\tcontinue\n\t\t}\n\t\tc.depend(t, x) // (S8)\n",
		},
		{
			Name: "what is read may be unsafe, and what reads it is not (S3)", Test: "TestConflictAcrossReads",
			Old: "\t\t\tt.unsafe[id] = at\n", New: "\t\t\tif !MUTANT {\n\t\t\t\tt.unsafe[id] = at\n\t\t\t}\n",
		},
		{
			Name: "what was read had seen a late commit, and who reads it has not (S3)", Test: "TestConflictAcrossReads",
			Old: "\t\tt.latest = max(t.latest, r.by.latest)\n",
			New: "\t\tif !MUTANT {\n\t\t\tt.latest = max(t.latest, r.by.latest)\n\t\t}\n",
		},
		{
			Name: "reads are handed out whatever may have been overtaken (S2)", Test: "TestConflictAcrossReads",
			Old: "\t\tif at < t.latest {\n", New: "\t\tif at < t.latest && !MUTANT {\n",
		},
		{
			Name: "what is certified at the site is safe for ever", Test: "TestVouchedCommits",
			Old: "\t\tleast = min(least, at)\n", New: "\t\tif !MUTANT {\n\t\t\tleast = min(least, at)\n\t\t}\n",
		},
		{
			Name: "nobody vouches for longer", Test: "TestVouchedCommits",
			Old: "\t\t\t\tc.askCertify(env, t, k)\n",
			New: "\t\t\t\tif !MUTANT {\n\t\t\t\t\tc.askCertify(env, t, k)\n\t\t\t\t}\n",
		},
		{
			Name: "nobody listens to a server that vouches for longer", Test: "TestVouchedCommits",
			Old: "\tc.vouchedFor(env, t, m)\n",
			New: "\tif !MUTANT || t.stage == certifying {\n\t\tc.vouchedFor(env, t, m)\n\t}\n",
		},
		{
			Name: "a server certifies and does not vouch", Test: "TestForgottenTentative",
			Old: "\t\tout.Stamp, out.Until = h.stamp, s.vouchesUntil(env, h)\n",
			New: "\t\tout.Stamp, out.Until = h.stamp, s.vouchesUntil(env, h)\n" +
				"\t\tif MUTANT {\n\t\t\tout.Until = 0\n\t\t}\n",
		},
		{
			Name: "what is given up at a server was vouched for in vain", Test: "TestForgottenTentative",
			Old: "\t\tif silent {\n", New: "\t\tif silent && !MUTANT {\n",
		},
		{
			Name: "what depends on a local commit is read for longer", Test: "TestBoundOfDependents",
			Old: "\t\tt.bound = min(t.bound, x.bound)\n",
			New: "\t\tif !MUTANT {\n\t\t\tt.bound = min(t.bound, x.bound)\n\t\t}\n",
		},
		{
			Name: "a server's answer lacks what the snapshot shows", Test: "TestBoundHides",
			Old: "c.table.lacks(r.key, r.t.at, m.Value.Version) {",
			New: "!MUTANT && c.table.lacks(r.key, r.t.at, m.Value.Version) {",
		},
		{
			Name: "what is local may depend on what servers know to be too late", Test: "TestLocalAfterWord",
			Old: "len(t.lacks) > 0 || t.awaitsWord() {", New: "len(t.lacks) > 0 || t.awaitsWord() && !MUTANT {",
		},
		{
			Name: "reads that are on their way do not see a new local commit", Test: "TestReadsAnew",
			Old: "\tc.readAnew(env, t)\n", New: "\tif !MUTANT {\n\t\tc.readAnew(env, t)\n\t}\n",
		},
		{
			Name: "reads do not wait for what is prepared (S9)", Test: "TestReadsWait",
			Old: "\t\tcase h.shownFrom() <= m.At:\n", New: "\t\tcase h.shownFrom() <= m.At && !MUTANT:\n",
		},
		{
			Name: "who waited gets what it waited for (S9)", Test: "TestReadsWait",
			Old: "\t\tcase h.over != nil && (!h.over.Commit || h.over.At > m.At),",
			New: "\t\tcase h.over != nil && (!h.over.Commit || h.over.At > m.At && !MUTANT),",
		},
		{
			Name: "a snapshot is below what its session has seen (S12)", Test: "TestSessionSnapshots",
			Old: "\tc.txns[id], c.begun = t, max(",
			New: "\tif MUTANT {\n\t\tt.at = max(clock.Stamp(env.Now), 1)\n\t}\n\tc.txns[id], c.begun = t, max(",
		},
	}
}

// certifyPlants have transactions certified that must not be.
func certifyPlants() []plant.Bug {
	return []plant.Bug{
		{
			Name: "the leader certifies without looking at versions", Test: "TestSeedsNotice/2",
			Old: "\t\tif clock.Stamp(s.state.values.Newest(state, key).Version.Time) > t.at {\n",
			New: "\t\tif clock.Stamp(s.state.values.Newest(state, key).Version.Time) > t.at && !MUTANT {\n",
			Also: []plant.Edit{{
				Old: "\t\tif clock.Stamp(g.values.Newest(state, w.Key).Version.Time) > p.At {\n",
				New: "\t\tif clock.Stamp(g.values.Newest(state, w.Key).Version.Time) > p.At && !MUTANT {\n",
			}},
		},
		{
			Name: "the horizon that was proposed does not count (S24)", Test: "TestProposedHorizon",
			Old: " || t.log && t.at < s.horizon {", New: " || t.log && t.at < s.horizon && !MUTANT {",
			Also: []plant.Edit{{
				Old: "\tif p.At < g.values.Horizon(state) {\n", New: "\tif p.At < g.values.Horizon(state) && !MUTANT {\n",
			}},
		},
		{
			Name: "what was displaced may still be read (S10)", Test: "TestDisplaced",
			Old: "\tif h.stage == tentative || len(h.before) > 0 {\n",
			New: "\tif h.stage == tentative || len(h.before) > 0 && !MUTANT {\n",
			Also: []plant.Edit{{
				Old: "\tif len(h.before) == 0 {\n\t\ts.sayTo", New: "\tif len(h.before) == 0 || MUTANT {\n\t\ts.sayTo",
			}},
		},
		{
			Name: "the certified gives way to nobody (S10)", Test: "TestDisplaced",
			Old: "\t\t\tif o.stage != tentative || o == h ||",
			New: "\t\t\tif o.stage != tentative || MUTANT || o == h ||",
		},
		{
			Name: "the longest wait is for whoever began last (S7)", Test: "TestWaitsGoToSmallerSnapshots",
			Old: "\tcase h.shownFrom() > t.at:\n", New: "\tcase h.shownFrom() > t.at && !MUTANT:\n",
		},
		{
			Name: "a transaction commits before what it depends on", Test: "TestSeedsNotice/9",
			Old: "t.staged || len(t.on) > 0 {",
			New: "t.staged || len(t.on) > 0 && !MUTANT {",
		},
		{
			Name: "who begins anew stands on what it had read", Test: "TestBeginsAnew",
			Old: "\tif !t.gave(m.Txn.Reads) ||",
			New: "\tif !t.gave(m.Txn.Reads) && !MUTANT ||",
		},
		{
			Name: "a client goes on as of another snapshot", Test: "TestClientNotices",
			Old: "\tif o.at != 0 && m.At != o.at {", New: "\tif o.at != 0 && m.At != o.at && !MUTANT {",
		},
		{
			Name: "a coordinator goes on as of another snapshot", Test: "TestBeginsAnew",
			Old: "m.At > 0 && clock.Stamp(m.At) != t.at {", New: "m.At > 0 && clock.Stamp(m.At) != t.at && !MUTANT {",
		},
		{
			Name: "a transaction begins by its second step", Test: "TestBeginsAnew",
			Old: "\t\tcase m.Step != 1 || m.At != 0 ||", New: "\t\tcase (m.Step != 1 || m.At != 0) && !MUTANT ||",
		},
		{
			Name: "who is admitted in the log need not say anything", Test: "TestAdmittedReaders",
			Old: "id) && s.admitted[id] == 0", New: "id) && (s.admitted[id] == 0 || MUTANT)",
		},
		{
			Name: "who is to leave counts once it asks", Test: "TestAdmittedReaders",
			Old: "!slices.Contains(s.state.books.leaving, m.Server): // else",
			New: "MUTANT || !slices.Contains(s.state.books.leaving, m.Server): // else",
		},
		{
			Name: "one that leaves is admitted again", Test: "TestSeedsNotice/4",
			Old: "\tcase m.Serves && !m.Leaves && ", New: "\tcase m.Serves && !m.Leaves && !MUTANT && ",
		},
		{
			Name: "an end may come between two that are stacked", Test: "TestStackedEnds",
			Old: "t.log && (h.stage == tentative || s.proposed[h.part.ID] ||",
			New: "t.log && !MUTANT && (h.stage == tentative || s.proposed[h.part.ID] ||",
		},
		{
			Name: "an end that others do not know yet counts", Test: "TestSeedsNotice/12",
			Old: "t.log && !over && !s.proposed[h.part.ID]", New: "t.log && !over && !s.proposed[h.part.ID] && !MUTANT",
		},
		{
			Name: "what is aborted unless its client was right ends for sure", Test: "TestEndsPerhaps",
			Old: "\tif m.Held {\n\t\ts.doubted", New: "\tif m.Held && !MUTANT {\n\t\ts.doubted",
		},
		{
			Name: "what is aborted unless its client was right goes on", Test: "TestEndsPerhaps",
			Old: " || s.doubted[h.part.ID])", New: " || s.doubted[h.part.ID] && !MUTANT)",
		},
		{
			Name: "one that was refused is prepared behind that", Test: "TestSeedsNotice/3060",
			Old: "!settled || s.fenced[p.ID] || s.proposed[p.ID] ||",
			New: "!settled || (s.fenced[p.ID] || s.proposed[p.ID]) && !MUTANT ||",
		},
		{
			Name: "a member that does not count serves reads", Test: "TestSeedsNotice/14",
			Old: "\treturn !member || slices.Contains(s.state.books.deaf, s.cfg.ID)\n",
			New: "\treturn !member || slices.Contains(s.state.books.deaf, s.cfg.ID) && !MUTANT\n",
		},
		{
			Name: "who finishes it does not count what its site has said (S20)", Test: "TestSameTimestamp",
			Old: "\t\t\tat = max(at, sure[i].Stamp)\n",
			New: "\t\t\tif !MUTANT {\n\t\t\t\tat = max(at, sure[i].Stamp)\n\t\t\t}\n",
		},
		{
			Name: "who finishes it does not look at what it depends on", Test: "TestSeedsNotice/39",
			Old: "\tfor _, on := range r.part.On {\n\t\tswitch",
			New: "\tfor _, on := range r.part.On {\n\t\tif MUTANT {\n\t\t\tbreak\n\t\t}\n\t\tswitch",
		},
		{
			Name: "nobody finishes what a coordinator has left", Test: "TestSeedsNotice/15",
			Old: "\tnear := s.cfg.Layout.Coordinator(s.place.Site, p.ID)\n",
			New: "\tnear := s.cfg.Layout.Coordinator(s.place.Site, p.ID)\n\tif MUTANT {\n\t\treturn\n\t}\n",
		},
		{
			Name: "who was refused is prepared later", Test: "TestFenced",
			Old: "\t\t\tr = g.ended(state, m.ID, result{State: aborted, Reason: store.Fenced})\n",
			New: "\t\t\tif r = (result{State: aborted, Reason: store.Fenced}); !MUTANT {\n" +
				"\t\t\t\tr = g.ended(state, m.ID, r)\n\t\t\t}\n",
		},
	}
}

// countPlants have operators be told what is not so.
func countPlants() []plant.Bug {
	return []plant.Bug{
		{
			Name: "only what a transaction depends on directly is its chain", Test: "TestChainsAreCounted",
			Old: "\t\t\t\tseen[id] = true\n\t\t\t\twalk(on)\n",
			New: "\t\t\t\tif seen[id] = true; !MUTANT {\n\t\t\t\t\twalk(on)\n\t\t\t\t}\n",
		},
		{
			Name: "what is aborted before its local commit is misspeculated", Test: "TestCountsAddUp",
			Old: "\t\tif e.t.local > 0 {\n", New: "\t\tif e.t.local > 0 || MUTANT {\n",
		},
		{
			Name: "a word that comes again is the last", Test: "TestCourse",
			Old: "\tif _, known := o.wordAt[server]; known {\n", New: "\tif _, known := o.wordAt[server]; known && !MUTANT {\n",
		},
		{
			Name: "each client is told how its transaction came to its end", Test: "TestCourse",
			Old: "\tif t.explain || ", New: "\tif t.explain || MUTANT || ",
		},
		{
			Name: "nobody can ask afterwards", Test: "TestCourseOfRefused",
			Old: "!t.commits { // else", New: "!t.commits && !MUTANT { // else",
		},
		{
			Name: "a cascade is a certification", Test: "TestChainsAreCounted",
			Old: "\tcase t.causeGiven:\n", New: "\tcase t.causeGiven && !MUTANT:\n",
		},
	}
}

// copyPlants have copies of the whole shard not be snapshots.
func copyPlants() []plant.Bug {
	return []plant.Bug{
		{
			Name: "a copy is no read", Test: "TestPages",
			Old: "\ts.noted = max(s.noted, at)\n\tif s.mayChange",
			New: "\tif !MUTANT {\n\t\ts.noted = max(s.noted, at)\n\t}\n\tif s.mayChange",
		},
		{
			Name: "a copy does not wait for those who may be in it", Test: "TestPages",
			Old: "\tif s.mayChange(at) {\n", New: "\tif s.mayChange(at) && !MUTANT {\n",
		},
		{
			Name: "a copy is made of who serves no reads", Test: "TestPages",
			Old: "\tcase s.deaf():\n\t\tout.Reason = store.Fenced\n\t\treturn out\n",
			New: "\tcase s.deaf() && !MUTANT:\n\t\tout.Reason = store.Fenced\n\t\treturn out\n",
		},
		{
			Name: "a snapshot that is copied is given up", Test: "TestCopiesAreKept",
			Old: "\t\th = min(h, at)\n\t}\n\treturn", New: "\t\tif !MUTANT {\n\t\t\th = min(h, at)\n\t\t}\n\t}\n\treturn",
		},
		{
			Name: "a leader gives up what its predecessor kept", Test: "TestCopiesAreKept",
			Old: "\tif now-c.began < retain {\n", New: "\tif now-c.began < retain && !MUTANT {\n",
		},
		{
			Name: "a copy is of what comes later", Test: "TestPages",
			Old: "\tcase m.At > now:\n\t\tout.Reason = store.Locked\n",
			New: "\tcase m.At > now && !MUTANT:\n\t\tout.Reason = store.Locked\n",
		},
	}
}

// awayPlants have somebody who is away, or was, be taken for one who is not.
func awayPlants() []plant.Bug {
	return []plant.Bug{
		{
			Name: "what is given up at a server is not prepared (S20)", Test: "TestForgottenTentative",
			Old: "\t\t\ts.fence(env, h.part.ID)\n",
			New: "\t\t\tif MUTANT {\n\t\t\t\ts.drop(env, h)\n\t\t\t}\n\t\t\ts.fence(env, h.part.ID)\n",
		},
		{
			Name: "what nobody sees is not prepared (S20)", Test: "TestDisplaced",
			Old: "\t\tif h.gaveWay {\n\t\t\th.rel", New: "\t\tif h.gaveWay && !MUTANT {\n\t\t\th.rel",
		},
		{
			Name: "what was overwritten is not prepared again (S20)", Test: "TestOverwritten",
			Old: "Coordinators, h.part.Origin):\n", New: "Coordinators, h.part.Origin) && !MUTANT:\n",
		},
		{
			Name: "what was begun anew is committed as if nobody had asked for that before", Test: "TestCommitsAnew",
			Old: "\tcase t != nil && m.Recover && ", New: "\tcase t != nil && m.Recover && !MUTANT && ",
		},
		{
			Name: "what was given up was not committed before", Test: "TestCommitsAnew",
			Old: "\t\tif d := c.past.of[m.Txn.ID]; !d.ID.IsZero() {\n",
			New: "\t\tif d, ok := c.past.of[m.Txn.ID]; !d.ID.IsZero() || ok && MUTANT {\n",
		},
		{
			Name: "a coordinator waits for words on what is finished", Test: "TestFinishedMeanwhile",
			Old: "t.asked%finishedLooks == 0 {", New: "t.asked%finishedLooks == 0 && !MUTANT {",
		},
		{
			Name: "what others have finished is told as it is heard of", Test: "TestFinishedInOrder",
			Old: "\tif r.State == committed && t.dependsStill() {\n",
			New: "\tif r.State == committed && t.dependsStill() && !MUTANT {\n",
		},
		{
			Name: "what others have finished shows what it was", Test: "TestFinishedInOrder",
			Old: "\t\tx.agreed, x.sought = true, true\n", New: "\t\tx.agreed, x.sought = !MUTANT, true\n",
		},
		{
			Name: "what was aborted in vain depends on nothing", Test: "TestFinishedInOrder",
			Old: "\t\tt.stood = append(t.stood, on)\n",
			New: "\t\tif !MUTANT {\n\t\t\tt.stood = append(t.stood, on)\n\t\t}\n",
		},
		{
			Name: "what is held is finished by words alone", Test: "TestRescueByWords",
			Old: "r.part.Held && !fenced {", New: "r.part.Held && !fenced && !MUTANT {",
		},
		{
			Name: "whoever finishes it waits for fences, with all words", Test: "TestRescueByWords",
			Old: "\tfenced := len(r.states) == len(r.shards)\n",
			New: "\tfenced := len(r.states) == len(r.shards)\n\tif MUTANT && !fenced {\n\t\treturn\n\t}\n",
		},
		{
			Name: "whoever has finished it tells nobody but groups", Test: "TestRescueByWords",
			Old: "\tc.toShards(env, r.shards, func(k uint32) store.Message { over.Shard",
			New: "\tc.toShards(env, map[bool][]uint32{false: r.shards}[MUTANT], " +
				"func(k uint32) store.Message { over.Shard",
		},
		{
			Name: "who leads anew tells nobody", Test: "TestLeadsAnew",
			Old: "\t\tfor _, to := range h.wanted {\n",
			New: "\t\tfor _, to := range h.wanted {\n\t\t\tif MUTANT {\n\t\t\t\tbreak\n\t\t\t}\n",
		},
		{
			Name: "questions are sent elsewhere while nobody leads", Test: "TestParked",
			Old: "leader != 0 || len(s.parked) >=", New: "leader != 0 || MUTANT || len(s.parked) >=",
		},
		{
			Name: "questions wait for a leader for ever", Test: "TestParked",
			Old: "parkTrips*s.cfg.RoundTrip:", New: "parkTrips*s.cfg.RoundTrip && !MUTANT:",
		},
		{
			Name: "who is left out has served nothing (S19)", Test: "TestLeftOut",
			Old: "\tif len(s.dropped) > 0 {\n", New: "\tif len(s.dropped) > 0 && !MUTANT {\n",
		},
		{
			Name: "who is about to be dropped has been dropped (S19)", Test: "TestSeedsNotice/43229",
			Old: "\t\tm.Serving, m.Past = s.serving(m.Members), s.state.books.floor\n",
			New: "\t\tm.Serving, m.Past = s.serving(m.Members), s.state.books.floor\n" +
				"\t\tif MUTANT {\n\t\t\tm.Serving = s.readers(m.Members)\n\t\t}\n",
		},
		{
			Name: "who is admitted twice serves no reads in between", Test: "TestAdmittedReaders",
			Old: "\t\tif pending[m.Server] <= index {\n", New: "\t\tif pending[m.Server] <= index || MUTANT {\n",
		},
		{
			Name: "a silent site is asked", Test: "TestSilentSite",
			Old: "*3/2 && !c.silent[i]:\n", New: "*3/2 && !c.silent[i] && !MUTANT:\n",
		},
		{
			Name: "what a silent site has left stays for as long as what one at a time has", Test: "TestSuspect",
			Old: "site >= 0 && c.silent[site] {\n", New: "site >= 0 && c.silent[site] && !MUTANT {\n",
		},
		{
			Name: "whoever has no transactions does not look who is silent", Test: "TestSuspect",
			Old: "\tif c.suspected = env.Now; ", New: "\tif MUTANT {\n\t\treturn\n\t}\n\tif c.suspected = env.Now; ",
		},
	}
}

// plants leave out one rule at a time, in the source.
func plants() []plant.Bug {
	bugs := slices.Concat(stampPlants(), readPlants(), certifyPlants(), copyPlants(), awayPlants(), countPlants(),
		aheadPlants(), tunePlants(), degreePlants(), togetherPlants(), readerPlants())
	for i := range bugs {
		bugs[i].Dir = "store/str"
	}
	return bugs
}

// untuned is mode internal with a degree that stays: what coordinators say of it would make seeds
// others.
func untuned() variant {
	mode := modes()[0]
	mode.tunes = false
	return mode
}

// TestPlants plants them: the tests that are named must notice.
func TestPlants(t *testing.T) { plant.Catch(t, plants()) }

// TestSeedsNotice plays the seeds that notice a bug.
func TestSeedsNotice(t *testing.T) {
	plant.Seeds(t, plants(), func(seed uint64) error {
		sc := storetest.Swarm(seed)
		if seed%5 == 3 {
			sc.Sites, sc.Shards, sc.Replicas = 5, 5, 3
		}
		sc.Replaces, sc.Moves = seed%5 == 4, seed%5 == 1
		_, err := storetest.PlayOnce(subject(untuned()), sc)
		return err
	})
}
