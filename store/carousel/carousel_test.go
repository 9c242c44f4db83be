package carousel

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
	"github.com/foresay/foresay/store/kit"
	"github.com/foresay/foresay/store/storetest"
)

func TestMain(m *testing.M) { os.Exit(heap.RunTests(m)) }

// subject is Carousel as package storetest wants it.
func subject(mode variant) storetest.Subject {
	return storetest.Subject{
		Protocol: in(mode), Package: "./store/carousel", Settle: 2 * time.Second,
		Values: func(n protocol.Node[store.Message], disk protocol.Keys) iter.Seq2[store.Key, store.Value] {
			s := n.(*server)
			page := s.state.values.Copy(s.group.StateIn(disk), nil, math.MaxInt)
			return func(yield func(store.Key, store.Value) bool) {
				for i, item := range page.Items { // the newest version of a key comes first
					if (i == 0 || page.Items[i-1].Key != item.Key) && !yield(item.Key, item.Value) {
						return
					}
				}
			}
		},
		Left: func(n protocol.Node[store.Message]) string {
			s := n.(*server)
			switch {
			case len(s.state.parts) > 0:
				return fmt.Sprintf("has %d parts without an end", len(s.state.parts))
			case len(s.state.records) > 0:
				return fmt.Sprintf("coordinates %d transactions", len(s.state.records))
			case len(s.list.entries) > 0:
				return fmt.Sprintf("has %d parts on its list", len(s.list.entries))
			}
			return ""
		},
	}
}

// TestConformance plays 500 seeds of each mode under faults, or a fifth of them.
func TestConformance(t *testing.T) {
	modes(t, func(t *testing.T, mode variant) { storetest.Conformance(t, subject(mode), 500) })
}

func TestPrograms(t *testing.T) {
	modes(t, func(t *testing.T, mode variant) { storetest.Programs(t, subject(mode), 40) })
}

func TestCrashInEachWrite(t *testing.T) {
	modes(t, func(t *testing.T, mode variant) { storetest.CrashInEachWrite(t, subject(mode)) })
}

// TestDay has servers that remember few transactions, and groups whose logs are short.
func TestDay(t *testing.T) {
	modes(t, func(t *testing.T, mode variant) {
		subject := subject(mode)
		subject.Protocol.NewServer = kit.NodeOf(func(cfg store.Config) (*server, error) {
			return newServerOf(cfg, mode, 100, 100)
		})
		storetest.Day(t, subject)
	})
}
