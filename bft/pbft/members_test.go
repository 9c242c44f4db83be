package pbft_test

import (
	"testing"

	"github.com/foresay/foresay/bft/bfttest"
	"github.com/foresay/foresay/bft/pbft"
)

// TestMembers: the members, their keys and disks change under load.
func TestMembers(t *testing.T) { bfttest.TestMembers(t, pbft.Protocol()) }
