package kit

import (
	"github.com/foresay/foresay/internal/wirefmt"
	"github.com/foresay/foresay/smr"
)

// sharedKinds returns the wire kinds of the messages of this package. Their tags are below 64;
// protocols take theirs from 64 on.
func sharedKinds() []wirefmt.Kind[smr.Message] {
	return []wirefmt.Kind[smr.Message]{
		Kind(1, RequestFields), Kind(2, openRequestFields), Kind(3, changeRequestFields), Kind(4, readRequestFields),
		Kind(5, repliesFields), Kind(6, openReplyFields), Kind(7, readRepliesFields), Kind(8, redirectFields),
		Kind(9, busyFields),
		Kind(10, notYetFields), Kind(11, chunkFields), Kind(12, wantedFields),
		wirefmt.NewEarlierKind[smr.Message](13, func(m Hello) bool {
			return m.Mark == DiskMark{} && !m.Ask
		}, earlierHelloFields),
		wirefmt.NewEarlierKind[smr.Message](14, func(m Welcome) bool { return m.Mark == DiskMark{} }, earlierWelcomeFields),
		Kind(15, earlyFields), Kind(16, func(*wirefmt.Coder, *PartSaved) {}), Kind(17, pingFields), Kind(18, pongFields),
		Kind(19, helloFields), Kind(20, welcomeFields), Kind(24, hostBeatFields), Kind(25, restNowFields),
		Kind(26, restedFields),
		Kind(27, func(*wirefmt.Coder, *Removed) {}), Kind(29, foundingFields), Kind(30, otherGroupFields),
		Kind(31, drowsyFields),
	}
}

// RequestFields are a Request's, for protocols whose messages hold one.
func RequestFields(c *wirefmt.Coder, m *Request) {
	wirefmt.Uint(c, &m.Session)
	wirefmt.Uint(c, &m.Acked)
	wirefmt.Uint(c, &m.After)
	wirefmt.List(c, &m.Commands, 4, requestedFields)
}

func requestedFields(c *wirefmt.Coder, m *RequestedCommand) {
	wirefmt.Uint(c, &m.Seq)
	wirefmt.Bool(c, &m.Brief)
	wirefmt.Bool(c, &m.Early)
	wirefmt.Shared(c, &m.Command)
}

func openRequestFields(c *wirefmt.Coder, m *OpenRequest) { wirefmt.Uint(c, &m.Nonce) }

func changeRequestFields(c *wirefmt.Coder, m *ChangeRequest) {
	wirefmt.Uint(c, &m.Session)
	wirefmt.Uint(c, &m.Acked)
	wirefmt.Uint(c, &m.Seq)
	changeFields(c, &m.Change)
}

func readRequestFields(c *wirefmt.Coder, m *ReadRequest) {
	wirefmt.List(c, &m.Queries, 2, func(c *wirefmt.Coder, q *Query) {
		wirefmt.Uint(c, &q.ID)
		wirefmt.Bytes(c, &q.Body)
	})
}

func repliesFields(c *wirefmt.Coder, m *Replies) {
	wirefmt.Uint(c, &m.Session)
	wirefmt.List(c, &m.Items, 4, replyFields)
}

func replyFields(c *wirefmt.Coder, m *CommandReply) {
	wirefmt.Uint(c, &m.Seq)
	wirefmt.Enum(c, &m.Outcome, smr.Committed, smr.Unknown, "outcome")
	wirefmt.Uint(c, &m.Slot)
	wirefmt.Bytes(c, &m.Result)
	if m.Outcome != smr.Committed {
		wirefmt.String(c, &m.Reason)
		wirefmt.Bool(c, &m.Gone)
	}
}

func openReplyFields(c *wirefmt.Coder, m *OpenReply) {
	wirefmt.Uint(c, &m.Nonce)
	wirefmt.Uint(c, &m.Session)
	wirefmt.Uint(c, &m.Window)
}

func readRepliesFields(c *wirefmt.Coder, m *ReadReplies) {
	wirefmt.List(c, &m.Items, 3, func(c *wirefmt.Coder, i *ReadReply) {
		wirefmt.Uint(c, &i.ID)
		wirefmt.Bytes(c, &i.Result)
		wirefmt.String(c, &i.Reason)
	})
}

func redirectFields(c *wirefmt.Coder, m *Redirect) { MemberFields(c, &m.Leader) }

func busyFields(c *wirefmt.Coder, m *Busy) {
	wirefmt.Uint(c, &m.Session)
	wirefmt.List(c, &m.Seqs, 1, wirefmt.Uint)
	wirefmt.List(c, &m.Queries, 1, wirefmt.Uint)
	wirefmt.Bool(c, &m.Open)
}

func notYetFields(c *wirefmt.Coder, m *NotYet) {
	wirefmt.Uint(c, &m.Session)
	wirefmt.Uint(c, &m.Seq)
	wirefmt.String(c, &m.Reason)
}

func chunkFields(c *wirefmt.Coder, m *SnapshotChunk) {
	wirefmt.Uint(c, &m.Slot)
	wirefmt.Uint(c, &m.Size)
	wirefmt.Uint32(c, &m.Sum)
	wirefmt.Uint(c, &m.Offset)
	wirefmt.Shared(c, &m.Data)
}

