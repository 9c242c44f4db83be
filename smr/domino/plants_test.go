package domino

import (
	"testing"

	"github.com/foresay/foresay/internal/plant"
)

// plants leave out one rule at a time, in the source.
func plants() []plant.Bug {
	const dir = "smr/domino"
	return append(clockPlants(), []plant.Bug{
		{
			Name: "an acceptor of a closeSlots may still vote in ballot 0 for its slots", Dir: dir,
			Test: "TestAcceptedCloseEndsVotes",
			Old:  "\t\ta.close(env, c.High)\n", New: "\t\tif !MUTANT {\n\t\t\ta.close(env, c.High)\n\t\t}\n",
		},
		{
			Name: "an acceptor of a closeSlots may still accept what the track's owner proposes", Dir: dir,
			Test: "TestAcceptedCloseEndsVotes",
			Old:  "\t\ta.revoke(env, protocol.ID(c.Track), c.High)\n",
			New:  "\t\tif !MUTANT {\n\t\t\ta.revoke(env, protocol.ID(c.Track), c.High)\n\t\t}\n",
		},
		{
			Name: "no snapshot when the members have changed", Dir: dir,
			Test: "TestConformanceOfThesis/restarts_among_new_members",
			Old:  "\tr.membersChanged(env)\n\tr.takeSnapshot(env)\n",
			New:  "\tr.membersChanged(env)\n\tif !MUTANT {\n\t\tr.takeSnapshot(env)\n\t}\n",
		},
		{
			Name: "who is no member here is never asked", Dir: dir,
			Test: "TestConformanceOfThesis/a_member_that_was_away_while_all_others_were_replaced",
			Old:  "\t\t\tr.met(from)\n", New: "\t\t\tif !MUTANT {\n\t\t\t\tr.met(from)\n\t\t\t}\n",
		},
		{
			Name: "what was executed against what was accepted is not on disk", Dir: dir,
			Test: "TestConformanceOfThesis/salvage", Tests: []string{"TestConformance/salvage"},
			Old: "\tfor len(other) > 0 {\n", New: "\tfor len(other) > 0 && !MUTANT {\n",
		},
		{
			Name: "what was accepted and not executed is not told apart", Dir: dir,
			Test: "TestConformanceOfThesis/salvage",
			Old:  "\t\t\tnote(item{Slot: has[0].Slot})\n",
			New:  "\t\t\tif !MUTANT {\n\t\t\t\tnote(item{Slot: has[0].Slot})\n\t\t\t}\n",
		},
		{
			Name: "what a coordinator had accepted does not take the place of votes", Dir: dir,
			Test: "TestConformanceOfThesis/salvage", Tests: []string{"TestConformance/salvage"},
			Old: "\t\tif c == nil || !slices.ContainsFunc(c.spans, ",
			New: "\t\tif c == nil || MUTANT || !slices.ContainsFunc(c.spans, ",
		},
		{
			Name: "a restarted replica knows nothing of its promises by the clock", Dir: dir,
			Test: "TestRules/promises by the clock survive a restart",
			Old:  "\ta.closed, a.skipped = max(a.closed, a.ceiling), max(a.skipped, a.ceiling)\n",
			New:  "\tif !MUTANT {\n\t\ta.closed, a.skipped = max(a.closed, a.ceiling), max(a.skipped, a.ceiling)\n\t}\n",
		},
		{
			Name: "what was promised follows a clock that is set back", Dir: dir,
			Test:  "TestRules/promises by the clock survive a clock that is set back",
			Tests: []string{"TestSeedsNotice/clocks-and-cut/29"},
			Old:   "\ta.closed, a.skipped = max(a.closed, now), max(a.skipped, now)\n",
			New: "\ta.closed, a.skipped = max(a.closed, now), max(a.skipped, now)\n\tif MUTANT {\n\t\ta.closed, a.skipped " +
				"= now, now\n\t}\n",
		},
		{
			Name: "claims count even if votes before them are missing", Dir: dir,
			Test:  "TestRules/a claim holds for a stream without gaps",
			Tests: []string{"TestSeedsNotice/messages-lost/1"},
			Old:   "\tcase m.Count <= p.have:\n", New: "\tcase m.Count <= p.have || MUTANT:\n",
		},
		{
			Name: "the slow path waits for all votes", Dir: dir, Test: "TestRules/any replica may fail",
			Old: "l.shared.w < now+r.ahead(revokeLeft) {\n", New: "l.shared.w < now+r.ahead(revokeLeft) && !MUTANT {\n",
			Also: []plant.Edit{{
				Old: "\tfinal := min(r.closedByAll(r.rule.classic), r.bound(o))\n",
				New: "\tfinal := min(r.closedByAll(r.rule.classic), r.bound(o))\n\tif MUTANT {\n\t\tfinal = " +
					"min(r.closedByAll(r.rule.n), r.bound(o))\n\t}\n",
			}},
		},
		{
			Name: "slots of failed replicas are not revoked", Dir: dir, Test: "TestRules/any replica may fail",
			Old: "\tv := c.revoking[id]\n\tswitch {\n", New: "\tv := c.revoking[id]\n\tswitch {\n\tcase MUTANT:\n",
		},
		{
			Name: "votes for slots of which nobody knows who will be a member", Dir: dir,
			Test: "TestRules/nobody votes for what is too far ahead",
			Old:  "\tcase m.Slot > r.learner.limit(), ", New: "\tcase m.Slot > r.learner.limit() && !MUTANT, ",
		},
		{
			Name: "a command that is tried again is new", Dir: dir, Test: "TestSeedsNotice/replicas-lost/1",
			Old: "\t\tc.submit(env, commands[:n], c.chooseOwner(env.Now, from))\n",
			New: "\t\tfor i := 0; MUTANT && i < n; i++ {\n\t\t\tagain := commands[i].Call\n\t\t\tagain.ID += 1 << " +
				"40\n\t\t\tc.Take(env, again)\n\t\t}\n" +
				"\t\tc.submit(env, commands[:n], c.chooseOwner(env.Now, from))\n",
		},
		{
			Name: "durable without tokens, skewed clocks", Dir: dir, Test: "TestSeedsNotice/clocks/3",
			Old: "\t\t\tm.After = max(m.After, c.Seen())\n",
			New: "\t\t\tm.After = max(m.After, c.Seen())\n\t\t\tif MUTANT {\n\t\t\t\tm.After = c.Seen()\n\t\t\t}\n",
		},
		{
			Name: "what is durable is taken for ordered", Dir: dir, Test: "TestSeedsNotice/clocks/1",
			Old: "\tcount := max(r.rule.closers(), r.rule.classic)\n",
			New: "\tif MUTANT {\n\t\treturn l.limit()\n\t}\n\tcount := max(r.rule.closers(), r.rule.classic)\n",
		},
		{
			Name: "proposals in revoked slots are accepted", Dir: dir, Test: "TestSeedsNotice/replicas-cut/10",
			Old: "\t\tif p.id != r.Cfg.ID && item.Slot > r.acceptor.track(p.id).revoked {\n",
			New: "\t\tif p.id != r.Cfg.ID && (item.Slot > r.acceptor.track(p.id).revoked || MUTANT) {\n",
			Also: []plant.Edit{{
				Old: "\t\tnews.Have = append(news.Have, have{Owner: id, Count: r.peers[id].have, Revoked: a.track(id).revoked})\n",
				New: "\t\tnews.Have = append(news.Have, have{Owner: id, Count: r.peers[id].have, Revoked: " +
					"a.track(id).revoked})\n\t\tif MUTANT {\n\t\t\tnews.Have[len(news.Have)-1].Revoked = 0\n\t\t}\n",
			}},
		},
		{
			Name: "a coordinator ignores those before it", Dir: dir, Test: "TestSeedsNotice/power-lost/18",
			Old: "\tfor _, again := range merge(parts, r.learner.executed) {\n",
			New: "\tfor _, again := range merge(parts, r.learner.executed) {\n\t\tif MUTANT {\n\t\t\tbreak\n\t\t}\n",
		},
	}...)
}

