package keyspace

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/foresay/foresay/internal/wirefmt/wiretest"
)

// TestLayouts tests what a state says of itself on disk.
func TestLayouts(t *testing.T) {
	all := cmp.AllowUnexported(meta{}, checkpoint{}, ref{})
	one := checkpoint{7, ref{2, Digest{1, 2}}}
	wiretest.Layouts(t,
		wiretest.Sample("state", metaLayout, meta{checkpoints: []checkpoint{{}, one}, root: one.root}, all),
		wiretest.Sample("fetching", metaLayout, meta{root: one.root, fetching: true, target: one}, all))
}
