package layered

import (
	"testing"

	"github.com/foresay/foresay/internal/plant"
	"github.com/foresay/foresay/store/storetest"
)

// boundPlants leave out the bounds of what waits.
func boundPlants() []plant.Bug {
	return []plant.Bug{
		{
			Name: "any number waits", Test: "TestQueueIsBounded",
			Old: "\tfor len(s.queue) >= maxQueue ||", New: "\tfor len(s.queue) >= maxQueue && !MUTANT ||",
		},
		{
			Name: "whoever finds no room is refused, however old", Test: "TestQueueIsBounded",
			Old: "\t\tif at == len(s.queue) {\n", New: "\t\tif at == len(s.queue) || MUTANT {\n",
		},
		{
			Name: "those that wait leave no room for decisions", Test: "TestThoseThatWaitLeaveRoom",
			Old: "ok := len(s.asked) < s.cfg.MaxTxns //", New: "ok := len(s.asked) < s.cfg.MaxTxns && (!MUTANT || " +
				"len(s.asked)+len(s.late) < s.cfg.MaxTxns) //",
		},
		{
			Name: "what waits may be of any size", Test: "TestQueueIsBoundedByBytes",
			Old: " bytes > maxQueueBytes {\n", New: " bytes > maxQueueBytes && !MUTANT {\n",
		},
		{
			Name: "who would wait in vain is to try again at once", Test: "TestRefusedInVain",
			Old: "\t\treturn s.end(state, t, false, store.Reserved)\n",
			New: "\t\twhy := store.Reserved\n\t\tif MUTANT {\n\t\t\twhy = store.Locked\n\t\t}\n" +
				"\t\treturn s.end(state, t, false, why)\n",
		},
		{
			Name: "all wound the same one", Test: "TestOneWoundIsEnough",
			Old: "\t\t\t\twounded[w.id] = true\n", New: "\t\t\t\twounded[w.id] = !MUTANT\n",
		},
		{
			Name: "one that comes again is answered as often", Test: "TestOneWoundIsEnough",
			Old: "return o.From == q.From }); i >= 0 {", New: "return o.From == q.From }); i >= 0 && !MUTANT {",
		},
	}
}

