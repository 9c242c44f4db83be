package str

import (
	"slices"

	"github.com/foresay/foresay/clock"
	"github.com/foresay/foresay/internal/wirefmt"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr/raft"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/kit"
)

// What coordinators and servers say to each other. A transaction's coordinator is the one at which
// it has begun: the paper's node.
type (
	// grouped is what the members of a shard's group say to each other, and their records.
	grouped struct {
		kit.Grouped
		Shard uint32
	}

	// readAt asks a server for a key as of a snapshot. Skip are the coordinator's own transactions
	// that write the key and are not in the snapshot, whatever becomes of them. It is repeated until
	// it is answered.
	readAt struct {
		Ref  uint64
		Key  store.Key
		At   clock.Stamp
		Skip []store.TxnID
	}
	// found answers it. If there is no value the Reason says why: Old, the snapshot's versions are
	// gone; Ahead, it is too far in the future; Fenced, the server is no reader; Overloaded.
	found struct {
		Ref    uint64
		Value  store.Value
		Reason store.Reason
	}

	// certify asks a server of the coordinator's site whether a transaction can write these keys, as
	// far as the server knows [STR §6.5, local certification]. Over are transactions of the same
	// coordinator that it may be certified on top of. It is repeated.
	certify struct {
		Shard uint32
		ID    store.TxnID
		At    clock.Stamp // its snapshot
		Keys  []store.Key
		Over  []store.TxnID
	}
	// certified answers it with a Stamp, which the commit has to be at or above, or with the Reason
	// for a refusal. If it has neither, the transaction waits for others. No conflicting transaction
	// commits at or below Until before the coordinator has let go of this one; 0: the server does not
	// vouch for it.
	certified struct {
		Shard  uint32
		ID     store.TxnID
		Stamp  clock.Stamp
		Reason store.Reason
		Until  clock.Stamp
	}
	// displaced tells a coordinator that one of its transactions, which is certified at its site
	// only, has given way to one that the shard's leader has certified. It is repeated until release
	// says that nobody sees the transaction any more. A release also ends one that was refused
	// elsewhere.
	displaced struct {
		Shard uint32
		ID    store.TxnID
	}
	release struct {
		Shard uint32
		ID    store.TxnID
	}

	// told answers a kit.Ask once the command is carried out.
	told struct {
		Ref    uint64
		Result result
	}

	// word tells a coordinator that a member has, in its log and on disk, an entry which prepares a
	// transaction, and that the commit has to be at or above Stamp, and above Above. Readers are the
	// members whose words are needed.
	word struct {
		Shard   uint32
		ID      store.TxnID
		At      raft.Position
		Stamp   clock.Stamp
		Above   clock.Stamp
		Readers []protocol.ID
		// Only the leader fills in the rest: which members there are, which of them serve reads now,
		// and what a commit has to be above that does without the word of a member that served.
		Members []protocol.ID
		Serving []protocol.ID
		Past    clock.Stamp
	}
	// confirmed tells a coordinator that a member of its transaction's first shard has, in its log and
	// on disk, the entry which says that its client was right. Members is of the leader, and only if
	// nothing before that entry can make it void: then a majority of them makes it count.
	confirmed struct {
		Shard   uint32
		ID      store.TxnID
		At      raft.Position
		Members []protocol.ID
	}
	// wordWanted asks for it again. Missing matters to the leader: the readers that were asked and
	// have not answered.
	wordWanted struct {
		Shard   uint32
		ID      store.TxnID
		Missing []protocol.ID
	}

	// outcome tells a member what became of a transaction, before its group has it on record.
	outcome struct {
		Shard  uint32
		ID     store.TxnID
		Commit bool
		At     clock.Stamp
		Read   clock.Stamp // as in decide
	}

	// raise asks the leader to have its group put a ceiling above a snapshot on record, with Admit to
	// count the sender as a reader again, and with Keep to keep a snapshot that is copied.
	raise struct {
		Shard uint32
		At    clock.Stamp
		Admit bool
		Keep  clock.Stamp
	}

	// ping asks a server for a pong, to learn how far away it is.
	ping struct{ Ref uint64 }
	pong struct{ Ref uint64 }

	// report tells the coordinator that chooses the degree what has become of transactions since the
	// setting of that number. It is repeated, and the last one counts.
	report struct {
		Number uint64
		Window window
	}
	// setting tells a coordinator which degree is in force, unless it knows a later one. It is
	// repeated.
	setting struct {
		Number uint64
		Degree degree
	}

	// orphan asks a coordinator to finish a transaction that has been prepared for long.
	orphan struct{ Part part }
	// suspect asks for the same of one that has been prepared for a while, if its own coordinator is
	// at a site that is silent.
	suspect struct{ Part part }
	// kept tells the leader that its coordinator is at it, and waits for its client's word.
	kept struct {
		Shard uint32
		ID    store.TxnID
	}
)

