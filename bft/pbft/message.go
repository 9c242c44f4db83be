package pbft

import (
	"time"

	"github.com/foresay/foresay/bft"
	"github.com/foresay/foresay/internal/wirefmt"
	"github.com/foresay/foresay/protocol"
)

// A Batch is what is agreed on at once: requests in their order, each with the time that the primary
// had when it came.
type Batch struct{ Entries []BatchEntry }

// A BatchEntry is a request of a Batch.
type BatchEntry struct {
	Request bft.Digest
	Time    time.Duration
}

type (
	// Order is what a primary signs: the batch of a place, the zero Digest for none.
	Order struct {
		View  bft.View
		Seq   bft.Seq
		Batch bft.Digest
	}
	// Vote is what a backup signs when it has accepted an Order and has it on disk.
	Vote Order
	// Checkpoint is what a replica signs when it has the state on disk that all batches up to a place
	// have made.
	Checkpoint struct {
		Seq   bft.Seq
		State bft.Digest
	}
	// Prepared proves that a quorum has accepted an order: no other batch can be prepared in its view
	// and place.
	Prepared struct {
		Order bft.Signed[Order]
		Votes bft.Certificate[Vote]
	}
	// Change is what a replica signs when it gives a view up: what it has that the next one must keep.
	Change struct {
		View     bft.View // the next one
		Stable   bft.Certificate[Checkpoint]
		Prepared []Prepared // above Stable, in order, the newest of each place
	}
	// Start is what the primary of a new view signs: by what it was chosen, and what follows from that.
	Start struct {
		View    bft.View
		Changes []bft.Signed[Change]
		Orders  []bft.Signed[Order] // from the highest Stable on, in order
	}
	// EarlyReply is what a primary signs when it has executed a request early: what will come of it if
	// the view lasts.
	EarlyReply struct {
		View    bft.View
		Client  protocol.ID
		Session bft.SessionID
		Items   []EarlyItem
	}
	// EarlyItem is what an EarlyReply says of one operation.
	EarlyItem struct {
		Number bft.Number
		Result bft.Result
	}
)

// Messages of clients and to them.
type (
	// Submit asks for the execution of a request. Full asks this replica for results and not only for
	// their digests.
	Submit struct {
		Request bft.Signed[bft.Request]
		Full    bool
	}
	// Reply tells what became of operations.
	Reply struct {
		View    bft.View // of the replica; tentative results are of this view
		Session bft.SessionID
		Items   []ReplyItem
	}
	// ReplyItem is what a Reply says of one operation.
	ReplyItem struct {
		Number    bft.Number
		Seq       bft.Seq
		Tentative bool
		Digest    bft.Digest // of the result
		Full      bool       // the result is in it
		Result    bft.Result
	}
	// Early is an EarlyReply.
	Early struct{ Reply bft.Signed[EarlyReply] }
	// ReadAsk is an optimised read, which is not ordered.
	ReadAsk struct {
		ID    uint64
		Query []byte
		Full  bool
	}
	// ReadReply answers a ReadAsk.
	ReadReply struct {
		ID     uint64
		Digest bft.Digest // of the result
		Full   bool
		Value  []byte
	}
)

// Messages among replicas.
type (
	// Propose has a primary's order, its batch, and those requests that are small.
	Propose struct {
		Order    bft.Signed[Order]
		Batch    Batch
		Requests []bft.Signed[bft.Request]
	}
	// Prepare is a Vote.
	Prepare struct{ Vote bft.Signed[Vote] }
	// Commit says that the order is prepared here, and on disk; Done that the batch is committed.
	Commit struct {
		Order Order
		Done  bool
	}
	// Reached is a Checkpoint.
	Reached struct{ Checkpoint bft.Signed[Checkpoint] }
	// Stable proves that a checkpoint is stable.
	Stable struct{ Proof bft.Certificate[Checkpoint] }
	// ViewChange is a Change.
	ViewChange struct{ Change bft.Signed[Change] }
	// NewView is a Start.
	NewView struct{ Start bft.Signed[Start] }
	// Status tells how far a replica is; who is further sends it what it lacks.
	Status struct {
		View              bft.View
		Active            bool
		Stable, Committed bft.Seq
	}
	// Wanted asks for bodies by their digests.
	Wanted struct{ Batches, Requests []bft.Digest }
	// Bodies answers a Wanted.
	Bodies struct {
		Batches  []Batch
		Requests []bft.Signed[bft.Request]
	}
	// StateWanted asks for parts of a checkpoint's state, see package keyspace.
	StateWanted struct {
		Seq   bft.Seq
		Wants []string
	}
	// StatePage is one part.
	StatePage struct {
		Seq  bft.Seq
		Want string
		Page []byte
	}
)

