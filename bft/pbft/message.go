package pbft

import (
	"time"

	"github.com/foresay/foresay/bft"
	"github.com/foresay/foresay/internal/wirefmt"
	"github.com/foresay/foresay/protocol"
)

// A requestBatch is what is agreed on at once: requests in their order, each with the time that the
// primary had when it came.
type requestBatch struct{ Entries []batchEntry }

// A BatchEntry is a request of a Batch.
type batchEntry struct {
	Request bft.Digest
	Time    time.Duration
}

type (
	// Order is what a primary signs: the batch of a place, the zero Digest for none.
	orderBody struct {
		View  bft.View
		Seq   bft.Seq
		Batch bft.Digest
	}
	// Vote is what a backup signs when it has accepted an Order and has it on disk.
	voteBody orderBody
	// Checkpoint is what a replica signs when it has the state on disk that all batches up to a place
	// have made.
	checkpointBody struct {
		Seq   bft.Seq
		State bft.Digest
	}
	// Prepared proves that a quorum has accepted an order: no other batch can be prepared in its view
	// and place.
	preparedProof struct {
		Order bft.Signed[orderBody]
		Votes bft.Certificate[voteBody]
	}
	// Change is what a replica signs when it gives a view up: what it has that the next one must keep.
	changeBody struct {
		View     bft.View // the next one
		Stable   bft.Certificate[checkpointBody]
		Prepared []preparedProof // above Stable, in order, the newest of each place
	}
	// startBody is what the primary of a new view signs: by what it was chosen, and what follows.
	startBody struct {
		View    bft.View
		Changes []bft.Signed[changeBody]
		Orders  []bft.Signed[orderBody] // from the highest Stable on, in order
	}
	// EarlyReply is what a primary signs when it has executed a request early: what will come of it if
	// the view lasts.
	earlyBody struct {
		View    bft.View
		Client  protocol.ID
		Session bft.SessionID
		Items   []earlyItem
	}
	// EarlyItem is what an EarlyReply says of one operation.
	earlyItem struct {
		Number bft.Number
		Result bft.Result
	}
)

// Messages of clients and to them.
type (
	// Submit asks for the execution of a request. Full asks this replica for results and not only for
	// their digests.
	submitted struct {
		Request bft.Signed[bft.Request]
		Full    bool
	}
	// Reply tells what became of operations.
	replies struct {
		View    bft.View // of the replica; tentative results are of this view
		Session bft.SessionID
		Items   []replyItem
	}
	// ReplyItem is what a Reply says of one operation.
	replyItem struct {
		Number    bft.Number
		Seq       bft.Seq
		Tentative bool
		Digest    bft.Digest // of the result
		Full      bool       // the result is in it
		Result    bft.Result
	}
	// Early is an EarlyReply.
	earlyReply struct{ Reply bft.Signed[earlyBody] }
	// ReadAsk is an optimised read, which is not ordered.
	readAsk struct {
		ID    uint64
		Query []byte
		Full  bool
	}
	// ReadReply answers a ReadAsk.
	readReply struct {
		ID     uint64
		Digest bft.Digest // of the result
		Full   bool
		Value  []byte
	}
)

// Messages among replicas.
type (
	// Propose has a primary's order, its batch, and those requests that are small.
	proposal struct {
		Order    bft.Signed[orderBody]
		Batch    requestBatch
		Requests []bft.Signed[bft.Request]
	}
	// Prepare is a Vote.
	prepare struct{ Vote bft.Signed[voteBody] }
	// Commit says that the order is prepared here, and on disk; Done that the batch is committed.
	commit struct {
		Order orderBody
		Done  bool
	}
	// Reached is a Checkpoint.
	reached struct{ Checkpoint bft.Signed[checkpointBody] }
	// Stable proves that a checkpoint is stable.
	stableProof struct {
		Proof bft.Certificate[checkpointBody]
	}
	// ViewChange is a Change.
	viewChange struct{ Change bft.Signed[changeBody] }
	// NewView is a Start.
	newView struct{ Start bft.Signed[startBody] }
	// Status tells how far a replica is; who is further sends it what it lacks.
	status struct {
		View              bft.View
		Active            bool
		Stable, Committed bft.Seq
	}
	// Wanted asks for bodies by their digests.
	wanted struct{ Batches, Requests []bft.Digest }
	// Bodies answers a Wanted.
	bodies struct {
		Batches  []requestBatch
		Requests []bft.Signed[bft.Request]
	}
	// StateWanted asks for parts of a checkpoint's state, see package keyspace.
	stateWanted struct {
		Seq   bft.Seq
		Wants []string
	}
	// StatePage is one part.
	statePage struct {
		Seq  bft.Seq
		Want string
		Page []byte
	}
)

