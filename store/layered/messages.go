package layered

import (
	"slices"

	"github.com/foresay/foresay/internal/wirefmt"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/kit"
)

type (
	// grouped is what the members of a shard's group say to each other, and their records.
	grouped struct {
		kit.Grouped
		Shard uint32
	}

	// check asks the leader of a shard whether what a transaction has read there is still so. The
	// transaction writes nothing, nor does the shard. It is repeated until it is answered, as a
	// kit.Ask is.
	check struct {
		Shard uint32
		Ref   uint64
		Txn   store.Txn
	}

	// told answers a kit.Ask once the command is carried out, and a check.
	told struct {
		Ref    uint64
		Result result
	}

	// finish asks a coordinator to find out what became of a transaction that a server knows, and
	// whose coordinator may be gone.
	finish struct {
		ID     store.TxnID
		Shards []uint32
	}
)

// wound asks a coordinator to have a transaction aborted that an older one waits for, unless it
// is decided.
type wound struct {
	ID     store.TxnID
	Shards []uint32
}

// commandFormat is that of commands alone, which nodes make for themselves: it is made in a tenth
// of the time.
func commandFormat() *wirefmt.Format[store.Message] {
	return wirefmt.NewFormat("layered", 1, commandKinds()...)
}

// format is that of messages and, from tag 32 on, of commands.
func codec() *wirefmt.Format[store.Message] {
	inner := kit.GroupedFields()
	group := wirefmt.NewKind[store.Message](16, func(c *wirefmt.Coder, m *grouped) {
		wirefmt.Uint32(c, &m.Shard)
		inner(c, &m.Grouped)
	})
	finish := wirefmt.NewKind[store.Message](17, func(c *wirefmt.Coder, m *finish) {
		store.VersionFields(c, &m.ID)
		store.ShardsFields(c, &m.Shards)
	})
	wound := wirefmt.NewKind[store.Message](22, func(c *wirefmt.Coder, m *wound) {
		store.VersionFields(c, &m.ID)
		store.ShardsFields(c, &m.Shards)
	})
	own := []wirefmt.Kind[store.Message]{group, finish, wound}
	return wirefmt.NewFormat("layered", 1, slices.Concat(store.RequestKinds(), own, askKinds(), commandKinds())...)
}

func askKinds() []wirefmt.Kind[store.Message] {
	return []wirefmt.Kind[store.Message]{
		kit.AskKind(18),
		wirefmt.NewKind[store.Message](21, func(c *wirefmt.Coder, m *check) {
			wirefmt.Uint32(c, &m.Shard)
			wirefmt.Uint(c, &m.Ref)
			store.TxnFields(c, &m.Txn)
		}),
		wirefmt.NewKind[store.Message](19, func(c *wirefmt.Coder, m *told) {
			wirefmt.Uint(c, &m.Ref)
			resultFields(c, &m.Result)
		}),
		kit.ElsewhereKind(20),
	}
}

func resultFields(c *wirefmt.Coder, m *result) {
	wirefmt.Enum(c, &m.State, prepared, waiting, "state")
	store.ReasonFields(c, &m.Reason)
}

func prepareFields(c *wirefmt.Coder, m *prepare) {
	store.TxnFields(c, &m.Txn)
	store.ShardsFields(c, &m.Shards)
	wirefmt.Bool(c, &m.Only)
}

func commandKinds() []wirefmt.Kind[store.Message] {
	return []wirefmt.Kind[store.Message]{
		// Logs of earlier versions of the program have those that do not wait.
		wirefmt.NewEarlierKind[store.Message](32, func(m prepare) bool { return !m.Waits }, prepareFields),
		wirefmt.NewKind[store.Message](36, func(c *wirefmt.Coder, m *prepare) {
			prepareFields(c, m)
			wirefmt.Bool(c, &m.Waits)
		}),
		wirefmt.NewKind[store.Message](33, func(c *wirefmt.Coder, m *decide) {
			store.VersionFields(c, &m.ID)
			store.ShardsFields(c, &m.Shards)
			wirefmt.Bool(c, &m.Commit)
			wirefmt.Bool(c, &m.Anchor)
			store.ReasonFields(c, &m.Reason)
		}),
		wirefmt.NewKind[store.Message](34, func(c *wirefmt.Coder, m *done) { store.VersionFields(c, &m.ID) }),
		wirefmt.NewKind[store.Message](35, func(c *wirefmt.Coder, m *giveUp) { store.VersionFields(c, &m.ID) }),
	}
}

// Commands of a shard's state machine. Each can be repeated.
type (
	// prepare asks for the shard's vote on its part of a transaction. Only says that there is no
	// other part: the vote is the decision. Waits says that the shard may vote later, when others are
	// out of the way, and that the transaction's priority counts. Without it, which is how earlier
	// versions of the program have it in their logs, the shard refuses what meets a lock.
	prepare struct {
		Txn    store.Txn
		Shards []uint32
		Only   bool
		Waits  bool
	}

	// decide gives a transaction its end, unless it has one. Anchor says that the shard makes the
	// decision, and remembers it until all others have carried it out.
	decide struct {
		ID     store.TxnID
		Shards []uint32
		Commit bool
		Anchor bool
		Reason store.Reason
	}

	// done tells the anchor that all shards have carried out the decision.
	done struct{ ID store.TxnID }

	// giveUp refuses a transaction that waits still.
	giveUp struct{ ID store.TxnID }
)

// state is what a shard knows of a transaction.
type state uint8

const (
	prepared state = iota // it has voted yes
	committed
	aborted
	forgotten // if it was ever known
	waiting   // for others: what it gets is told later
)

// result answers a command: what the shard knows afterwards.
type result struct {
	State  state
	Reason store.Reason
}
