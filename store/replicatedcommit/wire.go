package replicatedcommit

import (
	"slices"

	"github.com/foresay/foresay/internal/wirefmt"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
)

// Codec returns the codec of the messages between nodes. There are no records: all that is durable
// is in the key space.
func Codec() protocol.Codec[Message] {
	return wirefmt.NewFormat("replicatedcommit", 2, slices.Concat(store.RequestKinds(), serverKinds(), admissionKinds(),
		syncKinds())...)
}

func kind[T any](tag byte, fields func(*wirefmt.Coder, *T)) wirefmt.Kind[Message] {
	return wirefmt.NewKind[Message](tag, fields)
}

func serverKinds() []wirefmt.Kind[Message] {
	return []wirefmt.Kind[Message]{
		kind(16, prepareFields), kind(17, voteFields), kind(18, askFields), kind(19, decideFields), kind(20, appliedFields),
		kind(21, forgetFields),
		kind(22, resolveFields), kind(23, urgeFields), kind(32, fetchFields), kind(33, contentFields),
	}
}

// admissionKinds are what servers of one shard say of their disks.
func admissionKinds() []wirefmt.Kind[Message] {
	return []wirefmt.Kind[Message]{kind(34, helloFields), kind(35, welcomeFields)}
}

func prepareFields(c *wirefmt.Coder, m *Prepare) {
	store.TxnFields(c, &m.Txn)
	store.ShardsFields(c, &m.Shards)
	wirefmt.Bool(c, &m.ReadOnly)
	wirefmt.Bool(c, &m.Firm)
	wirefmt.Bool(c, &m.Hold)
}

func voteFields(c *wirefmt.Coder, m *Vote) {
	store.VersionFields(c, &m.ID)
	stateFields(c, &m.State)
	store.ReasonFields(c, &m.Reason)
	wirefmt.Uint(c, &m.Hint)
	wirefmt.List(c, &m.Current, 6, store.CurrentFields)
}

func askFields(c *wirefmt.Coder, m *Ask) {
	store.VersionFields(c, &m.ID)
	store.ShardsFields(c, &m.Shards)
	wirefmt.Bool(c, &m.Fence)
}

func urgeFields(c *wirefmt.Coder, m *Urge) {
	store.VersionFields(c, &m.ID)
	wirefmt.Uint32(c, &m.Site)
}

func decideFields(c *wirefmt.Coder, m *Decide) {
	store.VersionFields(c, &m.ID)
	store.ShardsFields(c, &m.Shards)
	wirefmt.Bool(c, &m.Commit)
	wirefmt.Bool(c, &m.Old)
}

func appliedFields(c *wirefmt.Coder, m *Applied) { store.VersionFields(c, &m.ID) }

func forgetFields(c *wirefmt.Coder, m *Forget) {
	store.VersionFields(c, &m.ID)
	wirefmt.List(c, &m.But, 1, wirefmt.Uint32)
}

func resolveFields(c *wirefmt.Coder, m *Resolve) {
	store.VersionFields(c, &m.ID)
	store.ShardsFields(c, &m.Shards)
	stateFields(c, &m.State)
	store.ReasonFields(c, &m.Reason)
}

func fetchFields(c *wirefmt.Coder, m *Fetch) { store.VersionFields(c, &m.ID) }

func contentFields(c *wirefmt.Coder, m *Content) {
	store.VersionFields(c, &m.ID)
	wirefmt.Bool(c, &m.Old)
	store.WritesFields(c, &m.Writes)
}

func helloFields(c *wirefmt.Coder, m *Hello) {
	wirefmt.Uint(c, &m.Disk)
	wirefmt.Uint(c, &m.Mark)
	wirefmt.Uint(c, &m.Start)
}

func welcomeFields(c *wirefmt.Coder, m *Welcome) {
	wirefmt.Uint(c, &m.Asked)
	wirefmt.Uint(c, &m.Disk)
	wirefmt.Uint(c, &m.Mark)
	wirefmt.Uint(c, &m.Start)
}

func stateFields(c *wirefmt.Coder, state *State) { wirefmt.Enum(c, state, 0, Gone, "state") }
