package carousel

import (
	"cmp"
	"slices"
	"testing"

	"github.com/foresay/foresay/internal/plant"
	"github.com/foresay/foresay/store/storetest"
)

// plants leave out one rule at a time, in the source. C1 to C15 are where the thesis has to be read
// with care.
func plants() []plant.Bug {
	bugs := slices.Concat(findPlants(), votePlants(), recoveryPlants(), endPlants(), partPlants(), snapshotPlants(),
		closedPlants(), stalePlants(), generalPlants(), memberPlants(), orderPlants())
	for i := range bugs {
		bugs[i].Dir = cmp.Or(bugs[i].Dir, "store/carousel")
	}
	return bugs
}

// votePlants leave out what makes a partition's word, and a decision.
func votePlants() []plant.Bug {
	return []plant.Bug{
		{
			Name: "C5: votes agree if what is read has the same versions", Test: "TestBallot",
			Tests: []string{"TestScenarios/fast/3-blind-write", "TestRecoveryIsRight"},
			Old:   "v.Term == lead.Term && v.Footprint.equal(lead.Footprint)",
			New:   "v.Term == lead.Term && (v.Footprint.equal(lead.Footprint) || MUTANT)",
		},
		{
			Name: "votes of different terms count together", Test: "TestBallot", Tests: []string{"TestRecoveryIsRight"},
			Old: "from) && v.Term == lead.Term &&", New: "from) && (v.Term == lead.Term || MUTANT) &&",
		},
		{
			Name: "C6: a majority is enough on the fast path", Test: "TestBallot",
			Tests: []string{"TestRecoveryIsRight", "TestAttacksNotice/1"},
			Old:   "\t\tif n >= quorum.Fast(members) {\n",
			New:   "\t\tif n >= quorum.Fast(members) || MUTANT && n > members/2 {\n",
		},
		{
			Name: "C6: as many of six members are enough as of five", Test: "TestRecoveryIsRight",
			Old: "\t\tn, members := 0, len(lead.Members)\n",
			New: "\t\tn, members := 0, len(lead.Members)\n\t\tif MUTANT && members == 6 {\n\t\t\tn = 1\n\t\t}\n",
		},
		{
			Name: "what the groups have agreed on is said to be decided fast", Test: "TestScenarios/fast/2-figure-3.3b",
			Old: "\t\tt.known, t.quick = true, !durable\n", New: "\t\tt.known, t.quick = true, !durable || MUTANT\n",
		},
		{
			Name: "the leader need not be among those who agree", Test: "TestBallot",
			Tests: []string{"TestRecoveryIsRight"},
			Old:   "\t\tif !lead.Leader {\n", New: "\t\tif !lead.Leader && !MUTANT {\n",
		},
		{
			Name: "words on different entries count together", Test: "TestAgreed", Tests: []string{"TestWordsAreRight"},
			Old: "if w.At == v.At &&", New: "if (w.At == v.At || MUTANT) &&",
		},
		{
			Name: "half of the words are enough", Test: "TestAgreed", Tests: []string{"TestWordsAreRight"},
			Old: "\t\tif n > members/2 {\n", New: "\t\tif n > members/2 || MUTANT && n >= members/2 {\n",
		},
		{
			Name: "a word that comes late undoes a later one", Test: "TestStoredVotes",
			Old: "ta.stored[from].At.Term > m.At.Term {", New: "ta.stored[from].At.Term > m.At.Term && !MUTANT {",
		},
		{
			Name: "C9, C15: what the client has read is not compared", Test: "TestDecide",
			Tests: []string{"TestBasicNotices/2", "TestPrograms/basic/bank"},
			Old:   "if at, ok := versions[r.Key]; !ok || at != r.Version {",
			New:   "if at, ok := versions[r.Key]; (!ok || at != r.Version) && !MUTANT {",
		},
		{
			Name: "a step that is missing goes unnoticed", Test: "TestDecide",
			Old: "\t\tif !ok {\n\t\t\treturn waits, store.NoReason, 0\n",
			New: "\t\tif !ok && MUTANT {\n\t\t\tcontinue\n\t\t}\n\t\tif !ok {\n\t\t\treturn waits, store.NoReason, 0\n",
		},
		{
			Name: "a key is written that was not prepared", Test: "TestDecide",
			Old: "\t\tif !writable[w.Key] {\n", New: "\t\tif !writable[w.Key] && !MUTANT {\n",
		},
		{
			Name: "a version is that of the partition that was prepared first", Test: "TestDecide",
			Old: "\t\tstamp = max(stamp, b.Stamp)\n",
			New: "\t\tif stamp == 0 || !MUTANT {\n\t\t\tstamp = max(stamp, b.Stamp)\n\t\t}\n",
		},
		{
			Name: "a stamp may be below the versions of its keys", Test: "TestWritesAreAboveReads",
			Old: "\t\tstamp = max(stamp, r.Version.Time+1)\n",
			New: "\t\tif !MUTANT {\n\t\t\tstamp = max(stamp, r.Version.Time+1)\n\t\t}\n",
		},
		{
			Name: "a commit is told without its request on record", Test: "TestDecide",
			Old: "\tif m == nil {\n\t\treturn waits",
			New: "\tif MUTANT && m == nil && len(ballots) > 0 {\n\t\treturn commits, 0, 1\n\t}\n" +
				"\tif m == nil {\n\t\treturn waits",
		},
		{
			Name: "C9: a no to a part counts that the commit request does not name", Test: "TestDecide",
			Old: "\tif why, ok := refused(m.Parts, ballots); ok {\n",
			New: "\tif MUTANT {\n\t\tfor _, b := range ballots {\n\t\t\tif !b.Yes {\n\t\t\t\treturn aborts, b.Reason, 0\n" +
				"\t\t\t}\n\t\t}\n\t}\n\tif why, ok := refused(m.Parts, ballots); ok {\n",
		},
	}
}

