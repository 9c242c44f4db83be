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
			Name: "committed replies do not count with tentative ones", Test: "TestConfirmedIsExact",
			Old: "\t\t\tcase !o.tentative:\n",
			New: "\t\t\tcase !o.tentative && h.tentative && MUTANT:\n\t\t\tcase !o.tentative:\n",
		},
		{
			Name: "tentative replies of different views confirm", Test: "TestConfirmedIsExact",
			Tests: []string{"TestConfirmedIsSafe"},
			Old:   "case h.tentative && o.view == h.view && o.seq == h.seq:",
			New:   "case h.tentative && (o.view == h.view || MUTANT) && o.seq == h.seq:",
		},
		{
			Name: "a new view takes the batch of an older view", Test: "TestChoiceIsExact",
			Old: "c.Prepared[i].Order.Body().View > best.View) {",
			New: "(c.Prepared[i].Order.Body().View > best.View) != MUTANT) {",
		},
		{
			Name: "a minority prepares", Test: "TestEveryStrategy/conspire", Tests: []string{"TestTwins"},
			Old: "\tif len(votes) < r.Dir.Quorum()-1 {\n",
			New: "\tif len(votes) < r.Dir.Quorum()-1 && !MUTANT || len(votes) == 0 {\n",
		},
		{
			Name: "what one member says is committed is believed", Test: "TestLiarsOfCommits",
			Old: "if committed >= r.Dir.Witness() {",
			New: "if committed >= r.Dir.Witness() || MUTANT && committed > 0 {",
		},
		{
			Name: "a starved client waits for ever", Dir: "bft/kit", In: "bft/pbft", Test: "TestEveryStrategy/starve",
			Old: "r.late = oldest.Passed && r.Tick-oldest.Since > r.Timeout() ||",
			New: "r.late = oldest.Passed && r.Tick-oldest.Since > r.Timeout() && !MUTANT ||",
		},
		{
			Name: "timeouts double only if no view begins", Dir: "bft/kit", In: "bft/pbft", Test: "TestSmallRoundTrip",
			Old: "if !r.Active || r.late || r.Committed <= r.first {",
			New: "if !r.Active || (r.late || r.Committed <= r.first) && !MUTANT {",
		},
		{
			Name: "timeouts come down though requests need them",
			Dir:  "bft/kit", In: "bft/pbft", Test: "TestSmallRoundTrip",
			Old: "r.waited*roomToWait <= r.Timeout()/2 ||", New: "r.waited*roomToWait <= r.Timeout()/2 || MUTANT ||",
		},
		{
			Name: "f replies that match the early one confirm", Test: "TestFMatchingIsNotEnough",
			Old: "if committed >= enough || h.tentative && committed+tentative >= quorum {",
			New: "if committed >= enough || h.tentative && committed+tentative >= quorum || " +
				"MUTANT && committed >= witness-1 {",
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
			Name: "only one member is asked for a state", Dir: "bft/kit", In: "bft/pbft", Test: "TestTransfer",
			Old: "\t\tr.asked++\n",
			New: "\t\tif r.asked == 0 || !MUTANT {\n\t\t\tr.asked++\n\t\t}\n",
		},
		{
			Name: "a crash forgets what was prepared", Test: "TestAllCrash",
			Old: "\t\t\tp.prepared = &m.Prepared\n",
			New: "\t\t\tif !MUTANT {\n\t\t\t\tp.prepared = &m.Prepared\n\t\t\t}\n",
		},
		{
			Name: "a crash forgets that a checkpoint was reached", Dir: "bft/kit", In: "bft/pbft", Test: "TestAllCrash",
			Old: "seq > r.Low() && seq <= r.Committed {",
			New: "seq > r.Low() && seq <= r.Committed && !MUTANT {",
		},
		{
			Name: "what is said does not wait for the disk", Dir: "bft/kit", In: "bft/pbft", Test: "TestSaidWhenDurable",
			Old: "\tfor _, id := range r.Others {\n\t\tenv.Send(id, msg)\n",
			New: "\tfor _, id := range r.Others {\n\t\tif MUTANT {\n\t\t\tenv.SendAhead(id, msg)\n\t\t\tcontinue\n" +
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
			Name: "a time is accepted however far it is from the clock", Dir: "bft/kit", In: "bft/pbft", Test: "TestTimes",
			Old: "(e.Time-env.Now).Abs() > r.Config.ClockSlack {",
			New: "(e.Time-env.Now).Abs() > r.Config.ClockSlack && !MUTANT {",
		},
		{
			Name: "a clock that was wrong stops everybody", Dir: "bft/kit", In: "bft/pbft", Test: "TestTimes",
			Old: "e.Time > r.Latest && (",
			New: "(e.Time > r.Latest || MUTANT) && (",
		},
		{
			Name: "the time of what is proposed again is checked", Test: "TestTimes",
			Old: "\tif p.offer == nil && !r.Timely(",
			New: "\tif (p.offer == nil || MUTANT) && !r.Timely(",
		},
		{
			Name: "f+1 that have left a view pull nobody along", Dir: "bft/kit", In: "bft/pbft", Test: "TestPulledAlong",
			Old: "if len(ahead) >= c.dir.Witness() {",
			New: "if len(ahead) >= c.dir.Witness() && !MUTANT {",
		},
		{
			Name: "a primary leads on after a crash", Test: "TestPrimaryAfterCrash",
			Old: "if r.Active && r.Primary() && len(log) > 0 {",
			New: "if r.Active && r.Primary() && len(log) > 0 && !MUTANT {",
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
			Old: "\t\tif o.Own.view < v {\n",
			New: "\t\tif o.Own.view < v && !MUTANT {\n",
		},
		{
			Name: "one replica ends a view for clients", Test: "TestGuessesOfOldViews",
			Old: "return views[len(views)-c.Dir.Witness()]",
			New: "if MUTANT {\n\t\treturn views[len(views)-1]\n\t}\n\treturn views[len(views)-c.Dir.Witness()]",
		},
		{
			Name: "an early reply of an old view is a guess", Test: "TestGuessesOfOldViews",
			Old: "b.View != c.vouched() ||",
			New: "b.View != c.vouched() && !MUTANT ||",
		},
		{
			Name: "a read goes around the client's own writes",
			Dir:  "bft/kit", In: "bft/pbft", Test: "TestReadsBehindWrites",
			Old: "len(c.Open)+len(c.queue) > 0 {",
			New: "len(c.Open)+len(c.queue) > 0 && !MUTANT {",
		},
		{
			Name: "a write depends on a read around the order", Dir: "bft/kit", In: "bft/pbft", Test: "TestReadsInConditions",
			Old: "if r := c.reads[id]; r != nil {\n", New: "if r := c.reads[id]; r != nil && !MUTANT {\n",
		},
		{
			Name: "nobody knows a read that was confirmed", Dir: "bft/kit", In: "bft/pbft", Test: "TestReadsInConditions",
			Old: "\t\t\tc.calls[r.call.ID] = o //", New: "\t\t\tif !MUTANT {\n\t\t\t\tc.calls[r.call.ID] = o\n\t\t\t}\n\t\t\t//",
		},
		{
			Name: "nobody judges the conditions of a read", Dir: "bft/kit", In: "bft/pbft", Test: "TestReadsInConditions",
			Old: "c.Config.Ordered || conditional ||", New: "c.Config.Ordered || conditional && !MUTANT ||",
		},
		{
			Name: "what a condition names is acknowledged", Dir: "bft/kit", In: "bft/pbft", Test: "TestAcknowledged",
			Old: "x != nil && x.Number > c.acked {\n\t\t\t\tn =",
			New: "x != nil && x.Number > c.acked && !MUTANT {\n\t\t\t\tn =",
		},
		{
			Name: "what cannot be executed any more ends a view", Dir: "bft/kit", In: "bft/pbft", Test: "TestBadClients",
			Old: "return fresh(base, m) && sessions.Fits(base, m)",
			New: "return (fresh(base, m) || MUTANT) && sessions.Fits(base, m)",
		},
		{
			Name: "what the client did not give the primary ends a view",
			Dir:  "bft/kit", In: "bft/pbft", Test: "TestBadClients",
			Old: "x.Passed, x.Since = true, r.Tick\n", New: "if x.Passed = true; !MUTANT {\n\t\t\tx.Since = r.Tick\n\t\t}\n",
		},
		{
			Name: "what is wrong with the state after a start is not noticed",
			Dir:  "bft/kit", In: "bft/pbft", Test: "TestLooksAtItsDisk",
			Old: "\t\tr.note(x.Step(math.MaxInt))\n",
			New: "\t\tif found := x.Step(math.MaxInt); !MUTANT {\n\t\t\tr.note(found)\n\t\t}\n",
		},
		{
			Name: "what becomes wrong with the state is not noticed",
			Dir:  "bft/kit", In: "bft/pbft", Test: "TestRot",
			Old: "\tif r.Fetching() || r.Tick%scrubTicks != 0 {\n",
			New: "\tif r.Fetching() || r.Tick%scrubTicks != 0 || MUTANT {\n",
		},
		{
			Name: "another state than the stable one is kept",
			Dir:  "bft/kit", In: "bft/pbft", Test: "TestDiffersFromStable",
			Old: "m.Digest() != stable.State && r.damage == \"\" {",
			New: "m.Digest() != stable.State && r.damage == \"\" && !MUTANT {",
		},
		{
			Name: "a replica takes part with what is left of its disk",
			Dir:  "bft/kit", In: "bft/pbft", Test: "TestRefusesItsDisk",
			Old: "if _, err := r.Format.Decode(b); err != nil {",
			New: "if _, err := r.Format.Decode(b); err != nil && !MUTANT {",
		},
		{
			Name: "what names a null operation is executed", Dir: "bft/sessions", In: "bft/pbft",
			Test: "TestPredicatesAcrossAViewChange",
			Old:  "if !ok || e.Result.Outcome != bft.Executed {",
			New:  "if (!ok || e.Result.Outcome != bft.Executed) && !MUTANT {",
			Also: []plant.Edit{{Old: "\t\tcase !ok:\n\t\t\toutcome = bft.Retry\n",
				New: "\t\tcase !ok && !MUTANT:\n\t\t\toutcome = bft.Retry\n\t\tcase !ok:\n"}},
		},
		{
			Name: "a batch is as large as its primary likes", Dir: "bft/kit", In: "bft/kit", Test: "TestBatchBytes",
			Old: "q.sizeBytes(batch) <= q.limits.Batch", New: "(q.sizeBytes(batch) <= q.limits.Batch || MUTANT)",
		},
		{
			Name: "a primary proposes what nobody accepts", Dir: "bft/kit", In: "bft/pbft", Test: "TestHugeRequests",
			Old: "o.sizeBytes+m.Bytes() > r.Config.Limits.Batch) {",
			New: "o.sizeBytes+m.Bytes() > r.Config.Limits.Batch && !MUTANT) {",
		},
		{
			Name: "a client fills a replica's memory", Dir: "bft/kit", In: "bft/kit", Test: "TestWaitingBytes",
			Old: "w.sizeBytes > waitingBatches*q.limits.Batch {",
			New: "w.sizeBytes > waitingBatches*q.limits.Batch && !MUTANT {",
		},
		{
			Name: "what members pass on counts for its client", Dir: "bft/kit", In: "bft/kit", Test: "TestWaitingBytes",
			Old: "\tasker := asker{from, m.Request.Body().Client}\n",
			New: "\tasker := asker{from, m.Request.Body().Client}\n\tif MUTANT {\n\t\tasker.by = asker.client\n\t}\n",
		},
		{
			Name: "an answer is as large as the question asks", Dir: "bft/kit", In: "bft/kit", Test: "TestAnswerBytes",
			Old: "if b := q.bodies[d]; b != nil && room > 0 {",
			New: "if b := q.bodies[d]; b != nil && (room > 0 || MUTANT) {",
		},
		{
			Name: "a replica sends again whatever it is asked for", Dir: "bft/kit", In: "bft/kit", Test: "TestAffords",
			Old: "if r.resent.toBytes[to] >= tickBytes {", New: "if r.resent.toBytes[to] >= tickBytes && !MUTANT {",
		},
		{
			Name: "all results go into one message", Dir: "bft/kit", In: "bft/kit", Test: "TestParts",
			Old: "n < len(entries) && room > 0; n++ {", New: "n < len(entries) && (room > 0 || MUTANT); n++ {",
		},
		{
			Name: "an answer to a query is as large as it likes",
			Dir:  "bft/kit", In: "bft/pbft", Test: "TestLargeResults",
			Old: "if len(value) > r.Config.Limits.Value {", New: "if len(value) > r.Config.Limits.Value && !MUTANT {",
		},
		{
			Name: "a request is as large as its client likes", Dir: "bft", In: "bft", Test: "TestLawfulBytes",
			Old: "if r.Bytes() > l.Request ||", New: "if r.Bytes() > l.Request && !MUTANT ||",
		},
		{
			Name: "a primary orders others as long as it likes", Dir: "bft/kit", In: "bft/pbft", Test: "TestOvertaken",
			Old: "case t.told:\n", New: "case t.told && !MUTANT:\n",
		},
		{
			Name: "a primary that was told has no time", Dir: "bft/kit", In: "bft/pbft", Test: "TestOvertaken",
			Old: "t.told && q.ordered-t.mark <= may {", New: "t.told && q.ordered-t.mark <= may && !MUTANT {",
		},
		{
			Name: "a turn does not end the count", Dir: "bft/kit", In: "bft/pbft", Test: "TestOvertaken",
			Old: "if t := q.turns[b.Request.Body().Client]; t != nil {",
			New: "if t := q.turns[b.Request.Body().Client]; t != nil && !MUTANT {",
		},
		{
			Name: "who asks for much is ordered first", Dir: "bft/kit", In: "bft/kit", Test: "TestLines",
			Old: "\t\tq.credit += turnCost\n", New: "\t\tif q.credit += turnCost; MUTANT {\n\t\t\tcontinue\n\t\t}\n",
		},
		{
			Name: "large requests cost no more than small ones", Dir: "bft/kit", In: "bft/kit", Test: "TestLines",
			Old: "credit -= cost(m) }", New: "credit--; if !MUTANT {\n\t\tl.of[m.Client].credit -= cost(m) - 1\n\t}\n}",
		},
		{
			Name: "what others wait for stands behind", Dir: "bft/kit", In: "bft/kit", Test: "TestLines",
			Old: "\tif front {\n", New: "\tif front && !MUTANT {\n",
		},
		{
			Name: "a primary that lies leads on", Test: "TestLyingPrimary",
			Old: "x.Seq > r.faith.since && x.Result.Digest() != i.Result.Digest() {",
			New: "x.Seq > r.faith.since && x.Result.Digest() != i.Result.Digest() && !MUTANT {",
		},
		{
			Name: "what is committed in a view proves a lie", Test: "TestCommittedInTheViewIsNoProof",
			Old: "if p.offer == nil || p.offer.Body().Batch != batch {",
			New: "if (p.offer == nil || p.offer.Body().Batch != batch) && !MUTANT {",
		},
		{
			Name: "what was executed before a view proves a lie in it", Test: "TestExecutedBeforeTheViewIsNoProof",
			Old: "*p.done != b.Orders[i].Body().Batch {", New: "*p.done != b.Orders[i].Body().Batch && !MUTANT {",
		},
		{
			Name: "anybody's early reply proves a lie", Test: "TestLieEndsTheView",
			Old: "e.View != r.View || !m.Reply.By(", New: "e.View != r.View || !MUTANT && !m.Reply.By(",
		},
		{
			Name: "a lie is shown whatever the result", Test: "TestClientShowsLies",
			Old: "if !right && c.shown != w.early {", New: "if (!right || MUTANT) && c.shown != w.early {",
		},
	}
	bugs = append(bugs, epochBugs()...)
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
