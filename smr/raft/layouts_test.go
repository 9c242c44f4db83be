package raft

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/foresay/foresay/internal/wirefmt/wiretest"
	"github.com/foresay/foresay/smr/kit"
)

// TestLayouts tests what is in front of snapshots, and in the library's entries.
func TestLayouts(t *testing.T) {
	wiretest.Layouts(t,
		wiretest.Sample("front", frontLayout, front{term: 300, voters: []uint64{1, 2, 300}, stateBytes: 500},
			cmp.AllowUnexported(front{})),
		wiretest.Sample("entry", entryLayout, kit.Entry{
			Kind: kit.Command, Client: 300, Session: 4, Seq: 5, Acked: 2, Command: []byte("command"),
		}),
		wiretest.Sample("head of a part", headLayout, head{applied: Position{300, 4}, cut: Position{200, 3}, area: 2},
			cmp.AllowUnexported(head{})),
		wiretest.Sample("copy that arrives", arrivingLayout, arriving{copy: 300, have: 4, area: 2},
			cmp.AllowUnexported(arriving{})))
}
