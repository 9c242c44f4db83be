package kit

import (
	"time"

	"github.com/foresay/foresay/bft"
	"github.com/foresay/foresay/internal/wirefmt"
)

// A Batch is what is agreed on at once: requests in their order, each with the time that the
// primary had when it came.
type Batch struct{ Entries []BatchEntry }

// A BatchEntry is a request of a Batch.
type BatchEntry struct {
	Request bft.Digest
	Time    time.Duration
}

// A Checkpoint is what a replica signs when it has the state on disk that all batches up to a place
// have made. History is that of the batches, zero in protocols that keep none.
type Checkpoint struct {
	Seq     bft.Seq
	State   bft.Digest
	History bft.Digest
	Members bft.Digest // that rule what is above it, see Link
}

// Messages of clients and to them.
type (
	// Submitted asks for the execution of a request. Full asks this replica for results and not only
	// for their digests.
	Submitted struct {
		Request bft.Signed[bft.Request]
		Full    bool
	}
	// ReadAsk is an optimised read, which is not ordered.
	ReadAsk struct {
		ID    uint64
		Query []byte
		Full  bool
	}
	// ReadReply answers a ReadAsk.
	ReadReply struct {
		ID     uint64
		Epoch  bft.Epoch
		Digest bft.Digest // of the result
		Full   bool
		Value  []byte
	}
)

// Messages among replicas.
type (
	// Reached is a Checkpoint.
	Reached struct{ Checkpoint bft.Signed[Checkpoint] }
	// StableProof proves that a checkpoint is stable.
	StableProof struct{ Proof bft.Certificate[Checkpoint] }
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

// DoneRecord is kept under a key: how far a replica has committed.
type DoneRecord struct{ Committed bft.Seq }

// Statements are what is signed in all protocols.
type Statements struct {
	Scheme      *bft.Scheme
	Requests    *bft.Statement[bft.Request]
	Checkpoints *bft.Statement[Checkpoint]
	Batches     *bft.Statement[Batch] // never signed, for its digests
}

// NewStatements returns those of a protocol, whose name is a part of what is signed. Its
// checkpoints have a history, or none.
func NewStatements(sc *bft.Scheme, protocol string, history bool) Statements {
	return Statements{
		Scheme:   sc,
		Requests: bft.Requests(),
		Checkpoints: bft.NewStatement(protocol+" checkpoint", func(c *wirefmt.Coder, m *Checkpoint) {
			wirefmt.Uint(c, &m.Seq)
			bft.DigestFields(c, &m.State)
			if history {
				bft.DigestFields(c, &m.History)
			}
			bft.DigestFields(c, &m.Members)
		}),
		Batches: bft.NewStatement(protocol+" batch", BatchFields),
	}
}

// DigestOf returns the digest of a batch. The empty one has the zero Digest in all protocols, but
// not here.
func (s *Statements) DigestOf(b Batch) bft.Digest { return s.Batches.Digest(s.Scheme, b) }

// DigestOfRequest returns the digest of a request, by which batches name it.
func (s *Statements) DigestOfRequest(r *bft.Request) bft.Digest {
	return s.Requests.Digest(s.Scheme, *r)
}

// Kinds are the messages and records of this package, for a protocol's format: it uses none of
// their tags.
func (s *Statements) Kinds() []wirefmt.Kind[bft.Message] {
	request := s.Requests.Fields(s.Scheme)
	proof, link := bft.CertificateFields(s.Checkpoints, s.Scheme), linkFields(s)
	return append(plainKinds(),
		Kind(64, func(c *wirefmt.Coder, m *Submitted) {
			request(c, &m.Request)
			wirefmt.Bool(c, &m.Full)
		}),
		Kind(68, SignedFields(s.Checkpoints, s.Scheme, func(m *Reached) *bft.Signed[Checkpoint] { return &m.Checkpoint })),
		Kind(71, func(c *wirefmt.Coder, m *StableProof) { proof(c, &m.Proof) }),
		Kind(72, func(c *wirefmt.Coder, m *Bodies) {
			wirefmt.List(c, &m.Batches, 1, BatchFields)
			wirefmt.List(c, &m.Requests, bft.RequestBytes, request)
		}),
		Kind(90, func(c *wirefmt.Coder, m *Links) { wirefmt.List(c, &m.Links, 3+3*len(bft.Digest{}), link) }),
	)
}

// plainKinds are the kinds without signatures.
func plainKinds() []wirefmt.Kind[bft.Message] {
	return []wirefmt.Kind[bft.Message]{
		Kind(81, func(c *wirefmt.Coder, m *ReadAsk) {
			wirefmt.Uint(c, &m.ID)
			wirefmt.Bytes(c, &m.Query)
			wirefmt.Bool(c, &m.Full)
		}),
		Kind(82, func(c *wirefmt.Coder, m *ReadReply) {
			wirefmt.Uint(c, &m.ID)
			wirefmt.Uint32(c, &m.Epoch)
			bft.DigestFields(c, &m.Digest)
			if wirefmt.Bool(c, &m.Full); m.Full {
				wirefmt.Bytes(c, &m.Value)
			}
		}),
		Kind(85, func(c *wirefmt.Coder, m *Wanted) {
			wirefmt.List(c, &m.Batches, 32, bft.DigestFields)
			wirefmt.List(c, &m.Requests, 32, bft.DigestFields)
		}),
		Kind(86, func(c *wirefmt.Coder, m *StateWanted) {
			wirefmt.Uint(c, &m.Seq)
			wirefmt.List(c, &m.Wants, 1, wirefmt.String)
		}),
		Kind(87, func(c *wirefmt.Coder, m *StatePage) {
			wirefmt.Uint(c, &m.Seq)
			wirefmt.String(c, &m.Want)
			wirefmt.Bytes(c, &m.Page)
		}),
		Kind(89, func(c *wirefmt.Coder, m *DoneRecord) { wirefmt.Uint(c, &m.Committed) }),
		Kind(91, func(c *wirefmt.Coder, m *LinksWanted) { wirefmt.Uint32(c, &m.After) }),
	}
}

// Kind declares a message or a record.
func Kind[T any](tag byte, fields func(*wirefmt.Coder, *T)) wirefmt.Kind[bft.Message] {
	return wirefmt.NewKind[bft.Message](tag, fields)
}

// SignedFields returns the fields of a message that is nothing but a statement.
func SignedFields[T, B any](st *bft.Statement[B], sc *bft.Scheme, of func(*T) *bft.Signed[B]) func(*wirefmt.Coder, *T) {
	fields := st.Fields(sc)
	return func(c *wirefmt.Coder, m *T) { fields(c, of(m)) }
}

// BatchFields takes a Batch.
func BatchFields(c *wirefmt.Coder, m *Batch) {
	wirefmt.List(c, &m.Entries, 33, func(c *wirefmt.Coder, e *BatchEntry) {
		bft.DigestFields(c, &e.Request)
		wirefmt.Int(c, &e.Time)
	})
}
