package carousel

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/foresay/foresay/internal/wirefmt/wiretest"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr/kit"
	"github.com/foresay/foresay/smr/raft"
	"github.com/foresay/foresay/store"
	storekit "github.com/foresay/foresay/store/kit"
	"github.com/foresay/foresay/store/storetest"
)

// samples are what messages are made from.
var (
	sampleID      = store.TxnID{Time: 1 << 42, Client: 7}
	sampleReads   = []store.Read{{Key: "k", Version: store.Version{Time: 3, Client: 2}}}
	sampleWrites  = []store.Write{{Key: "l", Bytes: []byte("x")}}
	sampleCurrent = []store.Current{{Key: "k", Value: store.Value{Version: sampleID, Present: true}}}
	sampleBallot  = ballot{Yes: true, Stamp: 9, footprint: footprint{sampleReads, []store.Read{{Key: "l"}}}}
	samplePending = pending{Part: partID{sampleID, 1}, Term: 4, Coord: 1, footprint: sampleBallot.footprint}
	sampleRecord  = commitRecord{[]partRef{{0, 1}, {1, 2}}, sampleReads, sampleWrites}
)

// messages are of all kinds of the protocol's own that are encoded.
func messages() []store.Message {
	id, part, shards := sampleID, partID{sampleID, 2}, []uint32{0, 1}
	check := checkRequest{ID: id, At: 9, Reads: sampleReads}
	end := finish{ID: id, Coord: 1, Commit: true, Version: store.Version{Time: 9, Client: 7}, Writes: sampleWrites}
	return []store.Message{
		staleReply{id, 1, sampleCurrent},
		prepareRequest{Part: part, Coord: 1, Reads: []store.Key{"k"}, Stood: []store.Version{id}},
		prepareRequest{Part: part, Coord: 1, Writes: []store.Key{"k"}, Arrives: 9,
			Priority: store.Priority{Began: 5, Client: 6}},
		storekit.Grouped{Msg: kit.OpenRequest{Nonce: 3}},
		prepareRequest{Part: part, Coord: 1, Reads: []store.Key{"k"}, Writes: []store.Key{"l"}, Leader: true},
		valuesReply{Part: part, Shard: 1, Leader: true, Values: []store.Held{
			{Value: store.Value{Version: id, Present: true}, Site: 2}}},
		check, checkReply{id, 1, store.Locked}, beginRequest{id, shards}, commitRequest{id, sampleRecord},
		snapshotRequest{id, 9, true, true, sampleReads}, snapshotReply{id, 1, 9, store.Locked, nil},
		closedRequest{id, 9, sampleReads}, closedReply{id, 1, 9, 8, store.NoReason, []store.Value{{Version: id}}},
		timeRequest{9}, timeReply{9, 8},
		abortRequest{id, shards}, voteMsg{Ref: partRef{1, 2}, ID: id, Ballot: sampleBallot, Doubt: true},
		fastVote{Ref: partRef{1, 2}, ID: id, Term: 4, Leader: true, Stamp: 9, Footprint: sampleBallot.footprint,
			Members: []protocol.ID{1, 2}},
		storedVote{Ref: partRef{1, 2}, ID: id, At: raft.Position{Index: 8, Term: 4}, Ballot: sampleBallot,
			Members: []protocol.ID{1, 2}},
		voteWanted{part, 1}, end, finished{id, 1}, moved{1, 12, id}, listWanted{5}, listReply{5, []pending{samplePending}},
		prepared{Part: part, Coord: 1, Ballot: ballot{Reason: store.Locked}, Recovered: true}, ended{end},
		checked{checkRequest{ID: id, Reads: sampleReads}},
		raised{9}, closed{9, 8}, closeWanted{7}, begun{beginRequest{id, shards}}, committing{commitRequest{id, sampleRecord}},
		decided{ID: id, Commit: true, Version: end.Version, Shards: shards, Alone: true}, done{id},
	}
}

func TestCodec(t *testing.T) { wiretest.Codec(t, storetest.Own(codec()), 0, messages()) }

func FuzzCodec(f *testing.F) { wiretest.Fuzz(f, codec(), messages()) }

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
