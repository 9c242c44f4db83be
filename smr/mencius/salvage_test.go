package mencius_test

import (
	"testing"

	"github.com/foresay/foresay/smr/mencius"
	"github.com/foresay/foresay/smr/smrtest"
)

func TestSalvage(t *testing.T) { smrtest.Salvage(t, mencius.Protocol(), 5) }
