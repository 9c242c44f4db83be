package kit

import (
	"container/list"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/foresay/foresay/internal/wirefmt/wiretest"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
)

// TestLayouts tests what this package has on disk, and in front of a state machine's snapshot.
func TestLayouts(t *testing.T) {
	table := newSessions()
	table.open(7, Entry{Client: 300, Seq: 5, Open: &Open{Window: 16, MaxSessions: 10}})
	table.open(8, Entry{Client: 301, Seq: 6, Open: &Open{Window: 16, MaxSessions: 10}})
	table.byID[1].done[3] = Reply{Outcome: smr.Committed, Slot: 9, Result: []byte("ok")}
	table.byID[1].done[4] = Reply{Outcome: smr.Rejected, Slot: 400, Reason: "no"}
	table.bytes = 2
	group := members{now: []identified{{smr.Member{ID: 1, Address: "a:1"}, 300}, {smr.Member{ID: 3}, 0}}}
	wiretest.Layouts(t,
		wiretest.Sample("head", headLayout, snapshotHead{
			slot: 300, front: []byte("front"), whole: true, segments: []segment{{1, 2, 300, 1 << 31}, {area: 4}},
			since: tail{slot: 400, front: []byte("later"), segments: []segment{{area: 5}}},
		}, cmp.AllowUnexported(snapshotHead{}, segment{}, tail{})),
		wiretest.Sample("what was applied", tailHeadLayout, tailHead{400, 300}, cmp.AllowUnexported(tailHead{})),
		wiretest.Sample("an entry", appliedLayout, appliedEntry{400, Entry{Kind: Command, Client: 3, Command: []byte("c")}},
			cmp.AllowUnexported(appliedEntry{})),
		wiretest.Sample("mark", markLayout, markedDisk{300, DiskMark{Next: 5, Start: 6}}, cmp.AllowUnexported(markedDisk{})),
		wiretest.Sample("binding", bindingLayout, binding{300, true}, cmp.AllowUnexported(binding{})),
		wiretest.Sample("members", membersLayout, members{now: group.now, removed: []protocol.ID{2}},
			cmp.AllowUnexported(members{}, identified{})),
		wiretest.Sample("image", imageLayout, image{applied: 500, members: group, sessions: table},
			cmp.AllowUnexported(image{}, members{}, identified{}, sessions{}, session{}, opening{}),
			cmpopts.IgnoreFields(session{}, "place"), cmpopts.IgnoreTypes(list.List{})),
	)
}
