package carousel

import (
	"testing"

	"github.com/foresay/foresay/store/storetest"
)

func hostile(mode variant) storetest.Hostile {
	return storetest.Hostile{Subject: subject(mode), Messages: messages()}
}

func FuzzReceive(f *testing.F) { hostile(directMode).Fuzz(f) }

func TestReceiveAnything(t *testing.T) {
	modes(t, func(t *testing.T, mode variant) { hostile(mode).Pairs(t) })
}

func TestLiars(t *testing.T) {
	modes(t, func(t *testing.T, mode variant) { hostile(mode).Liars(t, 50) })
}
