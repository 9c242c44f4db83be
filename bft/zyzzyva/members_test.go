package zyzzyva_test

import (
	"testing"

	"github.com/foresay/foresay/bft/bfttest"
	"github.com/foresay/foresay/bft/zyzzyva"
)

// TestMembers: the members, their keys and disks change under load.
func TestMembers(t *testing.T) { bfttest.TestMembers(t, zyzzyva.Protocol()) }
