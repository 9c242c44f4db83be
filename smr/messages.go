package smr

import (
	"github.com/foresay/foresay/internal/wirefmt"
)

// What clients and replicas of protocols with a leader say to each other.
type (
	// Request asks to have commands of a session executed.
	Request struct {
		Session  SessionID
		Acked    Seq  // the client waits for no answer below it
		After    Slot // the commands' positions must be above it
		Commands []RequestedCommand
	}

	// RequestedCommand is one command of a Request.
	RequestedCommand struct {
		Seq     Seq
		Brief   bool // the client wants to know that it was executed, not its result
		Early   bool // it wants to know as well when the position is fixed, if that is earlier
		Command []byte
	}

	// OpenRequest asks for a session. The nonce is the same when it is repeated.
	OpenRequest struct{ Nonce Seq }

	// ChangeRequest asks for a change of the members.
	ChangeRequest struct {
		Session SessionID
		Acked   Seq
		Seq     Seq
		Change  Change
	}

	// ReadRequest asks queries of the state. The client numbers them.
	ReadRequest struct{ Queries []Query }

	// Query is one of a ReadRequest.
	Query struct {
		ID   uint64
		Body []byte
	}

	// Replies answers commands and changes of one session.
	Replies struct {
		Session SessionID
		Items   []CommandReply
	}

	// CommandReply is the answer to one command: what Reply says.
	CommandReply struct {
		Seq     Seq
		Outcome Outcome
		Slot    Slot
		Result  []byte
		Reason  string
		Gone    bool
	}

	// OpenReply is the answer to an OpenRequest.
	OpenReply struct {
		Nonce   Seq
		Session SessionID
		Window  Seq
	}

	// ReadReplies answers queries.
	ReadReplies struct{ Items []ReadReply }

	// ReadReply is the answer to one query, or the reason why there is none.
	ReadReply struct {
		ID     uint64
		Result []byte
		Reason string
	}

	// Redirect says that the replica does not lead. Leader is whom to ask, its ID 0 if the replica does not know.
	Redirect struct{ Leader Member }

	// Busy says that the replica took neither the commands nor the queries: it has too much to do. They can be asked for again, later.
	Busy struct {
		Session SessionID
		Seqs    []Seq
		Queries []uint64
		Open    bool // the OpenRequest
	}

	// NotYet says that a change of the members cannot be made now, and why. Nothing was done; the client may ask again.
	NotYet struct {
		Session SessionID
		Seq     Seq
		Reason  string
	}
)

// SharedKinds returns the wire kinds of the messages of this package. Their tags are below 64; protocols take theirs from 64 on.
func SharedKinds() []wirefmt.Kind[Message] {
	return append(append(tempoKinds(), restKinds()...),
		wirefmt.NewKind[Message](1, appendRequest, readRequest),
		wirefmt.NewKind[Message](2, func(w *wirefmt.Writer, m OpenRequest) { w.Uint(uint64(m.Nonce)) },
			func(r *wirefmt.Reader) OpenRequest { return OpenRequest{Nonce: Seq(r.Uint())} }),
		wirefmt.NewKind[Message](3, appendChangeRequest, readChangeRequest),
		wirefmt.NewKind[Message](4, appendReadRequest, readReadRequest),
		wirefmt.NewKind[Message](5, appendReplies, readReplies),
		wirefmt.NewKind[Message](6, appendOpenReply, readOpenReply),
		wirefmt.NewKind[Message](7, appendReadReplies, readReadReplies),
		wirefmt.NewKind[Message](8, func(w *wirefmt.Writer, m Redirect) { appendMember(w, m.Leader) },
			func(r *wirefmt.Reader) Redirect { return Redirect{Leader: readMember(r)} }),
		wirefmt.NewKind[Message](9, appendBusy, readBusy),
		wirefmt.NewKind[Message](10, appendNotYet, readNotYet),
		wirefmt.NewKind[Message](11, appendChunk, readChunk),
		wirefmt.NewKind[Message](12, appendWanted, readWanted),
		wirefmt.NewEarlierKind[Message](13, func(m Hello) bool { return m.Mark == DiskMark{} && !m.Ask }, appendEarlierHello, readEarlierHello),
		wirefmt.NewKind[Message](19, appendHello, readHello),
		wirefmt.NewEarlierKind[Message](14, func(m Welcome) bool { return m.Mark == DiskMark{} }, appendEarlierWelcome, readEarlierWelcome),
		wirefmt.NewKind[Message](20, appendWelcome, readWelcome),
		wirefmt.NewKind[Message](15, appendEarly, readEarly),
		wirefmt.NewKind[Message](16, func(*wirefmt.Writer, PartSaved) {}, func(*wirefmt.Reader) PartSaved { return PartSaved{} }),
	)
}