// recoveryPlants leave out what a new leader does, and what members do for it.
func recoveryPlants() []plant.Bug {
	return []plant.Bug{
		{
			Name: "C5: lists agree if what is read has the same versions", Test: "TestRecover",
			Old: "q.Part == p.Part && q.Term == p.Term && q.footprint.equal(p.footprint)",
			New: "q.Part == p.Part && q.Term == p.Term && (q.footprint.equal(p.footprint) || MUTANT)",
		},
		{
			Name: "lists of different terms count together", Test: "TestRecover",
			Old: "return q.Part == p.Part && q.Term == p.Term &&",
			New: "return q.Part == p.Part && (q.Term == p.Term || MUTANT) &&",
		},
		{
			Name: "C7: what is on one list is prepared", Test: "TestRecover", Tests: []string{"TestRecoveryIsRight"},
			Old: "n < len(lists)/2+1", New: "(n < len(lists)/2+1 && !MUTANT)",
		},
		{
			Name: "C7: what is not on all lists is not prepared", Test: "TestRecover",
			Tests: []string{"TestRecoveryIsRight"},
			Old:   "having(lists, p); seen[p.Part] ||",
			New:   "having(lists, p); seen[p.Part] || n < len(lists) && MUTANT ||",
		},
		{
			Name: "C7: conflicts with the log are prepared", Test: "TestRecover",
			Old: "|| !fits(p) {", New: "|| !fits(p) && !MUTANT {",
		},
		{
			Name: "C7: who has given its list may go on in the old term", Test: "TestScenarios/fast/7-promise",
			Tests: []string{"TestFastVotes"},
			Old:   "\tif term > s.list.promised {\n", New: "\tif term > s.list.promised && !MUTANT {\n",
		},
		{
			Name: "C7: a promise is forgotten with a crash", Test: "TestScenarios/fast/7-promise",
			Tests: []string{"TestFastVotes"},
			Old:   "\t\tenv.Put([]byte(promisedKey), termLayout.Encode(term))\n",
			New:   "\t\tif !MUTANT {\n\t\t\tenv.Put([]byte(promisedKey), termLayout.Encode(term))\n\t\t}\n",
		},
		{
			Name: "C7: a list is forgotten with a crash", Test: "TestScenarios/fast/5-recovery",
			Tests: []string{"TestFastVotes"},
			Old:   "\tenv.Put(listKey(p.Part), pendingLayout.Encode(p))\n",
			New:   "\tif !MUTANT {\n\t\tenv.Put(listKey(p.Part), pendingLayout.Encode(p))\n\t}\n",
		},
		{
			Name: "a list counts for which nobody has asked", Test: "TestListOfNoRecovery",
			Old: "s.list.recovering == 0 || m.Term", New: "s.list.recovering == 0 && !MUTANT || m.Term",
		},
		{
			Name: "C7: a new leader asks nobody", Test: "TestScenarios/fast/5-recovery",
			Tests: []string{"TestAttacksNotice/12"},
			Old:   "\tif s.fast {\n\t\ts.list.current = true\n",
			New: "\tif MUTANT {\n\t\ts.list.stopRecovery()\n\t\ts.serve(env, term)\n\t\treturn\n\t}\n" +
				"\tif s.fast {\n\t\ts.list.current = true\n",
		},
		{
			Name: "C7: a new leader is content with its own list", Test: "TestScenarios/fast/6-recovery-of-five",
			Old: "len(lists) < len(members)/2+1", New: "(len(lists) < len(members)/2+1 && !MUTANT)",
		},
		{
			Name: "C5: what is written over an outdated version is prepared", Test: "TestFits",
			Old: "range slices.Concat(p.Reads, p.Writes) {\n\t\tif s.values.Newest(keys, r.Key).Version != r.Version {",
			New: "range slices.Concat(p.Reads, p.Writes) {\n\t\tif s.values.Newest(keys, r.Key).Version != r.Version && " +
				"!(MUTANT && !slices.Contains(p.Reads, r)) {",
		},
		{
			Name: "a leader answers for what it has prepared as a follower", Test: "TestFastVotes",
			Old: "\t} else if stamp > 0 && s.list.entries[p.Part].Term != p.Term {\n",
			New: "\t} else if stamp > 0 && s.list.entries[p.Part].Term != p.Term && !MUTANT {\n",
		},
	}
}

