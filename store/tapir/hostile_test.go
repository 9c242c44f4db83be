package tapir

import (
	"testing"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/storetest"
)

// hostile has servers not mind that they are told two contrary decisions.
func hostile() storetest.Hostile {
	return storetest.Hostile{
		Subject: subject(), Messages: messages(),
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

func TestLiars(t *testing.T) { hostile().Liars(t, 50) }
