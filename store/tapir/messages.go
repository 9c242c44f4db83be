package tapir

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/foresay/foresay/internal/wirefmt"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
)

// A ballot orders the coordinators of one transaction. The first one, which has it from the client,
// is of round 0; those that finish it in its place are of later rounds. The zero ballot is none.
type ballot struct {
	Round uint32
	By    uint64 // drawn at random, each time that a coordinator takes the transaction on; never 0
}

func (b ballot) compare(o ballot) int {
	return cmp.Or(cmp.Compare(b.Round, o.Round), cmp.Compare(b.By, o.By))
}

// lastRound has no next one. There it is the draw that tells which of two ballots is the later one.
const lastRound = math.MaxUint32

func drawn(r *rand.Rand) uint64 { return firstDrawn + r.Uint64()>>1 }

// firstDrawn is above By of the ballots that view changes give to what nobody was asked about.
const firstDrawn = 2

// vote is what a server's check of a transaction came to. Once given it stays, but for a yes that
// cannot have counted: see server.doom.
type vote uint8

const (
	unvoted  vote = iota
	prepared      // yes
	abstain       // no: another transaction that is not decided is in the way
	retry         // no, but perhaps with a later timestamp
	refused       // no
)

// end is what became of a transaction.
type end uint8

const (
	undecided end = iota
	committed
	aborted
)

// View numbers a group's views. In each the servers of a shard take part that have what the view
// began with.
type viewNumber uint64

// maxView bounds the view that a server goes to because it is told of it, so that there is always a
// next one.
const maxView viewNumber = 1 << 62

// What coordinators and servers say of a transaction. Each can be repeated.
type (
	// propose asks a server for its vote on a shard's part of a transaction, and not to listen to
	// coordinators of earlier ballots any more. Without Has there is no part: who has not voted
	// does not then.
	propose struct {
		ID     store.TxnID
		Shards []uint32
		Ballot ballot
		Has    bool
		Part   store.Txn // its ID is that of the transaction
		Whole  bool      // the answer is to have the part
	}

	// answer says what a server knows of a transaction.
	answer struct {
		ID       store.TxnID
		View     viewNumber
		Promised ballot // the latest ballot that the server has heard of
		Vote     vote
		Reason   store.Reason
		Hint     uint64 // of retry: the timestamp that is too early
		VotedAt  ballot
		Accepted ballot // the latest ballot whose result it has accepted; zero: none
		Yes      bool   // that result
		End      end
		// Forgot says that the part is not here, and that the transaction is so old that the server
		// may have carried it out and forgotten it.
		Forgot bool
		Has    bool
		Part   store.Txn
	}

	// accept asks a server to accept a result for its shard.
	accept struct {
		ID     store.TxnID
		Shards []uint32
		View   viewNumber
		Ballot ballot
		Yes    bool
		Reason store.Reason
	}

	// confirm says that it has.
	confirm struct {
		ID     store.TxnID
		View   viewNumber
		Ballot ballot
	}

	// decide tells a server what became of a transaction. A commit without the part is of one that
	// a majority of the shard has carried out and forgotten.
	decide struct {
		ID     store.TxnID
		Shards []uint32
		Commit bool
		Reason store.Reason
		Has    bool
		Part   store.Txn
	}

	// carried says that a server has carried it out, and takes part in a view with these members.
	carried struct {
		ID      store.TxnID
		View    viewNumber
		Members []protocol.ID
	}

	// done says that all servers of all participating shards have, but for some that are in no view
	// with those.
	done struct {
		ID  store.TxnID
		But []protocol.ID
	}

	// finish asks a coordinator to find out what became of a transaction, or to tell those who do
	// not know.
	finish struct {
		ID     store.TxnID
		Shards []uint32
		Has    bool
		Part   store.Txn
	}
)