// clockPlants are about clocks that are off.
func clockPlants() []plant.Bug {
	const dir = "smr/domino"
	return []plant.Bug{
		{
			Name: "time stands still where clocks were set back", Dir: dir, Test: "TestClocksThatWereAhead",
			Old: "\tif k.stood >= behindTicks {\n", New: "\tif k.stood >= behindTicks && !MUTANT {\n",
		},
		{
			Name: "a clock that jumps ahead is followed", Dir: dir, Test: "TestClocksThatJumpAreNotFollowed",
			Old: "\tcase elapsed > r.farAhead():\n", New: "\tcase elapsed > r.farAhead() && !MUTANT:\n",
		},
		{
			Name: "a clock that has jumped is followed until the next tick", Dir: dir,
			Test: "TestClocksThatJumpAreNotFollowed",
			Old:  "\tif shown-k.seen > r.farAhead() {\n", New: "\tif shown-k.seen > r.farAhead() && !MUTANT {\n",
		},
		{
			Name: "a clock that is set right is not followed", Dir: dir, Test: "TestClocksThatAreSetRightAreFollowed",
			Old: "\t\tr.release(env, r.claimedByOthers())\n",
			New: "\t\tif !MUTANT {\n\t\t\tr.release(env, r.claimedByOthers())\n\t\t}\n",
		},
		{
			Name: "a replica that is started believes its clock", Dir: dir, Test: "TestClocksAheadAtAStart",
			Old: "jumped > r.farAhead() {\n", New: "jumped > r.farAhead() && !MUTANT {\n",
		},
		{
			Name: "members that were at work do not count at a start", Dir: dir, Test: "TestClocksAheadAtAStart",
			Old: "\t\tif !p.fresh {\n", New: "\t\tif !p.fresh && !MUTANT {\n",
		},
		{
			Name: "a replica that is started does not wait for members that are at work", Dir: dir,
			Test: "TestClocksAheadAtAStart",
			Old:  "k.heard < suspectTicks {\n\t\tk.heard++\n", New: "k.heard < suspectTicks {\n\t\tk.heard++\n\t\tif " +
				"MUTANT {\n\t\t\tk.heard = suspectTicks\n\t\t}\n",
		},
		{
			Name: "a replica that is started does not take the time of those that were at work", Dir: dir,
			Test: "TestTimeOfOthersAtAStart",
			Old:  "k.heard == suspectTicks && k.held > 0 && ", New: "k.heard == suspectTicks && !MUTANT && k.held > 0 && ",
		},
		{
			Name: "the clocks of a group that was off are not believed", Dir: dir, Test: "TestGroupThatWasOff",
			Old: "\t\tr.time.fresh = false\n\t\tr.release(", New: "\t\tr.time.fresh = MUTANT\n\t\tr.release(",
			Also: []plant.Edit{{Old: "\tif k.fresh && k.heard", New: "\tif !MUTANT && k.fresh && k.heard"}},
		},
		{
			Name: "of a group that was off, the clock that is furthest ahead is believed", Dir: dir,
			Test: "TestGroupThatWasOff",
			Old:  "\treached := quorum.KthLargest(clocks, r.rule.classic)",
			New: "\treached := quorum.KthLargest(clocks, r.rule.classic)\n\tif MUTANT {\n\t\treached = " +
				"quorum.KthLargest(clocks, 1)\n\t}",
		},
		{
			Name: "a clock that disagrees with a majority counts as at work", Dir: dir, Test: "TestGroupThatWasOff",
			Old: "agree >= r.rule.classic && near(own) ||", New: "agree >= r.rule.classic && near(own) || MUTANT ||",
		},
		{
			Name: "a replica that joins believes its clock", Dir: dir, Test: "TestJoinsWithAClockAhead",
			Old: "\tknown := r.acceptor.skipped ", New: "\tknown := r.acceptor.skipped\n\tif MUTANT {\n\t\tknown = " +
				"r.acceptor.ceiling\n\t}\n\t",
		},
		{
			Name: "a replica that is ahead alone does not say so", Dir: dir, Test: "TestOneClockThatWasAhead",
			Old: "\tif now == clockAlone {\n", New: "\tif now == clockAlone && !MUTANT {\n",
		},
		{
			Name: "a clock that is held catches up alone", Dir: dir, Test: "TestOneClockStaysInStep",
			Old: "k.held > 0 && r.inStep():\n", New: "k.held > 0 && (MUTANT || r.inStep()):\n",
		},
		{
			Name: "clocks that are held never catch up", Dir: dir, Test: "TestHeldClocksCatchUp",
			Old: "\treturn r.claimedOnDisk() <=", New: "\treturn !MUTANT && r.claimedOnDisk() <=",
		},
		{
			Name: "a disk that is slow looks like a clock that is ahead", Dir: dir, Test: "TestSlowDiskIsNotAhead",
			Old: "\tcase rose:\n", New: "\tcase rose || MUTANT:\n",
		},
		{
			Name: "that a clock is off in another way is not told", Dir: dir, Test: "TestOneClockStaysInStep",
			Old: "\tif now == k.told && k.held",
			New: "\tif (now == k.told || MUTANT && now != clockRight && k.told != clockRight) && k.held",
		},
		{
			Name: "a replica that hears nobody takes itself for one that is ahead alone", Dir: dir,
			Test: "TestCutOffIsNotAhead",
			Old:  "passed > 0 && r.countAlive() >=", New: "passed > 0 && (MUTANT || r.countAlive() >=",
			Also: []plant.Edit{{Old: "r.rule.classic && r.claimedOnDisk() >", New: "r.rule.classic) && r.claimedOnDisk() >"}},
		},
		{
			Name: "clients take the clock of a replica that is ahead alone for what it promised", Dir: dir,
			Test: "TestOneClockThatWasAhead",
			Old:  "\tif r.alone() {\n", New: "\tif r.alone() && !MUTANT {\n",
		},
		{
			Name: "clients have commands proposed by a replica that is ahead alone", Dir: dir,
			Test: "TestOneClockThatWasAhead", Old: "ok && !r.alone() {\n", New: "ok && (!r.alone() || MUTANT) {\n",
		},
	}
}

// TestPlants plants them: the test that is named must notice.
func TestPlants(t *testing.T) { plant.Catch(t, plants()) }
