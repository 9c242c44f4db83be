package layered

import (
	"fmt"
	"iter"
	"testing"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/storetest"
)

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
					if !yield(key, s.shard.value(state, key)) {
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

// TestConformance plays 60 seeds under faults; twenty of them twice.
func TestConformance(t *testing.T) { storetest.Conformance(t, subject(), 60) }
