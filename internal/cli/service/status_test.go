package service

import (
	"testing"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
)

type change = smr.Change

func TestStatusCodec(t *testing.T) {
	codec := statusCodec()
	for _, msg := range []statusMessage{ask{7}, here{"host:1"}} {
		b, err := codec.Append(nil, msg)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := codec.Decode(b); err != nil || got != msg {
			t.Errorf("%v came back as %v, %v", msg, got, err)
		}
	}
	if _, err := codec.Append(nil, askAll{}); err == nil {
		t.Error("what is for the application only was encoded")
	}
}

func TestEqual(t *testing.T) {
	members := []Member{{1, "a:1"}, {2, "b:1"}}
	at := func(id, leader protocol.ID, applied, committed smr.Slot) Status {
		return Status{Replica: id, Role: "follower", Leader: leader, Applied: applied, Committed: committed, Members: members}
	}
	gone := Status{Replica: 2, Role: Unreachable}
	for _, tc := range []struct {
		name     string
		statuses []Status
		want     bool
	}{
		{"equal", []Status{at(1, 1, 5, 5), at(2, 1, 5, 5)}, true},
		{"nobody", nil, false},
		{"one is behind", []Status{at(1, 1, 5, 5), at(2, 1, 4, 4)}, false},
		{"one has more to do", []Status{at(1, 1, 5, 5), at(2, 1, 5, 6)}, false},
		{"one does not answer", []Status{at(1, 1, 5, 5), gone}, false},
		{"a member is missing", []Status{at(1, 1, 5, 5)}, false},
		{"they follow different leaders", []Status{at(1, 1, 5, 5), at(2, 2, 5, 5)}, false},
		{"there is no leader", []Status{at(1, 0, 5, 5), at(2, 0, 5, 5)}, false},
		{"one that is no member is behind", []Status{at(1, 1, 5, 5), at(2, 1, 5, 5), at(3, 1, 1, 1)}, true},
	} {
		if got := Equal(tc.statuses); got != tc.want {
			t.Errorf("%s: Equal is %v", tc.name, got)
		}
	}
}
