package layered

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/storetest"
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
