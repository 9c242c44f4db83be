package replicatedcommit

import (
	"testing"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/storetest"
)

// hostile has servers take part, and not mind that they are told two contrary decisions.
func hostile() storetest.Hostile {
	return storetest.Hostile{
		Subject: subject(0), Messages: messages(),
		Admit: func(n protocol.Node[store.Message]) { n.(*server).admission.admitted = true },
		Forgive: func(n protocol.Node[store.Message]) bool {
			if s, ok := n.(*server); ok {
				s.contrary = nil
			}
			return true
		},
	}
}

func FuzzReceive(f *testing.F) { hostile().Fuzz(f) }

func TestReceiveAnything(t *testing.T) { hostile().Pairs(t) }

// TestNoTime has servers hear of a transaction before all times: that all up to it are done would
// say that it is.
func TestNoTime(t *testing.T) {
	h, shards := hostile(), []uint32{0, 1}
	txn := store.Txn{ID: store.TxnID{Client: 7}, Writes: []store.Write{{Key: "k0", Bytes: []byte("x")}}}
	h.Messages = []store.Message{decide{ID: txn.ID, Shards: shards, Commit: true}, ask{ID: txn.ID, Shards: shards},
		prepare{Txn: txn, Shards: shards}, decide{ID: txn.ID, Shards: shards}}
	h.Pairs(t)
}

// TestLiars does not check coordinators, which compare what they have decided with sites' votes.
func TestLiars(t *testing.T) {
	h := hostile()
	forgive := h.Forgive
	h.Forgive = func(n protocol.Node[store.Message]) bool {
		_, coordinates := n.(*coordinator)
		return forgive(n) && !coordinates
	}
	h.Liars(t, 50)
}
