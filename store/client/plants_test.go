package client_test

import (
	"testing"

	"github.com/foresay/foresay/internal/plant"
	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/store/storetest/proof"
)

// TestPlants leaves out, in the source, what reads and commits rest on: the tests that are named
// must notice.
func TestPlants(t *testing.T) { plant.Catch(t, plants()) }

// TestSeedsNotice plays the seeds that notice a bug: on a network that is slow, or in which sites
// are away, or neither; watched or, for what shows in the history and at the servers, not.
func TestSeedsNotice(t *testing.T) {
	for _, tc := range []struct {
		name   string
		faults sim.Faults
		blind  bool
	}{{"slow", sim.Slow, false}, {"slow-blind", sim.Slow, true}, {"well", 0, false}, {"well-blind", 0, true},
		{"away-blind", sim.Partial | sim.OneWay, true}} {
		t.Run(tc.name, func(t *testing.T) {
			plant.Seeds(t, plants(), func(seed uint64) error {
				return proof.Play(t, replicated("TestSeedsNotice"), seed, tc.faults, tc.blind)
			})
		})
	}
}

func plants() []plant.Bug {
	bugs := append(guessPlants(), rulePlants()...)
	for i := range bugs {
		bugs[i].Dir = "store/client"
	}
	return bugs
}

// guessPlants are those of what reads rest on that are guessed.
func guessPlants() []plant.Bug {
	return []plant.Bug{
		{
			Name: "a run that was wrong ends the snapshot of the next one", Test: "TestSnapshotOutlivesWrongGuess",
			Old: "case a.snapshot == \"\" || over", New: "case MUTANT || a.snapshot == \"\" || over",
		},
		{
			Name: "a snapshot that no run comes to is kept", Test: "TestSnapshotOutlivesWrongGuess",
			Old: "\t\tif !confirmed {\n\t\t\tsites.End()", New: "\t\tif !confirmed && !MUTANT {\n\t\t\tsites.End()",
		},
		{
			Name: "hooks run with the lock that reads need", Test: "TestHooksHaveNoLock",
			Old: "\tv.mu.Unlock()\n\ttell()\n\tv.mu.Lock()\n",
			New: "\tif !MUTANT {\n\t\tv.mu.Unlock()\n\t}\n\ttell()\n\tif !MUTANT {\n\t\tv.mu.Lock()\n\t}\n",
		},
		{
			Name: "a commit does not wait until reads are told", Test: "TestCommitLeavesOnceReadsAreTold",
			Old: "\tfor v.telling > 0 &&", New: "\tfor v.telling > 0 && !MUTANT &&",
		},
		{
			Name: "a guess counts, whatever who prepares the key says", Test: "TestPreparesAsItGoes",
			Old: "\t\ta.Finish(got.Value, nil)\n\t})\n\tif ended {",
			New: "\t\tif MUTANT {\n\t\t\tgot = first\n\t\t}\n\t\ta.Finish(got.Value, nil)\n\t})\n\tif ended {",
		},
		{
			Name: "keys are prepared again in each step", Test: "TestPreparesAsItGoes",
			Old: "\t\tif !set[k] {\n", New: "\t\tif !set[k] || MUTANT {\n",
		},
		{
			Name: "a transaction that only reads has its keys prepared", Test: "TestOnlyReadsPreparesNothing",
			Old: "\tif len(writes) == 0 {\n\t\treturn\n", New: "\tif len(writes) == 0 && !MUTANT {\n\t\treturn\n",
		},
		{
			Name: "a predictor that was wrong is asked again", Test: "TestWrongPredictorIsNotAskedAgain",
			Old: "; why == store.StaleRead {\n", New: "; why == store.StaleRead && !MUTANT {\n",
		},
		{
			Name: "a predictor is asked for a key in each attempt", Test: "TestWrongPredictorIsNotAskedAgain",
			Old: "if n >= maxPredictions {", New: "if n >= maxPredictions && !MUTANT {",
		},
		{
			Name: "what is known in place of a wrong guess is forgotten", Test: "TestRefutedGuessIsNotGuessedAgain",
			Old: "\t\tt.seed(k, v)\n", New: "\t\tif !MUTANT {\n\t\t\tt.seed(k, v)\n\t\t}\n",
		},
		{
			Name: "attempts after the first one prepare early", Test: "TestOnlyTheFirstAttemptPreparesEarly",
			Old: "PrepareEarly && t.attempts == 1)", New: "PrepareEarly && (t.attempts == 1 || MUTANT))",
		},
		{
			Name: "a predictor does not learn what was written", Test: "TestWrongGuessesDoNotShow",
			Old: "\t\tif d.Version.IsZero() {\n", New: "\t\tif d.Version.IsZero() || MUTANT {\n",
		},
	}
}

