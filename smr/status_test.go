package smr_test

import (
	"testing"

	"github.com/foresay/foresay/smr"
)

func TestReady(t *testing.T) {
	for _, tc := range []struct {
		name string
		smr.Status
		want bool
	}{
		{"nobody leads", smr.Status{Replica: 1, Role: "follower"}, false},
		{"it leads", smr.Status{Replica: 1, Role: "leader", Leader: 1}, true},
		{"it knows who leads", smr.Status{Replica: 1, Role: "follower", Leader: 2}, true},
		{"it needs no leader", smr.Status{Replica: 1, Role: "owner", Serves: true}, true},
	} {
		if got := tc.Ready(); got != tc.want {
			t.Errorf("%s: Ready is %t", tc.name, got)
		}
	}
}
