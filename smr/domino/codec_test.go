package domino

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/foresay/foresay/internal/wirefmt/wiretest"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
	"github.com/foresay/foresay/smr/smrtest"
)

// messages are of all kinds that nodes send or record beside those of package smr.
func messages() []smr.Message {
	items := []item{
		{Slot: 32, Answer: 2, Entries: []kit.Entry{
			{Kind: kit.Command, Client: 7, Session: 3, Seq: 9, Acked: 4, Command: []byte("set")},
			{Kind: kit.OpenSession, Client: 7, Seq: 1 << 63, Open: &kit.Open{MaxSessions: 10, Window: 100}},
		}},
		{Slot: 1<<60 + 15, Answer: 1, Entries: []kit.Entry{
			{Kind: kit.ChangeMembers, Client: 7, Session: 3, Seq: 11, Acked: 4,
				Members: &kit.MemberChange{Change: smr.Change{Remove: 2}}},
		}},
	}
	known := closeSlots{Track: control, Low: 5, High: 1 << 60, Items: items}
	return []smr.Message{
		news{
			First: 3, Items: items, Base: 2, Through: 31, claims: claims{Count: 4, Closed: 40, Skipped: 41}, Executed: 30,
			Have: []have{{Owner: 1, Count: 4, Revoked: 0}, {Owner: 2, Count: 1, Revoked: 77}}, Promised: 1<<32 | 2,
			Accepted: 9, Leads: true,
		},
		news{},
		news{First: 3, Items: []item{{Slot: 4}},
			Names: []name{{Index: 0, Lengths: []uint64{5000, 0}, Sum: 9}, {Index: 1 << 40}}},
		missing{Number: 4},
		accept{Ballot: 1<<32 | 2, Generation: 3, Base: 1, Through: 9, First: 2,
			Closes: []closeSlots{known, {Track: 3, Low: 1, High: 2}}},
		prepare{Ballot: 2},
		promise{Ballot: 2, Executed: 3, Number: 1, Count: 2, Parts: []part{{Ballot: 1, closeSlots: known}}},
		refusal{Promised: 2},
		revoke{Ballot: 2, Track: 3, High: 4},
		revoked{Ballot: 2, Track: 3, Asked: 5, High: 4, Executed: 2, Items: items},
		learned{closeSlots: known},
		learned{closeSlots: known, Names: []name{{Index: 1, Lengths: []uint64{5000}, Sum: 9}}},
		fetch{After: 2, Blank: true},
		decided{Low: 2, High: 3, Executed: 4, Items: items},
		poll{Round: 2},
		polled{Round: 2, Slot: 3},
		submit{
			Request: kit.Request{After: 63, Session: 3, Acked: 4,
				Commands: []kit.RequestedCommand{{Seq: 5, Command: []byte("set")}, {Seq: 6, Brief: true}}},
			Slot: 64, Answer: 2, Acks: []smr.Ack{smr.AckExecuted, smr.AckDurable},
		},
		vote{Session: 3, Slot: 64, Members: 3, Verdict: no, Late: -time.Millisecond},
		placed{Session: 3, Slot: 65, Members: 3, Whole: true, Seqs: []kit.Seq{5, 6}},
		outcome{Session: 3, Slot: 64, Committed: true},
		ordered{Session: 3, Slot: 65, Seqs: []kit.Seq{5}},
		probe{Sent: time.Hour, Generation: 3},
		echo{
			Sent: time.Hour, Now: time.Hour + 1, Delays: []delay{{ID: 2, Round: time.Second}}, Leader: 1, Generation: 4,
			Members: []smr.Member{{ID: 1, Address: "host:1"}},
		},
		echo{Sent: time.Hour, Now: time.Hour + 1, Shown: 2 * time.Hour},
		ownRecord{First: 3, Items: items},
		trackRecord{Owner: 2, Items: items},
		closeRecord{part: part{Ballot: 1, closeSlots: known}},
		executedRecord{Items: items},
		executedRecord{Items: []item{{Slot: 64}}},
	}
}

func TestCodec(t *testing.T) { wiretest.Codec(t, codec(), 64, messages()) }

// TestEarlierTags: a message is written as earlier versions of the program know it, unless it has
// what these do not know.
func TestEarlierTags(t *testing.T) {
	wiretest.Tags(t, codec(), map[byte]smr.Message{
		64: news{}, 77: news{Items: []item{{Slot: 4}}, Names: []name{{Sum: 9}}},
		86: echo{Now: 1}, 87: echo{Now: 1, Shown: 2},
		71: learned{}, 78: learned{Names: []name{{Sum: 9}}},
	})
}

func FuzzCodec(f *testing.F) { wiretest.Fuzz(f, codec(), messages()) }

// TestLayouts tests what acceptors have under keys of their disks.
func TestLayouts(t *testing.T) {
	wiretest.Layouts(t,
		wiretest.Sample("promises", promisesLayout, promises{300, 7}, cmp.AllowUnexported(promises{})),
		wiretest.Sample("stream", streamLayout, uint64(300)),
		wiretest.Sample("revoked", revokedLayout, revokedRecord{3, 300}, cmp.AllowUnexported(revokedRecord{})))
}

// TestWhatOthersRelyOnIsOnDisk looks at the messages of replicas that must not be forgotten.
func TestWhatOthersRelyOnIsOnDisk(t *testing.T) {
	o := Options{Direct: true, AllLearn: true, Arrival: true, Probe: 50 * time.Millisecond}
	smrtest.FromDisk(t, New("domino-direct", "", o), vote{}, news{}, promise{}, revoked{}, placed{})
}
