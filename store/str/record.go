package str

import (
	"encoding/binary"
	"fmt"

	"github.com/foresay/foresay/clock"
	"github.com/foresay/foresay/internal/wirefmt"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr/raft"
	"github.com/foresay/foresay/store"
)

// A part is what a transaction writes at a shard, with everything that is needed to finish the
// transaction when its coordinator is gone.
type part struct {
	ID     store.TxnID
	At     clock.Stamp // its snapshot
	Local  clock.Stamp // its local commit: the final one is at or above it
	Writes []store.Write
	Shards []uint32    // all that it writes; the first one's group arbitrates where a decision is in doubt
	Origin protocol.ID // its coordinator
	// Over are the transactions with keys at this shard that it is certified on top of; On are all
	// that it depends on.
	Over []store.TxnID
	On   []dependency
	// Sure are the words of the servers of its coordinator's site, for all shards.
	Sure []sureWord
	// Readers are the members that served reads at this shard when its leader certified the part.
	// Past is the latest snapshot that members may have served which do not serve any more, or a
	// coordinator may have shown.
	Readers []protocol.ID
	Past    clock.Stamp
	// Held says that the client stood on what was not known to be right. The first shard has it on
	// record when it is (confirm): before that, nobody may commit the transaction.
	Held bool
}

// A dependency is a transaction that was not final when another one was committed locally on top
// of it, with the shard that knows what became of it, and what its commit must not be above.
type dependency struct {
	ID    store.TxnID
	Shard uint32
	Limit clock.Stamp
}

// A sureWord is the stamp of a server of the coordinator's site. It does not change.
type sureWord struct {
	Server protocol.ID
	Stamp  clock.Stamp
}

// Commands of a shard's state machine. Each can be repeated.
type (
	// prepare certifies a part, and keeps its keys for it.
	prepare struct{ Part part }

	// decide ends a transaction, unless it has ended. Anchor says that the shard is the first of
	// several, which remembers a commit until all others have carried it out.
	decide struct {
		ID     store.TxnID
		Commit bool
		At     clock.Stamp // of a commit
		Reason store.Reason
		Anchor bool
		// Read is the latest snapshot in which what it writes was read at its coordinator.
		Read clock.Stamp
		// Held says that it is aborted only if it is held still.
		Held bool
	}

	// fence refuses a transaction that is not prepared, for good.
	fence struct{ ID store.TxnID }

	// confirm tells the first shard that the client of a transaction that is held was right.
	confirm struct{ ID store.TxnID }

	// done tells the first shard that all others have carried out the decision.
	done struct{ ID store.TxnID }

	// ceil raises the ceiling of reads and the horizon of versions.
	ceil struct{ Ceiling, Horizon clock.Stamp }

	// reader has the group count a server as a reader, or not. Leaves says that the server is about to
	// leave the group: it is not admitted again just because it asks.
	reader struct {
		Server protocol.ID
		Serves bool
		Leaves bool
	}
)

// state is what a shard knows of a transaction.
type state uint8

const (
	prepared state = iota
	committed
	aborted
	forgotten // or was never known
	waiting   // of a part: for others, and the result comes later; else: nothing is known
)

// result answers a command: what the shard knows afterwards.
type result struct {
	State  state
	At     clock.Stamp  // of a commit
	Reason store.Reason // of an abort; Lapsed of what is prepared, and held
}

func commandKinds() []wirefmt.Kind[store.Message] {
	return []wirefmt.Kind[store.Message]{
		wirefmt.NewKind[store.Message](48, func(c *wirefmt.Coder, m *prepare) { partFields(c, &m.Part) }),
		wirefmt.NewKind[store.Message](49, func(c *wirefmt.Coder, m *decide) {
			store.VersionFields(c, &m.ID)
			wirefmt.Bool(c, &m.Commit)
			wirefmt.Uint(c, &m.At)
			store.ReasonFields(c, &m.Reason)
			wirefmt.Bool(c, &m.Anchor)
			wirefmt.Uint(c, &m.Read)
			wirefmt.Bool(c, &m.Held)
		}),
		wirefmt.NewKind[store.Message](50, func(c *wirefmt.Coder, m *fence) { store.VersionFields(c, &m.ID) }),
		wirefmt.NewKind[store.Message](51, func(c *wirefmt.Coder, m *done) { store.VersionFields(c, &m.ID) }),
		wirefmt.NewKind[store.Message](52, func(c *wirefmt.Coder, m *ceil) {
			wirefmt.Uint(c, &m.Ceiling)
			wirefmt.Uint(c, &m.Horizon)
		}),
		wirefmt.NewKind[store.Message](53, func(c *wirefmt.Coder, m *reader) {
			wirefmt.Uint32(c, &m.Server)
			wirefmt.Bool(c, &m.Serves)
			wirefmt.Bool(c, &m.Leaves)
		}),
		wirefmt.NewKind[store.Message](54, func(c *wirefmt.Coder, m *confirm) { store.VersionFields(c, &m.ID) }),
	}
}

