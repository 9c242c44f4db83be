package catalog_test

import (
	"testing"

	"github.com/foresay/foresay/internal/catalog"
	"github.com/foresay/foresay/smr/smrtest"
)

// TestCutLog: a replica whose disk went back is refused, with each protocol.
func TestCutLog(t *testing.T) {
	for _, p := range catalog.Protocols() {
		t.Run(p.Name, func(t *testing.T) { smrtest.CutLog(t, p) })
	}
}