func wantedFields(c *wirefmt.Coder, m *SnapshotWanted) {
	wirefmt.Uint(c, &m.Slot)
	wirefmt.Uint32(c, &m.Sum)
	wirefmt.Uint(c, &m.Offset)
}

func earlierHelloFields(c *wirefmt.Coder, m *Hello) {
	wirefmt.Uint(c, &m.Disk)
	wirefmt.Bool(c, &m.Join)
}

func helloFields(c *wirefmt.Coder, m *Hello) {
	earlierHelloFields(c, m)
	markFields(c, &m.Mark)
	wirefmt.Bool(c, &m.Ask)
}

func drowsyFields(c *wirefmt.Coder, m *Drowsy) {
	wirefmt.Uint(c, &m.Run)
	wirefmt.Uint(c, &m.Mark)
	wirefmt.Bool(c, &m.Answer)
}

func foundingFields(c *wirefmt.Coder, m *Founding) {
	wirefmt.Uint(c, &m.Disk)
	wirefmt.List(c, &m.Group, 1, wirefmt.Uint32)
}

func otherGroupFields(c *wirefmt.Coder, m *OtherGroup) {
	wirefmt.Uint(c, &m.Asked)
	wirefmt.List(c, &m.Group, 1, wirefmt.Uint32)
}

func markFields(c *wirefmt.Coder, m *DiskMark) {
	wirefmt.Uint(c, &m.Next)
	wirefmt.Uint(c, &m.Start)
}

func earlierWelcomeFields(c *wirefmt.Coder, m *Welcome) {
	wirefmt.Uint(c, &m.Disk)
	wirefmt.Uint(c, &m.Asked)
	wirefmt.Uint(c, &m.Known)
	wirefmt.String(c, &m.Reason)
	wirefmt.List(c, &m.Members, 2, MemberFields)
}

func welcomeFields(c *wirefmt.Coder, m *Welcome) {
	earlierWelcomeFields(c, m)
	markFields(c, &m.Mark)
}

func earlyFields(c *wirefmt.Coder, m *Early) {
	wirefmt.Uint(c, &m.Session)
	wirefmt.List(c, &m.Items, 2, EarlyReplyFields)
}

// EarlyReplyFields are an EarlyReply's.
func EarlyReplyFields(c *wirefmt.Coder, i *EarlyReply) {
	wirefmt.Uint(c, &i.Seq)
	wirefmt.Uint(c, &i.Slot)
}

func pingFields(c *wirefmt.Coder, m *Ping) { wirefmt.Uint(c, &m.Sent) }

func pongFields(c *wirefmt.Coder, m *Pong) { wirefmt.Uint(c, &m.Sent) }

func hostBeatFields(c *wirefmt.Coder, m *HostBeat) { wirefmt.Uint(c, &m.Run) }

func restNowFields(c *wirefmt.Coder, m *RestNow) {
	wirefmt.Uint(c, &m.Run)
	wirefmt.Uint(c, &m.Ballot)
	wirefmt.Uint(c, &m.Slot)
	wirefmt.Uint(c, &m.Number)
}

func restedFields(c *wirefmt.Coder, m *Rested) {
	wirefmt.Uint(c, &m.Run)
	wirefmt.Uint(c, &m.Ballot)
	wirefmt.Uint(c, &m.Number)
}

// MemberFields are a Member's.
func MemberFields(c *wirefmt.Coder, m *smr.Member) {
	wirefmt.Uint32(c, &m.ID)
	wirefmt.String(c, &m.Address)
}

func changeFields(c *wirefmt.Coder, m *smr.Change) {
	MemberFields(c, &m.Add)
	wirefmt.Uint32(c, &m.Remove)
}

// MinEntryBytes is the least that an entry takes, for lists of them.
const MinEntryBytes = 1

// EntryFields are an Entry's.
func EntryFields(c *wirefmt.Coder, e *Entry) {
	if wirefmt.Enum(c, &e.Kind, NoOp, ChangeMembers, "kind of entry"); e.Kind == NoOp {
		return
	}
	wirefmt.Uint32(c, &e.Client)
	wirefmt.Uint(c, &e.Session)
	wirefmt.Uint(c, &e.Seq)
	wirefmt.Uint(c, &e.Acked)
	switch e.Kind {
	case Command:
		wirefmt.Shared(c, &e.Command)
	case OpenSession:
		if c.Reading() {
			e.Open = new(Open)
		}
		wirefmt.Uint(c, &e.Open.MaxSessions)
		wirefmt.Uint(c, &e.Open.Window)
	case ChangeMembers:
		if c.Reading() {
			e.Members = new(MemberChange)
		}
		changeFields(c, &e.Members.Change)
		wirefmt.Uint(c, &e.Members.Incarnation)
	}
}

// EntriesFields are those of a list of entries.
func EntriesFields(c *wirefmt.Coder, entries *[]Entry) {
	wirefmt.List(c, entries, MinEntryBytes, EntryFields)
}
