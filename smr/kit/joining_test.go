package kit

import (
	"testing"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
)

// TestBehind: the protocol's rule is asked about a replica that waits to be added, with its disk,
// and about no other change.
func TestBehind(t *testing.T) {
	d, state, env := newDesk(t, 3)
	d.known.Hello(env, 4, Hello{Disk: 77, Join: true})
	d.known.Hello(env, 5, Hello{Disk: 78, Join: true})
	state.members.removed = []protocol.ID{5}
	add := func(id protocol.ID) smr.Change { return smr.Change{Add: smr.Member{ID: id}} }
	for _, tc := range []struct {
		name   string
		change smr.Change
		ready  bool
		why    string
		asked  bool
		want   string
	}{
		{name: "up to date", change: add(4), ready: true, asked: true},
		{name: "not yet", change: add(4), asked: true, want: "replica 4 is being brought up to date"},
		{name: "no room", change: add(4), why: "no room", asked: true, want: "no room"},
		{name: "a member", change: add(2)},
		{name: "who was removed", change: add(5)},
		{name: "who is not there", change: add(6)},
		{name: "a removal", change: smr.Change{Remove: 3}},
	} {
		asked := false
		got := d.Behind(env, tc.change, func(_ *protocol.Env[smr.Message], id protocol.ID, disk Incarnation) (bool, string) {
			asked = id == 4 && disk == 77
			return tc.ready, tc.why
		})
		if got != tc.want || asked != tc.asked {
			t.Errorf("%s: %q, the rule was asked: %v; want %q, %v", tc.name, got, asked, tc.want, tc.asked)
		}
	}
	req := ChangeRequest{Session: 3, Seq: 8}
	if got := req.NotYet("why"); got.Session != 3 || got.Seq != 8 || got.Reason != "why" {
		t.Errorf("answers %+v", got)
	}
}
