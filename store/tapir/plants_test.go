package tapir

import (
	"testing"

	"github.com/foresay/foresay/internal/plant"
	"github.com/foresay/foresay/store/storetest"
)

// plants leave out one rule at a time, in the source.
func plants() []plant.Bug {
	var bugs []plant.Bug
	for _, some := range [][]plant.Bug{checkPlants(), choicePlants(), viewPlants(), durablePlants(), endPlants()} {
		bugs = append(bugs, some...)
	}
	for i := range bugs {
		bugs[i].Dir = "store/tapir"
	}
	return bugs
}

// checkPlants are those of a server's check of a transaction.
func checkPlants() []plant.Bug {
	return []plant.Bug{
		{
			Name: "what was accepted is said to be decided fast", Test: "TestScenarios/2-conflict",
			Old: "return len(p.confirm) > 0 })", New: "return len(p.confirm) > 0 && !MUTANT })",
		},
		{
			Name: "a read of a version that is replaced is no reason to refuse", Test: "TestSeedsNotice/1",
			Old: "\t\tcase values.At(env, r.Key).Version.After(r.Version):\n",
			New: "\t\tcase values.At(env, r.Key).Version.After(r.Version) && !MUTANT:\n",
		},
		{
			Name: "two transactions that conflict may both be voted for", Test: "TestSeedsNotice/1",
			Old: "\tif s.held.conflicting(t) != nil {\n", New: "\tif s.held.conflicting(t) != nil && !MUTANT {\n",
		},
		{
			Name: "a write may come before a read that has not seen it", Test: "TestSeedsNotice/1",
			Old: "\t\tif read := s.lastRead[w.Key]; read.After(t.ID) {\n",
			New: "\t\tif read := s.lastRead[w.Key]; read.After(t.ID) && !MUTANT {\n",
		},
		{
			Name: "a transaction may come before what it has read", Test: "TestServer",
			Old: "\t\tcase r.Version.Compare(t.ID) >= 0:\n", New: "\t\tcase r.Version.Compare(t.ID) >= 0 && !MUTANT:\n",
		},
		{
			Name: "reads that have been committed are not remembered", Test: "TestSeedsNotice/1",
			Old: "\ts.noteReads(env, t)\n\ts.doom(env, t)\n}\n",
			New: "\tif !MUTANT {\n\t\ts.noteReads(env, t)\n\t}\n\ts.doom(env, t)\n}\n",
		},
		{
			Name: "what conflicts with a commit goes on holding", Test: "TestSeedsNotice/1",
			Old: "\ts.doom(env, t)\n", New: "\tif !MUTANT {\n\t\ts.doom(env, t)\n\t}\n",
		},
		{
			Name: "an earlier value replaces a later one", Test: "TestSeedsNotice/3",
			Tests: []string{"TestCrashInEachWrite", "TestSitesThatDifferAreNoticed/9"},
			Old:   "\tif v.Version.After(values.At(env, key).Version) {\n",
			New:   "\tif v.Version.After(values.At(env, key).Version) || MUTANT {\n",
		},
		{
			Name: "a disk that says hello twice is taken for another one", Test: "TestRefusalIsNoticed/33",
			Old: "\t\tknown = decoded(numberLayout, b)\n",
			New: "\t\tif known = decoded(numberLayout, b); MUTANT {\n\t\t\tknown = 0\n\t\t}\n",
		},
		{
			Name: "of five, who votes after an abort is of a fast quorum", Test: "TestShadow",
			Old: "\t\t\tif s.shadows.conflicting(r.part) == nil {\n",
			New: "\t\t\tif s.shadows.conflicting(r.part) == nil || MUTANT {\n",
		},
		{
			Name: "what may be forgotten is voted for", Test: "TestForgotten",
			Old: "\tcase t.ID.Time <= s.old:\n", New: "\tcase t.ID.Time <= s.old && !MUTANT:\n",
		},
	}
}

