package replicatedcommit

import (
	"slices"
	"testing"

	"github.com/foresay/foresay/internal/plant"
)

// impatient is a bug that is planted beside others, so that rivals meet more often.
const impatient = "R7: who was refused reads before its turn"

// plants leave out one rule at a time, in the source.
func plants() []plant.Bug {
	bugs := slices.Concat(errataPlants(), waitingPlants(), absencePlants())
	for i := range bugs {
		if bugs[i].Dir == "" {
			bugs[i].Dir = "store/replicatedcommit"
		}
	}
	return bugs
}

// errataPlants leave out R1 to R6 of the errata.
func errataPlants() []plant.Bug {
	return []plant.Bug{
		{
			Name: "R1: a version may be below those it replaces", Test: "TestSeedsNotice/swarm/1256",
			With: impatient,
			Old:  "\tcase !t.ID.After(v):\n", New: "\tcase !t.ID.After(v) && !MUTANT:\n",
		},
		{
			Name: "R2: reads are not validated", Test: "TestSeedsNotice/swarm/1250",
			Tests: []string{"TestAppends", "TestPrograms/bank"},
			With:  impatient,
			Old:   "\t\tcase v.After(a.Version):\n", New: "\t\tcase v.After(a.Version) && !MUTANT:\n",
		},
		{
			Name: "R2: reads are validated but not locked", Test: "TestSeedsNotice/swarm/2099",
			Tests: []string{"TestSeedsNotice/attack/368", "TestPrograms/writeskew"},
			With:  impatient,
			Old:   "\tfor _, a := range r.reads {\n\t\tl := s.lockOf(",
			New:   "\tfor _, a := range r.reads {\n\t\tif MUTANT {\n\t\t\tbreak\n\t\t}\n\t\tl := s.lockOf(",
		},
		{
			Name: "R3: votes are not durable", Test: "TestSeedsNotice/swarm/1253",
			Tests: []string{"TestTwoSitesCommitAndDie"},
			With:  impatient,
			Old:   "\ts.txns[r.id] = r\n\tif !r.ownKey",
			New:   "\ts.txns[r.id] = r\n\tif MUTANT && r.state <= no {\n\t\treturn\n\t}\n\tif !r.ownKey",
		},
		{
			Name: "R3: a missing vote counts as no", Test: "TestSeedsNotice/swarm/1251",
			With: impatient,
			Old:  "\tc.recover(env, e)\n}\n\n// recover asks",
			New: "\tc.recover(env, e)\n\tif MUTANT && e.outcome == undecided {\n\t\te.outcome = aborted\n" +
				"\t\tc.carryOut(env, e)\n\t}\n}\n\n// recover asks",
		},
		{
			Name: "R3: who was asked may vote yes later", Test: "TestSeedsNotice/swarm/1251",
			Tests: []string{"TestCrashInEachWrite"},
			With:  impatient,
			Old:   "\tdefault:\n\t\tr = s.unprepared(",
			New: "\tcase MUTANT:\n\t\tenv.Send(from, vote{ID: m.ID, State: no, Reason: store.Fenced})\n" +
				"\t\treturn\n\tdefault:\n\t\tr = s.unprepared(",
		},
		{
			Name: "R4: older versions replace newer ones", Test: "TestSeedsNotice/swarm/1251",
			Tests: []string{"TestSeedsNotice/attack/1"},
			With:  impatient,
			Old:   "\t\tif r.id.After(values.At(env, w.Key).Version) {\n",
			New:   "\t\tif r.id.After(values.At(env, w.Key).Version) || MUTANT {\n",
		},
		{
			Name: "R4: sites that voted no do not apply", Test: "TestSeedsNotice/swarm/1250",
			With: impatient,
			Old:  "\ts.counts.Decided(r.state == committed, r.reason)\n\tif state == committed && r.known {\n",
			New: "\ts.counts.Decided(r.state == committed, r.reason)\n\tif state == committed && voted == no && MUTANT {\n" +
				"\t\tr.known, r.writes = true, nil\n\t}\n\tif state == committed && r.known {\n",
		},
		{
			Name: "R5: the first value with the quorum's version", Test: "TestSeedsNotice/swarm/1251",
			With: impatient,
			Old:  "\tout, n := g.Answer(p.Site, m)\n",
			New: "\tout, n := g.Answer(p.Site, m)\n\tif MUTANT {\n\t\tif g.first == nil {\n\t\t\tg.first = &m\n\t\t}\n" +
				"\t\tout.Value.Present, out.Value.Bytes = g.first.Value.Present, g.first.Value.Bytes\n\t}\n",
			Also: []plant.Edit{{
				Old: "type get struct {\n\tkit.Get\n", New: "type get struct {\n\tkit.Get\n\tfirst *store.ReadReply\n",
			}},
		},
		{
			Name: "R6: transactions that only read are not validated", Test: "TestSeedsNotice/swarm/1250",
			Dir: "store/kit", In: "store/replicatedcommit", With: impatient,
			Old: "\tcase len(t.Reads)+len(t.Writes) == 0:\n",
			New: "\tcase len(t.Reads)+len(t.Writes) == 0, t.ReadOnly() && MUTANT:\n",
		},
		{
			Name: "R6: a read alone is believed where the key is about to change", Test: "TestSeedsNotice/swarm/2003",
			With: impatient,
			Old:  "\tout.Settled = !g.Ask.Nearest && !out.Pending\n",
			New:  "\tout.Settled = !g.Ask.Nearest && (!out.Pending || MUTANT)\n",
		},
		{
			Name: "a transaction may be before all times", Test: "TestNoTime",
			Old: "\tif !ok || !s.fits(m.Shards) || m.ID.Time == 0 {\n",
			New: "\tif !ok || !s.fits(m.Shards) || m.ID.Time == 0 && !MUTANT {\n",
		},
		{
			Name: "transactions are never forgotten", Test: "TestDay",
			Old: "\tdelete(s.txns, id)\n", New: "\tif !MUTANT {\n\t\tdelete(s.txns, id)\n\t}\n",
		},
		{
			Name: "locks are lost in a crash", Test: "TestSeedsNotice/swarm/1277",
			Tests: []string{"TestTwoSitesCommitAndDie"},
			With:  impatient,
			Old:   "\t\tif r.state == yes {\n\t\t\ts.lock(r)\n",
			New:   "\t\tif r.state == yes && !MUTANT {\n\t\t\ts.lock(r)\n",
		},
		{
			Name: "deletions leave nothing", Test: "TestSeedsNotice/swarm/1250",
			With: impatient,
			Old:  "\t\t\ts.changed(w.Key)\n\t\t}\n",
			New: "\t\t\ts.changed(w.Key)\n\t\t}\n\t\tif w.Delete && MUTANT {\n" +
				"\t\t\tenv.Delete([]byte(valuePrefix + string(w.Key)))\n\t\t}\n",
		},
		{
			Name: "absent keys are not validated", Test: "TestSeedsNotice/swarm/1250",
			With: impatient,
			Old:  "\t\tlatest = max(latest, v.Time)\n\t\tl := s.locks[a.Key]\n",
			New: "\t\tlatest = max(latest, v.Time)\n\t\tif MUTANT && a.Version.IsZero() {\n" +
				"\t\t\tv = a.Version\n\t\t}\n\t\tl := s.locks[a.Key]\n",
		},
	}
}

