package talk_test

import (
	"testing"

	"github.com/foresay/foresay/store/replicatedcommit"
	"github.com/foresay/foresay/store/storetest/talk"
)

// A protocol's test plays what is in testdata/scenarios.
func Example() {
	_ = func(t *testing.T) { talk.Play(t, replicatedcommit.Protocol(), nil) }
}
