package zyzzyva

import (
	"github.com/foresay/foresay/bft"
	"github.com/foresay/foresay/bft/kit"
	"github.com/foresay/foresay/internal/wirefmt"
	"github.com/foresay/foresay/protocol"
)

type (
	// orderBody is what a primary signs, the paper's ORDER-REQ: the batch of a place, and the history
	// up to it.
	orderBody struct {
		View    bft.View
		Seq     bft.Seq
		Batch   bft.Digest
		History bft.Digest
	}
	// stampBody is what a replica signs of its history in a view: it has accepted all of it, and has
	// it on disk. It is a part of the paper's SPEC-RESPONSE, and its VIEW-CONFIRM.
	stampBody struct {
		View    bft.View
		Seq     bft.Seq
		History bft.Digest
	}
	// changeBody is what a replica signs when it gives a view up, the paper's VIEW-CHANGE.
	changeBody struct {
		View    bft.View // the next one
		Stable  bft.Certificate[kit.Checkpoint]
		LogView bft.View     // in which all of its log was accepted
		Batches []bft.Digest // its log above Stable
		// Proof is the highest certificate of LogView: a quorum has stamped the log up to there. There
		// is none of view 0 perhaps, and one of each other, since a view begins with it.
		Proof bft.Certificate[stampBody]
	}
	// startBody is what the primary of a new view signs, the paper's NEW-VIEW: everybody computes from
	// it what the view begins with.
	startBody struct {
		View    bft.View
		Changes []bft.Signed[changeBody]
	}
)

// Messages of clients and to them.
type (
	// replies tell what became of operations. Stamp is of a place at or above those of the operations
	// that are not held, if there are any, and Order is its order, if it has one in this view.
	replies struct {
		Epoch   bft.Epoch
		Session bft.SessionID
		Stamp   *bft.Signed[stampBody]
		Order   *bft.Signed[orderBody]
		Items   []replyItem
	}
	// replyItem is what replies say of one operation.
	replyItem struct {
		Number  bft.Number
		Seq     bft.Seq
		Word    word
		History bft.Digest // up to Seq, of what is held
		Digest  bft.Digest // of the result
		Full    bool       // the result is in it
		Result  bft.Result
	}
	// certified is the paper's COMMIT: a quorum has stamped a history. A client wants to know what
	// became of operations of its session; members pass it on without any.
	certified struct {
		Proof   bft.Certificate[stampBody]
		Session bft.SessionID
		Numbers []bft.Number
	}
	// misdeed is the paper's proof of misbehaviour: two orders of one primary that cannot both be.
	misdeed struct{ One, Other bft.Signed[orderBody] }
)

// word is how sure a replica is of a result.
type word uint8

const (
	// speculated: it has executed the operation where the primary said.
	speculated word = iota + 1
	// held: it has a certificate of that, the paper's LOCAL-COMMIT.
	held
	// final: so many hold one that no view change can come out otherwise.
	final
)

// Messages among replicas.
type (
	// proposal has a primary's order, its batch, and those requests that are small.
	proposal struct {
		Order    bft.Signed[orderBody]
		Batch    kit.Batch
		Requests []bft.Signed[bft.Request]
	}
	// fillHole asks for the orders of places.
	fillHole struct {
		View     bft.View
		From, To bft.Seq
	}
	// stamped is a stamp.
	stamped struct{ Stamp bft.Signed[stampBody] }
	// viewChange is a change.
	viewChange struct{ Change bft.Signed[changeBody] }
	// newView is a start; Proof, if it has one, that a quorum has confirmed it.
	newView struct {
		Start bft.Signed[startBody]
		Proof bft.Certificate[stampBody]
	}
	// status tells how far a replica is; who is further sends it what it lacks.
	status struct {
		View                    bft.View
		Active                  bool
		Stable, Committed, Last bft.Seq
		Held                    stampBody
	}
	// concluded tells what is committed in the places above one.
	concluded struct {
		Epoch   bft.Epoch
		After   bft.Seq
		Batches []bft.Digest
	}
)

