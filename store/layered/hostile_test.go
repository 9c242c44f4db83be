package layered

import (
	"testing"

	"github.com/foresay/foresay/store/storetest"
)

func hostile() storetest.Hostile {
	return storetest.Hostile{Subject: subject(), Messages: messages()}
}

func FuzzReceive(f *testing.F) { hostile().Fuzz(f) }

func TestReceiveAnything(t *testing.T) { hostile().Pairs(t) }

func TestLiars(t *testing.T) { hostile().Liars(t, 50) }
