package layered

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/foresay/foresay/internal/msgtext"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/storetest"
	"github.com/foresay/foresay/store/storetest/talk"
)

// subject is the layered store as package storetest wants it.
func subject() storetest.Subject {
	return storetest.Subject{
		Protocol: Protocol(), Package: "./store/layered", Settle: 2 * time.Second,
		Values: func(n protocol.Node[store.Message], _ protocol.Keys) iter.Seq2[store.Key, store.Value] {
			values := n.(*server).shard.values
			return func(yield func(store.Key, store.Value) bool) {
				for _, k := range slices.Sorted(maps.Keys(values)) {
					if !yield(k, values[k]) {
						return
					}
				}
			}
		},
		Left: func(n protocol.Node[store.Message]) string {
			if open := n.(*server).shard.open(); len(open) > 0 {
				return fmt.Sprintf("has %d open transactions", len(open))
			}
			return ""
		},
	}
}

// TestConformance plays 60 seeds under faults; twenty of them twice.
func TestConformance(t *testing.T) { storetest.Conformance(t, subject(), 60) }

// TestScenarios has the protocol talk: testdata/scenarios, which are there to be read.
func TestScenarios(t *testing.T) {
	names := [...]string{prepared: "prepared", committed: "committed", aborted: "aborted", forgotten: "forgotten"}
	format := format()
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