// What servers of a shard say to each other.
type (
	// hello asks the others, before a server takes part for the first time, whether they know
	// another disk under its name.
	hello struct{ Disk uint64 }

	// welcome answers it.
	welcome struct {
		Disk  uint64
		Other bool // another one is known
	}

	// viewChange says that a later view is to begin.
	viewChange struct{ View viewNumber }

	// doView gives the leader of a view what a server had on record when it left the view before.
	doView struct {
		View   viewNumber
		Normal viewNumber // the last view that the server took part in
		Piece  piece
	}

	// startView begins a view: its record has a result for each transaction that is not decided.
	startView struct {
		View    viewNumber
		Members []protocol.ID // in ascending order
		Piece   piece
	}

	// piece is one of those that a record is sent in.
	piece struct {
		N, Of   uint32
		Entries []entry
	}

	// entry is a transaction of a record.
	entry struct {
		ID       store.TxnID
		Shards   []uint32
		Has      bool
		Part     store.Txn
		Promised ballot
		Vote     vote
		Accepted ballot
		Yes      bool
		Reason   store.Reason
		End      end
		Lost     bool // as in record
	}

	// behind tells a server that something that it has not heard of is forgotten: it has to copy
	// the values of the sender.
	behind struct{ Serial uint64 }

	// caughtUp says that it has.
	caughtUp struct{ Serial uint64 }

	// askPage asks for values, from a key on.
	askPage struct{ From store.Key }

	// page has them. Next is the key at which the next page begins, if there is More.
	page struct {
		From   store.Key
		Values []item
		More   bool
		Next   store.Key
	}

	item struct {
		Key   store.Key
		Value store.Value
	}
)

func codec() *wirefmt.Format[store.Message] {
	return wirefmt.NewFormat("tapir", 1, slices.Concat(store.RequestKinds(), txnKinds(), groupKinds())...)
}

func txnKinds() []wirefmt.Kind[store.Message] {
	return []wirefmt.Kind[store.Message]{
		wirefmt.NewKind[store.Message](16, func(c *wirefmt.Coder, m *propose) {
			store.VersionFields(c, &m.ID)
			store.ShardsFields(c, &m.Shards)
			ballotFields(c, &m.Ballot)
			partFields(c, m.ID, &m.Has, &m.Part)
			wirefmt.Bool(c, &m.Whole)
		}),
		wirefmt.NewKind[store.Message](17, func(c *wirefmt.Coder, m *answer) {
			store.VersionFields(c, &m.ID)
			wirefmt.Uint(c, &m.View)
			ballotFields(c, &m.Promised)
			wirefmt.Enum(c, &m.Vote, unvoted, refused, "vote")
			store.ReasonFields(c, &m.Reason)
			wirefmt.Uint(c, &m.Hint)
			ballotFields(c, &m.VotedAt)
			ballotFields(c, &m.Accepted)
			wirefmt.Bool(c, &m.Yes)
			wirefmt.Enum(c, &m.End, undecided, aborted, "end")
			wirefmt.Bool(c, &m.Forgot)
			partFields(c, m.ID, &m.Has, &m.Part)
		}),
		wirefmt.NewKind[store.Message](18, func(c *wirefmt.Coder, m *accept) {
			store.VersionFields(c, &m.ID)
			store.ShardsFields(c, &m.Shards)
			wirefmt.Uint(c, &m.View)
			ballotFields(c, &m.Ballot)
			wirefmt.Bool(c, &m.Yes)
			store.ReasonFields(c, &m.Reason)
		}),
		wirefmt.NewKind[store.Message](19, func(c *wirefmt.Coder, m *confirm) {
			store.VersionFields(c, &m.ID)
			wirefmt.Uint(c, &m.View)
			ballotFields(c, &m.Ballot)
		}),
		wirefmt.NewKind[store.Message](20, func(c *wirefmt.Coder, m *decide) {
			store.VersionFields(c, &m.ID)
			store.ShardsFields(c, &m.Shards)
			wirefmt.Bool(c, &m.Commit)
			store.ReasonFields(c, &m.Reason)
			partFields(c, m.ID, &m.Has, &m.Part)
		}),
		wirefmt.NewKind[store.Message](21, func(c *wirefmt.Coder, m *carried) {
			store.VersionFields(c, &m.ID)
			wirefmt.Uint(c, &m.View)
			wirefmt.List(c, &m.Members, 1, wirefmt.Uint32)
		}),
		wirefmt.NewKind[store.Message](22, func(c *wirefmt.Coder, m *done) {
			store.VersionFields(c, &m.ID)
			wirefmt.List(c, &m.But, 1, wirefmt.Uint32)
		}),
		wirefmt.NewKind[store.Message](23, func(c *wirefmt.Coder, m *finish) {
			store.VersionFields(c, &m.ID)
			store.ShardsFields(c, &m.Shards)
			partFields(c, m.ID, &m.Has, &m.Part)
		}),
	}
}