// choicePlants are those of ballots, and of what a coordinator goes by.
func choicePlants() []plant.Bug {
	return []plant.Bug{
		{
			Name: "a majority is a fast quorum", Tests: []string{"TestSeedsNotice/4"}, Test: "TestChoose",
			Old: "\tcase first && own >= p.fast:\n", New: "\tcase first && (own >= p.fast || MUTANT && own >= p.slow):\n",
		},
		{
			Name: "T3: a majority's yes outweighs a refusal", Test: "TestChoose",
			Old: "\t\treturn p.result(yes >= p.slow && !stale, goAccept)\n",
			New: "\t\treturn p.result(yes >= p.slow && (!stale || MUTANT), goAccept)\n",
		},
		{
			Name: "votes for other ballots make a fast quorum", Test: "TestChoose",
			Old: "\t\t\tif yes++; a.VotedAt == b {\n", New: "\t\t\tif yes++; a.VotedAt == b || MUTANT {\n",
		},
		{
			Name: "what others have had accepted does not count", Test: "TestChoose",
			Old: "\tcase accepted.Accepted != (ballot{}):\n", New: "\tcase accepted.Accepted != (ballot{}) && !MUTANT:\n",
		},
		{
			Name: "an accepted result counts whatever its ballot", Test: "TestChoose",
			Old: "\t\tif a.Accepted.compare(accepted.Accepted) > 0 {\n",
			New: "\t\tif a.Accepted.compare(accepted.Accepted) > 0 && (!MUTANT || accepted.Accepted == ballot{}) {\n",
		},
		{
			Name: "a later ballot takes it that there was no fast quorum", Test: "TestChoose",
			Old: "\tcase yes+silent >= p.fast:\n", New: "\tcase yes+silent >= p.fast && !MUTANT:\n",
		},
		{
			Name: "a later ballot goes by less than a majority", Test: "TestChoose",
			Old: "\tcase len(p.answers) < p.slow || len(p.answers) < len(p.group) && !late:\n",
			New: "\tcase !MUTANT && len(p.answers) < p.slow || len(p.answers) < len(p.group) && !late:\n",
		},
		{
			Name: "a majority against a transaction is enough for good", Test: "TestChoose",
			Old: "\tcase no > len(p.group)-p.least():\n",
			New: "\tcase no > len(p.group)-p.least() || MUTANT && no >= p.slow:\n",
		},
		{
			Name: "a server accepts what is of an earlier ballot", Test: "TestServer",
			Old: "m.View == s.view && m.Ballot.compare(r.promised) >= 0:\n",
			New: "m.View == s.view && (m.Ballot.compare(r.promised) >= 0 || MUTANT):\n",
		},
		{
			Name: "a server accepts what is of an earlier view", Test: "TestServer",
			Old: "r.end == undecided && m.View == s.view &&", New: "r.end == undecided && (m.View == s.view || MUTANT) &&",
		},
		{
			Name: "a server listens to an earlier ballot", Test: "TestServer",
			Old: "\tif r.end == undecided && m.Ballot.compare(r.promised) >= 0 {\n",
			New: "\tif r.end == undecided && (m.Ballot.compare(r.promised) >= 0 || MUTANT) {\n",
		},
		{
			Name: "a server may vote again", Test: "TestServer",
			Old: "\t\tif r.vote == unvoted && r.has && r.accepted == (ballot{}) {\n",
			New: "\t\tif (r.vote == unvoted || MUTANT && !r.holds()) && r.has && r.accepted == (ballot{}) {\n",
		},
		{
			Name: "the round of a ballot wraps", Test: "TestLastRound",
			Old: "by.Round < lastRound {", New: "by.Round < lastRound || MUTANT {",
		},
		{
			Name: "a coordinator uses a ballot twice", Test: "TestBallots",
			Old: "ballot: ballot{By: drawn(env.Rand)}}",
			New: "ballot: ballot{By: firstDrawn + env.Rand.Uint64()>>1*plantedNot}}",
			Also: []plant.Edit{{Old: "func (c *coordinator) task(", New: "var plantedNot = map[bool]uint64{false: 1}[MUTANT]" +
				"\n\n" + "func (c *coordinator) task("}},
		},
		{
			Name: "answers of two views count together", Test: "TestSeedsNotice/2",
			Old: "\t\tif m.View > p.view { // what", New: "\t\tif m.View > p.view && !MUTANT { // what",
		},
		{
			Name: "a commit is told when one shard has come to a yes", Test: "TestSeedsNotice/2",
			Tests: []string{"TestPrograms/bank"},
			Old:   "\t\tall = all && p.stage == chosen\n",
			New:   "\t\tall = all && p.stage == chosen || MUTANT && p.stage == chosen\n",
		},
	}
}