// keptRecord is a record of the log: what was executed of the batches that have no order here, as a
// view began with them, or others said that they are committed.
type keptRecord struct {
	Epoch    bft.Epoch
	Seq      bft.Seq
	Batch    kit.Batch
	Requests []bft.Signed[bft.Request]
}

// What is kept under keys.
type (
	// viewRecord is the view, and what the one began with of which the log is.
	viewRecord struct {
		View    bft.View
		Active  bool
		Void    bool // the log is of no view: it has what is committed, and nothing else
		LogView bft.View
		From    bft.Seq
		Root    bft.Digest // the history up to From
		Batches []bft.Digest
		Proof   bft.Certificate[stampBody]
	}
	heldRecord struct{ Proof bft.Certificate[stampBody] }
)

// formatVersion is the version of all messages and records.
const formatVersion = 1

// statements are what is signed.
type statements struct {
	kit.Statements
	orders  *bft.Statement[orderBody]
	stamps  *bft.Statement[stampBody]
	changes *bft.Statement[changeBody]
	starts  *bft.Statement[startBody]
}

func newStatements(sc *bft.Scheme) *statements {
	s := &statements{
		Statements: kit.NewStatements(sc, "zyzzyva", true),
		orders:     bft.NewStatement("zyzzyva order-req", orderFields),
		stamps:     bft.NewStatement("zyzzyva stamp", stampFields),
	}
	stable, proof := bft.CertificateFields(s.Checkpoints, sc), bft.CertificateFields(s.stamps, sc)
	s.changes = bft.NewStatement("zyzzyva view-change", func(c *wirefmt.Coder, m *changeBody) {
		wirefmt.Uint(c, &m.View)
		stable(c, &m.Stable)
		wirefmt.Uint(c, &m.LogView)
		wirefmt.List(c, &m.Batches, 32, bft.DigestFields)
		proof(c, &m.Proof)
	})
	change := s.changes.Fields(sc)
	s.starts = bft.NewStatement("zyzzyva new-view", func(c *wirefmt.Coder, m *startBody) {
		wirefmt.Uint(c, &m.View)
		wirefmt.List(c, &m.Changes, 64, change)
	})
	return s
}

// newCodec returns the codec of a group's messages and records. It checks signatures.
func newCodec(sc *bft.Scheme) protocol.Codec[bft.Message] { return newStatements(sc).format() }