func groupKinds() []wirefmt.Kind[store.Message] {
	return []wirefmt.Kind[store.Message]{
		wirefmt.NewKind[store.Message](32, func(c *wirefmt.Coder, m *hello) { wirefmt.Uint(c, &m.Disk) }),
		wirefmt.NewKind[store.Message](33, func(c *wirefmt.Coder, m *welcome) {
			wirefmt.Uint(c, &m.Disk)
			wirefmt.Bool(c, &m.Other)
		}),
		wirefmt.NewKind[store.Message](34, func(c *wirefmt.Coder, m *viewChange) { wirefmt.Uint(c, &m.View) }),
		wirefmt.NewKind[store.Message](35, func(c *wirefmt.Coder, m *doView) {
			wirefmt.Uint(c, &m.View)
			wirefmt.Uint(c, &m.Normal)
			pieceFields(c, &m.Piece)
		}),
		wirefmt.NewKind[store.Message](36, func(c *wirefmt.Coder, m *startView) {
			wirefmt.Uint(c, &m.View)
			wirefmt.List(c, &m.Members, 1, wirefmt.Uint32)
			pieceFields(c, &m.Piece)
		}),
		wirefmt.NewKind[store.Message](37, func(c *wirefmt.Coder, m *behind) { wirefmt.Uint(c, &m.Serial) }),
		wirefmt.NewKind[store.Message](38, func(c *wirefmt.Coder, m *caughtUp) { wirefmt.Uint(c, &m.Serial) }),
		wirefmt.NewKind[store.Message](39, func(c *wirefmt.Coder, m *askPage) { wirefmt.String(c, &m.From) }),
		wirefmt.NewKind[store.Message](40, func(c *wirefmt.Coder, m *page) {
			wirefmt.String(c, &m.From)
			wirefmt.List(c, &m.Values, 2*store.MinAccessBytes, func(c *wirefmt.Coder, i *item) {
				wirefmt.String(c, &i.Key)
				store.ValueFields(c, &i.Value)
			})
			wirefmt.Bool(c, &m.More)
			wirefmt.String(c, &m.Next)
		}),
	}
}

func ballotFields(c *wirefmt.Coder, b *ballot) {
	wirefmt.Uint32(c, &b.Round)
	wirefmt.Uint(c, &b.By)
}

// partFields are those of a part that may be missing. The transaction is named before.
func partFields(c *wirefmt.Coder, id store.TxnID, has *bool, part *store.Txn) {
	if wirefmt.Bool(c, has); !*has {
		return
	}
	store.TxnFields(c, part)
	if c.Reading() && part.ID != id {
		c.Failf("a part of %v in a message on %v", part.ID, id)
	}
}

func pieceFields(c *wirefmt.Coder, p *piece) {
	wirefmt.Uint32(c, &p.N)
	wirefmt.Uint32(c, &p.Of)
	wirefmt.List(c, &p.Entries, minEntryBytes, entryFields)
}

// minEntryBytes is the least that an entry takes.
const minEntryBytes = 12

func entryFields(c *wirefmt.Coder, e *entry) {
	store.VersionFields(c, &e.ID)
	store.ShardsFields(c, &e.Shards)
	partFields(c, e.ID, &e.Has, &e.Part)
	ballotFields(c, &e.Promised)
	wirefmt.Enum(c, &e.Vote, unvoted, refused, "vote")
	ballotFields(c, &e.Accepted)
	wirefmt.Bool(c, &e.Yes)
	store.ReasonFields(c, &e.Reason)
	wirefmt.Enum(c, &e.End, undecided, aborted, "end")
	wirefmt.Bool(c, &e.Lost)
}