// Records of the log, beside Propose for what was accepted.
type preparedRecord struct{ Prepared preparedProof }

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
	orders      *bft.Statement[orderBody]
	votes       *bft.Statement[voteBody]
	checkpoints *bft.Statement[checkpointBody]
	changes     *bft.Statement[changeBody]
	starts      *bft.Statement[startBody]
	early       *bft.Statement[earlyBody]
	batches     *bft.Statement[requestBatch] // never signed, for its digests

	prepared func(*wirefmt.Coder, *preparedProof)
}

func newStatements(sc *bft.Scheme) *statements {
	s := &statements{
		scheme:      sc,
		requests:    bft.Requests(),
		orders:      bft.NewStatement("pbft pre-prepare", orderFields),
		votes:       bft.NewStatement("pbft prepare", voteFields),
		checkpoints: bft.NewStatement("pbft checkpoint", checkpointFields),
		early:       bft.NewStatement("pbft early reply", earlyFields),
		batches:     bft.NewStatement("pbft batch", batchFields),
	}
	order, votes := s.orders.Fields(sc), bft.CertificateFields(s.votes, sc)
	s.prepared = func(c *wirefmt.Coder, m *preparedProof) {
		order(c, &m.Order)
		votes(c, &m.Votes)
	}
	stable := bft.CertificateFields(s.checkpoints, sc)
	s.changes = bft.NewStatement("pbft view-change", func(c *wirefmt.Coder, m *changeBody) {
		wirefmt.Uint(c, &m.View)
		stable(c, &m.Stable)
		wirefmt.List(c, &m.Prepared, 64, s.prepared)
	})
	change := s.changes.Fields(sc)
	s.starts = bft.NewStatement("pbft new-view", func(c *wirefmt.Coder, m *startBody) {
		wirefmt.Uint(c, &m.View)
		wirefmt.List(c, &m.Changes, 64, change)
		wirefmt.List(c, &m.Orders, 64, order)
	})
	return s
}

func (s *statements) digestOf(b requestBatch) bft.Digest { return s.batches.Digest(s.scheme, b) }

func (s *statements) digestOfRequest(r *bft.Request) bft.Digest {
	return s.requests.Digest(s.scheme, *r)
}

// newCodec returns the codec of a group's messages and records. It checks signatures.
func newCodec(sc *bft.Scheme) protocol.Codec[bft.Message] { return newStatements(sc).format() }

