package replicatedcommit

import (
	"slices"

	"github.com/foresay/foresay/internal/wirefmt"
	"github.com/foresay/foresay/store"
)

// codec returns the codec of the messages between nodes. There are no records: all that is durable
// is in the key space.
func codec() *wirefmt.Format[message] {
	return wirefmt.NewFormat("replicatedcommit", 2, slices.Concat(store.RequestKinds(), serverKinds(), admissionKinds(),
		syncKinds())...)
}

func kind[T any](tag byte, fields func(*wirefmt.Coder, *T)) wirefmt.Kind[message] {
	return wirefmt.NewKind[message](tag, fields)
}

func serverKinds() []wirefmt.Kind[message] {
	return []wirefmt.Kind[message]{
		kind(16, prepareFields), kind(17, voteFields), kind(18, askFields), kind(19, decideFields), kind(20, appliedFields),
		kind(21, forgetFields),
		kind(22, resolveFields), kind(23, urgeFields), kind(32, fetchFields), kind(33, contentFields),
	}
}

// admissionKinds are what servers of one shard say of their disks.
func admissionKinds() []wirefmt.Kind[message] {
	return []wirefmt.Kind[message]{kind(34, helloFields), kind(35, welcomeFields)}
}

func prepareFields(c *wirefmt.Coder, m *prepare) {
	store.TxnFields(c, &m.Txn)
	store.ShardsFields(c, &m.Shards)
	wirefmt.Bool(c, &m.ReadOnly)
	wirefmt.Bool(c, &m.Firm)
	wirefmt.Bool(c, &m.Hold)
}

func voteFields(c *wirefmt.Coder, m *vote) {
	store.VersionFields(c, &m.ID)
	stateFields(c, &m.State)
	store.ReasonFields(c, &m.Reason)
	wirefmt.Uint(c, &m.Hint)
	wirefmt.List(c, &m.Current, 6, store.CurrentFields)
}

func askFields(c *wirefmt.Coder, m *ask) {
	store.VersionFields(c, &m.ID)
	store.ShardsFields(c, &m.Shards)
	wirefmt.Bool(c, &m.Fence)
}

func urgeFields(c *wirefmt.Coder, m *urge) {
	store.VersionFields(c, &m.ID)
	wirefmt.Uint32(c, &m.Site)
}

func decideFields(c *wirefmt.Coder, m *decide) {
	store.VersionFields(c, &m.ID)
	store.ShardsFields(c, &m.Shards)
	wirefmt.Bool(c, &m.Commit)
	wirefmt.Bool(c, &m.Old)
}

func appliedFields(c *wirefmt.Coder, m *applied) { store.VersionFields(c, &m.ID) }

func forgetFields(c *wirefmt.Coder, m *forget) {
	store.VersionFields(c, &m.ID)
	wirefmt.List(c, &m.But, 1, wirefmt.Uint32)
}

func resolveFields(c *wirefmt.Coder, m *resolve) {
	store.VersionFields(c, &m.ID)
	store.ShardsFields(c, &m.Shards)
	stateFields(c, &m.State)
	store.ReasonFields(c, &m.Reason)
}

func fetchFields(c *wirefmt.Coder, m *fetch) { store.VersionFields(c, &m.ID) }

func contentFields(c *wirefmt.Coder, m *content) {
	store.VersionFields(c, &m.ID)
	wirefmt.Bool(c, &m.Old)
	store.WritesFields(c, &m.Writes)
}

func helloFields(c *wirefmt.Coder, m *hello) {
	wirefmt.Uint(c, &m.Disk)
	wirefmt.Uint(c, &m.Mark)
	wirefmt.Uint(c, &m.Start)
}

func welcomeFields(c *wirefmt.Coder, m *welcome) {
	wirefmt.Uint(c, &m.Asked)
	wirefmt.Uint(c, &m.Disk)
	wirefmt.Uint(c, &m.Mark)
	wirefmt.Uint(c, &m.Start)
}

func stateFields(c *wirefmt.Coder, state *txnState) { wirefmt.Enum(c, state, 0, gone, "state") }

// Least sizes of what lists have, as bytes.
const (
	minDebtBytes     = 3
	minSettledBytes  = 10
	minKeyValueBytes = 5
)

func syncKinds() []wirefmt.Kind[message] {
	return []wirefmt.Kind[message]{
		kind(48, copyFields), kind(49, pageFields), kind(50, lookFields), kind(51, seenFields), kind(52, owingFields),
		kind(53, paidFields),
	}
}

func copyFields(c *wirefmt.Coder, m *askPage) {
	stageFields(c, &m.Stage)
	wirefmt.String(c, &m.From)
	wirefmt.Uint(c, &m.Since)
	wirefmt.Uint(c, &m.Round)
}

func pageFields(c *wirefmt.Coder, m *page) {
	stageFields(c, &m.Stage)
	wirefmt.String(c, &m.From)
	wirefmt.Uint(c, &m.Round)
	wirefmt.String(c, &m.Next)
	wirefmt.Uint(c, &m.Old)
	wirefmt.Count(c, &m.Scanned)
	wirefmt.List(c, &m.Debts, minDebtBytes, debtFields)
	wirefmt.List(c, &m.Txns, minSettledBytes, settledFields)
	wirefmt.List(c, &m.Values, minKeyValueBytes, keyValueFields)
}

func debtFields(c *wirefmt.Coder, m *debt) {
	wirefmt.Uint32(c, &m.Server)
	wirefmt.Uint(c, &m.Since)
	wirefmt.Uint(c, &m.Upto)
}

func settledFields(c *wirefmt.Coder, m *settledTxn) {
	store.TxnFields(c, &m.Txn)
	store.ShardsFields(c, &m.Shards)
	wirefmt.Bool(c, &m.Commit)
	wirefmt.Bool(c, &m.Old)
	wirefmt.Bool(c, &m.Done)
}

func keyValueFields(c *wirefmt.Coder, m *keyValue) {
	wirefmt.String(c, &m.Key)
	store.ValueFields(c, &m.Value)
}

func lookFields(c *wirefmt.Coder, m *look) { store.VersionFields(c, &m.ID) }

func seenFields(c *wirefmt.Coder, m *seen) {
	store.VersionFields(c, &m.ID)
	stateFields(c, &m.State)
	wirefmt.Bool(c, &m.Old)
}

func owingFields(c *wirefmt.Coder, m *owing) {
	wirefmt.Uint(c, &m.Serial)
	wirefmt.Uint(c, &m.Since)
	wirefmt.Uint(c, &m.To)
}

func paidFields(c *wirefmt.Coder, m *paid) {
	wirefmt.Uint(c, &m.Serial)
	wirefmt.Bool(c, &m.Behind)
}

func stageFields(c *wirefmt.Coder, stage *stage) { wirefmt.Enum(c, stage, 0, copied-1, "stage") }
