package zyzzyva

import (
	"cmp"
	"testing"

	"github.com/foresay/foresay/internal/plant"
)

// TestPlants leaves out one rule at a time, in the source: the test that is named must notice.
func TestPlants(t *testing.T) {
	bugs := []plant.Bug{
		{
			Name: "a certificate of an older view wins, as in the paper", Test: "TestPublishedAttack",
			Old: "if c.LogView == top && (best == nil ||",
			New: "if (c.LogView == top || MUTANT) && (best == nil ||",
		},
		{
			Name: "a view begins with the log of an older one", Test: "TestChoiceKeepsWhatMayBeConfirmed",
			Old: "\t\ttop = max(top, c.LogView)\n",
			New: "\t\tif top = max(top, c.LogView); MUTANT {\n\t\t\ttop = 0\n\t\t}\n",
		},
		{
			Name: "certificates alone are kept", Test: "TestChoiceKeepsWhatMayBeConfirmed",
			Old: "last > upTo && c.extends(best) {",
			New: "last > upTo && c.extends(best) && !MUTANT {",
		},
		{
			Name: "a log is kept though a certificate contradicts it", Test: "TestChoiceKeepsWhatMayBeConfirmed",
			Old: "return certifiedNothing(&o.Proof) ||",
			New: "return MUTANT || certifiedNothing(&o.Proof) ||",
		},
		{
			Name: "what all but the traitors have in their logs is not enough", Test: "TestChoiceKeepsWhatMayBeConfirmed",
			Old: "common(changes, top, len(changes)-traitors)",
			New: "common(changes, top, len(changes)-traitors*map[bool]int{true: 0, false: 1}[MUTANT])",
		},
		{
			Name: "what is below the checkpoint is proposed again", Test: "TestChoiceFromCheckpoints",
			Old: "return c.Batches[low-from : upTo-from]",
			New: "if MUTANT {\n\t\tfrom = low\n\t}\n\treturn c.Batches[low-from : min(upTo-from, bft.Seq(len(c.Batches)))]",
		},
		{
			Name: "a view needs no certificate of its beginning", Test: "TestUnlawfulChanges",
			Old: "if certifiedNothing(&c.Proof) && c.LogView == d.Epoch.First() {",
			New: "if certifiedNothing(&c.Proof) && (c.LogView == 0 || MUTANT) {",
		},
		{
			Name: "a certificate need not be of the log", Test: "TestUnlawfulChanges",
			Old: "c.histories()[p.Seq-h] == p.History\n}\n\n// beginning",
			New: "(c.histories()[p.Seq-h] == p.History || MUTANT)\n}\n\n// beginning",
		},
		{
			Name: "a minority certifies", Test: "TestUnlawfulChanges",
			Old: "return c.Count(d.IsMember) >= d.Quorum()",
			New: "return c.Count(d.IsMember) >= d.Quorum() || MUTANT",
		},
		{
			Name: "a view begins with one word", Test: "TestTraitorLeads",
			Old: "if len(signers) != i+1 || c.Body().View",
			New: "if len(signers) != i+1 && !MUTANT || c.Body().View",
		},
		{
			Name: "a view begins when its primary says so", Test: "TestConfirmsOneBeginning",
			Old: "\tif len(same) < r.Dir.Quorum() {\n",
			New: "\tif len(same) < r.Dir.Quorum() && !MUTANT {\n",
		},
		{
			Name: "two beginnings of a view are confirmed", Test: "TestConfirmsOneBeginning",
			Old: "if r.next == nil && r.View == v {",
			New: "if (r.next == nil || MUTANT) && r.View == v {",
		},
		{
			Name: "parts of what a view began with are stamped", Test: "TestStampsNothingBelow",
			Old: "r.Within(b.Seq) && b.Seq >= r.base:",
			New: "r.Within(b.Seq) && (b.Seq >= r.base || MUTANT):",
		},
		{
			Name: "words on different histories confirm", Test: "TestConfirmedIsExact",
			Old: "h.certified && o.certified && o.at == h.at {",
			New: "h.certified && o.certified && (o.at == h.at || MUTANT && o.at.result == h.at.result) {",
		},
		{
			Name: "stamps of different histories confirm", Test: "TestConfirmedIsExact",
			Old: "o.speculated && o.stamp == h.stamp && o.result == h.result {\n\t\t\t\tall",
			New: "o.speculated && (o.stamp == h.stamp || MUTANT) && o.result == h.result {\n\t\t\t\tall",
		},
		{
			Name: "a quorum of stamps confirms without a second phase", Test: "TestConfirmedIsExact",
			Old: "case all == len(words):",
			New: "case all == len(words) || MUTANT && all >= quorum:",
		},
		{
			Name: "what one member calls final is believed", Test: "TestConfirmedIsExact",
			Old: "case final >= witness:",
			New: "case final >= witness || MUTANT && final > 0:",
		},
		{
			Name: "the client gives nobody a certificate", Test: "TestFiveDelays",
			Old: "\t\tfor _, p := range c.Dir.Members {\n\t\t\tenv.Send(p.ID, m)\n",
			New: "\t\tfor _, p := range c.Dir.Members {\n\t\t\tif MUTANT {\n\t\t\t\tbreak\n\t\t\t}\n\t\t\tenv.Send(p.ID, m)\n",
		},
		{
			Name: "a certificate of one's own commits", Test: "TestCommits",
			Old: "max(r.covered(r.Dir.Quorum()), r.concluded)",
			New: "max(r.covered(map[bool]int{true: 1, false: r.Dir.Quorum()}[MUTANT]), r.concluded)",
		},
		{
			Name: "certificates of other histories commit", Test: "TestCommits",
			Old: "ok && here && h == s.History {",
			New: "ok && here && (h == s.History || MUTANT) {",
		},
		{
			Name: "a certificate is held that the next view does not hear of", Test: "TestHoldsNothingAfterItsChange",
			Old: "if !r.Active || b.View != r.logView ||",
			New: "if !r.Active && !MUTANT || b.View != r.logView ||",
		},
		{
			Name: "what one member says is committed is believed", Test: "TestConcluded",
			Old: "\t\tif n >= r.Dir.Witness() {\n",
			New: "\t\tif n >= r.Dir.Witness() || MUTANT && n > 0 {\n",
		},
		{
			Name: "what is said of one log counts for the next one", Test: "TestTwins",
			Old: "\tr.concluded = r.Committed //", New: "\tif !MUTANT {\n\t\tr.concluded = r.Committed\n\t} //",
			Also: []plant.Edit{{Old: "\tr.concluded = min(r.concluded, r.last)\n",
				New: "\tif !MUTANT {\n\t\tr.concluded = min(r.concluded, r.last)\n\t}\n"}},
		},
		{
			Name: "what a log has below a checkpoint is not doubted", Test: "TestDoubt",
			Old: "return seq > r.Committed && seq <= low })",
			New: "return seq > r.Committed && seq <= low && !MUTANT })",
		},
		{
			Name: "a log that is contradicted is not void", Test: "TestVoid",
			Old: "\t\t\tr.void(env, seq-1)\n",
			New: "\t\t\tif !MUTANT {\n\t\t\t\tr.void(env, seq-1)\n\t\t\t}\n",
		},
		{
			Name: "a crash forgets that a log is void", Test: "TestVoid",
			Old: "wirefmt.Bool(c, &m.Void)",
			New: "if wirefmt.Bool(c, &m.Void); MUTANT {\n\t\t\t\tm.Void = false\n\t\t\t}",
		},
		{
			Name: "two orders of one place go unpunished", Test: "TestMisdeeds",
			Old: "return a.Seq == b.Seq || b.Seq",
			New: "return a.Seq == b.Seq && !MUTANT || b.Seq",
		},
		{
			Name: "an order that does not follow is accepted", Test: "TestMisdeeds",
			Old: "!ok || o.History != chain(before, o.Batch) {",
			New: "!ok || o.History != chain(before, o.Batch) && !MUTANT {",
		},
		{
			Name: "a client's word ends a view", Test: "TestMisdeeds",
			Old: "m.One.By(key) && m.Other.By(key) &&",
			New: "(m.One.By(key) && m.Other.By(key) || MUTANT) &&",
		},
		{
			Name: "nobody asks for what is missing", Test: "TestHoles",
			Old: "env.Send(from, fillHole{",
			New: "if MUTANT {\n\t\t\treturn\n\t\t}\n\t\tenv.Send(from, fillHole{",
		},
		{
			Name: "a read does not wait for what is executed", Test: "TestReadsWait",
			Old: "r.OnRead(env, from, m, r.last)",
			New: "if MUTANT {\n\t\t\tr.OnRead(env, from, m, 0)\n\t\t\tbreak\n\t\t}\n\t\tr.OnRead(env, from, m, r.last)",
		},
		{
			Name: "an order is not written", Test: "TestSaidWhenDurable",
			Old: "\tr.Accept(o.Batch, o.Seq, env.Append(r.proposal(&order, true)))\n",
			New: "\tif !MUTANT {\n\t\tr.Accept(o.Batch, o.Seq, env.Append(r.proposal(&order, true)))\n\t}\n",
		},
		{
			Name: "a certificate is not written", Test: "TestSaidWhenDurable",
			Old: "\t\tr.Put(env, heldKey, heldRecord{proof})\n",
			New: "\t\tif !MUTANT {\n\t\t\tr.Put(env, heldKey, heldRecord{proof})\n\t\t}\n",
		},
		{
			Name: "a crash forgets what was accepted", Test: "TestAllCrash",
			Old: "\t\t\tr.last = max(r.last, o.Seq)\n",
			New: "\t\t\tif !MUTANT {\n\t\t\t\tr.last = max(r.last, o.Seq)\n\t\t\t}\n",
		},
		{
			Name: "a starved client waits for ever", Test: "TestEveryStrategy/starve",
			Old: "late := r.Active && r.Late(env) ||",
			New: "late := r.Active && r.Late(env) && !MUTANT ||",
		},
		{
			Name: "a replica takes part with what is left of its disk", Test: "TestRefusesItsDisk",
			Old: "r.Remember(env, viewKey, changeKey, startKey, nextKey, heldKey)",
			New: "r.Remember(env, []string{viewKey, changeKey, startKey, nextKey, heldKey}[:map[bool]int{false: 5}[MUTANT]]...)",
		},
		{
			Name: "f+1 that have left a view pull nobody along", Dir: "bft/kit", In: "bft/zyzzyva", Test: "TestPulledAlong",
			Old: "if len(ahead) >= c.dir.Witness() {",
			New: "if len(ahead) >= c.dir.Witness() && !MUTANT {",
		},
		{
			Name: "what is committed by the word of an earlier epoch", Test: "TestEpochsDoNotMix",
			Old: "\tif m.Epoch != r.Dir.Epoch {\n", New: "\tif m.Epoch != r.Dir.Epoch && !MUTANT {\n",
		},
		{
			Name: "a log of an earlier epoch counts", Test: "TestEpochsDoNotMix",
			Old: "|| c.LogView < d.Epoch.First() {", New: "|| c.LogView < d.Epoch.First() && !MUTANT {",
		},
		{
			Name: "a change of an earlier epoch counts", Test: "TestEpochsDoNotMix",
			Old: "c.View.Epoch() != d.Epoch ||", New: "c.View.Epoch() != d.Epoch && !MUTANT ||",
		},
		{
			Name: "an epoch begins with no history", Test: "TestEpochsDoNotMix",
			Old: "\tr.begun(r.first())\n\tr.keepView(env)\n",
			New: "\tif r.begun(r.first()); MUTANT {\n\t\tr.Stable = bft.Certificate[kit.Checkpoint]{}\n\t}\n\tr.keepView(env)\n",
		},
		{
			Name: "what is above the end of an epoch is executed", Dir: "bft/kit", In: "bft/zyzzyva", Test: "TestChanges",
			Old: "r.Lead.open != nil || r.ended(r.top()) {", New: "r.Lead.open != nil || r.ended(r.top()) && !MUTANT {",
		},
	}
	for i := range bugs {
		bugs[i].Dir = cmp.Or(bugs[i].Dir, "bft/zyzzyva")
	}
	plant.Catch(t, bugs)
}
