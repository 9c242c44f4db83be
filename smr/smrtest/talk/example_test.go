package talk_test

import (
	"testing"

	"github.com/foresay/foresay/smr/mencius"
	"github.com/foresay/foresay/smr/smrtest/talk"
)

// A protocol's test plays what is in testdata/scenarios.
func Example() {
	_ = func(t *testing.T) { talk.Play(t, mencius.Protocol(), nil) }
}