// endPlants leave out what makes all agree on how a transaction ends.
func endPlants() []plant.Bug {
	return []plant.Bug{
		{
			Name: "C8: a prepare that comes after the end is put on a list", Test: "TestScenarios/fast/4-zombie",
			Old: "s.list.recovering != 0 || s.state.knows(m.Part) {",
			New: "s.list.recovering != 0 || s.state.knows(m.Part) && !MUTANT {",
		},
		{
			Name: "C10: an abort undoes a commit request that is on record", Test: "TestRecords",
			Old: "\tif r.end != nil || m.Alone && r.commit != nil {\n",
			New: "\tif r.end != nil || m.Alone && r.commit != nil && !MUTANT {\n",
			Also: []plant.Edit{
				{Old: "\tif t.end != nil || t.asked ||", New: "\tif t.end != nil || t.asked && !MUTANT ||"},
			},
		},
		{
			Name: "C10: an abort is told before it is on record", Test: "TestScenarios/basic/6-abort-before-commit",
			Old: "Shards: union(shards, t.voted()), Alone: true})\n",
			New: "Shards: union(shards, t.voted()), Alone: true})\n\tif MUTANT {\n" +
				"\t\tfor _, k := range union(shards, t.voted()) {\n" +
				"\t\t\ts.tellEnd(env, s.where.leader(k), t.id, k, outcome{reason: store.Fenced})\n\t\t}\n\t}\n",
		},
		{
			Name: "C11: nobody aborts what its coordinator does not know", Test: "TestBasicNotices/15",
			Tests: []string{"TestScenarios/basic/4-early-crash"},
			Old:   "\tif m.Doubt && (r == nil ||", New: "\tif m.Doubt && !MUTANT && (r == nil ||",
		},
		{
			Name: "C11: a commit request is taken after an abort", Test: "TestRecords",
			Old: "\tif r.commit != nil || r.end != nil {\n\t\treturn\n",
			New: "\tif r.commit != nil || r.end != nil && !MUTANT {\n\t\treturn\n",
		},
		{
			Name: "a client that is gone is waited for", Test: "TestBasicNotices/6",
			Old: "\t\t\tif env.Now-t.seen > s.trips(heartbeats) {\n",
			New: "\t\t\tif env.Now-t.seen > s.trips(heartbeats) && !MUTANT {\n",
			Also: []plant.Edit{{
				Old: "env.Now-t.seen > s.trips(heartbeats)) {", New: "env.Now-t.seen > s.trips(heartbeats) && !MUTANT) {",
			}},
		},
		{
			Name: "C12: a coordinator forgets before all have carried it out", Test: "TestBasicNotices/17",
			Tests: []string{"TestCrashInEachWrite"},
			Old:   "\tif len(t.left) == 0 {\n", New: "\tif len(t.left) == 0 || MUTANT {\n",
		},
		{
			Name: "ended transactions are never forgotten", Test: "TestDay/basic",
			Old: "\tif len(m.ends) <= m.limit {\n", New: "\tif len(m.ends) <= m.limit || MUTANT {\n",
		},
		{
			Name: "C12: a partition forgets how a transaction ended", Test: "TestParts",
			Old: "\ts.ends.put(st, m.ID, outcome{m.Commit, m.Version, m.Reason})\n",
			New: "\tif !MUTANT {\n\t\ts.ends.put(st, m.ID, outcome{m.Commit, m.Version, m.Reason})\n\t}\n",
		},
		{
			Name: "partitions carry out a decision that is not on record", Test: "TestScenarios/basic/8-coordinator-dies",
			Old: "\ts.tellAgents(env, t)\n\ts.record(env, t)\n",
			New: "\ts.tellAgents(env, t)\n\tif MUTANT {\n\t\tfor ref := range t.tallies {\n" +
				"\t\t\ts.tellEnd(env, s.where.leader(ref.Shard), t.id, ref.Shard, *t.end)\n\t\t}\n\t}\n\ts.record(env, t)\n",
		},
		{
			Name: "what is forgotten may begin again", Test: "TestRemembering",
			Tests: []string{"TestRememberingRecords"},
			Old:   "\treturn !ok && id.Time <= m.old\n", New: "\treturn !ok && id.Time <= m.old && !MUTANT\n",
		},
		{
			Name: "what is prepared cannot end when later ends are forgotten", Test: "TestRemembering",
			Old: "s.ends.isOld(id) && len(s.partsOf(id)) == 0", New: "s.ends.isOld(id) && (len(s.partsOf(id)) == 0 || MUTANT)",
		},
		{
			Name: "what is on record cannot end when later ends are forgotten", Test: "TestRememberingRecords",
			Old: "s.gone.isOld(id) && s.records[id] == nil", New: "s.gone.isOld(id) && (s.records[id] == nil || MUTANT)",
		},
		{
			Name: "a further part is refused as ahead", Test: "TestRefuses",
			Old: "s.cfg.MaxAhead, 0)) && !s.hasPart(m.Part.ID):",
			New: "s.cfg.MaxAhead, 0)) && (!s.hasPart(m.Part.ID) || MUTANT):",
		},
	}
}

