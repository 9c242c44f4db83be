package tapir

import (
	"fmt"
	"iter"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/foresay/foresay/internal/heap"
	"github.com/foresay/foresay/internal/msgtext"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/storetest"
	"github.com/foresay/foresay/store/storetest/talk"
)

// subject is the store as package storetest wants it.
func subject() storetest.Subject {
	return storetest.Subject{
		Protocol: Protocol(), Package: "./store/tapir", Settle: 5 * time.Second,
		Values: func(_ protocol.Node[store.Message], disk protocol.Keys) iter.Seq2[store.Key, store.Value] {
			return func(yield func(store.Key, store.Value) bool) {
				for k, b := range disk.Scan([]byte(valuePrefix), within(valuePrefix)) {
					key := store.Key(slices.Clone(k[len(valuePrefix):]))
					if !yield(key, values.Parse(key, slices.Clone(b))) {
						return
					}
				}
			}
		},
		Left: func(n protocol.Node[store.Message]) string {
			s := n.(*server)
			switch {
			case !s.takesPart():
				return "is in no view"
			case len(s.open) > 0:
				return fmt.Sprintf("has %d open transactions", len(s.open))
			case len(s.owed) > 0 || len(s.copying) > 0:
				return "is owed a copy, or owes one"
			}
			return ""
		},
	}
}

// TestConformance plays 500 seeds under faults, or a fifth of them.
func TestConformance(t *testing.T) { storetest.Conformance(t, subject(), 500) }

func TestPrograms(t *testing.T) { storetest.Programs(t, subject(), 40) }

func TestDay(t *testing.T) { storetest.Day(t, subject()) }

func TestCrashInEachWrite(t *testing.T) { storetest.CrashInEachWrite(t, subject()) }

// TestScenarios has the protocol talk: testdata/scenarios, which are there to be read.
func TestScenarios(t *testing.T) {
	votes := [...]string{unvoted: "none", prepared: "yes", abstain: "abstain", retry: "retry", refused: "no"}
	ends := [...]string{undecided: "none", committed: "committed", aborted: "aborted"}
	talk.Play(t, Protocol(), func(_ msgtext.Format, v any) (string, bool) {
		switch v := v.(type) {
		case vote:
			return votes[v], true
		case end:
			return ends[v], true
		}
		return "", false
	})
}

func TestMain(m *testing.M) { os.Exit(heap.RunTests(m)) }