// Records of the log, beside Propose for what was accepted.
type preparedRecord struct{ Prepared Prepared }

// What is kept under keys.
type (
	viewRecord struct {
		View   bft.View
		Active bool
	}
	doneRecord struct{ Committed bft.Seq }
)

// formatVersion is the version of all messages and records.
const formatVersion = 1

// statements are what is signed.
type statements struct {
	scheme      *bft.Scheme
	requests    *bft.Statement[bft.Request]
	orders      *bft.Statement[Order]
	votes       *bft.Statement[Vote]
	checkpoints *bft.Statement[Checkpoint]
	changes     *bft.Statement[Change]
	starts      *bft.Statement[Start]
	early       *bft.Statement[EarlyReply]
	batches     *bft.Statement[Batch] // never signed, for its digests

	prepared func(*wirefmt.Coder, *Prepared)
}

func newStatements(sc *bft.Scheme) *statements {
	s := &statements{
		scheme:      sc,
		requests:    bft.Requests(),
		orders:      bft.NewStatement("pbft pre-prepare", orderFields),
		votes:       bft.NewStatement("pbft prepare", func(c *wirefmt.Coder, m *Vote) { orderFields(c, (*Order)(m)) }),
		checkpoints: bft.NewStatement("pbft checkpoint", checkpointFields),
		early:       bft.NewStatement("pbft early reply", earlyFields),
		batches:     bft.NewStatement("pbft batch", batchFields),
	}
	order, votes := s.orders.Fields(sc), bft.CertificateFields(s.votes, sc)
	s.prepared = func(c *wirefmt.Coder, m *Prepared) {
		order(c, &m.Order)
		votes(c, &m.Votes)
	}
	stable := bft.CertificateFields(s.checkpoints, sc)
	s.changes = bft.NewStatement("pbft view-change", func(c *wirefmt.Coder, m *Change) {
		wirefmt.Uint(c, &m.View)
		stable(c, &m.Stable)
		wirefmt.List(c, &m.Prepared, 64, s.prepared)
	})
	change := s.changes.Fields(sc)
	s.starts = bft.NewStatement("pbft new-view", func(c *wirefmt.Coder, m *Start) {
		wirefmt.Uint(c, &m.View)
		wirefmt.List(c, &m.Changes, 64, change)
		wirefmt.List(c, &m.Orders, 64, order)
	})
	return s
}

func (s *statements) digestOf(b Batch) bft.Digest { return s.batches.Digest(s.scheme, b) }

func (s *statements) digestOfRequest(r *bft.Request) bft.Digest {
	return s.requests.Digest(s.scheme, *r)
}

// NewCodec returns the codec of a group's messages and records. It checks signatures.
func NewCodec(sc *bft.Scheme) protocol.Codec[bft.Message] { return newStatements(sc).format() }

func (s *statements) format() *wirefmt.Format[bft.Message] {
	request, order := s.requests.Fields(s.scheme), s.orders.Fields(s.scheme)
	proof := bft.CertificateFields(s.checkpoints, s.scheme)
	return wirefmt.NewFormat("pbft", formatVersion, append(plainKinds(),
		kind(64, func(c *wirefmt.Coder, m *Submit) {
			request(c, &m.Request)
			wirefmt.Bool(c, &m.Full)
		}),
		kind(65, signed(s.early, s.scheme, func(m *Early) *bft.Signed[EarlyReply] { return &m.Reply })),
		kind(66, func(c *wirefmt.Coder, m *Propose) {
			order(c, &m.Order)
			batchFields(c, &m.Batch)
			wirefmt.List(c, &m.Requests, 64, request)
		}),
		kind(67, signed(s.votes, s.scheme, func(m *Prepare) *bft.Signed[Vote] { return &m.Vote })),
		kind(68, signed(s.checkpoints, s.scheme, func(m *Reached) *bft.Signed[Checkpoint] { return &m.Checkpoint })),
		kind(69, signed(s.changes, s.scheme, func(m *ViewChange) *bft.Signed[Change] { return &m.Change })),
		kind(70, signed(s.starts, s.scheme, func(m *NewView) *bft.Signed[Start] { return &m.Start })),
		kind(71, func(c *wirefmt.Coder, m *Stable) { proof(c, &m.Proof) }),
		kind(72, func(c *wirefmt.Coder, m *Bodies) {
			wirefmt.List(c, &m.Batches, 1, batchFields)
			wirefmt.List(c, &m.Requests, 64, request)
		}),
		kind(73, func(c *wirefmt.Coder, m *preparedRecord) { s.prepared(c, &m.Prepared) }),
	)...)
}