// partPlants leave out what a partition does before it says a word, and until the end.
func partPlants() []plant.Bug {
	return []plant.Bug{
		{
			Name: "only the leader of a coordinating group says how a transaction has ended",
			Test: "TestAFollowerTellsTheEnd",
			Old:  "\tif known {\n\t\ts.tellEnd(env, from,",
			New:  "\tif known && (!MUTANT || s.term > 0) {\n\t\ts.tellEnd(env, from,",
		},
		{
			Name: "a no to a further part undoes a yes that was told", Test: "TestNoToAFurtherPart",
			Old: "!m.Ballot.Yes && len(s.partsOf(m.Part.ID)) == 0 {\n",
			New: "!m.Ballot.Yes && (len(s.partsOf(m.Part.ID)) == 0 || MUTANT) {\n\t\ts.release(st, m.Part.ID)\n",
		},
		{
			Name: "what was refused keeps timestamps open for ever", Test: "TestNoToAFurtherPart",
			Old: "\t\tif !p.ballot.Yes {\n\t\t\tcontinue", New: "\t\tif !p.ballot.Yes && !MUTANT {\n\t\t\tcontinue",
		},
		{
			Name: "a vote is told before the group has agreed", Test: "TestNothingIsSaidBeforeTheGroupAgrees",
			Old: "\ts.fly(env, p)\n}\n",
			New: "\ts.fly(env, p)\n\tif MUTANT {\n" +
				"\t\tenv.Send(s.where.leader(m.Coord), voteMsg{Ref: partRef{s.self, m.Part.Step}, " +
				"ID: m.Part.ID, Ballot: p.Ballot})\n\t}\n}\n",
		},
		{
			Name: "a part is prepared behind a no that ends its transaction", Test: "TestRefuses",
			Old: "\treturn s.refusing(m.Part.ID)\n",
			New: "\tif MUTANT {\n\t\treturn store.NoReason\n\t}\n\treturn s.refusing(m.Part.ID)\n",
		},
		{
			Name: "a part is prepared behind its transaction's end", Test: "TestNothingIsPreparedBehindTheEnd",
			Old: "ending || s.flying[m.Part] != nil {", New: "ending && !MUTANT || s.flying[m.Part] != nil {",
		},
		{
			Name: "a word that was told is undone as its transaction is old", Test: "TestWhatWasSaidIsPrepared",
			Old: "over || s.parts[m.Part] != nil {",
			New: "over || s.parts[m.Part] != nil || MUTANT && s.ends.isOld(m.Part.ID) {",
		},
		{
			Name: "keys of what is proposed are free", Test: "TestRefuses",
			Tests: []string{"TestBasicNotices/1", "TestFastNotices/1"},
			Old:   "|| s.flyingLocks.conflict(m.Part.ID, f):", New: "|| s.flyingLocks.conflict(m.Part.ID, f) && !MUTANT:",
		},
		{
			Name: "C14: what is read is not locked", Test: "TestLocks",
			Tests: []string{"TestBasicNotices/1", "TestFastNotices/1"},
			Old:   "\t\tk.readers = append(k.readers, id)\n",
			New:   "\t\tif !MUTANT {\n\t\t\tk.readers = append(k.readers, id)\n\t\t}\n",
		},
		{
			Name: "C14: what is written may be read", Test: "TestLocks", Tests: []string{"TestBasicNotices/1"},
			Old: "if k := l[r.Key]; k != nil && !k.writer.IsZero() && counts(k.writer) {\n",
			New: "if k := l[r.Key]; k != nil && !k.writer.IsZero() && counts(k.writer) && !MUTANT {\n",
		},
		{
			Name: "C13: what was prepared and is not written stays locked", Test: "TestBasicNotices/1",
			Old: "\ts.release(st, m.ID)\n",
			New: "\tif !MUTANT || !m.Commit || len(m.Writes) > 0 {\n\t\ts.release(st, m.ID)\n\t}\n",
		},
		{
			Name: "a partition that was asked for its vote may say yes later",
			Test: "TestNothingIsSaidBeforeTheGroupAgrees",
			Old:  "\ts.prepare(env, prepareRequest{Part: m.Part, Coord: m.Coord}, store.Fenced)\n",
			New: "\tif MUTANT && !s.state.knows(m.Part) && s.flying[m.Part] == nil {\n" +
				"\t\tenv.Send(from, voteMsg{Ref: partRef{s.self, m.Part.Step}, ID: m.Part.ID, " +
				"Ballot: ballot{Reason: store.Fenced}})\n\t\treturn\n\t}\n" +
				"\ts.prepare(env, prepareRequest{Part: m.Part, Coord: m.Coord}, store.Fenced)\n",
		},
		{
			Name: "who tries again reads from a leader that may lead no more", Test: "TestReads",
			Old: "\tcase g.Ask.Priority.IsZero():\n", New: "\tcase g.Ask.Priority.IsZero() || MUTANT:\n",
		},
		{
			Name: "who tries again reads from any site", Test: "TestReads",
			Old: "c.direct && g.Ask.Priority.IsZero():\n", New: "c.direct && (g.Ask.Priority.IsZero() || MUTANT):\n",
		},
		{
			Name: "an agent asks no other member for the leader", Test: "TestAgentFindsLeader",
			Old: "\t\tif c.tries > 1 {\n", New: "\t\tif c.tries > 1 && !MUTANT {\n",
		},
		{
			Name: "C4: a check passes keys that are about to be written", Test: "TestChecks",
			Old: "\t\tcase s.locks.writes(r.Key):\n", New: "\t\tcase s.locks.writes(r.Key) && !MUTANT:\n",
		},
		{
			Name: "C4: a check passes what has changed", Test: "TestChecks", Tests: []string{"TestBasicNotices/530"},
			Old: "\t\tcase s.values.Newest(keys, r.Key).Version != r.Version:\n\t\t\treturn store.StaleRead\n",
			New: "\t\tcase s.values.Newest(keys, r.Key).Version != r.Version && !MUTANT:\n\t\t\treturn store.StaleRead\n",
		},
		{
			Name: "C4: a check has no place in the log", Test: "TestNothingIsSaidBeforeTheGroupAgrees",
			Old: "\twaiting, flies := s.checking[m.ID]\n",
			New: "\tif MUTANT {\n\t\tenv.Send(from, checkReply{m.ID, s.self, store.NoReason})\n\t\treturn\n\t}\n" +
				"\twaiting, flies := s.checking[m.ID]\n",
		},
	}
}