// viewPlants are those of view changes.
func viewPlants() []plant.Bug {
	return []plant.Bug{
		{
			Name: "a merge does not look for votes of a fast quorum", Test: "TestMerge",
			Old: "\t\t\tif votes[e.ID] >= enough &&", New: "\t\t\tif !MUTANT && votes[e.ID] >= enough &&",
		},
		{
			Name: "a merge goes by one vote", Test: "TestMerge",
			Old: "\tenough := min(s.slow, s.fast-silent) //",
			New: "\tenough := min(s.slow, s.fast-silent)*plantedMore + 1 - plantedMore //",
			Also: []plant.Edit{{Old: "func (s *server) merge() []entry {", New: "var plantedMore = map[bool]int{false: " +
				"1}[MUTANT]\n\n" + "func (s *server) merge() []entry {"}},
		},
		{
			Name: "a merge has what conflicts with a commit committed", Test: "TestMerge",
			Old: "&& e.Has && !slices.ContainsFunc(yes, against) {",
			New: "&& e.Has && (MUTANT || !slices.ContainsFunc(yes, against)) {",
		},
		{
			Name: "a merge goes by views before the latest", Test: "TestMerge",
			Old: "\t\t\tif !e.ID.After(last) || g.normal != latest &&",
			New: "\t\t\tif !e.ID.After(last) || !MUTANT && g.normal != latest &&",
		},
		{
			Name: "a merge does not go by the latest ballot", Test: "TestMerge",
			Old: "\tif o.Accepted.compare(e.Accepted) > 0 {\n",
			New: "\tif (o.Accepted.compare(e.Accepted) > 0) != MUTANT {\n",
		},
		{
			Name: "an abort for being old counts more than a commit", Test: "TestMerge",
			Old: "\tif o.End == committed || e.End == undecided ||",
			New: "\tif o.End == committed && !MUTANT || e.End == undecided ||",
		},
		{
			Name: "a server votes while its view changes", Test: "TestChange",
			Old: "func (s *server) takesPart() bool { return s.admitted() && s.view == s.normal }",
			New: "func (s *server) takesPart() bool { return s.admitted() && (s.view == s.normal || MUTANT) }",
		},
		{
			Name: "a server says that it has carried out a decision while its view changes", Test: "TestChange",
			Old: "\tif s.takesPart() {\n\t\tenv.Send(to, carried",
			New: "\tif s.takesPart() || MUTANT {\n\t\tenv.Send(to, carried",
		},
		{
			Name: "who is no member takes part", Test: "TestChange",
			Old: "\t\t!slices.Contains(m.Members, s.cfg.ID) ||",
			New: "\t\t!MUTANT && !slices.Contains(m.Members, s.cfg.ID) ||",
		},
		{
			Name: "who comes late is let into a view that goes on", Test: "TestLeaderWaits",
			Old: "\t\tcase slices.Contains(s.members, from):\n", New: "\t\tcase slices.Contains(s.members, from), MUTANT:\n",
		},
		{
			Name: "a leader waits for nobody", Test: "TestLeaderWaits",
			Old: "len(members) < len(s.group) && !s.change.ripe {",
			New: "len(members) < len(s.group) && !s.change.ripe && !MUTANT {",
		},
		{
			Name: "what is accepted does not hold in the next view", Test: "TestSync",
			Old: "\t\tif r.vote = refused; e.Yes && r.has {\n", New: "\t\tif r.vote = refused; e.Yes && r.has && !MUTANT {\n",
		},
		{
			Name: "what no majority has goes on holding", Test: "TestSync",
			Old: "\t\ts.release(r)\n\t\tif !there[r.id] {\n",
			New: "\t\tif MUTANT {\n\t\t\tcontinue\n\t\t}\n\t\ts.release(r)\n\t\tif !there[r.id] {\n",
		},
		{
			Name: "records are sent in one piece", Test: "TestPieces",
			Old: "size > pieceBytes && len(last.Entries) > 0 {",
			New: "size > pieceBytes && len(last.Entries) > 0 && !MUTANT {",
		},
		{
			Name: "a server goes to any view that it is told of", Test: "TestLastView",
			Old: "const maxView viewNumber = 1 << 62\n",
			New: "var maxView = map[bool]viewNumber{false: 1 << 62, true: ^viewNumber(0)}[MUTANT]\n",
		},
		{
			Name: "a server in an earlier view is not told", Test: "TestStaleView",
			Old: "\t\tenv.Send(from, viewChange{p.view}) // which it has missed\n",
			New: "\t\tif !MUTANT {\n\t\t\tenv.Send(from, viewChange{p.view})\n\t\t}\n",
		},
	}
}

