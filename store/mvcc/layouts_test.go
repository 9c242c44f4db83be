package mvcc

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/foresay/foresay/internal/wirefmt/wiretest"
)

// TestLayouts tests what a store has on disk.
func TestLayouts(t *testing.T) {
	all := cmp.AllowUnexported(contents{})
	wiretest.Layouts(t,
		wiretest.Sample("value", contentsLayout, contents{true, []byte("value")}, all),
		wiretest.Sample("deletion", contentsLayout, contents{}, all),
		wiretest.Sample("timestamp", stampLayout, 300))
}
