package pbft

import (
	"cmp"
	"testing"

	"github.com/foresay/foresay/internal/plant"
)

// TestPlants leaves out one rule at a time, in the source: the test that is named must notice.
func TestPlants(t *testing.T) {
	bugs := []plant.Bug{
		{
			Name: "tentative replies of different views confirm", Test: "TestConfirmedIsExact",
			Old: "case h.tentative && o.view == h.view && o.seq == h.seq:",
			New: "case h.tentative && (o.view == h.view || MUTANT) && o.seq == h.seq:",
		},
		{
			Name: "a new view takes the batch of an older view", Test: "TestChoiceIsExact",
			Old: "c.Prepared[i].Order.Body().View > best.View) {",
			New: "(c.Prepared[i].Order.Body().View > best.View) != MUTANT) {",
		},
		{
			Name: "a minority prepares", Test: "TestEveryStrategy/conspire",
			Old: "\tif len(votes) < r.dir.Quorum()-1 {\n",
			New: "\tif len(votes) < r.dir.Quorum()-1 && !MUTANT || len(votes) == 0 {\n",
		},
		{
			Name: "what one member says is committed is believed", Test: "TestLiarsOfCommits",
			Old: "if committed >= r.dir.Witness() {",
			New: "if committed >= r.dir.Witness() || MUTANT && committed > 0 {",
		},
		{
			Name: "a starved client waits for ever", Test: "TestEveryStrategy/starve",
			Old: "if oldest.passed && r.tick-oldest.since > r.timeout() {",
			New: "if oldest.passed && r.tick-oldest.since > r.timeout() && !MUTANT {",
		},
		{
			Name: "f replies that match the early one confirm", Test: "TestFMatchingIsNotEnough",
			Old: "if committed >= enough || tentative >= quorum {",
			New: "if committed >= enough || tentative >= quorum || MUTANT && committed >= witness-1 {",
		},
		{
			Name: "a view begins as its primary likes", Test: "TestTraitorLeads",
			Old: "\t\treturn got.By(primary.Key) && *got.Body() == want\n",
			New: "\t\treturn got.By(primary.Key) && (*got.Body() == want || MUTANT)\n",
		},
		{
			Name: "a view begins with one word", Test: "TestTraitorLeads",
			Old: "\tif len(signers) < d.Quorum() {\n",
			New: "\tif len(signers) < d.Quorum() && !MUTANT {\n",
		},
		{
			Name: "only one member is asked for a state", Test: "TestTransfer",
			Old: "\t\tr.asked++\n",
			New: "\t\tif r.asked == 0 || !MUTANT {\n\t\t\tr.asked++\n\t\t}\n",
		},
		{
			Name: "a crash forgets what was prepared", Test: "TestAllCrash",
			Old: "\t\t\tp.prepared = &m.Prepared\n",
			New: "\t\t\tif !MUTANT {\n\t\t\t\tp.prepared = &m.Prepared\n\t\t\t}\n",
		},
		{
			Name: "a crash forgets that a checkpoint was reached", Test: "TestAllCrash",
			Old: "seq > r.low() && seq <= r.committed {",
			New: "seq > r.low() && seq <= r.committed && !MUTANT {",
		},
		{
			Name: "what is said does not wait for the disk", Test: "TestSaidWhenDurable",
			Old: "\tfor _, id := range r.others {\n\t\tenv.Send(id, msg)\n",
			New: "\tfor _, id := range r.others {\n\t\tif MUTANT {\n\t\t\tenv.SendAhead(id, msg)\n\t\t\tcontinue\n" +
				"\t\t}\n\t\tenv.Send(id, msg)\n",
		},
		{
			Name: "what was prepared is not written", Test: "TestSaidWhenDurable",
			Old: "\tenv.Append(preparedRecord{*p.prepared})\n",
			New: "\tif !MUTANT {\n\t\tenv.Append(preparedRecord{*p.prepared})\n\t}\n",
		},
		{
			Name: "a read does not wait for what is prepared", Test: "TestReadsWait",
			Old: "p != nil && p.prepared != nil {\n\t\t\tneed = seq",
			New: "p != nil && p.prepared != nil && !MUTANT {\n\t\t\tneed = seq",
		},
		{
			Name: "a time is accepted however far it is from the clock", Test: "TestTimes",
			Old: "(e.Time-env.Now).Abs() > r.cfg.ClockSlack {",
			New: "(e.Time-env.Now).Abs() > r.cfg.ClockSlack && !MUTANT {",
		},
		{
			Name: "a clock that was wrong stops everybody", Test: "TestTimes",
			Old: "e.Time > r.latest && (",
			New: "(e.Time > r.latest || MUTANT) && (",
		},
		{
			Name: "the time of what is proposed again is checked", Test: "TestTimes",
			Old: "\tif p.offer == nil && !r.timely(",
			New: "\tif (p.offer == nil || MUTANT) && !r.timely(",
		},
		{
			Name: "f+1 that have left a view pull nobody along", Test: "TestPulledAlong",
			Old: "if len(ahead) >= r.dir.Witness() {",
			New: "if len(ahead) >= r.dir.Witness() && !MUTANT {",
		},
		{
			Name: "a primary leads on after a crash", Test: "TestPrimaryAfterCrash",
			Old: "if r.active && r.primary() && len(log) > 0 {",
			New: "if r.active && r.primary() && len(log) > 0 && !MUTANT {",
		},
		{
			Name: "a liar's early replies stay guesses", Test: "TestThreshold",
			Old: "\tcase s.wrong*100 > scored:\n",
			New: "\tcase s.wrong*100 > scored && !MUTANT:\n",
		},
		{
			Name: "a primary that was wrong is never believed again", Test: "TestThreshold",
			Old: "\tcase s.wrong*200 < scored:\n",
			New: "\tcase s.wrong*200 < scored && !MUTANT:\n",
		},
		{
			Name: "a guess outlives its view", Test: "TestGuessesOfOldViews",
			Old: "o.guess != nil && o.view < v {",
			New: "o.guess != nil && o.view < v && !MUTANT {",
		},
		{
			Name: "one replica ends a view for clients", Test: "TestGuessesOfOldViews",
			Old: "return views[len(views)-c.dir.Witness()]",
			New: "if MUTANT {\n\t\treturn views[len(views)-1]\n\t}\n\treturn views[len(views)-c.dir.Witness()]",
		},
		{
			Name: "an early reply of an old view is a guess", Test: "TestGuessesOfOldViews",
			Old: "b.View != c.vouched() ||",
			New: "b.View != c.vouched() && !MUTANT ||",
		},
		{
			Name: "a read goes around the client's own writes", Test: "TestReadsBehindWrites",
			Old: "len(c.open)+len(c.queue) > 0 {",
			New: "len(c.open)+len(c.queue) > 0 && !MUTANT {",
		},
		{
			Name: "what a condition names is acknowledged", Test: "TestAcknowledged",
			Old: "x != nil && x.number > c.acked {\n\t\t\t\tn =",
			New: "x != nil && x.number > c.acked && !MUTANT {\n\t\t\t\tn =",
		},
		{
			Name: "what cannot be executed any more ends a view", Test: "TestBadClients",
			Old: "fresh(base, m) && sessions.Fits(base, m) {",
			New: "(fresh(base, m) || MUTANT) && sessions.Fits(base, m) {",
		},
		{
			Name: "what the client did not give the primary ends a view", Test: "TestBadClients",
			Old: "x.passed, x.since = true, r.tick\n", New: "if x.passed = true; !MUTANT {\n\t\t\tx.since = r.tick\n\t\t}\n",
		},
		{
			Name: "what is wrong with the state after a start is not noticed", Test: "TestLooksAtItsDisk",
			Old: "\t\tr.note(x.Step(math.MaxInt))\n",
			New: "\t\tif found := x.Step(math.MaxInt); !MUTANT {\n\t\t\tr.note(found)\n\t\t}\n",
		},
		{
			Name: "what becomes wrong with the state is not noticed", Test: "TestRot",
			Old: "\tif r.fetch != nil || r.tick%scrubTicks != 0 {\n",
			New: "\tif r.fetch != nil || r.tick%scrubTicks != 0 || MUTANT {\n",
		},
		{
			Name: "another state than the stable one is kept", Test: "TestDiffersFromStable",
			Old: "m.Digest() != stable.State && r.damage == \"\" {",
			New: "m.Digest() != stable.State && r.damage == \"\" && !MUTANT {",
		},
		{
			Name: "a replica takes part with what is left of its disk", Test: "TestRefusesItsDisk",
			Old: "if _, err := r.format.Decode(b); err != nil {",
			New: "if _, err := r.format.Decode(b); err != nil && !MUTANT {",
		},
		{
			Name: "what names a null operation is executed", Dir: "bft/sessions", In: "bft/pbft",
			Test: "TestPredicatesAcrossAViewChange",
			Old:  "if !ok || e.Result.Outcome != bft.Executed {",
			New:  "if (!ok || e.Result.Outcome != bft.Executed) && !MUTANT {",
			Also: []plant.Edit{{Old: "\t\tcase !ok:\n\t\t\toutcome = bft.Retry\n",
				New: "\t\tcase !ok && !MUTANT:\n\t\t\toutcome = bft.Retry\n\t\tcase !ok:\n"}},
		},
	}
	for i := range bugs {
		bugs[i].Dir = cmp.Or(bugs[i].Dir, "bft/pbft")
	}
	plant.Catch(t, bugs)
}

// TestLiarsOfCommits: one member alone cannot make another one believe that a batch is committed.
func TestLiarsOfCommits(t *testing.T) {
	r := member(t)
	p := r.place(1)
	p.told[2] = [32]byte{1}
	if r.decide(p) {
		t.Error("one member's word decides")
	}
	p.told[3] = [32]byte{1}
	if !r.decide(p) {
		t.Error("two words do not decide, one of which is honest")
	}
}