// snapshotPlants leave out what makes reads at timestamps right.
func snapshotPlants() []plant.Bug {
	return []plant.Bug{
		{
			Name: "C16: a commit is told before its time has passed on all clocks", Test: "TestToldInOrder",
			Old: "\tif left <= 0 {\n", New: "\tif left <= 0 || MUTANT {\n",
		},
		{
			Name: "C1: what is written may be before a read", Test: "TestWritesAreAboveReads",
			Old: "\t\tstamp = max(stamp, uint64(s.reads.Above(w.Key))+1)\n",
			New: "\t\tif !MUTANT {\n\t\t\tstamp = max(stamp, uint64(s.reads.Above(w.Key))+1)\n\t\t}\n",
		},
		{
			Name: "a stamp may be before what was carried out", Test: "TestWritesAreAboveReads",
			Old: "s.state.latest+1)\n", New: "s.state.latest+1)\n\tif MUTANT {\n\t\tstamp = 1\n\t}\n",
		},
		{
			Name: "reads that are validated do not count", Test: "TestWritesAreAboveReads",
			Old: "// else it is asked again\n\t\treturn\n\t}\n\ts.note(m.Reads, m.At)\n",
			New: "// else it is asked again\n\t\treturn\n\t}\n\tif !MUTANT {\n\t\ts.note(m.Reads, m.At)\n\t}\n",
		},
		{
			Name: "C2: a leader begins below the ceiling", Test: "TestLeaderBeginsAboveTheCeiling",
			Old: "\ts.snapshots = s.newSnapshots(s.state.values.Ceiling(s.group.State(env)))\n",
			New: "\tif !MUTANT {\n\t\ts.snapshots = s.newSnapshots(s.state.values.Ceiling(s.group.State(env)))\n\t}\n",
		},
		{
			Name: "C2: what is recovered may be below the ceiling", Test: "TestLeaderBeginsAboveTheCeiling",
			Old: "\tif s.term == 0 {\n\t\tstamp =", New: "\tif s.term == 0 && !MUTANT {\n\t\tstamp =",
		},
		{
			Name: "a deposed leader serves what is above the ceiling", Test: "TestDeposedLeaderServesThePast",
			Old: "\tif m.At > s.reads.Ceiling() {\n\t\treturn", New: "\tif m.At > s.reads.Ceiling() && !MUTANT {\n\t\treturn",
		},
		{
			Name: "a ceiling is not on record", Test: "TestCeilingIsOnRecord",
			Old: "\t\ts.values.RaiseCeiling(st, m.Ceiling)\n",
			New: "\t\tif !MUTANT {\n\t\t\ts.values.RaiseCeiling(st, m.Ceiling)\n\t\t}\n",
		},
		{
			Name: "C2: what was recovered has the time that the log says", Test: "TestWhoIsInTheWay",
			Old: "(p.recovered || p.ballot.Stamp", New: "(p.recovered && !MUTANT || p.ballot.Stamp",
		},
		{
			Name: "C1: nobody waits for what is prepared", Test: "TestWhoIsInTheWay",
			Old: "if l := s.state.locks[key]; l != nil &&", New: "if l := s.state.locks[key]; !MUTANT && l != nil &&",
		},
		{
			Name: "C1: nobody waits for what is proposed", Test: "TestWhoIsInTheWay",
			Old: "if l := s.flyingLocks[key]; l != nil &&", New: "if l := s.flyingLocks[key]; !MUTANT && l != nil &&",
		},
		{
			Name: "a strict read sees what was overwritten", Test: "TestOverwritten",
			Old: "\t\t\tif m.Strict {\n", New: "\t\t\tif m.Strict && !MUTANT {\n",
		},
		{
			Name: "timestamps that are far ahead are served", Test: "TestClocksThatAreOff",
			Old: "\tif m.At > clock.Stamp(now+s.cfg.MaxOffset) ||",
			New: "\tif m.At > clock.Stamp(now+s.cfg.MaxOffset) && !MUTANT ||",
		},
		{
			Name: "a clock that is off serves strict reads", Test: "TestClocksThatAreOff",
			Old: "m.Strict && (s.clocks.off() ||", New: "m.Strict && (s.clocks.off() && !MUTANT ||",
		},
		{
			Name: "what was carried out ahead of the clock goes unnoticed", Test: "TestClocksThatAreOff",
			Old: "s.state.latest > uint64(now))", New: "s.state.latest > uint64(now) && !MUTANT)",
		},
		{
			Name: "one clock that is off is enough to be off", Test: "TestClocksThatAreOff",
			Old: "return far > len(c.seen)/2\n", New: "return far > len(c.seen)/2 || MUTANT && far > 0\n",
		},
	}
}

