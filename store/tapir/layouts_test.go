package tapir

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/foresay/foresay/internal/wirefmt/wiretest"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
)

// TestLayouts tests what servers have on disk beside values and parts.
func TestLayouts(t *testing.T) {
	id, b := store.TxnID{Time: 300, Client: 2}, ballot{Round: 1, By: 300}
	r := record{id: id, shards: []uint32{1, 2}, has: true, promised: ballot{Round: 2, By: 3}, vote: prepared, votedAt: b,
		hint: 299, accepted: b, yes: true, end: aborted, reason: store.Old, lost: true, done: true}
	wiretest.Layouts(t,
		wiretest.Sample("record", recordLayout, r, cmp.AllowUnexported(record{}),
			cmpopts.IgnoreFields(record{}, "part", "since", "tries")),
		wiretest.Sample("view", viewLayout, viewState{view: 300, normal: 2, members: []protocol.ID{11, 21}},
			cmp.AllowUnexported(viewState{})),
		wiretest.Sample("self", selfLayout, self{disk: 300, admitted: true}, cmp.AllowUnexported(self{})),
		wiretest.Sample("version", versionLayout, id),
		wiretest.Sample("number", numberLayout, 300))
}
