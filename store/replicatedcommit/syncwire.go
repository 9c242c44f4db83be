package replicatedcommit

import (
	"github.com/foresay/foresay/internal/wirefmt"
	"github.com/foresay/foresay/store"
)

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
