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
	return wirefmt.NewFormat("replicatedcommit", 2, slices.Concat(clientKinds(), serverKinds(), admissionKinds(), syncKinds())...)
}

func kind[T any](tag byte, fields func(*wirefmt.Coder, *T)) wirefmt.Kind[Message] {
	return wirefmt.NewKind[Message](tag, fields)
}

func clientKinds() []wirefmt.Kind[Message] {
	return []wirefmt.Kind[Message]{
		kind(1, readRequestFields), kind(2, readReplyFields), kind(3, commitRequestFields), kind(4, siteVoteFields), kind(5, decidedFields),
		kind(6, busyFields),
	}
}

func serverKinds() []wirefmt.Kind[Message] {
	return []wirefmt.Kind[Message]{
		kind(16, prepareFields), kind(17, voteFields), kind(18, askFields), kind(19, decideFields), kind(20, appliedFields), kind(21, forgetFields),
		kind(22, resolveFields), kind(23, urgeFields), kind(32, fetchFields), kind(33, contentFields),
	}
}

// admissionKinds are what servers of one shard say of their disks.
func admissionKinds() []wirefmt.Kind[Message] {
	return []wirefmt.Kind[Message]{kind(34, helloFields), kind(35, welcomeFields)}
}

func readRequestFields(c *wirefmt.Coder, m *ReadRequest) {
	wirefmt.Uint(c, &m.Ref)
	wirefmt.String(c, &m.Key)
	store.PriorityFields(c, &m.Priority)
}

func readReplyFields(c *wirefmt.Coder, m *ReadReply) {
	wirefmt.Uint(c, &m.Ref)
	store.ValueFields(c, &m.Value)
	wirefmt.Bool(c, &m.Pending)
	wirefmt.Uint(c, &m.Hint)
	wirefmt.Bool(c, &m.Queued)
}

func commitRequestFields(c *wirefmt.Coder, m *CommitRequest) {
	store.TxnFields(c, &m.Txn)
	wirefmt.Bool(c, &m.Recover)
	wirefmt.Bool(c, &m.Firm)
	wirefmt.Bool(c, &m.Hold)
}

func siteVoteFields(c *wirefmt.Coder, m *SiteVote) {
	store.VersionFields(c, &m.ID)
	shardsFields(c, &m.Shards)
	wirefmt.Bool(c, &m.Yes)
	reasonFields(c, &m.Reason)
	wirefmt.Uint(c, &m.Hint)
	wirefmt.List(c, &m.Current, 6, currentFields)
}

func decidedFields(c *wirefmt.Coder, m *Decided) {
	store.VersionFields(c, &m.ID)
	wirefmt.Enum(c, &m.Verdict, 0, store.Aborted, "verdict")
	reasonFields(c, &m.Reason)
}

func busyFields(c *wirefmt.Coder, m *Busy) { store.VersionFields(c, &m.ID) }

func prepareFields(c *wirefmt.Coder, m *Prepare) {
	store.TxnFields(c, &m.Txn)
	shardsFields(c, &m.Shards)
	wirefmt.Bool(c, &m.ReadOnly)
	wirefmt.Bool(c, &m.Firm)
	wirefmt.Bool(c, &m.Hold)
}

func voteFields(c *wirefmt.Coder, m *Vote) {
	store.VersionFields(c, &m.ID)
	stateFields(c, &m.State)
	reasonFields(c, &m.Reason)
	wirefmt.Uint(c, &m.Hint)
	wirefmt.List(c, &m.Current, 6, currentFields)
}

func askFields(c *wirefmt.Coder, m *Ask) {
	store.VersionFields(c, &m.ID)
	shardsFields(c, &m.Shards)
	wirefmt.Bool(c, &m.Fence)
}

func urgeFields(c *wirefmt.Coder, m *Urge) {
	store.VersionFields(c, &m.ID)
	wirefmt.Uint32(c, &m.Site)
}

func decideFields(c *wirefmt.Coder, m *Decide) {
	store.VersionFields(c, &m.ID)
	shardsFields(c, &m.Shards)
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
	shardsFields(c, &m.Shards)
	stateFields(c, &m.State)
	reasonFields(c, &m.Reason)
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

func shardsFields(c *wirefmt.Coder, shards *[]uint32) { wirefmt.List(c, shards, 1, wirefmt.Uint32) }

func currentFields(c *wirefmt.Coder, m *Current) {
	wirefmt.String(c, &m.Key)
	wirefmt.Bool(c, &m.Locked)
	store.ValueFields(c, &m.Value)
}

func reasonFields(c *wirefmt.Coder, reason *store.Reason) {
	wirefmt.Enum(c, reason, 0, store.Overloaded, "reason")
}

func stateFields(c *wirefmt.Coder, state *State) { wirefmt.Enum(c, state, 0, Gone, "state") }