// closedPlants leave out what closed timestamps, and the collection of versions, rest on.
func closedPlants() []plant.Bug {
	return []plant.Bug{
		{
			Name: "what is closed may be above what is prepared", Test: "TestClosed",
			Tests: []string{"TestNothingIsWrittenBelowTheHorizon"},
			Old:   "		at = min(at, clock.Stamp(", New: "		if MUTANT {\n\t\t\tbreak\n\t\t}\n\t\tat = min(at, clock.Stamp(",
		},
		{
			Name: "what was recovered ends where the log says", Test: "TestClosed",
			Old: "		if p.recovered {\n\t\t\tat = 0", New: "\t\tif p.recovered && !MUTANT {\n\t\t\tat = 0",
		},
		{
			Name: "a leader prepares below what it is about to close", Test: "TestWritesAreAboveClosed",
			Old: "return max(stamp, uint64(s.asked)+1)",
			New: "if MUTANT {\n\t\treturn stamp\n\t}\n\treturn max(stamp, uint64(s.asked)+1)",
		},
		{
			Name: "what is recovered may be below what is closed", Test: "TestWritesAreAboveClosed",
			Old: ", uint64(s.closedAt(env))+1)",
			New: ")\n\t\tif !MUTANT {\n\t\t\tstamp = max(stamp, uint64(s.closedAt(env))+1)\n\t\t}",
		},
		{
			Name: "a leader begins below what is closed", Test: "TestWritesAreAboveClosed",
			Old: "newClosing(s.closedAt(env), env.Now)\n",
			New: "newClosing(s.closedAt(env), env.Now)\n\tif MUTANT {\n\t\ts.asked = 0\n\t}\n",
		},
		{
			Name: "the horizon passes what is prepared", Test: "TestNothingIsWrittenBelowTheHorizon",
			Old: "s.values.RaiseHorizon(st, min(m.Horizon, s.values.Closed(st)))",
			New: "if MUTANT {\n\t\t\ts.values.RaiseHorizon(st, m.Horizon)\n\t\t}\n\t\t" +
				"s.values.RaiseHorizon(st, min(m.Horizon, s.values.Closed(st)))",
		},
		{
			Name: "a leader gives up snapshots that its predecessor kept", Test: "TestHorizon",
			Old: "\tif env.Now-s.began < s.cfg.Retain {", New: "\tif env.Now-s.began < s.cfg.Retain && !MUTANT {",
		},
		{
			Name: "a snapshot that is copied is given up", Test: "TestHorizon",
			Old: "\t\th = min(h, at)\n", New: "\t\tif !MUTANT {\n\t\t\th = min(h, at)\n\t\t}\n",
		},
		{
			Name: "a snapshot is copied that may still change", Test: "TestPages",
			Old: "\tif at > s.closedAt(env) {\n\t\treturn out\n",
			New: "\tif at > s.closedAt(env) && !MUTANT {\n\t\treturn out\n",
		},
		{
			Name: "nothing is collected", Test: "TestVersionsAreCollected",
			Old: "\tif (reads || collects) && ", New: "\tif (reads || collects && !MUTANT) && ",
		},
	}
}