func (s *statements) format() *wirefmt.Format[bft.Message] {
	request, order := s.Requests.Fields(s.Scheme), s.orders.Fields(s.Scheme)
	stamp, proof := s.stamps.Fields(s.Scheme), bft.CertificateFields(s.stamps, s.Scheme)
	start := s.starts.Fields(s.Scheme)
	return wirefmt.NewFormat("zyzzyva", formatVersion, append(append(s.Kinds(), plainKinds()...),
		kit.Kind(65, func(c *wirefmt.Coder, m *replies) {
			wirefmt.Uint32(c, &m.Epoch)
			wirefmt.Uint(c, &m.Session)
			optional(c, &m.Stamp, stamp)
			optional(c, &m.Order, order)
			wirefmt.List(c, &m.Items, 68, itemFields)
		}),
		kit.Kind(66, func(c *wirefmt.Coder, m *proposal) {
			order(c, &m.Order)
			kit.BatchFields(c, &m.Batch)
			wirefmt.List(c, &m.Requests, bft.RequestBytes, request)
		}),
		kit.Kind(67, kit.SignedFields(s.stamps, s.Scheme, func(m *stamped) *bft.Signed[stampBody] { return &m.Stamp })),
		kit.Kind(69, kit.SignedFields(s.changes, s.Scheme, func(m *viewChange) *bft.Signed[changeBody] { return &m.Change })),
		kit.Kind(70, func(c *wirefmt.Coder, m *newView) {
			start(c, &m.Start)
			proof(c, &m.Proof)
		}),
		kit.Kind(73, func(c *wirefmt.Coder, m *certified) {
			proof(c, &m.Proof)
			wirefmt.Uint(c, &m.Session)
			wirefmt.List(c, &m.Numbers, 1, wirefmt.Uint)
		}),
		kit.Kind(74, func(c *wirefmt.Coder, m *misdeed) {
			order(c, &m.One)
			order(c, &m.Other)
		}),
		kit.Kind(75, func(c *wirefmt.Coder, m *keptRecord) {
			wirefmt.Uint32(c, &m.Epoch)
			wirefmt.Uint(c, &m.Seq)
			kit.BatchFields(c, &m.Batch)
			wirefmt.List(c, &m.Requests, bft.RequestBytes, request)
		}),
		kit.Kind(76, func(c *wirefmt.Coder, m *viewRecord) {
			wirefmt.Uint(c, &m.View)
			wirefmt.Bool(c, &m.Active)
			wirefmt.Bool(c, &m.Void)
			wirefmt.Uint(c, &m.LogView)
			wirefmt.Uint(c, &m.From)
			bft.DigestFields(c, &m.Root)
			wirefmt.List(c, &m.Batches, 32, bft.DigestFields)
			proof(c, &m.Proof)
		}),
		kit.Kind(77, func(c *wirefmt.Coder, m *heldRecord) { proof(c, &m.Proof) }),
	)...)
}

// optional takes what may not be there.
func optional[T any](c *wirefmt.Coder, m **T, fields func(*wirefmt.Coder, *T)) {
	there := *m != nil
	if wirefmt.Bool(c, &there); !there {
		return
	}
	if c.Reading() {
		*m = new(T)
	}
	fields(c, *m)
}

// plainKinds are the kinds without signatures.
func plainKinds() []wirefmt.Kind[bft.Message] {
	return []wirefmt.Kind[bft.Message]{
		kit.Kind(83, func(c *wirefmt.Coder, m *fillHole) {
			wirefmt.Uint(c, &m.View)
			wirefmt.Uint(c, &m.From)
			wirefmt.Uint(c, &m.To)
		}),
		kit.Kind(84, func(c *wirefmt.Coder, m *status) {
			wirefmt.Uint(c, &m.View)
			wirefmt.Bool(c, &m.Active)
			wirefmt.Uint(c, &m.Stable)
			wirefmt.Uint(c, &m.Committed)
			wirefmt.Uint(c, &m.Last)
			stampFields(c, &m.Held)
		}),
		kit.Kind(88, func(c *wirefmt.Coder, m *concluded) {
			wirefmt.Uint32(c, &m.Epoch)
			wirefmt.Uint(c, &m.After)
			wirefmt.List(c, &m.Batches, 32, bft.DigestFields)
		}),
	}
}

func orderFields(c *wirefmt.Coder, m *orderBody) {
	wirefmt.Uint(c, &m.View)
	wirefmt.Uint(c, &m.Seq)
	bft.DigestFields(c, &m.Batch)
	bft.DigestFields(c, &m.History)
}

func stampFields(c *wirefmt.Coder, m *stampBody) {
	wirefmt.Uint(c, &m.View)
	wirefmt.Uint(c, &m.Seq)
	bft.DigestFields(c, &m.History)
}

func itemFields(c *wirefmt.Coder, i *replyItem) {
	wirefmt.Uint(c, &i.Number)
	wirefmt.Uint(c, &i.Seq)
	wirefmt.Enum(c, &i.Word, speculated, final, "word")
	bft.DigestFields(c, &i.History)
	bft.DigestFields(c, &i.Digest)
	if wirefmt.Bool(c, &i.Full); i.Full {
		bft.ResultFields(c, &i.Result)
	}
}