// codec is the format of messages and, from tag 48 on, of commands.
func codec() *wirefmt.Format[store.Message] {
	return wirefmt.NewFormat("str", 1, slices.Concat(store.RequestKinds(), store.SnapshotKinds(),
		store.SpeculationKinds(), localKinds(), groupKinds(), tuneKinds(), commandKinds())...)
}

func localKinds() []wirefmt.Kind[store.Message] {
	return []wirefmt.Kind[store.Message]{
		wirefmt.NewKind[store.Message](17, func(c *wirefmt.Coder, m *readAt) {
			wirefmt.Uint(c, &m.Ref)
			wirefmt.String(c, &m.Key)
			wirefmt.Uint(c, &m.At)
			idsFields(c, &m.Skip)
		}),
		wirefmt.NewKind[store.Message](18, func(c *wirefmt.Coder, m *found) {
			wirefmt.Uint(c, &m.Ref)
			store.ValueFields(c, &m.Value)
			store.ReasonFields(c, &m.Reason)
		}),
		wirefmt.NewKind[store.Message](19, func(c *wirefmt.Coder, m *certify) {
			wirefmt.Uint32(c, &m.Shard)
			store.VersionFields(c, &m.ID)
			wirefmt.Uint(c, &m.At)
			wirefmt.List(c, &m.Keys, 1, wirefmt.String[store.Key])
			idsFields(c, &m.Over)
		}),
		wirefmt.NewEarlierKind[store.Message](20, func(m certified) bool { return m.Until == 0 }, certifiedFields),
		// Earlier servers vouch for a transaction in a message of its own.
		wirefmt.NewEarlierKind[store.Message](34, func(m certified) bool {
			return m.Stamp == 0 && m.Reason == store.NoReason
		}, func(c *wirefmt.Coder, m *certified) {
			wirefmt.Uint32(c, &m.Shard)
			store.VersionFields(c, &m.ID)
			wirefmt.Uint(c, &m.Until)
		}),
		wirefmt.NewKind[store.Message](36, func(c *wirefmt.Coder, m *certified) {
			certifiedFields(c, m)
			wirefmt.Uint(c, &m.Until)
		}),
		wirefmt.NewKind[store.Message](21, func(c *wirefmt.Coder, m *displaced) {
			wirefmt.Uint32(c, &m.Shard)
			store.VersionFields(c, &m.ID)
		}),
		wirefmt.NewKind[store.Message](22, func(c *wirefmt.Coder, m *release) {
			wirefmt.Uint32(c, &m.Shard)
			store.VersionFields(c, &m.ID)
		}),
	}
}

func certifiedFields(c *wirefmt.Coder, m *certified) {
	wirefmt.Uint32(c, &m.Shard)
	store.VersionFields(c, &m.ID)
	wirefmt.Uint(c, &m.Stamp)
	store.ReasonFields(c, &m.Reason)
}

