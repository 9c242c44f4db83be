package pbft

import "github.com/foresay/foresay/internal/plant"

// epochBugs are those of the rules by which members and keys change.
func epochBugs() []plant.Bug {
	bugs := []plant.Bug{
		{
			Name: "an epoch ends by the word of few", Test: "TestLinks",
			Old: "l.Proof.Count(e.IsMember) < e.Quorum() ||", New: "l.Proof.Count(e.IsMember) < e.Quorum() && !MUTANT ||",
		},
		{
			Name: "the members that follow are not those that were signed", Test: "TestLinks",
			Old: "|| b.Members != sha256.Sum256(l.Members) {", New: "|| b.Members != sha256.Sum256(l.Members) && !MUTANT {",
		},
		{
			Name: "an epoch is left out", Test: "TestLinks",
			Old: "d.Epoch != e.Directory.Epoch+1 {", New: "d.Epoch != e.Directory.Epoch+1 && !MUTANT {",
		},
		{
			Name: "an epoch ends before it has begun", Test: "TestLinks",
			Old: "if b.Seq <= e.Base.Seq || l.Proof", New: "if b.Seq <= e.Base.Seq && !MUTANT || l.Proof",
		},
		{
			Name: "an old key's word counts", Test: "TestOldKeys",
			Old: "\tr.Dir, r.Others = e, nil\n",
			New: "\tif r.Dir != nil && MUTANT {\n\t\te.Members[3].Key = r.Dir.Members[3].Key\n\t}\n\tr.Dir, r.Others = e, nil\n",
		},
		{
			Name: "anybody changes the members", Test: "TestNothingAboveTheEnd",
			Old: "case !slices.Contains(r.Dir.Administrators, by):",
			New: "case !slices.Contains(r.Dir.Administrators, by) && !MUTANT:",
		},
		{
			Name: "two changes at once", Test: "TestNothingAboveTheEnd",
			Old: "\tcase r.ended(space):\n", New: "\tcase r.ended(space) && !MUTANT:\n",
		},
		{
			Name: "what is above a change is executed", Test: "TestNothingAboveTheEnd",
			Old: "r.Lead.open != nil || r.ended(r.top()) {", New: "r.Lead.open != nil || r.ended(r.top()) && !MUTANT {",
		},
		{
			Name: "a primary proposes more than the change", Test: "TestNothingAboveTheEnd",
			Old: "if o == nil && r.ended(r.top()) {", New: "if o == nil && r.ended(r.top()) && !MUTANT {",
		},
		{
			Name: "the last place of an epoch is decided again", Test: "TestEpochsDoNotMix",
			Old: "return seq > max(min(r.Low(), r.Committed), r.Dir.Base.Seq) &&",
			New: "return seq > max(min(r.Low(), r.Committed), r.Dir.Base.Seq*(1-map[bool]bft.Seq{true: 1}[MUTANT])) &&",
		},
		{
			Name: "the checkpoint of an epoch's beginning needs its own members' words", Test: "TestEpochsDoNotMix",
			Old: "\tif b.Seq <= e.Base.Seq {\n\t\treturn",
			New: "\tif b.Seq <= e.Base.Seq && !(MUTANT && e.Base.Seq > 0) {\n\t\treturn",
		},
		{
			Name: "what was prepared in an earlier epoch counts", Dir: "bft/pbft", Test: "TestEpochsDoNotMix",
			Old: "|| o.View < d.Epoch.First() ||", New: "|| o.View < d.Epoch.First() && !MUTANT ||",
		},
		{
			Name: "what is committed by the word of an earlier epoch", Dir: "bft/pbft", Test: "TestEpochsDoNotMix",
			Old: "m.Order.View.Epoch() != r.Dir.Epoch {", New: "m.Order.View.Epoch() != r.Dir.Epoch && !MUTANT {",
		},
		{
			Name: "who is behind answers reads of the epoch", Test: "TestReadsAwaitTheEpoch",
			Old: "|| r.Committed < r.Dir.Base.Seq {", New: "|| r.Committed < r.Dir.Base.Seq && !MUTANT {",
		},
		{
			Name: "who asks for links is told as often as it asks", Test: "TestLinksAreBounded",
			Old: "if r.Affords(to, len(links)*(", New: "if MUTANT || r.Affords(to, len(links)*(",
		},
		{
			Name: "a lie in an epoch's first view is none", Dir: "bft/pbft", Test: "TestLiesInLaterEpochs",
			Old: "nil, nil\n\tr.trust()\n", New: "nil, nil\n\tif !MUTANT {\n\t\tr.trust()\n\t}\n",
		},
		{
			Name: "who begins again in an epoch sees no lies", Dir: "bft/pbft", Test: "TestLiesInLaterEpochs",
			Old: "if len(log) == 0 {\n\t\tr.trust()", New: "if len(log) == 0 && !MUTANT {\n\t\tr.trust()",
		},
		{
			Name: "a crash forgets the epochs", Test: "TestEpochAfterCrash",
			Old: "\tm, _ := Get[Links](r, env, linksKey)\n",
			New: "\tm, _ := Get[Links](r, env, linksKey)\n\tif MUTANT {\n\t\tm.Links = nil\n\t}\n",
		},
		{
			Name: "who comes back counts by the first keys", Dir: "bft/pbft", Test: "TestEpochAfterCrash",
			Old: "\tr.changes = r.noChanges()\n\tr.remember(env)",
			New: "\tr.changes = r.noChanges()\n\tif MUTANT {\n\t\tr.changes = kit.NewChanges(kit.Genesis(r.Config.Directory), " +
				"func(c *changeBody) bft.View { return c.View })\n\t}\n\tr.remember(env)",
		},
		{
			Name: "the log of an earlier epoch is replayed", Dir: "bft/pbft", Test: "TestEpochAfterCrash",
			Old: "if r.Within(o.Seq) && o.View.Epoch() == r.Dir.Epoch {",
			New: "if r.Within(o.Seq) && (MUTANT || o.View.Epoch() == r.Dir.Epoch) {",
		},
		{
			Name: "who is no member goes on", Test: "TestOutside",
			Old: "func (r *Replica) Outside() bool { return r.Dir",
			New: "func (r *Replica) Outside() bool { return !MUTANT && r.Dir",
		},
		{
			Name: "a replica does not take its next key", Test: "TestOutside",
			Old: "n != nil && n.Key() == e.KeyOf(r.Config.ID) {",
			New: "n != nil && n.Key() == e.KeyOf(r.Config.ID) && !MUTANT {",
		},
		{
			Name: "a client counts the words of other epochs", Test: "TestClientTurns",
			Old: "\treturn e != c.Dir.Epoch\n", New: "\treturn e != c.Dir.Epoch && !MUTANT\n",
		},
		{
			Name: "a client does not send again what is under way", Test: "TestClientTurns",
			Old: "\t\ts.at = c.Tick\n\t\tc.send(env, s, true)\n",
			New: "\t\ts.at = c.Tick\n\t\tif !MUTANT {\n\t\t\tc.send(env, s, true)\n\t\t}\n",
		},
		{
			Name: "there is no checkpoint at the end of an epoch", Test: "TestMembers/keys_are_rotated",
			Old: "return seq == r.Committed && r.ended(r.Store.Committed())",
			New: "return seq == r.Committed && r.ended(r.Store.Committed()) && !MUTANT",
		},
		{
			Name: "nobody tells who is behind how epochs have ended", Test: "TestMembers/asleep_while_all_rotate",
			Old: "if n := bft.Epoch(len(r.links)); after < n {",
			New: "if n := bft.Epoch(len(r.links)); after < n && !MUTANT {",
		},
	}
	for i := range bugs {
		if b := &bugs[i]; b.Dir == "" {
			b.Dir, b.In = "bft/kit", "bft/pbft"
		}
	}
	return bugs
}
