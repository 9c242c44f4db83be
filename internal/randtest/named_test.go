package randtest

import (
	"maps"
	"slices"
	"testing"

	planting "github.com/foresay/foresay/internal/plant"
)

// named is a planted bug that programs over gRPC do not show, with the reason,
// and the test that catches it.
type named struct {
	plant
	test   string
	reason string
}

const (
	onlyWaits = "a call that waits, or does not, has the same result"
	rawPeer   = "it takes a peer that does not read, which no client of grpc-go is"
)

func namedPlants() []named {
	return []named{
		{plant{
			name: "a call that looked nothing up is anybody's", dir: "internal/engine",
			old: "\t\tif _, all := c.looks.state(); ok && !all {\n",
			new: "\t\tif _, all := c.looks.state(); ok && !all && !MUTANT {\n",
		}, "TestCallsThatLookedNothingUp", "in thousands of programs no call waits unsent where another goroutine comes " +
			"to its place"},
		{plant{
			name: "a handler sends itself what might wait", slow: true, dir: "specgrpc",
			old: "\tif o.bytes <= quietBytes {\n", new: "\tif o.bytes <= quietBytes || MUTANT {\n",
		}, "TestLeaseOfACallThatNobodyReads", rawPeer},
		{plant{
			name: "predictions that wait are sent before the result", dir: "specgrpc",
			old: "\tn := len(o.queue)\n\to.queue = nil\n", new: "\tif MUTANT {\nreturn 0\n}\nn := len(o.queue)\no.queue = nil\n",
		}, "TestUnsentPredictionsGiveWayToTheResult", rawPeer},
		{plant{
			name: "the result refers to predictions that were not sent", dir: "specgrpc",
			old: "\tc.predictions = c.predictions[:len(c.predictions)-c.out.drop()]\n",
			new: "\tif n := c.out.drop(); !MUTANT {\nc.predictions = c.predictions[:len(c.predictions)-n]\n}\n",
		}, "TestUnsentPredictionsGiveWayToTheResult", rawPeer},
		{plant{
			name: "nobody looks for frames that nobody reads", slow: true, dir: "specgrpc",
			old: "\treturn o.bytes > quietBytes\n", new: "\treturn o.bytes > quietBytes && !MUTANT\n",
		}, "TestGracefulStopWithACallThatNobodyReads", rawPeer},
		{plant{
			name: "an answer is let go of that a run has yet to ask for", dir: "internal/engine",
			old: "|| !t.tree.Spent(c.tree) {", new: "|| !MUTANT && !t.tree.Spent(c.tree) {",
		}, "TestSpentAnswers", "programs over gRPC show it, after more than one"},
		{plant{
			name: "a site's calls have any number of predictions pending", dir: "control", in: "internal/engine",
			old: "s.cfg.Limits.Pending == 0 || n <= int64(s.cfg.Limits.Pending) {\n",
			new: "s.cfg.Limits.Pending == 0 || n <= int64(s.cfg.Limits.Pending) || MUTANT {\n",
		}, "TestCallSiteLimits", onlyWaits},
		{plant{
			name: "a call keeps its permit", dir: "internal/engine",
			old: "\t\tc.permit = false\n\t\tc.op.CallSite.Engine().ReturnPermit()\n",
			new: "\t\tc.permit = false\nif !MUTANT {\nc.op.CallSite.Engine().ReturnPermit()\n}\n",
		}, "TestPendingOfSeveralTasks", onlyWaits},
		{plant{
			name: "a site's depth is no limit", dir: "internal/engine",
			old: "{ return l.Depth > 0 && open > l.Depth }", new: "{ return l.Depth > 0 && open > l.Depth && !MUTANT }",
		}, "TestCallSiteLimits", onlyWaits},
		{plant{
			name: "a site's width is no limit", dir: "internal/engine",
			old: "\treturn l.Width > 0 && predictions >= l.Width\n",
			new: "\treturn l.Width > 0 && predictions >= l.Width && !MUTANT\n",
		}, "TestCallSiteWidth", "more predictions are more work, and the same result"},
		{plant{
			name: "a call is sent on a guess that is about to be known", dir: "internal/engine",
			old: "\tif c == nil || least < 0 {\n", new: "\tif c == nil || least < 0 || MUTANT {\n",
		}, "TestMinSaving", onlyWaits},
		{plant{
			name: "a site's own MinSaving does not count", dir: "internal/engine",
			old: "\tleast := sent.op.config().Limits.MinSaving\n",
			new: "\tleast := sent.op.config().Limits.MinSaving\nif MUTANT {\nleast = 0\n}\n",
		}, "TestCallSiteMinSaving", onlyWaits},
		{plant{
			name: "GracefulStop leaves calls to their leases", dir: "specgrpc",
			old: "\t\tc.abort(errStopping)\n", new: "\t\tif !MUTANT {\nc.abort(errStopping)\n}\n",
		}, "TestGracefulStopDuringSpeculation", "the lease ends the call with the same result, later"},
		{plant{
			name: "a stopping server takes speculative callers", dir: "specgrpc",
			old: "\tcase r.stopping:\n", new: "\tcase r.stopping && !MUTANT:\n",
		}, "TestStoppingRegistrarRefuses", "a refused call is made plainly later, with the same result"},
		{plant{
			name: "Confirm is not authorised anew", dir: "specgrpc",
			old: "\tif f == nil {\n\t\treturn nil\n\t}\n\tdefer func() {\n",
			new: "\tif f == nil || MUTANT {\nreturn nil\n}\ndefer func() {\n",
		}, "TestReauthorization", "what is denied at Confirm is allowed to a plain caller, so that there is no sequential " +
			"result to compare with"},
		{plant{
			name: "a reauthorisation that panics allows", dir: "specgrpc",
			old: "\t\t\terr = status.Errorf(codes.Internal, \"specgrpc: %s: reauthorisation failed\", c.method.name)\n",
			new: "\t\t\tif !MUTANT {\nerr = status.Errorf(codes.Internal, \"specgrpc: %s: reauthorisation failed\", " +
				"c.method.name)\n}\n",
		}, "TestReauthorizationThatPanicsDenies", "as before"},
		{plant{
			name: "the oldest stream gives way although another is answered", dir: "specgrpc",
			old: "\t\tif s.answered.Load() && !s.makesRoom {\n", new: "\t\tif (s.answered.Load() || MUTANT) && !s.makesRoom {\n",
		}, "TestAnsweredStreamsGiveWayFirst", "a call that gave way is made plainly later, with the same result"},
		{plant{
			name: "speculative streams are opened before those of calls that have yet to ask", dir: "specgrpc",
			old: "\tcase r.wanting+r.unasked > 0 && ", new: "\tcase (r.wanting > 0 || r.unasked > 0 && !MUTANT) && ",
		}, "TestCallsThatHaveYetToAsk", onlyWaits},
		{plant{
			name: "a call that has asked for its stream is taken to have it", dir: "specgrpc",
			old: "\t\ta.since = a.conn.half.room.asksNow()\n",
			new: "\t\ta.since = a.conn.half.room.asksNow()\nif MUTANT {\na.stage = stageOpen\n" +
				"a.conn.half.room.got(a.since, true)\n}\n",
		}, "TestOvertakenCall", onlyWaits},
		{plant{
			name: "several streams give way to one call", dir: "specgrpc",
			old: "\treturn h.leaving != nil || h.room.anyLeaving()\n",
			new: "\treturn (h.leaving != nil || h.room.anyLeaving()) && !MUTANT\n",
		}, "TestOneStreamGivesWayToOneCall", "a call that gave way is made plainly later, with the same result"},
		{plant{
			name: "a client has any number of half-open streams", dir: "specgrpc",
			old: "\tcase r.speculative >= r.most:\n", new: "\tcase r.speculative >= r.most && !MUTANT:\n",
		}, "TestHalfOpenStreamsAreLimited", onlyWaits},
		{plant{
			name: "no speculative call gives way to a later attempt", dir: "specgrpc",
			old: "\tif a.made.Add(1) > 1 &&", new: "\tif !MUTANT && a.made.Add(1) > 1 &&",
		}, "TestAttemptAfterRefusal", onlyWaits},
		{plant{
			name: "a connection on which streams are opened is taken for full", dir: "specgrpc",
			old: "l.before > 0 && l.flow <= l.flowed\n", new: "l.before > 0 && (l.flow <= l.flowed || MUTANT)\n",
		}, "TestLookout", onlyWaits},
		{plant{
			name: "a call that has just asked for a stream is one that waits", dir: "specgrpc",
			old: "l.steady && l.before > 0 &&", new: "l.steady && (l.before > 0 || MUTANT) &&",
		}, "TestLookout", onlyWaits},
		{plant{
			name: "a new connection has any number of speculative streams", dir: "specgrpc",
			old: "\tcase !r.streams.sure && r.unproven(keeps):\n",
			new: "\tcase !r.streams.sure && r.unproven(keeps) && !MUTANT:\n",
		}, "TestSlowStart", onlyWaits},
		{plant{
			name: "nothing gives way until a limit is certain", dir: "specgrpc",
			old: "\tcase !known && l.stood >= suspectAfter &&", new: "\tcase !known && !MUTANT && l.stood >= suspectAfter &&",
		}, "TestConfirmedCallersGoFirst", onlyWaits},
		{plant{
			name: "unanswered streams keep calls of confirmed callers out", dir: "specgrpc",
			old: "\t\t} else if s := c.half.unanswered(); s != nil {\n",
			new: "\t\t} else if s := c.half.unanswered(); s != nil && !MUTANT {\n",
		}, "TestBurstsAtALimit/8_tasks_in_16_streams", onlyWaits},
		{plant{
			name: "any number of streams is reset", dir: "specgrpc",
			old: "\treturn r.resets <= mostResets\n", new: "\treturn r.resets <= mostResets || MUTANT\n",
		}, "TestResetsAreBounded", "it takes a peer that minds"},
		{plant{
			name: "members of a quorum count by what they came to on guesses", dir: "internal/engine",
			old: "\tif m := c.members[a.i]; a.waits() {\n", new: "\tif m := c.members[a.i]; !MUTANT && a.waits() {\n",
		}, "TestCombinationInAContextOfItsOwn", onlyWaits},
		{plant{
			name: "what was guessed in a cancelled goroutine is waited for", dir: "internal/engine",
			old: "\tif len(uses) > 0 {\n\t\tt.tree.Doubt(uses)\n",
			new: "\tif len(uses) > 0 && !MUTANT {\n\t\tt.tree.Doubt(uses)\n",
		}, "TestCancelledBesideAGuess", onlyWaits},
		{plant{
			name: "a call takes long since this run came to it", dir: "internal/engine",
			old: "\tif c.attempt != nil { // it may", new: "\tif c.attempt != nil && !MUTANT { // it may",
		}, "TestDoubtOutlivesReplays", onlyWaits},
		{plant{
			name: "a call waits for others' guesses since it was asked for", dir: "internal/engine",
			old: "case h.use != nil && h.comesOnlyNow():", new: "case h.use != nil && h.comesOnlyNow() && !MUTANT:",
		}, "TestLanesAreNotHeldUp", onlyWaits},
		{plant{
			name: "calls of old tasks stand behind", dir: "specgrpc",
			old: "\t\tif a.began.After(b.began) {\n", new: "\t\tif a.began.After(b.began) && !MUTANT {\n",
		}, "TestLineOfOldTasks", onlyWaits},
		{plant{
			name: "calls stand in line where there is no connection", dir: "specgrpc",
			old: "\tcase !ready: // the", new: "\tcase !ready && !MUTANT: // the",
		}, "TestNobodyQueuesForNothing", onlyWaits},
		{plant{
			name: "a client goes on asking a server that is full", dir: "specgrpc",
			old: "\t\tif x.full && x.speculative {\n", new: "\t\tif x.full && x.speculative && !MUTANT {\n",
		}, "TestRefusedCallersAskLess", onlyWaits},
	}
}

// TestNamedTestsCatchPlants: what random programs cannot show, a test of its own
// catches.
func TestNamedTestsCatchPlants(t *testing.T) {
	var bugs []planting.Bug
	for _, p := range slices.Concat(namedPlants(), queuePlants(), guardPlants(), contextPlants()) {
		bugs = append(bugs, planting.Bug{Name: p.name, Dir: p.dir, In: p.in, Old: p.old, New: p.new, Test: p.test,
			Hangs: p.slow})
	}
	planting.Catch(t, bugs)
}

// TestUnseenBugsAreTheTrees: what is said of bugs of the tree is said of bugs that there are. Those
// that do not show over gRPC are caught by tests of the tree's own, as its TestPlants sees.
func TestUnseenBugsAreTheTrees(t *testing.T) {
	there := make(map[string]bool)
	for _, b := range treePlants() {
		there[b.Name] = true
	}
	said := slices.Concat(slices.Collect(maps.Keys(unseen())), slices.Collect(maps.Keys(focus())), slow())
	for _, name := range said {
		if !there[name] {
			t.Errorf("there is no %q", name)
		}
	}
}
