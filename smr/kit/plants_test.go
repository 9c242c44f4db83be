package kit

import (
	"testing"

	"github.com/foresay/foresay/internal/plant"
)

// TestPlants leaves out one rule at a time, in the source: the test that is named must notice.
func TestPlants(t *testing.T) {
	plant.Catch(t, append(lullPlants(), []plant.Bug{{
		Name: "what a replica writes is told to nobody", Dir: "smr/kit", Test: "TestMarksAreTold",
		Old: "\tr.Admission.wrote(env)\n", New: "\tif !MUTANT {\n\t\tr.Admission.wrote(env)\n\t}\n",
	}, {
		Name: "how far a disk is is told once", Dir: "smr/kit", Test: "TestMarksAreTold",
		Old: "\ta.due = false\n", New: "\ta.due = MUTANT\n",
	}, {
		Name: "a replica that is salvaged does not know its disk", Dir: "smr/kit", Test: "TestSalvageKnowsItsDisk",
		Old: "\ta.own = Incarnation(id.Disk)\n\treturn err\n", New: "\tif !MUTANT {\n\t\ta.own = " +
			"Incarnation(id.Disk)\n\t}\n\treturn err\n",
	}, {
		Name: "snapshots forget removed members", Dir: "smr/kit", Test: "TestMembersChange",
		Old: "\twirefmt.List(c, &g.removed, 1, wirefmt.Uint32)\n",
		New: "\tif MUTANT && !c.Reading() {\n\t\tg = &members{now: g.now}\n\t}\n\twirefmt.List(c, &g.removed, 1, " +
			"wirefmt.Uint32)\n",
	}, {
		Name: "a replica that is started again votes before it knows that its log was not cut", Dir: "smr/kit",
		Test: "TestStartedAgain",
		Old:  "\t\ta.vouched = map[protocol.ID]bool{}\n",
		New:  "\t\tif !MUTANT {\n\t\t\ta.vouched = map[protocol.ID]bool{}\n\t\t}\n",
	}, {
		Name: "a replica that is started again asks what others know of its log, and does not wait for it", Dir: "smr/kit",
		Test: "TestStartedAgain",
		Old:  "\t\t\twaits = true\n", New: "\t\t\twaits = !MUTANT\n",
	}, {
		Name: "the protocol is not told of what is replayed", Dir: "smr/kit", Test: "TestSaveNowWritesWhatCame",
		Old: "\tif s.hooks.Before != nil {\n", New: "\tif s.hooks.Before != nil && (!MUTANT || s.keeps) {\n",
	}, {
		Name: "what is replayed comes before its snapshot", Dir: "smr/kit", Test: "TestSaveNowWritesWhatCame",
		Old: "\tif s.hooks.Loaded != nil {\n", New: "\tif s.hooks.Loaded != nil && !MUTANT {\n",
	}, {
		Name: "a newer state takes the place of one that arrives", Dir: "smr/kit", Test: "TestSnapshotsDoNotTakeTurns",
		Old: "\tcase in != nil && in.have > 0 && (c.Offset > 0 || in.refused < most):\n",
		New: "\tcase in != nil && in.have > 0 && (c.Offset > 0 || in.refused < most) && (!MUTANT || c.Slot <= in.slot):\n",
	}, {
		Name: "a large state is never followed by its log", Dir: "smr/kit", Test: "TestHeldCut",
		Old: "max(logBytes, int(out.size))", New: "max(logBytes, map[bool]int{false: int(out.size)}[MUTANT])",
	}, {
		Name: "answers to queries have any number of bytes", Dir: "smr/kit", Test: "TestAnswersInBytes",
		Old: "\t\tif size >= maxAnswersBytes {\n", New: "\t\tif size >= maxAnswersBytes && !MUTANT {\n",
	}, {
		Name: "a replica that lags asks another one each time", Dir: "smr/kit", Test: "TestOneIsAsked",
		Old: "\tcase p.mayTell(applied, knowsGroup, peers):\n",
		New: "\tcase p.mayTell(applied, knowsGroup, peers) && !MUTANT:\n",
	}, {
		Name: "what is on its way to a peer is sent again", Dir: "smr/kit", Test: "TestFlow",
		Old: "if since := now - p.sent; since >= 0 && since < roundTrip {",
		New: "if since := now - p.sent; since >= 0 && since < roundTrip && !MUTANT {",
	}, {
		Name: "a replica that is not up to date is added", Dir: "smr/kit", Test: "TestBehind",
		Old: "\tcase ok:\n\t\treturn \"\"\n", New: "\tcase ok || MUTANT:\n\t\treturn \"\"\n",
	}}...))
}

// lullPlants are of a Lull. That TestRest of a protocol would notice too it shows itself, with
// hosts that say what is not so.
func lullPlants() []plant.Bug {
	const dir = "smr/kit"
	return []plant.Bug{{
		Name: "a drowsy member waits for the others as if nobody was busy", Dir: dir, Test: "TestLullWaitsForAnswers",
		Old: "\tenv.After(r.Tempo.Times(1.5), l.rules.Beat)\n",
		New: "\tif MUTANT {\n\t\tenv.After(r.Times(1.5), l.rules.Beat)\n\t} else {\n" +
			"\t\tenv.After(r.Tempo.Times(1.5), l.rules.Beat)\n\t}\n",
	}, {
		Name: "a member at rest does not look whether the others' hosts are there", Dir: dir, Test: "TestLullEnds",
		Old: "\tif !l.relies(func(_ protocol.ID, v", New: "\tif !MUTANT && !l.relies(func(_ protocol.ID, v",
	}, {
		Name: "a member at rest does not look whether the others' hosts have begun anew", Dir: dir, Test: "TestLullEnds",
		Old: "|| v.Run != m.Run || !also(", New: "|| v.Run != m.Run && !MUTANT || !also(",
	}, {
		Name: "a call does not end a lull", Dir: dir, Test: "TestLullEnds",
		Old: "\tl.busy = env.Now\n\tif l.resting {\n", New: "\tl.busy = env.Now\n\tif l.resting && !MUTANT {\n",
	}, {
		Name: "a member that hears a beat rests on", Dir: dir, Test: "TestLullEnds",
		Old: "\tdelete(l.drowsy, from)\n\tif l.resting {\n", New: "\tdelete(l.drowsy, from)\n\tif l.resting && !MUTANT {\n",
	}, {
		Name: "a member rests on although another one is in another state", Dir: dir, Test: "TestLullEnds",
		Old: "\tcase l.resting && !same:\n", New: "\tcase l.resting && !same && !MUTANT:\n",
	}, {
		Name: "a member that has not heard all is not answered", Dir: dir, Test: "TestLullEnds",
		Old: "ok && !m.Answer {", New: "ok && !m.Answer && !MUTANT {",
	}, {
		Name: "a member rests with others that are drowsy in another state", Dir: dir,
		Test: "TestLullTakesAll",
		Old:  "return l.drowsy[id].Mark == mark }", New: "return l.drowsy[id].Mark == mark || MUTANT }",
	}}
}
