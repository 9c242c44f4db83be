package client_test

import (
	"testing"
	"time"

	"github.com/foresay/foresay/store/carousel"
	"github.com/foresay/foresay/store/layered"
	"github.com/foresay/foresay/store/replicatedcommit"
	"github.com/foresay/foresay/store/storetest/proof"
	"github.com/foresay/foresay/store/str"
	"github.com/foresay/foresay/store/tapir"
)

// TestConformance plays the client against machines of each protocol.
func TestConformance(t *testing.T) {
	t.Run("replicatedcommit", func(t *testing.T) { proof.Run(t, replicated("TestConformance"), 30) })
	t.Run("tapir", func(t *testing.T) {
		proof.Run(t, proof.Subject{Protocol: tapir.Protocol(), Test: "./store/client -run TestConformance/tapir",
			Settle: 5 * time.Second}, 15)
	})
	t.Run("layered", func(t *testing.T) {
		proof.Run(t, proof.Subject{Protocol: layered.Protocol(), Test: "./store/client -run TestConformance/layered",
			Settle: 2 * time.Second, Remembers: true}, 15)
	})
	for _, mode := range str.Protocol().Modes {
		t.Run("str-"+mode, func(t *testing.T) {
			p, err := str.Protocol().In(mode)
			if err != nil {
				t.Fatal(err)
			}
			proof.Run(t, proof.Subject{Protocol: p, Test: "./store/client -run TestConformance/str-" + mode,
				Settle: 2 * time.Second, Remembers: true}, 15)
		})
	}
	for _, mode := range []string{"fast", "direct"} {
		t.Run("carousel-"+mode, func(t *testing.T) {
			p, err := carousel.Protocol().In(mode)
			if err != nil {
				t.Fatal(err)
			}
			proof.Run(t, proof.Subject{Protocol: p, Test: "./store/client -run TestConformance/carousel-" + mode,
				Settle: 2 * time.Second, Remembers: true}, 15)
		})
	}
}

func replicated(test string) proof.Subject {
	return proof.Subject{Protocol: replicatedcommit.Protocol(), Test: "./store/client -run " + test + "/replicatedcommit"}
}