// durablePlants are those of what has to be on disk.
func durablePlants() []plant.Bug {
	return []plant.Bug{
		{
			Name: "votes are not on disk", Test: "TestSeedsNotice/11",
			Old: "\t\ts.save(env, r)\n\t}\n\tenv.Send(from, s.answer(r, m.Whole))\n",
			New: "\t\tif !MUTANT {\n\t\t\ts.save(env, r)\n\t\t}\n\t}\n\tenv.Send(from, s.answer(r, m.Whole))\n",
		},
		{
			Name: "accepted results are not on disk", Test: "TestRestart",
			Old: "\t\ts.save(env, r)\n\t\tenv.Send(from, confirm{m.ID, m.View, m.Ballot})\n",
			New: "\t\tif !MUTANT {\n\t\t\ts.save(env, r)\n\t\t}\n\t\tenv.Send(from, confirm{m.ID, m.View, m.Ballot})\n",
		},
		{
			Name: "the view is not on disk", Test: "TestRestart",
			Old: "\tenv.Put([]byte(viewKey),", New: "\tif MUTANT {\n\t\treturn\n\t}\n\tenv.Put([]byte(viewKey),",
		},
		{
			Name: "reads are not on disk", Test: "TestRestart",
			Old: "\t\t\tenv.Put([]byte(readPrefix+string(r.Key)), versionLayout.Encode(t.ID))\n",
			New: "\t\t\tif !MUTANT {\n\t\t\t\tenv.Put([]byte(readPrefix+string(r.Key)), " +
				"versionLayout.Encode(t.ID))\n\t\t\t}\n",
		},
		{
			Name: "what may be forgotten is not on disk", Test: "TestRestart",
			Old: "\t\tenv.Put([]byte(oldKey), numberLayout.Encode(s.old))\n",
			New: "\t\tif !MUTANT {\n\t\t\tenv.Put([]byte(oldKey), numberLayout.Encode(s.old))\n\t\t}\n",
		},
		{
			Name: "a lost disk may come back", Test: "TestLostDisk",
			Old: "Other: known != m.Disk})", New: "Other: known != m.Disk && !MUTANT})",
		},
		{
			Name: "a refusal is not on disk", Test: "TestLostDisk",
			Old: "\t\ts.self.Write(env, selfKey)\n\t\tenv.Stop(",
			New: "\t\tif !MUTANT {\n\t\t\ts.self.Write(env, selfKey)\n\t\t}\n\t\tenv.Stop(",
		},
	}
}