// plants leave out one rule at a time, in the source.
func plants() []plant.Bug {
	bugs := []plant.Bug{
		{
			Name: "a site whose coordinator waits is taken to be away", Test: "TestClientStaysWithItsSite",
			Old: "ok && c.stays(env, t) {\n", New: "ok && !MUTANT && c.stays(env, t) {\n",
		},
		{
			Name: "a client stays with its site for ever", Test: "TestClientStaysWithItsSite",
			Old: "s == nil || s.stays >= maxStays:", New: "s == nil || s.stays >= maxStays && !MUTANT:",
		},
		{
			Name: "reads are not validated", Test: "TestSeedsNotice/1", Tests: []string{"TestPrograms/bank"},
			Old: "\t\tif values.At(state, r.Key).Version != r.Version {\n",
			New: "\t\tif values.At(state, r.Key).Version != r.Version && !MUTANT {\n",
		},
		{
			Name: "what was read is not locked", Test: "TestSeedsNotice/1",
			Old: "\t\tl.readers += n\n", New: "\t\tif !MUTANT {\n\t\t\tl.readers += n\n\t\t}\n",
		},
		{
			Name: "a key that is to be written may be read", Test: "TestSeedsNotice/1",
			Tests: []string{"TestPrograms/ring"},
			Old:   "{ return !s.locks[r.Key].writer.IsZero() })", New: "{ return !s.locks[r.Key].writer.IsZero() && !MUTANT })",
		},
		{
			Name: "a version may be below the one that it replaces", Test: "TestSeedsNotice/1",
			Old: "\t\tif !t.id.After(values.At(state, w.Key).Version) {\n",
			New: "\t\tif !t.id.After(values.At(state, w.Key).Version) && !MUTANT {\n",
		},
		{
			Name: "a shard that was told to abort may vote yes later", Test: "TestShard",
			Old: "\t\treturn s.end(state, &txn{id: m.ID, shards: m.Shards}, false, m.Reason), nil\n",
			New: "\t\tif MUTANT {\n\t\t\treturn result{aborted, m.Reason}, nil\n\t\t}\n\t\treturn s.end(state, " +
				"&txn{id: m.ID, shards: m.Shards}, false, m.Reason), nil\n",
		},
		{
			Name: "what is prepared is not locked after a restart", Test: "TestShard",
			Old: "\t\ts.open[t.id] = t\n\t\tif t.state == prepared {",
			New: "\t\ts.open[t.id] = t\n\t\tif t.state == prepared && !MUTANT {",
		},
		{
			Name: "a commit that others may not know is forgotten with a restart", Test: "TestForgetting",
			Tests: []string{"TestCrashInEachWrite"},
			Old:   "\t\ts.keep(state, t)\n\t} else {",
			New:   "\t\ts.open[t.id] = t\n\t\tif !MUTANT {\n\t\t\ts.keep(state, t)\n\t\t}\n\t} else {",
		},
		{
			Name: "transactions are never forgotten", Test: "TestForgetting", Tests: []string{"TestDay"},
			Old: "\tif b.next-b.first > s.remembers {", New: "\tif b.next-b.first > s.remembers && !MUTANT {",
		},
		{
			Name: "a shard votes for what it may have forgotten", Test: "TestForgetting",
			Old: "\treturn result{forgotten, store.Old}, id.Time <= s.books.old",
			New: "\treturn result{forgotten, store.Old}, id.Time <= s.books.old && !MUTANT",
		},
		{
			Name: "who leads no more, and does not know, checks what was read", Test: "TestDeposedLeader",
			Old: "\tif !s.inquire(env, inquiry{from, m}) {\n",
			New: "\tif MUTANT {\n\t\tenv.Send(from, told{m.Ref, s.shard.check(s.group.State(env), m.Txn)})\n\t} else if " +
				"!s.inquire(env, inquiry{from, m}) {\n",
		},
		{
			Name: "who tries again reads what somebody has that leads no more", Test: "TestDeposedLeader",
			Old: "\tcase m.Priority.IsZero():\n", New: "\tcase m.Priority.IsZero() || MUTANT:\n",
		},
		{
			Name: "a follower's answer is taken for the leader's", Test: "TestReads",
			Old: "\t\ts.answer(env, from, m, false)\n\tcase m.Priority",
			New: "\t\ts.answer(env, from, m, MUTANT)\n\tcase m.Priority",
		},
		{
			Name: "while nobody leads, nothing can be read", Test: "TestReads",
			Old: " || tries > 1 && n >= majority\n", New: " || tries > 1 && n >= majority && !MUTANT\n",
		},
		{
			Name: "transactions that only read are committed as they are", Test: "TestSeedsNotice/1",
			Old: "\tif res.State == committed {\n\t\te.votes", New: "\tif res.State == committed || MUTANT {\n\t\te.votes",
			Also: []plant.Edit{{
				Old: "\tc.tell(env, e, res)\n\tc.calls.Drop(", New: "\tif MUTANT {\n\t\tres = result{State: committed}\n\t}\n" +
					"\tc.tell(env, e, res)\n\tc.calls.Drop(",
			}},
		},
		{
			Name: "those that only read never wait", Test: "TestReadOnlyAgain",
			Old: "m.Txn.ReadOnly() && m.Txn.Priority == first\n",
			New: "m.Txn.ReadOnly() && (m.Txn.Priority == first || MUTANT)\n",
		},
		{
			Name: "checks go on when the transaction is over", Test: "TestChecksEnd",
			Old: "\tc.calls.Drop(env, e.id)\n", New: "\tif !MUTANT {\n\t\tc.calls.Drop(env, e.id)\n\t}\n",
		},
		{
			Name: "a time that no clock has is on record", Test: "TestFarAhead",
			Old: "env.Now+2*c.cfg.MaxAhead, 0)) {", New: "env.Now+2*c.cfg.MaxAhead, 0)) && !MUTANT {",
		},
		{
			Name: "what is asked about one that waits is taken for its prepare", Test: "TestDoneOfOneThatWaits",
			Old: "if m, ok := m.(prepare); ok && e.State", New: "if m, ok := m.(prepare); (ok || MUTANT) && e.State",
			Also: []plant.Edit{{
				Old: "\t\t\tlate := s.late[m.Txn.ID]\n",
				New: "\t\t\tif MUTANT && !ok {\n\t\t\t\tpanic(\"no prepare\")\n\t\t\t}\n\t\t\tlate := s.late[m.Txn.ID]\n",
			}},
		},
		{
			Name: "what one shard has checked is enough", Test: "TestSeedsNotice/1",
			Old: "\t\tif len(e.votes) < len(e.shards) {\n", New: "\t\tif len(e.votes) < len(e.shards) && !MUTANT {\n",
		},
		{
			Name: "a transaction whose coordinator is gone is aborted, whatever its anchor knows", Test: "TestSeedsNotice/1",
			Old: "\tc.askAnchor(env, e, false, why)\n",
			New: "\tif MUTANT {\n\t\tc.settle(env, e, 1<<31, result{aborted, " +
				"why})\n\t\treturn\n\t}\n\tc.askAnchor(env, e, false, why)\n",
		},
		{
			Name: "a commit is told before its anchor has decided it", Test: "TestSeedsNotice/1",
			Old: "\t\t\tc.askAnchor(env, e, true, store.NoReason)\n",
			New: "\t\t\tif MUTANT {\n\t\t\t\tc.settle(env, e, 1<<31, result{State: " +
				"committed})\n\t\t\t\treturn\n\t\t\t}\n\t\t\tc.askAnchor(env, e, true, store.NoReason)\n",
		},
		{
			Name: "nobody is wounded", Test: "TestDeadlock",
			Old: "range s.shard.meet(t).wounds {\n",
			New: "range s.shard.meet(t).wounds {\n\t\t\tif MUTANT {\n\t\t\t\tbreak\n\t\t\t}\n",
		},
		{
			Name: "whose coordinator is at it is not wounded", Test: "TestDeadlock",
			Old: "\t\tif e.decided == nil && !e.asked {\n\t\t\tc.askAnchor",
			New: "\t\tif e.decided == nil && !e.asked && !MUTANT {\n\t\t\tc.askAnchor",
		},
		{
			Name: "younger ones are waited for, and not wounded", Test: "TestQueue",
			Old: "\t\t\t\tm.wounds = append(m.wounds, other)\n",
			New: "\t\t\t\tif !MUTANT {\n\t\t\t\t\tm.wounds = append(m.wounds, other)\n\t\t\t\t}\n",
		},
		{
			Name: "older ones are wounded", Test: "TestQueue",
			Old: "meets(other) && !other.older(t) {", New: "meets(other) && (!other.older(t) || MUTANT) {",
		},
		{
			Name: "who is tried again is as young as the attempt", Test: "TestQueue",
			Old: "\tif t.priority.IsZero() {\n", New: "\tif t.priority.IsZero() || MUTANT {\n",
		},
		{
			Name: "a transaction waits though that is in vain", Test: "TestQueue",
			Old: "\tcase m.inVain: ", New: "\tcase m.inVain && !MUTANT: ",
		},
		{
			Name: "younger ones overtake those that wait", Test: "TestQueue",
			Old: "\t\t\tmeets(other)\n", New: "\t\t\tif !MUTANT {\n\t\t\t\tmeets(other)\n\t\t\t}\n",
		},
		{
			Name: "older ones wait behind younger ones that wait", Test: "TestQueue",
			Old: "\t\tif other.older(t) {\n", New: "\t\tif other.older(t) || MUTANT && other != t {\n",
		},
		{
			Name: "they are woken as they have come", Test: "TestQueue",
			Old: "\ts.queue = slices.Insert(s.queue, at, t)\n",
			New: "\tif MUTANT {\n\t\tat = len(s.queue)\n\t}\n\ts.queue = slices.Insert(s.queue, at, t)\n",
		},
		{
			Name: "who waits for too long goes on waiting", Test: "TestWaitEnds",
			Old: "\ts.group.Propose(env, kit.Encoded(s.shard.format, giveUp{t.id}))\n",
			New: "\tif !MUTANT {\n\t\ts.group.Propose(env, kit.Encoded(s.shard.format, giveUp{t.id}))\n\t}\n",
		},
		{
			Name: "who has waited is not told", Test: "TestWaitEnds",
			Old: "\t\tfor _, q := range s.late[w.id] {\n",
			New: "\t\tfor _, q := range s.late[w.id] {\n\t\t\tif MUTANT {\n\t\t\t\tbreak\n\t\t\t}\n",
		},
		{
			Name: "who has waited is taken to be left before its coordinator can end it", Test: "TestWaitIsNoSilence",
			Old: "\t\tdelete(s.first, w.id)", New: "\t\tif !MUTANT {\n\t\t\tdelete(s.first, w.id)\n\t\t}",
		},
		{
			Name: "who waits does not once others are gone", Test: "TestQueue",
			Old: "\t\tt.locked, s.freed = false, true\n", New: "\t\tt.locked, s.freed = false, !MUTANT\n",
		},
		{
			Name: "who leaves the queue lets nobody go on", Test: "TestQueue",
			Old: "\ts.freed = true\n", New: "\ts.freed = s.freed || !MUTANT\n",
		},
		{
			Name: "who waits is forgotten with a restart", Test: "TestQueue",
			Old: "\ts.loadQueue(state)\n", New: "\tif !MUTANT {\n\t\ts.loadQueue(state)\n\t}\n",
		},
		{
			Name: "who does not wait any more waits again after a restart", Test: "TestQueue",
			Old: "\tstate.Delete(store.TxnKey(waitPrefix, t.id))\n",
			New: "\tif !MUTANT {\n\t\tstate.Delete(store.TxnKey(waitPrefix, t.id))\n\t}\n",
		},
		{
			Name: "one that is aborted while it waits is voted for later", Test: "TestQueue",
			Old: "\t\treturn s.refuse(state, s.waits(m.ID), m.Reason)\n",
			New: "\t\tif MUTANT {\n\t\t\treturn result{aborted, m.Reason}, nil\n\t\t}\n\t\treturn s.refuse(state, " +
				"s.waits(m.ID), m.Reason)\n",
		},
		{
			Name: "one that has been voted for is given up", Test: "TestQueue",
			Old: "\tt := s.waits(m.ID)\n\tif t == nil {\n",
			New: "\tt := s.waits(m.ID)\n\tif open := s.open[m.ID]; MUTANT && open != nil {\n" +
				"\t\treturn s.end(state, open, false, store.Locked), nil\n\t}\n\tif t == nil {\n",
		},
		{
			Name: "what an earlier version has refused has another reason", Test: "TestShard",
			Old: "\tif !m.Waits {\n", New: "\tif !m.Waits && !MUTANT {\n",
		},
		{
			Name: "what an earlier version has refused is voted for", Test: "TestQueue",
			Old: "; why != store.NoReason {\n\t\t\treturn s.end",
			New: "; why != store.NoReason && !MUTANT {\n\t\t\treturn s.end",
		},
		{
			Name: "the age of what an earlier version has prepared counts", Test: "TestQueue",
			Old: "\t\tt.priority = store.Priority{}\n",
			New: "\t\tif !MUTANT {\n\t\t\tt.priority = store.Priority{}\n\t\t}\n",
		},
		{
			Name: "a coordinator does not allow for the longest wait", Test: "TestCoordinatorWaits",
			Old: "\t\tc.calls.Waits(env, from, m.Ref, longestWait)\n",
			New: "\t\tlongest := longestWait\n\t\tif MUTANT {\n\t\t\tlongest = 0\n\t\t}\n" +
				"\t\tc.calls.Waits(env, from, m.Ref, longest)\n",
		},
		{
			Name: "a priority counts however old it is", Test: "TestNobodyIsOldForEver",
			Old: "began < uint64(max(now-c.cfg.Retain, 0)) {", New: "began < uint64(max(now-c.cfg.Retain, 0)) && !MUTANT {",
		},
		{
			Name: "who waits is not told that the leader goes", Test: "TestWaitsWhereAnotherLeads",
			Old: "\ts.asked.Elsewhere(",
			New: "\tif MUTANT {\n\t\tclear(s.asked)\n\t\tall = nil\n\t}\n\ts.asked.Elsewhere(",
		},
		{
			Name: "nobody finishes what a coordinator has left", Test: "TestSeedsNotice/1",
			Old: "\t\t\tenv.Send(s.cfg.Layout.Coordinator(s.place.Site, t.id),",
			New: "\t\t\tif MUTANT {\n\t\t\t\tcontinue\n\t\t\t}\n\t\t\tenv.Send(s.cfg.Layout.Coordinator(s.place.Site, " +
				"t.id),",
		},
	}
	bugs = append(bugs, boundPlants()...)
	for i := range bugs {
		bugs[i].Dir = "store/layered"
	}
	return bugs
}

// TestPlants plants them: the tests that are named must notice.
func TestPlants(t *testing.T) { plant.Catch(t, plants()) }

// TestSeedsNotice plays the seeds that notice a bug.
func TestSeedsNotice(t *testing.T) {
	plant.Seeds(t, plants(), storetest.PlaySwarm(subject()))
}
