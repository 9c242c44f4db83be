package raft

import (
	"testing"

	"github.com/foresay/foresay/internal/plant"
)

// plants leave out one rule at a time, in the source.
func plants() []plant.Bug {
	bugs := []plant.Bug{
		{
			Name: "a leader that reaches no majority goes on", Test: "TestLeaderWithoutMajorityStops",
			Old: "return peer, peer != 0 && alive <= len(members)/2",
			New: "return peer, !MUTANT && peer != 0 && alive <= len(members)/2",
		},
		{
			Name: "who is to lead first waits like the others", In: "internal/plansim", Test: "TestFirstLeader",
			Old: "case r.first() && r.core.leader() == 0:",
			New: "case r.first() && r.core.leader() == 0 && !MUTANT:",
		},
		{
			Name: "a vote in an unchanged term is not recorded", Test: "TestVoteIsOnDisk",
			Old: "next.term != c.hard.term || next.vote != c.hard.vote {",
			New: "next.term != c.hard.term || next.vote != c.hard.vote && !MUTANT {",
		},
		{
			Name: "a follower does not notice that the leader is gone", Test: "TestNoVoteWhileThereIsALeader",
			Old: "\tcase missedTimer:\n\t\tr.hasLeader = false\n",
			New: "\tcase missedTimer:\n\t\tr.hasLeader = MUTANT\n",
		},
		{
			Name: "who was removed and stands for election is not told", Test: "TestRemovedReplicasAreTold",
			Old: "\tr.Admission.SendAhead(env, from, kit.Removed{})\n",
			New: "\tif !MUTANT {\n\t\tr.Admission.SendAhead(env, from, kit.Removed{})\n\t}\n",
		},
		{
			Name: "a leader that was removed names no successor", Test: "TestScenarios/4-the-leader-is-removed",
			Old: "\tif id == r.Cfg.ID && !member && r.led {\n",
			New: "\tif id == r.Cfg.ID && !member && r.led && !MUTANT {\n",
		},
	}
	bugs = append(bugs, partPlants()...)
	for i := range bugs {
		bugs[i].Dir = "smr/raft"
	}
	return bugs
}