func (s *statements) format() *wirefmt.Format[bft.Message] {
	request, order := s.requests.Fields(s.scheme), s.orders.Fields(s.scheme)
	proof := bft.CertificateFields(s.checkpoints, s.scheme)
	return wirefmt.NewFormat("pbft", formatVersion, append(plainKinds(),
		kind(64, func(c *wirefmt.Coder, m *submitted) {
			request(c, &m.Request)
			wirefmt.Bool(c, &m.Full)
		}),
		kind(65, signed(s.early, s.scheme, func(m *earlyReply) *bft.Signed[earlyBody] { return &m.Reply })),
		kind(66, func(c *wirefmt.Coder, m *proposal) {
			order(c, &m.Order)
			batchFields(c, &m.Batch)
			wirefmt.List(c, &m.Requests, bft.RequestBytes, request)
		}),
		kind(67, signed(s.votes, s.scheme, func(m *prepare) *bft.Signed[voteBody] { return &m.Vote })),
		kind(68, signed(s.checkpoints, s.scheme, func(m *reached) *bft.Signed[checkpointBody] { return &m.Checkpoint })),
		kind(69, signed(s.changes, s.scheme, func(m *viewChange) *bft.Signed[changeBody] { return &m.Change })),
		kind(70, signed(s.starts, s.scheme, func(m *newView) *bft.Signed[startBody] { return &m.Start })),
		kind(71, func(c *wirefmt.Coder, m *stableProof) { proof(c, &m.Proof) }),
		kind(72, func(c *wirefmt.Coder, m *bodies) {
			wirefmt.List(c, &m.Batches, 1, batchFields)
			wirefmt.List(c, &m.Requests, bft.RequestBytes, request)
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
		kind(81, func(c *wirefmt.Coder, m *readAsk) {
			wirefmt.Uint(c, &m.ID)
			wirefmt.Bytes(c, &m.Query)
			wirefmt.Bool(c, &m.Full)
		}),
		kind(82, func(c *wirefmt.Coder, m *readReply) {
			wirefmt.Uint(c, &m.ID)
			bft.DigestFields(c, &m.Digest)
			if wirefmt.Bool(c, &m.Full); m.Full {
				wirefmt.Bytes(c, &m.Value)
			}
		}),
		kind(83, func(c *wirefmt.Coder, m *commit) {
			orderFields(c, &m.Order)
			wirefmt.Bool(c, &m.Done)
		}),
		kind(84, func(c *wirefmt.Coder, m *status) {
			wirefmt.Uint(c, &m.View)
			wirefmt.Bool(c, &m.Active)
			wirefmt.Uint(c, &m.Stable)
			wirefmt.Uint(c, &m.Committed)
		}),
		kind(85, func(c *wirefmt.Coder, m *wanted) {
			wirefmt.List(c, &m.Batches, 32, bft.DigestFields)
			wirefmt.List(c, &m.Requests, 32, bft.DigestFields)
		}),
		kind(86, func(c *wirefmt.Coder, m *stateWanted) {
			wirefmt.Uint(c, &m.Seq)
			wirefmt.List(c, &m.Wants, 1, wirefmt.String)
		}),
		kind(87, func(c *wirefmt.Coder, m *statePage) {
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

func batchFields(c *wirefmt.Coder, m *requestBatch) {
	wirefmt.List(c, &m.Entries, 33, func(c *wirefmt.Coder, e *batchEntry) {
		bft.DigestFields(c, &e.Request)
		wirefmt.Int(c, &e.Time)
	})
}

func orderFields(c *wirefmt.Coder, m *orderBody) {
	wirefmt.Uint(c, &m.View)
	wirefmt.Uint(c, &m.Seq)
	bft.DigestFields(c, &m.Batch)
}

func voteFields(c *wirefmt.Coder, m *voteBody) { orderFields(c, (*orderBody)(m)) }

func checkpointFields(c *wirefmt.Coder, m *checkpointBody) {
	wirefmt.Uint(c, &m.Seq)
	bft.DigestFields(c, &m.State)
}

func earlyFields(c *wirefmt.Coder, m *earlyBody) {
	wirefmt.Uint(c, &m.View)
	wirefmt.Uint32(c, &m.Client)
	wirefmt.Uint(c, &m.Session)
	wirefmt.List(c, &m.Items, 3, func(c *wirefmt.Coder, i *earlyItem) {
		wirefmt.Uint(c, &i.Number)
		bft.ResultFields(c, &i.Result)
	})
}

func replyFields(c *wirefmt.Coder, m *replies) {
	wirefmt.Uint(c, &m.View)
	wirefmt.Uint(c, &m.Session)
	wirefmt.List(c, &m.Items, 36, func(c *wirefmt.Coder, i *replyItem) {
		wirefmt.Uint(c, &i.Number)
		wirefmt.Uint(c, &i.Seq)
		wirefmt.Bool(c, &i.Tentative)
		bft.DigestFields(c, &i.Digest)
		if wirefmt.Bool(c, &i.Full); i.Full {
			bft.ResultFields(c, &i.Result)
		}
	})
}