// waitingPlants leave out R7, and what disks and room are about.
func waitingPlants() []plant.Bug {
	return []plant.Bug{
		{
			Name: "R7: the oldest one does not win", Test: "TestOldestWins",
			Dir: "store/kit", In: "store/replicatedcommit",
			Old: "\tif p = r.Fresh(env.Now, p); p.IsZero() {\n",
			New: "\tif p = r.Fresh(env.Now, p); p.IsZero() || MUTANT {\n",
		},
		{
			Name: "R7: who is refused is in no queue", Test: "TestRefusedWait",
			Old: "\tfor _, w := range writes {\n\t\ts.reservations.Reserve(env, w.Key, true, p)\n",
			New: "\tif MUTANT {\n\t\treturn\n\t}\n\tfor _, w := range writes {\n" +
				"\t\ts.reservations.Reserve(env, w.Key, true, p)\n",
		},
		{
			Name: impatient, Test: "TestReadsInTurn",
			Dir: "store/kit", In: "store/replicatedcommit",
			Old: "\tif r.Fresh(now, p).IsZero() || ", New: "\tif r.Fresh(now, p).IsZero() || MUTANT || ",
		},
		{
			Name: "R7: who meets a blocked transaction reserves what it needs", Test: "TestBlockedAlone",
			Old: "\tif s.behindBlocked(t) {\n\t\treturn\n",
			New: "\tif s.behindBlocked(t) && !MUTANT {\n\t\treturn\n",
		},
		{
			Name: "a new disk votes under an old ID", Test: "TestLostDiskMustBeRefused",
			Old: "\ts.maybeAdmit(env)\n\treturn newDisk\n",
			New: "\tif MUTANT {\n\t\ta.admitted = true\n\t}\n\ts.maybeAdmit(env)\n\treturn newDisk\n",
			Also: []plant.Edit{
				{
					Old: "\tcase !s.isPeer(from) || m.Asked != a.own.start || a.refused != \"\":\n",
					New: "\tcase !s.isPeer(from) || m.Asked != a.own.start || a.refused != \"\" || MUTANT:\n",
				},
			},
		},
		{
			Name: "a disk that is an older copy of itself votes", Test: "TestRestoredDiskMustBeRefused",
			Old: "\tcase m.Start != a.own.start:\n", New: "\tcase m.Start != a.own.start && !MUTANT:\n",
		},
		{
			Name: "who finds no room may come again", Test: "TestRoom",
			Old: "\ts.raiseOld(env, id.Time)\n\ts.marked(env)\n",
			New: "\tif !MUTANT {\n\t\ts.raiseOld(env, id.Time)\n\t}\n\ts.marked(env)\n",
		},
		{
			Name: "a vote is held back for ever", Test: "TestHoldEnds",
			Old: "\tenv.After(wait, holdTimer{m.Txn.ID})\n",
			New: "\tif !MUTANT {\n\t\tenv.After(wait, holdTimer{m.Txn.ID})\n\t}\n",
		},
	}
}

