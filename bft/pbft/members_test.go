package pbft_test

import (
	"testing"

	"github.com/foresay/foresay/bft/bfttest"
	"github.com/foresay/foresay/bft/pbft"
)

// TestMembers: the members, their keys and disks change under load.
func TestMembers(t *testing.T) { bfttest.TestMembers(t, pbft.Protocol()) }

// TestChanges: so they do at random, among other faults and traitors.
func TestChanges(t *testing.T) { bfttest.TestChanges(t, pbft.Protocol()) }

// TestCrashAtATurn: whatever is lost when an epoch ends, the next one begins.
func TestCrashAtATurn(t *testing.T) { bfttest.TestCrashAtATurn(t, pbft.Protocol()) }
