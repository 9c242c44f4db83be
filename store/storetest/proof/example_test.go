package proof_test

import (
	"testing"

	"github.com/foresay/foresay/store/replicatedcommit"
	"github.com/foresay/foresay/store/storetest/proof"
)

// A test plays the client against machines of a protocol, with sixty seeds.
func Example() {
	_ = func(t *testing.T) {
		proof.Run(t, proof.Subject{Protocol: replicatedcommit.Protocol(), Test: "./store/client -run TestConformance"}, 60)
	}
}
