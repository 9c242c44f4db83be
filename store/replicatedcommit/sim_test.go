package replicatedcommit

import (
	"testing"

	"github.com/foresay/foresay/store/storetest"
)

// TestConformance plays 200 seeds under faults; twenty of them twice.
func TestConformance(t *testing.T) { storetest.Conformance(t, subject(0), 200) }