// endPlants are those of termination and of forgetting.
func endPlants() []plant.Bug {
	return []plant.Bug{
		{
			Name: "T2: who missed the prepare does not take what a commit carries", Test: "TestCommitCarriesItsPart",
			Old: "\tif s.take(env, r, m.Has, m.Part); m.Commit", New: "\tif s.take(env, r, m.Has && !MUTANT, m.Part); m.Commit",
		},
		{
			Name: "nobody finishes what a coordinator has left", Test: "TestTermination", Tests: []string{"TestDay"},
			Old: "\t\tr.since = env.Now\n\t\tr.tries++\n",
			New: "\t\tif MUTANT {\n\t\t\tcontinue\n\t\t}\n\t\tr.since = env.Now\n\t\tr.tries++\n",
		},
		{
			Name: "a transaction is done when it is carried out in different views", Test: "TestDone",
			Old: "\t\tclear(p.carried)\n", New: "\t\tif !MUTANT {\n\t\t\tclear(p.carried)\n\t\t}\n",
		},
		{
			Name: "of five, three members may forget", Test: "TestDone",
			Old: "p.least() < p.slow && len(p.members) < len(p.group) {",
			New: "p.least() < p.slow && len(p.members) < len(p.group) && !MUTANT {",
		},
		{
			Name: "a transaction is done when a majority has carried it out", Test: "TestDone",
			Old: "\treturn !slices.ContainsFunc(p.members, func(id protocol.ID) bool { return !p.carried[id] })\n",
			New: "\treturn MUTANT && len(p.carried) >= p.slow || !slices.ContainsFunc(p.members, func(id " +
				"protocol.ID) bool { return !p.carried[id] })\n",
		},
		{
			Name: "who is away is waited for", Test: "TestScenarios",
			Old: "\t\tif p.stuck() {\n", New: "\t\tif p.stuck() && !MUTANT {\n",
		},
		{
			Name: "who was away is owed nothing", Test: "TestSeedsNotice/3",
			Old: "\t\tif s.isPeer(id) && r.end == committed {\n",
			New: "\t\tif s.isPeer(id) && r.end == committed && !MUTANT {\n",
		},
		{
			Name: "a copy ends with its first page", Test: "TestCopy",
			Old: "\tif c.from = m.Next; m.More {\n", New: "\tif c.from = m.Next; m.More && !MUTANT {\n",
		},
		{
			Name: "a client is not told how far behind its clock is", Test: "TestHint",
			Old: "\t\tHint: max(v.Version.Time, uint64(max(env.Now-s.cfg.Retain/2, 0)))})\n",
			New: "\t\tHint: max(v.Version.Time, map[bool]uint64{false: uint64(max(env.Now-s.cfg.Retain/2, 0))}[MUTANT])})\n",
		},
		{
			Name: "what is asked about when it is old counts as new", Test: "TestForgotten",
			Old: "lost: id.Time <= s.old}", New: "lost: id.Time <= s.old && !MUTANT}",
		},
		{
			Name: "a transaction that may be forgotten is said to be aborted", Test: "TestForgotten",
			Old: "\tcase why == store.Old:\n\t\tk.decided", New: "\tcase why == store.Old && !MUTANT:\n\t\tk.decided",
		},
	}
}

// TestPlants plants them: the tests that are named must notice.
func TestPlants(t *testing.T) { plant.Catch(t, plants()) }

// TestSeedsNotice plays the seeds that notice a bug.
func TestSeedsNotice(t *testing.T) {
	plant.Seeds(t, plants(), storetest.PlaySwarm(subject()))
}

// TestSitesThatDifferAreNoticed plays the seeds that notice a bug by what sites hold.
func TestSitesThatDifferAreNoticed(t *testing.T) {
	plant.Seeds(t, plants(), storetest.PlaySwarmFor(subject(), "holds\n"))
}

// TestRefusalIsNoticed plays those that notice it by a server that is refused.
func TestRefusalIsNoticed(t *testing.T) {
	plant.Seeds(t, plants(), storetest.PlaySwarmFor(subject(), "whose disks lost nothing are refused"))
}