// rulePlants are those of what a client does for its users, whatever the protocol.
func rulePlants() []plant.Bug {
	instead := func(call, was, is string) string {
		return "said := " + call + "\n\tif MUTANT && said.Outcome.Verdict == store." + was + " {\n\t\t" + is + "\n\t}\n"
	}
	const (
		sent     = "a.sites.Commit(ctx, Submission{Reads: reads, Writes: writes})"
		made     = "a.performCommit(ctx, reads, writes)"
		answered = "a.commit(ctx, out.reads, out.writes, early)"
	)
	return []plant.Bug{
		{
			Name: "a guess is right if its value is, whatever its version", Test: "TestSeedsNotice/slow/2",
			Old: "\treturn ok && ok2 && v.Version == w.Version\n",
			New: "\treturn ok && ok2 && (v.Version == w.Version || MUTANT && v.Present == w.Present &&\n" +
				"\t\tstring(v.Bytes) == string(w.Bytes))\n",
		},
		{
			Name: "the commit leaves before the quorum has answered", Test: "TestSeedsNotice/well/1",
			Old: "\t\tguess.Store(&first.Value)\n\t\ta.Predict(first.Value)\n\t})\n\tread.done(got, err)\n",
			New: "\t\tguess.Store(&first.Value)\n\t\tif MUTANT {\n\t\t\ta.Finish(first.Value, nil)\n\t\t\treturn\n" +
				"\t\t}\n\t\ta.Predict(first.Value)\n\t})\n\tif MUTANT && guess.Load() != nil {\n\t\treturn\n\t}\n" +
				"\tread.done(got, err)\n",
		},
		{
			Name: "a commit without an answer is sent again, as another transaction", Test: "TestSeedsNotice/away-blind/1",
			Old: "\t\treturn " + sent + "\n",
			New: "\t\t" + instead(sent, "Unknown",
				"again := a.client.cfg.Backend.Begin(Beginning{Priority: said.Txn.Priority})\n"+
					"\t\tdefer again.End()\n\t\treturn again.Commit(ctx, Submission{Reads: reads, Writes: writes})") +
				"\t\treturn said\n",
		},
		{
			Name: "what only reads is not validated", Test: "TestSeedsNotice/slow-blind/4",
			Old: "\tif len(writes) == 0 && len(reads) == 1 && !a.inTask && a.reads.isSettled(reads[0]) {\n",
			New: "\tif len(writes) == 0 && (MUTANT || len(reads) == 1 && !a.inTask && a.reads.isSettled(reads[0])) {\n",
		},
		{
			Name: "what discarded runs wrote is committed", Test: "TestSeedsNotice/slow/1",
			Old: "\treturn tx.write(func() { tx.buffer.Put(store.Key(key), append([]byte{}, value...)) })\n",
			New: "\tif MUTANT {\n\t\ttx.attempt.reads.mu.Lock()\n" +
				"\t\ttx.attempt.reads.leaked.Put(store.Key(key), append([]byte{}, value...))\n" +
				"\t\ttx.attempt.reads.mu.Unlock()\n\t}\n" +
				"\treturn tx.write(func() { tx.buffer.Put(store.Key(key), append([]byte{}, value...)) })\n",
			Also: []plant.Edit{{
				Old: "\tmu      sync.Mutex\n\tsettled map[store.Read]bool",
				New: "\tmu      sync.Mutex\n\tleaked  store.Buffer\n\tsettled map[store.Read]bool",
			}, {
				Old: "\treads, writes = tx.buffer.Accesses()\n\treturn slices.Clone(reads)",
				New: "\treads, writes = tx.buffer.Accesses()\n\tif MUTANT && len(writes) > 0 {\n" +
					"\t\ttx.attempt.reads.mu.Lock()\n\t\tdefer tx.attempt.reads.mu.Unlock()\n" +
					"\t\t_, writes = tx.attempt.reads.leaked.Accesses()\n\t}\n\treturn slices.Clone(reads)",
			}},
		},
		{
			Name: "an aborted attempt is said to be committed", Test: "TestSeedsNotice/well-blind/1",
			Old: "\treturn out, " + answered + ", nil\n",
			New: "\t" + instead(answered, "Aborted", "said.Outcome.Verdict = store.Committed") + "\treturn out, said, nil\n",
		},
		{
			Name: "a read of one key needs no validation, whatever sites say", Test: "TestSeedsNotice/slow/20",
			Old: "\tif !a.Settled {\n", New: "\tif !a.Settled && !MUTANT {\n",
		},
		{
			Name: "an attempt without an answer is taken for aborted, and made again", Test: "TestSeedsNotice/away-blind/1",
			Old: "\treturn " + made + "\n",
			New: "\t" + instead(made, "Unknown", "said.Outcome.Verdict = store.Aborted") + "\treturn said\n",
		},
	}
}
