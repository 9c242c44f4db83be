package front

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	pb "github.com/foresay/foresay/api/foresay/store/v1"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/gate"
)

// The wire and the store number reasons alike.
func TestReasons(t *testing.T) {
	words := map[string]store.Reason{
		"UNSPECIFIED": store.NoReason, "STALE_READ": store.StaleRead, "STALE_WRITE": store.StaleWrite, "LOCKED": store.Locked,
		"RESERVED": store.Reserved,
		"AHEAD":    store.Ahead, "FENCED": store.Fenced, "OLD": store.Old, "OVERLOADED": store.Overloaded,
		"LAPSED": store.Lapsed,
	}
	if len(words) != len(pb.Reason_name) {
		t.Errorf("the wire has %d reasons, want %d", len(pb.Reason_name), len(words))
	}
	for n, name := range pb.Reason_name {
		want, ok := words[strings.TrimPrefix(name, "REASON_")]
		if !ok || reasonFromWire(pb.Reason(n)) != want || reasonToWire(want) != pb.Reason(n) {
			t.Errorf("%s is %v, and back %v", name, reasonFromWire(pb.Reason(n)), reasonToWire(want))
		}
	}
	if got := reasonFromWire(99); got != store.NoReason {
		t.Errorf("a reason of a later version is %v", got)
	}
	if got := reasonToWire(99); got != pb.Reason_REASON_UNSPECIFIED {
		t.Errorf("a reason that the wire does not have is %v", got)
	}
}

func TestCommitTravels(t *testing.T) {
	want := store.CommitRequest{Recover: true, Firm: true, Hold: true, Serializable: true, Explain: true, Txn: store.Txn{
		ID: store.TxnID{Time: 7, Client: 1 << 63}, Priority: store.Priority{Began: 5, Client: 3},
		Reads:  []store.Read{{Key: "a", Version: store.Version{Time: 1, Client: 2}}, {Key: "b\xff"}},
		Writes: []store.Write{{Key: "b\xff", Delete: true}, {Key: "c", Bytes: []byte("v")}},
	}}
	var r request
	for name, m := range map[string]*pb.CommitRequest{
		"alone": commitToWire(want, 1), "for all sites": encodedToWire(want, r.encode(want.Txn), 1),
		"again": encodedToWire(want, r.encode(store.Txn{}), 1),
	} {
		data, err := proto.Marshal(&pb.CallBatch{Calls: []*pb.Call{{Request: &pb.Call_Commit{Commit: m}}}})
		if err != nil {
			t.Fatal(err)
		}
		var arrived pb.CallBatch
		if err := proto.Unmarshal(data, &arrived); err != nil {
			t.Fatal(err)
		}
		m := arrived.GetCalls()[0].GetCommit()
		got := gateCommit(m)(7).(gate.Commit)
		arrives := gate.Commit{Ref: 7, Txn: want.Txn, Recover: true, Firm: true, Hold: true, Serializable: true,
			Explain: true}
		if diff := cmp.Diff(arrives, got); diff != "" || m.GetEpoch() != 1 {
			t.Errorf("%s: the request changed on its way, epoch %d:\n%s", name, m.GetEpoch(), diff)
		}
	}
}

func TestAnswersTravel(t *testing.T) {
	id := store.TxnID{Time: 7, Client: 1}
	for _, tc := range []struct {
		done gate.CommitDone
		want store.Message
	}{
		{gate.CommitDone{Vote: store.SiteVote{ID: id, Yes: true}}, store.SiteVote{ID: id, Yes: true}},
		{
			gate.CommitDone{Vote: store.SiteVote{ID: id, Shards: []uint32{1}, Reason: store.StaleRead, Hint: 9,
				Current: []store.Current{
					{Key: "k", Value: store.Value{Version: id, Present: true, Bytes: []byte("v")}}, {Key: "l", Locked: true},
				}}},
			store.SiteVote{ID: id, Reason: store.StaleRead, Hint: 9, Current: []store.Current{
				{Key: "k", Value: store.Value{Version: id, Present: true, Bytes: []byte("v")}}, {Key: "l", Locked: true},
			}},
		},
		{gate.CommitDone{Known: true, Decided: store.Decided{ID: id, Verdict: store.Committed}},
			store.Decided{ID: id, Verdict: store.Committed}},
		{gate.CommitDone{Known: true, Decided: store.Decided{ID: id, Verdict: store.Committed, Course: aCourse(id)}},
			store.Decided{ID: id, Verdict: store.Committed, Course: aCourse(id)}},
		{gate.CommitDone{Known: true,
			Decided: store.Decided{ID: id, Verdict: store.Aborted, Course: &store.Course{Snapshot: 1}}},
			store.Decided{ID: id, Verdict: store.Aborted, Course: &store.Course{Snapshot: 1}}},
		{
			gate.CommitDone{Known: true, Decided: store.Decided{ID: id, Verdict: store.Aborted, Reason: store.Locked}},
			store.Decided{ID: id, Verdict: store.Aborted, Reason: store.Locked},
		},
		{gate.CommitDone{Known: true, Decided: store.Decided{ID: id, Verdict: store.Unknown, Reason: store.Old}},
			store.Decided{ID: id, Reason: store.Old}},
	} {
		data, err := proto.Marshal(doneToWire(tc.done))
		if err != nil {
			t.Fatal(err)
		}
		var m pb.CommitResponse
		if err := proto.Unmarshal(data, &m); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tc.want, doneFromWire(id, &m)); diff != "" {
			t.Errorf("%+v changed on its way:\n%s", tc.done, diff)
		}
	}
	if m := doneFromWire(id, &pb.CommitResponse{}); m != nil {
		t.Errorf("an answer that says nothing is %v", m)
	}
}

func aCourse(id store.TxnID) *store.Course {
	return &store.Course{Snapshot: 300, Local: 301, LocalAt: 4, Built: []store.Built{{Key: "k", By: id}},
		Words: []store.CourseWord{{Shard: 1, Site: 2, At: 300}}, LastOn: id, LastOnAt: 200}
}
