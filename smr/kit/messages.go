package kit

import "github.com/foresay/foresay/smr"

// What clients and replicas of protocols with a leader say to each other.
type (
	// Request asks to have commands of a session executed.
	Request struct {
		Session  SessionID
		Acked    Seq      // the client waits for no answer below it
		After    smr.Slot // the commands' positions must be above it
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
		Change  smr.Change
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
		Outcome smr.Outcome
		Slot    smr.Slot
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

	// Redirect says that the replica does not lead. Leader is whom to ask, its ID 0 if the replica
	// does not know.
	Redirect struct{ Leader smr.Member }

	// Busy says that the replica took neither the commands nor the queries: it has too much to do.
	// They can be asked for again, later.
	Busy struct {
		Session SessionID
		Seqs    []Seq
		Queries []uint64
		Open    bool // the OpenRequest
	}

	// NotYet says that a change of the members cannot be made now, and why. Nothing was done; the
	// client may ask again.
	NotYet struct {
		Session SessionID
		Seq     Seq
		Reason  string
	}
)

// NotYet answers a request for a change that cannot be made now.
func (m ChangeRequest) NotYet(reason string) NotYet { return NotYet{m.Session, m.Seq, reason} }
