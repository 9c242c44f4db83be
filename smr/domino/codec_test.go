package domino_test

import (
	"testing"
	"time"

	"github.com/foresay/foresay/internal/wirefmt/wiretest"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/domino"
	"github.com/foresay/foresay/smr/kit"
)

// messages are of all kinds that nodes send or record beside those of package smr.
func messages() []smr.Message {
	items := []domino.Item{
		{Slot: 32, Answer: 2, Entries: []kit.Entry{
			{Kind: kit.Command, Client: 7, Session: 3, Seq: 9, Acked: 4, Command: []byte("set")},
			{Kind: kit.OpenSession, Client: 7, Seq: 1 << 63, Open: &kit.Open{MaxSessions: 10, Window: 100}},
		}},
		{Slot: 1<<60 + 15, Answer: 1, Entries: []kit.Entry{
			{Kind: kit.ChangeMembers, Client: 7, Session: 3, Seq: 11, Acked: 4,
				Members: &kit.MemberChange{Change: smr.Change{Remove: 2}}},
		}},
	}
	decided := domino.Close{Track: domino.Control, Low: 5, High: 1 << 60, Items: items}
	return []smr.Message{
		domino.News{
			First: 3, Items: items, Base: 2, Through: 31, Claims: domino.Claims{Count: 4, Closed: 40, Skipped: 41}, Executed: 30,
			Have: []domino.Have{{Owner: 1, Count: 4, Revoked: 0}, {Owner: 2, Count: 1, Revoked: 77}}, Promised: 1<<32 | 2,
			Accepted: 9, Leads: true,
		},
		domino.News{},
		domino.News{First: 3, Items: []domino.Item{{Slot: 4}},
			Names: []domino.Name{{Index: 0, Lengths: []uint64{5000, 0}, Sum: 9}, {Index: 1 << 40}}},
		domino.Lacking{Number: 4},
		domino.Accept{Ballot: 1<<32 | 2, Generation: 3, Base: 1, Through: 9, First: 2,
			Closes: []domino.Close{decided, {Track: 3, Low: 1, High: 2}}},
		domino.Prepare{Ballot: 2},
		domino.Promise{Ballot: 2, Executed: 3, Number: 1, Count: 2, Parts: []domino.Part{{Ballot: 1, Close: decided}}},
		domino.Refusal{Promised: 2},
		domino.Revoke{Ballot: 2, Track: 3, High: 4},
		domino.Revoked{Ballot: 2, Track: 3, Asked: 5, High: 4, Executed: 2, Items: items},
		domino.Learned{Close: decided},
		domino.Learned{Close: decided, Names: []domino.Name{{Index: 1, Lengths: []uint64{5000}, Sum: 9}}},
		domino.Fetch{After: 2, Blank: true},
		domino.Decided{Low: 2, High: 3, Executed: 4, Items: items},
		domino.Ask{Round: 2},
		domino.Latest{Round: 2, Slot: 3},
		domino.Submit{
			Request: kit.Request{After: 63, Session: 3, Acked: 4,
				Commands: []kit.RequestedCommand{{Seq: 5, Command: []byte("set")}, {Seq: 6, Brief: true}}},
			Slot: 64, Answer: 2, Acks: []smr.Ack{smr.AckExecuted, smr.AckDurable},
		},
		domino.Vote{Session: 3, Slot: 64, Members: 3, Verdict: domino.No, Late: -time.Millisecond},
		domino.Placed{Session: 3, Slot: 65, Members: 3, Whole: true, Seqs: []kit.Seq{5, 6}},
		domino.Outcome{Session: 3, Slot: 64, Committed: true},
		domino.Ordered{Session: 3, Slot: 65, Seqs: []kit.Seq{5}},
		domino.Probe{Sent: time.Hour, Generation: 3},
		domino.Echo{
			Sent: time.Hour, Now: time.Hour + 1, Delays: []domino.Delay{{ID: 2, Round: time.Second}}, Leader: 1, Generation: 4,
			Members: []smr.Member{{ID: 1, Address: "host:1"}},
		},
		domino.OwnRecord{First: 3, Items: items},
		domino.TrackRecord{Owner: 2, Items: items},
		domino.CloseRecord{Part: domino.Part{Ballot: 1, Close: decided}},
	}
}

func TestCodec(t *testing.T) { wiretest.Codec(t, domino.Codec(), 64, messages()) }

// TestLayouts: a message is written as earlier versions of the program know it, unless it has what
// these do not know.
func TestLayouts(t *testing.T) {
	for _, c := range []struct {
		m   smr.Message
		tag byte
	}{
		{domino.News{}, 64}, {domino.News{Items: []domino.Item{{Slot: 4}}, Names: []domino.Name{{Sum: 9}}}, 77},
		{domino.Learned{}, 71}, {domino.Learned{Names: []domino.Name{{Sum: 9}}}, 78},
		{kit.Hello{From: 1, Join: true}, 13}, {kit.Hello{From: 1, Mark: kit.DiskMark{Next: 1, Start: 2}}, 19},
		{kit.Welcome{From: 1, Members: []smr.Member{{ID: 1}}}, 14},
		{kit.Welcome{From: 1, Mark: kit.DiskMark{Next: 1, Start: 2}}, 20},
	} {
		if b, err := domino.Codec().Append(nil, c.m); err != nil || b[1] != c.tag {
			t.Errorf("%+v has the tag %d, want %d (%v)", c.m, b[1], c.tag, err)
		}
	}
}

func FuzzCodec(f *testing.F) { wiretest.Fuzz(f, domino.Codec(), messages()) }