func kind[T any](tag byte, fields func(*wirefmt.Coder, *T)) wirefmt.Kind[bft.Message] {
	return wirefmt.NewKind[bft.Message](tag, fields)
}

func signed[T, B any](st *bft.Statement[B], sc *bft.Scheme, of func(*T) *bft.Signed[B]) func(*wirefmt.Coder, *T) {
	fields := st.Fields(sc)
	return func(c *wirefmt.Coder, m *T) { fields(c, of(m)) }
}

// plainKinds are the kinds without signatures.
func plainKinds() []wirefmt.Kind[bft.Message] {
	return []wirefmt.Kind[bft.Message]{
		kind(80, replyFields),
		kind(81, func(c *wirefmt.Coder, m *ReadAsk) {
			wirefmt.Uint(c, &m.ID)
			wirefmt.Bytes(c, &m.Query)
			wirefmt.Bool(c, &m.Full)
		}),
		kind(82, func(c *wirefmt.Coder, m *ReadReply) {
			wirefmt.Uint(c, &m.ID)
			bft.DigestFields(c, &m.Digest)
			if wirefmt.Bool(c, &m.Full); m.Full {
				wirefmt.Bytes(c, &m.Value)
			}
		}),
		kind(83, func(c *wirefmt.Coder, m *Commit) {
			orderFields(c, &m.Order)
			wirefmt.Bool(c, &m.Done)
		}),
		kind(84, func(c *wirefmt.Coder, m *Status) {
			wirefmt.Uint(c, &m.View)
			wirefmt.Bool(c, &m.Active)
			wirefmt.Uint(c, &m.Stable)
			wirefmt.Uint(c, &m.Committed)
		}),
		kind(85, func(c *wirefmt.Coder, m *Wanted) {
			wirefmt.List(c, &m.Batches, 32, bft.DigestFields)
			wirefmt.List(c, &m.Requests, 32, bft.DigestFields)
		}),
		kind(86, func(c *wirefmt.Coder, m *StateWanted) {
			wirefmt.Uint(c, &m.Seq)
			wirefmt.List(c, &m.Wants, 1, wirefmt.String)
		}),
		kind(87, func(c *wirefmt.Coder, m *StatePage) {
			wirefmt.Uint(c, &m.Seq)
			wirefmt.String(c, &m.Want)
			wirefmt.Bytes(c, &m.Page)
		}),
		kind(88, func(c *wirefmt.Coder, m *viewRecord) {
			wirefmt.Uint(c, &m.View)
			wirefmt.Bool(c, &m.Active)
		}),
		kind(89, func(c *wirefmt.Coder, m *doneRecord) { wirefmt.Uint(c, &m.Committed) }),
	}
}

func batchFields(c *wirefmt.Coder, m *Batch) {
	wirefmt.List(c, &m.Entries, 33, func(c *wirefmt.Coder, e *BatchEntry) {
		bft.DigestFields(c, &e.Request)
		wirefmt.Int(c, &e.Time)
	})
}

func orderFields(c *wirefmt.Coder, m *Order) {
	wirefmt.Uint(c, &m.View)
	wirefmt.Uint(c, &m.Seq)
	bft.DigestFields(c, &m.Batch)
}

func checkpointFields(c *wirefmt.Coder, m *Checkpoint) {
	wirefmt.Uint(c, &m.Seq)
	bft.DigestFields(c, &m.State)
}

func earlyFields(c *wirefmt.Coder, m *EarlyReply) {
	wirefmt.Uint(c, &m.View)
	wirefmt.Uint32(c, &m.Client)
	wirefmt.Uint(c, &m.Session)
	wirefmt.List(c, &m.Items, 3, func(c *wirefmt.Coder, i *EarlyItem) {
		wirefmt.Uint(c, &i.Number)
		bft.ResultFields(c, &i.Result)
	})
}

func replyFields(c *wirefmt.Coder, m *Reply) {
	wirefmt.Uint(c, &m.View)
	wirefmt.Uint(c, &m.Session)
	wirefmt.List(c, &m.Items, 36, func(c *wirefmt.Coder, i *ReplyItem) {
		wirefmt.Uint(c, &i.Number)
		wirefmt.Uint(c, &i.Seq)
		wirefmt.Bool(c, &i.Tentative)
		bft.DigestFields(c, &i.Digest)
		if wirefmt.Bool(c, &i.Full); i.Full {
			bft.ResultFields(c, &i.Result)
		}
	})
}