func groupKinds() []wirefmt.Kind[store.Message] {
	inner := kit.GroupedFields()
	return []wirefmt.Kind[store.Message]{
		wirefmt.NewKind[store.Message](16, func(c *wirefmt.Coder, m *grouped) {
			wirefmt.Uint32(c, &m.Shard)
			inner(c, &m.Grouped)
		}),
		kit.AskKind(23),
		wirefmt.NewKind[store.Message](24, func(c *wirefmt.Coder, m *told) {
			wirefmt.Uint(c, &m.Ref)
			resultFields(c, &m.Result)
		}),
		kit.ElsewhereKind(25),
		wirefmt.NewKind[store.Message](26, func(c *wirefmt.Coder, m *word) {
			wirefmt.Uint32(c, &m.Shard)
			store.VersionFields(c, &m.ID)
			positionFields(c, &m.At)
			wirefmt.Uint(c, &m.Stamp)
			wirefmt.Uint(c, &m.Above)
			serversFields(c, &m.Readers)
			serversFields(c, &m.Members)
			serversFields(c, &m.Serving)
			wirefmt.Uint(c, &m.Past)
		}),
		wirefmt.NewKind[store.Message](27, func(c *wirefmt.Coder, m *wordWanted) {
			wirefmt.Uint32(c, &m.Shard)
			store.VersionFields(c, &m.ID)
			serversFields(c, &m.Missing)
		}),
		wirefmt.NewKind[store.Message](28, func(c *wirefmt.Coder, m *outcome) {
			wirefmt.Uint32(c, &m.Shard)
			store.VersionFields(c, &m.ID)
			wirefmt.Bool(c, &m.Commit)
			wirefmt.Uint(c, &m.At)
			wirefmt.Uint(c, &m.Read)
		}),
		wirefmt.NewKind[store.Message](29, func(c *wirefmt.Coder, m *raise) {
			wirefmt.Uint32(c, &m.Shard)
			wirefmt.Uint(c, &m.At)
			wirefmt.Bool(c, &m.Admit)
			wirefmt.Uint(c, &m.Keep)
		}),
		wirefmt.NewKind[store.Message](31, func(c *wirefmt.Coder, m *ping) { wirefmt.Uint(c, &m.Ref) }),
		wirefmt.NewKind[store.Message](32, func(c *wirefmt.Coder, m *pong) { wirefmt.Uint(c, &m.Ref) }),
		wirefmt.NewKind[store.Message](30, func(c *wirefmt.Coder, m *orphan) { partFields(c, &m.Part) }),
		wirefmt.NewKind[store.Message](35, func(c *wirefmt.Coder, m *suspect) { partFields(c, &m.Part) }),
		wirefmt.NewKind[store.Message](40, func(c *wirefmt.Coder, m *confirmed) {
			wirefmt.Uint32(c, &m.Shard)
			store.VersionFields(c, &m.ID)
			positionFields(c, &m.At)
			serversFields(c, &m.Members)
		}),
		wirefmt.NewKind[store.Message](33, func(c *wirefmt.Coder, m *kept) {
			wirefmt.Uint32(c, &m.Shard)
			store.VersionFields(c, &m.ID)
		}),
	}
}

func tuneKinds() []wirefmt.Kind[store.Message] {
	return []wirefmt.Kind[store.Message]{
		wirefmt.NewKind[store.Message](41, func(c *wirefmt.Coder, m *report) {
			wirefmt.Uint(c, &m.Number)
			wirefmt.Uint(c, &m.Window.Length)
			wirefmt.Uint(c, &m.Window.Committed)
			wirefmt.Uint(c, &m.Window.Aborted)
			wirefmt.Uint(c, &m.Window.Latency)
		}),
		wirefmt.NewKind[store.Message](42, func(c *wirefmt.Coder, m *setting) {
			wirefmt.Uint(c, &m.Number)
			wirefmt.Uint(c, &m.Degree)
		}),
	}
}

func positionFields(c *wirefmt.Coder, m *raft.Position) {
	wirefmt.Uint(c, &m.Index)
	wirefmt.Uint(c, &m.Term)
}

// idBytes is how many bytes a transaction's name takes at least.
const idBytes = 2

func idsFields(c *wirefmt.Coder, m *[]store.TxnID) { wirefmt.List(c, m, idBytes, store.VersionFields) }

func serversFields(c *wirefmt.Coder, m *[]protocol.ID) { wirefmt.List(c, m, 1, wirefmt.Uint32) }
