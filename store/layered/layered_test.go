package layered

import (
	"fmt"
	"iter"
	"os"
	"testing"
	"time"

	"github.com/foresay/foresay/internal/heap"
	"github.com/foresay/foresay/internal/msgtext"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/kit"
	"github.com/foresay/foresay/store/storetest"
	"github.com/foresay/foresay/store/storetest/talk"
)

func TestMain(m *testing.M) { os.Exit(heap.RunTests(m)) }

// subject is the layered store as package storetest wants it. The logs of its groups are short, so
// that servers that were away get copies of the state.
func subject() storetest.Subject {
	return storetest.Subject{
		Protocol: protocolOf(8), Package: "./store/layered", Settle: 2 * time.Second,
		Values: func(n protocol.Node[store.Message], keys protocol.Keys) iter.Seq2[store.Key, store.Value] {
			s := n.(*server)
			state := s.group.State(keys)
			return func(yield func(store.Key, store.Value) bool) {
				for k := range state.Scan([]byte(valuePrefix), []byte{valuePrefix[0] + 1}) {
					key := store.Key(k[len(valuePrefix):])
					if !yield(key, values.At(state, key)) {
						return
					}
				}
			}
		},
		Left: func(n protocol.Node[store.Message]) string {
			if open := n.(*server).shard.open; len(open) > 0 {
				return fmt.Sprintf("has %d open transactions", len(open))
			}
			return ""
		},
	}
}

// TestConformance plays 500 seeds under faults, or a fifth of them.
func TestConformance(t *testing.T) { storetest.Conformance(t, subject(), 500) }

func TestPrograms(t *testing.T) { storetest.Programs(t, subject(), 40) }

// TestDay has servers that remember few transactions.
func TestDay(t *testing.T) {
	subject := subject()
	subject.Protocol.NewServer = kit.NodeOf(func(cfg store.Config) (*server, error) {
		s, err := newServer(cfg, 8)
		if err == nil {
			s.shard.remembers = 100
		}
		return s, err
	})
	storetest.Day(t, subject)
}

func TestCrashInEachWrite(t *testing.T) { storetest.CrashInEachWrite(t, subject()) }

// TestScenarios has the protocol talk: testdata/scenarios, which are there to be read.
func TestScenarios(t *testing.T) {
	names := [...]string{prepared: "prepared", committed: "committed", aborted: "aborted", forgotten: "forgotten",
		waiting: "waits"}
	format := codec()
	talk.Play(t, Protocol(), func(all msgtext.Format, v any) (string, bool) {
		switch v := v.(type) {
		case grouped: // what the group says is a message like any other
			return all.Of(v.Msg), true
		case state:
			return names[v], true
		case []byte: // of a command of the group, or its result
			if m, err := format.Decode(v); err == nil {
				return all.Of(m), true
			}
		}
		return "", false
	})
}
