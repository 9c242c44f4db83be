package str

import (
	"testing"

	"github.com/foresay/foresay/store/storetest"
)

func hostile(mode variant) storetest.Hostile {
	return storetest.Hostile{Subject: subject(mode), Messages: messages()}
}

func FuzzReceive(f *testing.F) { hostile(modes()[0]).Fuzz(f) }

func TestReceiveAnything(t *testing.T) { hostile(modes()[0]).Pairs(t) }

func TestLiars(t *testing.T) { hostile(modes()[0]).Liars(t, 50) }
