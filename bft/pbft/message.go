package pbft

import (
	"github.com/foresay/foresay/bft"
	"github.com/foresay/foresay/bft/kit"
	"github.com/foresay/foresay/internal/wirefmt"
	"github.com/foresay/foresay/protocol"
)

type (
	// Order is what a primary signs: the batch of a place, the zero Digest for none.
	orderBody struct {
		View  bft.View
		Seq   bft.Seq
		Batch bft.Digest
	}
	// Vote is what a backup signs when it has accepted an Order and has it on disk.
	voteBody orderBody
	// Prepared proves that a quorum has accepted an order: no other batch can be prepared in its view
	// and place.
	preparedProof struct {
		Order bft.Signed[orderBody]
		Votes bft.Certificate[voteBody]
	}
	// Change is what a replica signs when it gives a view up: what it has that the next one must keep.
	changeBody struct {
		View     bft.View // the next one
		Stable   bft.Certificate[kit.Checkpoint]
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
	// lie is an early reply that was wrong, as a client shows it to the members.
	lie struct{ Reply bft.Signed[earlyBody] }
)

// Messages among replicas.
type (
	// Propose has a primary's order, its batch, and those requests that are small.
	proposal struct {
		Order    bft.Signed[orderBody]
		Batch    kit.Batch
		Requests []bft.Signed[bft.Request]
	}
	// Prepare is a Vote.
	prepare struct{ Vote bft.Signed[voteBody] }
	// Commit says that the order is prepared here, and on disk; Done that the batch is committed.
	commit struct {
		Order orderBody
		Done  bool
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
)

// Records of the log, beside Propose for what was accepted.
type preparedRecord struct{ Prepared preparedProof }

// viewRecord is kept under a key.
type viewRecord struct {
	View   bft.View
	Active bool
}

// formatVersion is the version of all messages and records.
const formatVersion = 1

// statements are what is signed.
type statements struct {
	kit.Statements
	orders  *bft.Statement[orderBody]
	votes   *bft.Statement[voteBody]
	changes *bft.Statement[changeBody]
	starts  *bft.Statement[startBody]
	early   *bft.Statement[earlyBody]

	prepared func(*wirefmt.Coder, *preparedProof)
}

func newStatements(sc *bft.Scheme) *statements {
	s := &statements{
		Statements: kit.NewStatements(sc, "pbft", false),
		orders:     bft.NewStatement("pbft pre-prepare", orderFields),
		votes:      bft.NewStatement("pbft prepare", voteFields),
		early:      bft.NewStatement("pbft early reply", earlyFields),
	}
	order, votes := s.orders.Fields(sc), bft.CertificateFields(s.votes, sc)
	s.prepared = func(c *wirefmt.Coder, m *preparedProof) {
		order(c, &m.Order)
		votes(c, &m.Votes)
	}
	stable := bft.CertificateFields(s.Checkpoints, sc)
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

// newCodec returns the codec of a group's messages and records. It checks signatures.
func newCodec(sc *bft.Scheme) protocol.Codec[bft.Message] { return newStatements(sc).format() }

func (s *statements) format() *wirefmt.Format[bft.Message] {
	request, order := s.Requests.Fields(s.Scheme), s.orders.Fields(s.Scheme)
	return wirefmt.NewFormat("pbft", formatVersion, append(append(s.Kinds(), plainKinds()...),
		kit.Kind(65, kit.SignedFields(s.early, s.Scheme, func(m *earlyReply) *bft.Signed[earlyBody] { return &m.Reply })),
		kit.Kind(66, func(c *wirefmt.Coder, m *proposal) {
			order(c, &m.Order)
			kit.BatchFields(c, &m.Batch)
			wirefmt.List(c, &m.Requests, bft.RequestBytes, request)
		}),
		kit.Kind(67, kit.SignedFields(s.votes, s.Scheme, func(m *prepare) *bft.Signed[voteBody] { return &m.Vote })),
		kit.Kind(69, kit.SignedFields(s.changes, s.Scheme, func(m *viewChange) *bft.Signed[changeBody] { return &m.Change })),
		kit.Kind(70, kit.SignedFields(s.starts, s.Scheme, func(m *newView) *bft.Signed[startBody] { return &m.Start })),
		kit.Kind(74, kit.SignedFields(s.early, s.Scheme, func(m *lie) *bft.Signed[earlyBody] { return &m.Reply })),
		kit.Kind(73, func(c *wirefmt.Coder, m *preparedRecord) { s.prepared(c, &m.Prepared) }),
	)...)
}

// plainKinds are the kinds without signatures.
func plainKinds() []wirefmt.Kind[bft.Message] {
	return []wirefmt.Kind[bft.Message]{
		kit.Kind(80, replyFields),
		kit.Kind(83, func(c *wirefmt.Coder, m *commit) {
			orderFields(c, &m.Order)
			wirefmt.Bool(c, &m.Done)
		}),
		kit.Kind(84, func(c *wirefmt.Coder, m *status) {
			wirefmt.Uint(c, &m.View)
			wirefmt.Bool(c, &m.Active)
			wirefmt.Uint(c, &m.Stable)
			wirefmt.Uint(c, &m.Committed)
		}),
		kit.Kind(88, func(c *wirefmt.Coder, m *viewRecord) {
			wirefmt.Uint(c, &m.View)
			wirefmt.Bool(c, &m.Active)
		}),
	}
}

func orderFields(c *wirefmt.Coder, m *orderBody) {
	wirefmt.Uint(c, &m.View)
	wirefmt.Uint(c, &m.Seq)
	bft.DigestFields(c, &m.Batch)
}

func voteFields(c *wirefmt.Coder, m *voteBody) { orderFields(c, (*orderBody)(m)) }

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