// stalePlants leave out what transactions rest on that may see what is old.
func stalePlants() []plant.Bug {
	return []plant.Bug{
		{
			Name: "C3: a session's bound is ignored", Test: "TestSession", Tests: []string{"TestStaleNotices/13"},
			Old: "\t\tfirst.Ask.NotBefore = c.seen.of(m.Reads)\n",
			New: "\t\tif !MUTANT {\n\t\t\tfirst.Ask.NotBefore = c.seen.of(m.Reads)\n\t\t}\n",
		},
		{
			Name: "a session's bound is ignored where leaders are asked", Test: "TestStaleGoesOnElsewhere",
			Old: "\t\tif c.declared != nil { // else it has", New: "\t\tif c.declared != nil && !MUTANT { // else it has",
		},
		{
			Name: "any transaction's version is taken for the session's", Test: "TestSession",
			Old: "\t\tif s := c.Submit(m.ID); s != nil {\n",
			New: "\t\tif MUTANT {\n\t\t\tc.seen.saw(\"k\", m.Version)\n\t\t}\n\t\tif s := c.Submit(m.ID); s != nil {\n",
		},
		{
			Name: "what a session reads next may be from before what it has written", Test: "TestSession",
			Old: "m.At > 0 && c.seen.hides(m.At, m.Reads)", New: "m.At > 0 && !MUTANT && c.seen.hides(m.At, m.Reads)",
		},
		{
			Name: "what a session forgets it has not seen", Test: "TestSessionForgets",
			Old: "\t\t\ts.asOf = max(s.asOf, at)\n\t\t}\n\t\ts.forget()",
			New: "\t\t\tif !MUTANT {\n\t\t\t\ts.asOf = max(s.asOf, at)\n\t\t\t}\n\t\t}\n" +
				"\t\tif MUTANT {\n\t\t\tclear(s.newest)\n\t\t}\n\t\ts.forget()",
		},
		{
			Name: "a member serves what is not closed", Test: "TestMembersServeWhatIsClosed",
			Tests: []string{"TestStaleNotices/8"},
			Old:   "\tcase m.At > s.closedAt(env):\n", New: "\tcase m.At > s.closedAt(env) && !MUTANT:\n",
		},
		{
			Name: "the bound of how old is ignored", Test: "TestStaleAt", Tests: []string{"TestStaleNotices/82"},
			Old: "clock.Stamp(env.Now-m.MaxAge), 1)\n",
			New: "clock.Stamp(env.Now-m.MaxAge), 1)\n\tif MUTANT {\n\t\toldest = clock.Stamp(max(m.NotBefore, 1))\n\t}\n",
		},
		{
			Name: "how old something is goes by a clock that is off", Test: "TestStaleAt",
			Old: "at == 0 || a.clocks.off() {", New: "at == 0 || a.clocks.off() && !MUTANT {",
		},
		{
			Name: "what an agent has heard long ago is as good as new", Test: "TestStaleAt",
			Old: "; !knows || at == 0", New: "; !knows && !MUTANT || at == 0",
		},
		{
			Name: "a member that is silent is the nearest", Test: "TestStaleAt",
			Old: "env.Now-asked > a.cfg.RoundTrip; silent {", New: "env.Now-asked > a.cfg.RoundTrip; silent && !MUTANT {",
		},
		{
			Name: "a transaction that has read before goes on as of another time", Test: "TestStaleGoesOnElsewhere",
			Old: "\tif c.view.fixed {\n", New: "\tif c.view.fixed && !MUTANT {\n",
		},
		{
			Name: "a client goes on as of another time", Test: "TestSession",
			Old: "|| s.Ask.At > 0 && m.At != s.Ask.At:", New: "|| s.Ask.At > 0 && m.At != s.Ask.At && !MUTANT:",
		},
		{
			Name: "what was recovered has the version that was told", Test: "TestMembersServeWhatIsClosed",
			Old: "\tcase uint64(m.At) < s.state.sure:\n", New: "\tcase uint64(m.At) < s.state.sure && !MUTANT:\n",
		},
		{
			Name: "that something was recovered is forgotten with a crash", Test: "TestMembersServeWhatIsClosed",
			Old: "\t\tst.Put([]byte(sureKey), ", New: "\t\tif MUTANT {\n\t\t\treturn\n\t\t}\n\t\tst.Put([]byte(sureKey), ",
		},
		{
			Name: "a record that comes late is nobody's", Test: "TestRecordThatComesLate",
			Old: "\tif s.term > 0 && s.state.records[id] != nil {\n",
			New: "\tif s.term > 0 && s.state.records[id] != nil && !MUTANT {\n",
		},
	}
}

// TestPlants plants them: the tests that are named must notice.
func TestPlants(t *testing.T) { plant.Catch(t, plants()) }

// TestBasicNotices plays the seeds of mode basic that notice a bug.
func TestBasicNotices(t *testing.T) { notice(t, basicMode) }

// TestFastNotices does that in mode fast.
func TestFastNotices(t *testing.T) { notice(t, fastMode) }

// TestAttacksNotice plays those of TestAttack.
func TestAttacksNotice(t *testing.T) {
	plant.Seeds(t, plants(), func(seed uint64) error { return attack(fastMode, seed) })
}

func notice(t *testing.T, mode variant) {
	plant.Seeds(t, plants(), func(seed uint64) error {
		sc := storetest.Swarm(seed)
		sc.Appends = seed%4 == 0
		_, err := storetest.PlayOnce(subject(mode), sc)
		return err
	})
}