// partPlants are those of what is of a part alone.
func partPlants() []plant.Bug {
	return []plant.Bug{
		{
			Name: "a part carries out again what it has after a crash", Test: "TestPartSeedsNotice/1",
			Old: "\tp.writeHead(env) // with what was applied, or neither is durable\n",
			New: "\tif !MUTANT {\n\t\tp.writeHead(env)\n\t}\n",
		},
		{
			Name: "what is written while a copy is read is missing in it", Test: "TestPartSeedsNotice/1",
			Old: "func (p *part) changed(key []byte) {\n",
			New: "func (p *part) changed(key []byte) {\n\tif MUTANT {\n\t\treturn\n\t}\n",
		},
		{
			Name: "what is written after a copy was read is missing in it", Test: "TestPartSeedsNotice/23",
			Old: "\t\tif !o.end && (o.all || ", New: "\t\tif !o.end && (o.all && !MUTANT || ",
		},
		{
			Name: "a copy ends before what has changed meanwhile is in it", Test: "TestPartSeedsNotice/1",
			Old: "\tif o.all && len(o.changes) == 0 {",
			New: "\tif o.all && (len(o.changes) == 0 || MUTANT) {",
		},
		{
			Name: "a key that was deleted meanwhile is in a copy", Test: "TestPartSeedsNotice/1",
			Old: "\t\tif w.Deleted {\n", New: "\t\tif w.Deleted && !MUTANT {\n",
		},
		{
			Name: "a page that came twice is written twice", Test: "TestPages",
			Old: "\tif m.Number == a.have+1 && a.area != 0 ",
			New: "\tif (m.Number == a.have+1 || MUTANT) && a.area != 0 ",
		},
		{
			Name: "a copy is acknowledged before it is on disk", Test: "TestPages",
			Old: "\tp.Admission.Send(env, from, paged{m.Copy, a.have}) // when it is durable\n",
			New: "\tif MUTANT {\n\t\tp.Admission.SendAhead(env, from, paged{m.Copy, a.have})\n\t\treturn\n\t}\n" +
				"\tp.Admission.Send(env, from, paged{m.Copy, a.have})\n",
		},
		{
			Name: "a copy is written over what another one has left", Test: "TestCopiesApart",
			Old: "\t\t\tused = true\n", New: "\t\t\tused = !MUTANT\n",
		},
		{
			Name: "the state before a copy stays on the disk", Test: "TestPartSeedsNotice/1",
			Old: "\tenv.Delete([]byte(arrivingKey))\n\tp.sweep(env)\n\treturn true\n",
			New: "\tenv.Delete([]byte(arrivingKey))\n\tif !MUTANT {\n\t\tp.sweep(env)\n\t}\n\treturn true\n",
		},
		{
			Name: "a machine is not told that its state was replaced", Test: "TestPartSeedsNotice/1",
			Old: "\tp.machine.Load(p.state(env))\n\tp.MembersChanged(env)\n",
			New: "\tif !MUTANT {\n\t\tp.machine.Load(p.state(env))\n\t}\n\tp.MembersChanged(env)\n",
		},
		{
			Name: "a leader is current before it has what was agreed on before", Test: "TestPartSeedsNotice/1",
			Old: "\tif p.led && !p.current && p.core.applied >= p.ledSince {",
			New: "\tif p.led && !p.current && (p.core.applied >= p.ledSince || MUTANT) {",
		},
		{
			Name: "a leader takes it that it still leads", Test: "TestPartSeedsNotice/33",
			Old: "rd.underway[0].index > 0 && p.core.applied", New: "(rd.underway[0].index > 0 || MUTANT) && p.core.applied",
		},
		{
			Name: "who asks whether it still leads is answered by a round that began before", Test: "TestConfirmIsOfItsTime",
			Old: "\tp.rounds.next = append(p.rounds.next, question)\n",
			New: "\tif n := len(p.rounds.underway); MUTANT && n > 0 {\n\t\tat := &p.rounds.underway[n-1].questions\n" +
				"\t\t*at = append(*at, question)\n\t\treturn true\n\t}\n\tp.rounds.next = append(p.rounds.next, question)\n",
		},
		{
			Name: "any number of rounds may be under way", Test: "TestRoundsAreFew",
			Old: "len(rd.underway) == maxRounds {", New: "len(rd.underway) == maxRounds && !MUTANT {",
		},
		{
			Name: "an owner is not told that its member leads no more", Test: "TestPartSeedsNotice/1",
			Old: "\t\tp.events = append(p.events, event{kind: follows})\n",
			New: "\t\tif !MUTANT {\n\t\t\tp.events = append(p.events, event{kind: follows})\n\t\t}\n",
		},
		{
			Name: "an entry of an earlier term counts as stored", Test: "TestStoredIsOfItsTerm",
			Old: "\t\tif e.GetTerm() != p.core.hard.term || ",
			New: "\t\tif e.GetTerm() != p.core.hard.term && !MUTANT || ",
		},
		{
			Name: "the log that a copy replaces is back after a crash", Test: "TestCopyTakesThePlaceOfALog",
			Old: "\tenv.Truncate(env.NextIndex())\n",
			New: "\tif !MUTANT {\n\t\tenv.Truncate(env.NextIndex())\n\t}\n",
		},
		{
			Name: "a vote is cut away with the log", Test: "TestLogIsCut",
			Old: "\tfirst := env.Append(record{hard: p.core.hard}) // the newest state stays on record\n",
			New: "\tfirst := env.NextIndex()\n\tif !MUTANT {\n\t\tfirst = env.Append(record{hard: p.core.hard})\n\t}\n",
		},
		{
			Name: "a log may have any number of bytes", Test: "TestLogIsCut",
			Old: " || p.weightBytes > p.Cfg.LogBytes {\n",
			New: " || p.weightBytes > p.Cfg.LogBytes && !MUTANT {\n",
		},
		{
			Name: "a page of the state may have any size", Test: "TestPagesAreSmall",
			Old: "\t\tif size > 0 && size+len(k)+len(v) > maxBytes {",
			New: "\t\tif size > 0 && size+len(k)+len(v) > maxBytes && !MUTANT {",
		},
		{
			Name: "a page of what has changed may have any size", Test: "TestPagesAreSmall",
			Old: "\t\tif size > 0 && size+len(key)+len(v) > maxBytes {",
			New: "\t\tif size > 0 && size+len(key)+len(v) > maxBytes && !MUTANT {",
		},
		{
			Name: "the log is cut behind a copy that is under way", Test: "TestCopyUnderLoad",
			Old: "\t\t\tif o.end {\n\t\t\t\tupTo = min",
			New: "\t\t\tif o.end && !MUTANT {\n\t\t\t\tupTo = min",
		},
		{
			Name: "a copy does not say who the members are", Test: "TestPartMembersNotice/1",
			Old: "\tp.writeMembers(env)\n\tp.writeHead(env)\n\t// What the log has",
			New: "\tif !MUTANT {\n\t\tp.writeMembers(env)\n\t}\n\tp.writeHead(env)\n\t// What the log has",
		},
		{
			Name: "a member is added before it is up to date", Test: "TestPartChangesMembers",
			Old: "\tif reason := p.Desk.Behind(env, c, p.upToDate); reason != \"\" {",
			New: "\tif reason := p.Desk.Behind(env, c, p.upToDate); reason != \"\" && !MUTANT {",
		},
		{
			Name: "members change while an earlier change is undecided", Test: "TestOneChangeAtATime",
			Old: "\tcase p.changing:\n\t\treturn \"another",
			New: "\tcase p.changing && !MUTANT:\n\t\treturn \"another",
		},
		{
			Name: "a copy that nobody sends any more is kept for ever", Test: "TestCopiesApart",
			Old: "\tif a.area == 0 || env.Now-a.heard < p.Tempo.Times(copyPatience) {",
			New: "\tif a.area == 0 || env.Now-a.heard < p.Tempo.Times(copyPatience) || MUTANT {",
		},
		{
			Name: "a copy that stands still does not begin anew", Test: "TestCopyIsSent",
			Old: "env.Now-o.moved > p.Tempo.Times(copyPatience) {",
			New: "env.Now-o.moved > p.Tempo.Times(copyPatience) && !MUTANT {",
		},
		{
			Name: "pages that are lost are not sent again", Test: "TestCopyIsSent",
			Old: "\tif o.sent > o.acked() && env.Now-o.heard >= ",
			New: "\tif !MUTANT && o.sent > o.acked() && env.Now-o.heard >= ",
		},
		{
			Name: "a copy of which a member has lost pages is not given up", Test: "TestCopyIsSent",
			Old: "\t\tif o.denied++; o.denied > maxPageDenied {",
			New: "\t\tif o.denied++; o.denied > maxPageDenied && !MUTANT {",
		},
		{
			Name: "a part's patience is less than its network needs", Test: "TestPartPatience",
			Old: "max(r.Tempo.Times(1.5), r.patient)",
			New: "max(r.Tempo.Times(map[bool]float64{false: 1.5}[MUTANT]), r.patient)",
		},
		{
			Name: "a part is more patient than others", Test: "TestPartPatience",
			Old: "\treturn min(most, max(", New: "\tif MUTANT {\n\t\tmost *= 2\n\t}\n\treturn min(most, max(",
		},
		{
			Name: "the members are not written when they change", Test: "TestPartMembersNotice/1",
			Old: "\t\tp.State.ChangeMembers(smr.Slot(index), *e.Members)\n\t\tp.writeMembers(env)\n",
			New: "\t\tp.State.ChangeMembers(smr.Slot(index), *e.Members)\n\t\tif !MUTANT {\n\t\t\tp.writeMembers(env)\n\t\t}\n",
		},
	}
}

// TestPlants plants them: the tests that are named must notice.
func TestPlants(t *testing.T) { plant.Catch(t, plants()) }
