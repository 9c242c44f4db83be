package str

import (
	"fmt"
	"iter"
	"math"
	"os"
	"testing"
	"time"

	"github.com/foresay/foresay/internal/heap"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/storetest"
)

func TestMain(m *testing.M) { os.Exit(heap.RunTests(m)) }

// subject is STR in a mode as package storetest wants it. The logs of its groups are short, so that
// servers that were away get copies of the state.
func subject(mode variant) storetest.Subject {
	mode.logEntries = 8
	s := storetest.Subject{
		Protocol: protocolOf(mode), Package: "./store/str", Settle: 5 * time.Second,
		Values: func(n protocol.Node[store.Message], keys protocol.Keys) iter.Seq2[store.Key, store.Value] {
			s := n.(*server)
			page := s.state.values.Copy(s.group.StateIn(keys), nil, math.MaxInt)
			return func(yield func(store.Key, store.Value) bool) {
				for i, item := range page.Items { // the newest version of a key comes first
					if (i == 0 || page.Items[i-1].Key != item.Key) && !yield(item.Key, item.Value) {
						return
					}
				}
			}
		},
		Left: func(n protocol.Node[store.Message]) string {
			if s := n.(*server); len(s.held)+s.waits.reads() > 0 {
				return fmt.Sprintf("holds %d transactions, and %d reads wait", len(s.held), s.waits.reads())
			}
			return ""
		},
	}
	if mode.speculates { // the other mode's local commits show nothing to anybody
		s.Watched = func() (store.Protocol, func() error) { return watched(mode) }
	}
	return s
}

// TestConformance plays 500 seeds of each mode under faults, or a fifth of them.
func TestConformance(t *testing.T) {
	for _, m := range modes() {
		t.Run(m.name, func(t *testing.T) { storetest.Conformance(t, subject(m), 500) })
	}
}

// TestSettings plays a few seeds of each.
func TestSettings(t *testing.T) {
	for _, m := range settings() {
		if m.degree > 1 && !m.physical { // TestTuneChanges has all degrees
			continue
		}
		t.Run(m.name, func(t *testing.T) { storetest.Conformance(t, subject(m), 100) })
	}
}

func TestPrograms(t *testing.T) {
	for _, m := range modes() {
		t.Run(m.name, func(t *testing.T) { storetest.Programs(t, subject(m), 40) })
	}
}

func TestCrashInEachWrite(t *testing.T) {
	for _, m := range modes() {
		t.Run(m.name, func(t *testing.T) { storetest.CrashInEachWrite(t, subject(m)) })
	}
}

// TestDay has servers that remember few transactions.
func TestDay(t *testing.T) {
	m := modes()[0]
	m.ends = 100
	s := subject(m)
	s.Watched = nil // what clients hold is counted
	storetest.Day(t, s)
}
