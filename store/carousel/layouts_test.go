package carousel

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/foresay/foresay/internal/wirefmt/wiretest"
	"github.com/foresay/foresay/store"
)

// TestLayouts tests what is on disk.
func TestLayouts(t *testing.T) {
	own := cmp.AllowUnexported(partContents{}, ballot{}, txnRecord{}, outcome{}, pending{})
	end := outcome{commit: true, version: store.Version{Time: 9, Client: 7}}
	wiretest.Layouts(t,
		wiretest.Sample("part", partLayout, partContents{1, sampleBallot, true}, own),
		wiretest.Sample("record", recordLayout, txnRecord{shards: []uint32{0, 1}, commit: &sampleRecord, end: &end}, own),
		wiretest.Sample("record that is begun", recordLayout, txnRecord{shards: []uint32{0, 1}}, own),
		wiretest.Sample("outcome", outcomeLayout, end, own),
		wiretest.Sample("latest", latestLayout, 300), wiretest.Sample("old", oldLayout, 300),
		wiretest.Sample("pending", pendingLayout, samplePending, own),
		wiretest.Sample("promise", termLayout, 5),
	)
}
