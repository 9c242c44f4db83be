package service

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/foresay/foresay/internal/wirefmt/wiretest"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
)

type change = smr.Change

func statusMessages() []statusMessage {
	return []statusMessage{ask{7}, answer{8, []byte("{}")}, here{"host:1"}, leadNow{Number: 9, To: 2, Group: 3},
		waits{Number: 10, Round: 2, Group: 1, From: "a", To: "b", After: 11},
		waiting{Number: 10, Round: 2, Members: []protocol.ID{1, 2, 4}}, changed{Number: 10, Round: 2}, waitsNoMore{10}}
}

func TestStatusCodec(t *testing.T) {
	codec := statusCodec()
	wiretest.Codec(t, codec, 0, statusMessages(), cmp.AllowUnexported(ask{}, answer{}, here{}, leadNow{},
		waits{}, waiting{}, changed{}, waitsNoMore{}))
	if _, err := codec.Append(nil, askAll{}); err == nil {
		t.Error("what is for the application only was encoded")
	}
}

func FuzzStatusCodec(f *testing.F) { wiretest.Fuzz(f, statusCodec(), statusMessages()) }

func TestEqual(t *testing.T) {
	members := []Member{{1, "a:1"}, {2, "b:1"}}
	at := func(id, leader protocol.ID, applied, committed smr.Slot) Status {
		return Status{Replica: id, Role: "follower", Leader: leader, Ready: leader != 0, Applied: applied,
			Committed: committed, Members: members}
	}
	leaderless := func(id protocol.ID, ready bool) Status {
		return Status{Replica: id, Role: "owner", Leaderless: true, Ready: ready, Applied: 5, Committed: 5, Members: members}
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
		{"there is to be no leader", []Status{leaderless(1, true), leaderless(2, true)}, true},
		{"one does not serve yet", []Status{leaderless(1, true), leaderless(2, false)}, false},
		{"one that is no member is behind", []Status{at(1, 1, 5, 5), at(2, 1, 5, 5), at(3, 1, 1, 1)}, true},
	} {
		if got := Equal(tc.statuses); got != tc.want {
			t.Errorf("%s: Equal is %v", tc.name, got)
		}
	}
}

func TestCatchup(t *testing.T) {
	members := []Member{{1, "a:1"}, {2, "b:1"}}
	at := func(id protocol.ID, applied, committed smr.Slot) Status {
		return Status{Replica: id, Role: "owner", Leaderless: true, Ready: true, Applied: applied, Committed: committed,
			Members: members}
	}
	var c Catchup
	for _, step := range []struct {
		name     string
		statuses []Status
		want     bool
	}{
		{"nobody answers", []Status{{Replica: 1, Role: Unreachable}}, false},
		{"it begins", []Status{at(1, 5, 7), at(2, 4, 4)}, false},
		{"one lacks what was committed then", []Status{at(1, 9, 10), at(2, 6, 9)}, false},
		{"one is silent", []Status{at(1, 9, 10), {Replica: 2, Role: Unreachable}}, false},
		{"all have that, and one has more", []Status{at(1, 9, 10), at(2, 7, 9)}, true},
	} {
		if got := c.Over(step.statuses); got != step.want {
			t.Errorf("%s: Over is %v", step.name, got)
		}
	}
	c = Catchup{}
	if c.Over([]Status{at(1, 5, 7), at(2, 5, 5)}) || !c.Over([]Status{at(1, 6, 6), at(2, 6, 6)}) {
		t.Error("nothing came of something that was under way, and equal replicas have not caught up")
	}
}