// absencePlants leave out what is said of sites that are new, away, lost or leave.
func absencePlants() []plant.Bug {
	return []plant.Bug{
		{
			Name: "a newcomer votes and is read before it has copied", Test: "TestSeedsNotice/loss/1",
			Old: "{ return s.newcomer.syncing }", New: "{ return s.newcomer.syncing && !MUTANT }",
		},
		{
			Name: "a newcomer copies one server only", Test: "TestCopiesOfEnoughSites",
			Old: "\tif done < neededSources(s.cfg.Layout) {\n",
			New: "\tif done < neededSources(s.cfg.Layout) && !(done > 0 && MUTANT) {\n",
		},
		{
			Name: "a newcomer copies what is not decided yet", Test: "TestCopiesOfWhatIsDecided",
			Old: "\tif s.settled {\n\t\treturn true\n", New: "\tif s.settled || MUTANT {\n\t\treturn true\n",
		},
		{
			Name: "a newcomer does not remember transactions", Test: "TestNewcomersRemember",
			Old: "\tr := s.txns[m.Txn.ID]\n\tstate := aborted\n",
			New: "\tif MUTANT {\n\t\treturn\n\t}\n\tr := s.txns[m.Txn.ID]\n\tstate := aborted\n",
		},
		{
			Name: "recovery has only its own site vote", Test: "TestLateRequestBlocksNothing",
			Old: "i == c.place.Site\n\t\t\t\tc.ask(", New: "i == c.place.Site || MUTANT\n\t\t\t\tc.ask(",
		},
		{
			Name: "what nobody has decided is not refused to others", Test: "TestBegunLateBlocksNothing/31",
			Old: "|| r.questioned {\n\t\treturn\n", New: "|| r.questioned || MUTANT {\n\t\treturn\n",
		},
		{
			Name: "recovery has sites vote though its own has voted no", Test: "TestRefusedIsNotUrged",
			Old: "\tcase m.State == undecided && own.vote() == yes:\n",
			New: "\tcase m.State == undecided && (own.vote() == yes || MUTANT):\n",
			Also: []plant.Edit{
				{Old: "\t\t\t\tfence := own == no || ", New: "\t\t\t\tfence := own == no && !MUTANT || "},
				{
					Old: "|| r.state != yes {\n\t\treturn\n",
					New: "|| r.state != yes && !(r.state == no && MUTANT) {\n\t\treturn\n",
				},
			},
		},
		{
			Name: "nothing is owed to who is away", Test: "TestLongAway",
			Tests: []string{"TestBoundOnTransactions"},
			Old:   "\treturn quiet && env.Now-since > max(awayAfter*c.cfg.RoundTrip, leastAway)\n",
			New:   "\treturn quiet && env.Now-since > max(awayAfter*c.cfg.RoundTrip, leastAway) && !MUTANT\n",
		},
		{
			Name: "what is owed and forgotten counts as never heard of", Test: "TestSeedsNotice/attack/15",
			Tests: []string{"TestAbsentSiteKeepsItsLocks"},
			Old:   "&& !d.behind {\n\t\t\treturn gone\n", New: "&& !d.behind && !MUTANT {\n\t\t\treturn gone\n",
		},
		{
			Name: "a server is owed only by those of its shard", Test: "TestSeedsNotice/attack/31",
			Tests: []string{"TestAbsentSiteKeepsItsLocks", "TestAbortOfWhatIsGoneWaitsForAll"},
			Old:   "\t\tr.but = append(r.but, id)\n\t\ts.extend(",
			New: "\t\tif MUTANT && s.shards[id].Index != s.place.Index {\n\t\t\tcontinue\n\t\t}\n" +
				"\t\tr.but = append(r.but, id)\n\t\ts.extend(",
		},
		{
			Name: "after a start it is not known what is owed of that which is done", Test: "TestStartKnowsWhatIsOwed",
			Old: "\t\ts.keepDebt(env, peer, s.debts[peer])\n\t}\n\ts.setDone(",
			New: "\t\tif !MUTANT {\n\t\t\ts.keepDebt(env, peer, s.debts[peer])\n\t\t}\n\t}\n\ts.setDone(",
		},
		{
			Name: "who never heard of a transaction is taken for one that has forgotten it", Test: "TestOneThatNeverHeardIsTold",
			Old: "n > 0 && n < s.cfg.Layout.Majority() {\n", New: "n > 0 && n < s.cfg.Layout.Majority() && !MUTANT {\n",
		},
		{
			Name: "what begins late counts as done", Test: "TestLateTransactionIsNotDone",
			Old: "\tif id.Time <= s.doneUpto {\n\t\ts.setDone(", New: "\tif id.Time <= s.doneUpto && !MUTANT {\n\t\ts.setDone(",
			Also: []plant.Edit{{Old: "\t\tif open++; id.Time <= s.doneUpto {\n",
				New: "\t\tif open++; id.Time <= s.doneUpto && !MUTANT {\n"}},
		},
		{
			Name: "a newcomer asks about what all have carried out", Test: "TestNewcomersAskLittle",
			Old: "Done: s.doneEverywhere(r.id),\n", New: "Done: s.doneEverywhere(r.id) && !MUTANT,\n",
		},
		{
			Name: "a newcomer copies transactions of its own epoch", Test: "TestNewcomerIsNotOutrun",
			Old: "\tsize, end := 0, afterTxns(s.inherited)\n",
			New: "\tsize, end := 0, afterTxns(s.inherited)\n\tif MUTANT {\n\t\tend = afterPrefix(txnPrefix)\n\t}\n",
		},
		{
			Name: "a copy leaves no time for transactions", Test: "TestCopyLeavesTimeForTransactions",
			Old: "\tc.since, c.decided = now, decided\n",
			New: "\tc.since, c.decided = now, decided\n\tif MUTANT {\n\t\tc.busy = 0\n\t}\n",
		},
		{
			Name: "a debt is paid without a copy", Test: "TestSeedsNotice/away/1",
			Old: "\tc.owing[from] = m\n",
			New: "\tc.owing[from] = m\n\tif MUTANT {\n\t\tenv.Send(from, paid{Serial: m.Serial})\n" +
				"\t\treturn\n\t}\n",
			Also: []plant.Edit{
				{
					Old: "\tif (c.source != 0 || len(c.owing) > 0) && ",
					New: "\tif (c.source != 0 || len(c.owing) > 0 && !MUTANT) && ",
				},
			},
		},
		{
			Name: "a debt that has grown is paid by an earlier copy", Test: "TestDebtGrows",
			Old: "\tif m.Serial == 0 || d.serial != m.Serial {\n",
			New: "\tif m.Serial == 0 || d.serial != m.Serial && !MUTANT {\n",
		},
		{
			Name: "a lost site's vote is a no without a look at what others know", Test: "TestSeedsNotice/loss/1",
			Tests: []string{"TestDecisionsThatStandOnLostVotes"},
			Old:   "\tif len(l.seen) == len(l.shards)*(len(s.cfg.Layout.Unfenced())-1) {\n",
			New:   "\tif len(l.seen) == len(l.shards)*(len(s.cfg.Layout.Unfenced())-1) || MUTANT {\n",
			Also: []plant.Edit{
				{
					Old: "\tcase len(e.rows)-nays-fenced < majority && heard:\n",
					New: "\tcase len(e.rows)-nays-fenced < majority && (heard || MUTANT):\n",
				},
			},
		},
		{
			Name: "a site that leaves votes for new transactions", Test: "TestSeedsNotice/online/36",
			Old: "\tif s.retirement.retired {\n\t\treturn store.Fenced",
			New: "\tif s.retirement.retired && !MUTANT {\n\t\treturn store.Fenced",
		},
	}
}

// TestPlants plants them: the tests that are named must notice.
func TestPlants(t *testing.T) { plant.Catch(t, plants()) }

// TestSeedsNotice plays the seeds that notice a bug, each in the world of the test that plays
// others of them.
func TestSeedsNotice(t *testing.T) {
	for name, play := range map[string]func(seed uint64) (*world, error){
		"swarm":  func(seed uint64) (*world, error) { return playOnce(swarm(seed)) },
		"attack": attack,
		"away":   playAway,
		"loss":   func(seed uint64) (*world, error) { return playLossOnce(seed, nil) },
		"online": func(seed uint64) (*world, error) { return playOnline(seed, false) },
	} {
		t.Run(name, func(t *testing.T) {
			plant.Seeds(t, plants(), func(seed uint64) error {
				_, err := play(seed)
				return err
			})
		})
	}
}