func resultFields(c *wirefmt.Coder, m *result) {
	wirefmt.Enum(c, &m.State, prepared, waiting, "state")
	wirefmt.Uint(c, &m.At)
	store.ReasonFields(c, &m.Reason)
}

func partFields(c *wirefmt.Coder, m *part) {
	store.VersionFields(c, &m.ID)
	wirefmt.Uint(c, &m.At)
	wirefmt.Uint(c, &m.Local)
	store.WritesFields(c, &m.Writes)
	store.ShardsFields(c, &m.Shards)
	wirefmt.Uint32(c, &m.Origin)
	idsFields(c, &m.Over)
	wirefmt.List(c, &m.On, idBytes+2, func(c *wirefmt.Coder, d *dependency) {
		store.VersionFields(c, &d.ID)
		wirefmt.Uint32(c, &d.Shard)
		wirefmt.Uint(c, &d.Limit)
	})
	wirefmt.List(c, &m.Sure, 2, func(c *wirefmt.Coder, w *sureWord) {
		wirefmt.Uint32(c, &w.Server)
		wirefmt.Uint(c, &w.Stamp)
	})
	serversFields(c, &m.Readers)
	wirefmt.Uint(c, &m.Past)
	wirefmt.Bool(c, &m.Held)
}

// The keys of a shard's state. Those of transactions end with the transaction, those of the order
// in which ends may be forgotten with a number.
const (
	valuePrefix = "v"
	openPrefix  = "o" // a part that is prepared
	toldPrefix  = "w" // a commit that other shards may not have carried out
	endedPrefix = "t" // an end that may be forgotten
	orderPrefix = "p"
	booksKey    = "books"
)

func orderKey(n uint64) []byte { return binary.BigEndian.AppendUint64([]byte(orderPrefix), n) }

// books are what a shard knows of its readers, and of ends that it has forgotten or may forget.
type books struct {
	// old is the time of the latest transaction whose end was forgotten.
	old uint64
	// Ends that may be forgotten have the numbers from first up to, not including, next.
	first, next uint64
	// floor is what commits have to be above that are certified from now on: members that are not
	// asked any more may have served snapshots up to it.
	floor clock.Stamp
	// deaf are the servers that serve no reads, and leaving those among them that are not to serve
	// any again.
	deaf, leaving []protocol.ID
}

// heldPart is a part that is prepared, with its place in the log.
type heldPart struct {
	part part
	at   raft.Position
}

var (
	booksLayout = wirefmt.NewLayout("str: a shard's books", func(c *wirefmt.Coder, b *books) {
		wirefmt.Uint(c, &b.old)
		wirefmt.Uint(c, &b.first)
		wirefmt.Uint(c, &b.next)
		wirefmt.Uint(c, &b.floor)
		serversFields(c, &b.deaf)
		serversFields(c, &b.leaving)
	})
	openLayout = wirefmt.NewLayout("str: a prepared transaction", func(c *wirefmt.Coder, h *heldPart) {
		partFields(c, &h.part)
		positionFields(c, &h.at)
	})
	endedLayout = wirefmt.NewLayout("str: the end of a transaction", resultFields)
	idLayout    = wirefmt.NewLayout("str: a transaction's name", store.VersionFields)
	ownLayout   = wirefmt.NewLayout("str: a member's word", func(c *wirefmt.Coder, o *ownWord) {
		partFields(c, &o.part)
		positionFields(c, &o.at)
		wirefmt.Uint(c, &o.stamp)
		wirefmt.Bool(c, &o.blind)
	})
)

// An ownWord is what a member has on its own disk of a part whose entry is in its log.
type ownWord struct {
	part  part
	at    raft.Position
	stamp clock.Stamp
	blind bool
}

// ownPrefix is before what a member has beside its group's state.
const ownPrefix = "own/"

// groupPrefix is what the group's keys begin with.
const groupPrefix = "raft/"

// read decodes what is on disk, which is right: runners stop at the panic.
func read[T any](l *wirefmt.Layout[T], b []byte) T {
	v, err := l.Decode(b)
	if err != nil {
		panic(fmt.Sprintf("str: on disk: %v", err))
	}
	return v
}
