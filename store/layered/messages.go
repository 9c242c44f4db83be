package layered

import (
	"slices"

	"github.com/foresay/foresay/internal/wirefmt"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/raft"
	"github.com/foresay/foresay/store"
)

type (
	// grouped is what the group of a shard and its clients say to each other, and its records.
	grouped struct {
		Shard uint32
		Msg   smr.Message
	}

	// finish asks a coordinator to find out what became of a transaction that a server knows, and
	// whose coordinator may be gone.
	finish struct {
		ID     store.TxnID
		Shards []uint32
	}
)

// format is that of messages and, from tag 32 on, of commands and their results.
func format() *wirefmt.Format[store.Message] {
	inner := raft.Protocol().Codec
	group := wirefmt.NewKind[store.Message](16, func(c *wirefmt.Coder, m *grouped) {
		wirefmt.Uint32(c, &m.Shard)
		var b []byte
		var err error
		if !c.Reading() {
			if b, err = inner.Append(nil, m.Msg); err != nil {
				c.Failf("%v", err)
			}
		}
		wirefmt.View(c, &b)
		if c.Reading() {
			if m.Msg, err = inner.Decode(b); err != nil {
				c.Failf("%v", err)
			}
		}
	})
	ask := wirefmt.NewKind[store.Message](17, func(c *wirefmt.Coder, m *finish) {
		store.VersionFields(c, &m.ID)
		store.ShardsFields(c, &m.Shards)
	})
	return wirefmt.NewFormat("layered", 1, slices.Concat(store.RequestKinds(), []wirefmt.Kind[store.Message]{group, ask},
		commandKinds())...)
}

func commandKinds() []wirefmt.Kind[store.Message] {
	return []wirefmt.Kind[store.Message]{
		wirefmt.NewKind[store.Message](32, func(c *wirefmt.Coder, m *prepare) {
			store.TxnFields(c, &m.Txn)
			store.ShardsFields(c, &m.Shards)
			wirefmt.Bool(c, &m.Only)
		}),
		wirefmt.NewKind[store.Message](33, func(c *wirefmt.Coder, m *decide) {
			store.VersionFields(c, &m.ID)
			store.ShardsFields(c, &m.Shards)
			wirefmt.Bool(c, &m.Commit)
			wirefmt.Bool(c, &m.Anchor)
			store.ReasonFields(c, &m.Reason)
		}),
		wirefmt.NewKind[store.Message](34, func(c *wirefmt.Coder, m *done) { store.VersionFields(c, &m.ID) }),
		wirefmt.NewKind[store.Message](35, func(c *wirefmt.Coder, m *result) {
			wirefmt.Enum(c, &m.State, prepared, forgotten, "state")
			store.ReasonFields(c, &m.Reason)
		}),
	}
}

// Commands of a shard's state machine. Each can be repeated.
type (
	// prepare asks for the shard's vote on its part of a transaction. Only says that there is no
	// other part: the vote is the decision.
	prepare struct {
		Txn    store.Txn
		Shards []uint32
		Only   bool
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
)

// state is what a shard knows of a transaction.
type state uint8

const (
	prepared state = iota // it has voted yes
	committed
	aborted
	forgotten // if it was ever known
)

// result answers a command: what the shard knows afterwards.
type result struct {
	State  state
	Reason store.Reason
}
