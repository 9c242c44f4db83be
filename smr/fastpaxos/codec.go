package fastpaxos

import (
	"github.com/foresay/foresay/internal/wirefmt"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// Codec returns the codec of the protocol's messages and records.
func Codec() protocol.Codec[smr.Message] {
	return kit.NewFormat("fastpaxos", 1,
		kit.Kind(64, beatFields), kit.Kind(65, votedFields), kit.Kind(66, suggestFields), kit.Kind(67, closeFields),
		kit.Kind(68, acceptFields),
		kit.Kind(69, acceptedFields), wirefmt.NewEarlierKind[smr.Message](70, func(m Decided) bool {
			return !m.More
		}, earlierDecidedFields),
		kit.Kind(71, prepareFields), kit.Kind(72, promiseFields), kit.Kind(73, refusalFields), kit.Kind(74, fetchFields),
		kit.Kind(75, lookFields),
		kit.Kind(76, followsFields), kit.Kind(78, copyFields), kit.Kind(79, castFields), kit.Kind(80, voteRecordFields),
		kit.Kind(81, promiseRecordFields), kit.Kind(82, decidedNamesFields), kit.Kind(83, decidedFields),
	)
}

func headFields(c *wirefmt.Coder, m *Head) {
	wirefmt.Uint(c, &m.Era)
	wirefmt.Uint(c, &m.Generation)
}

func beatFields(c *wirefmt.Coder, m *Beat) {
	headFields(c, &m.Head)
	wirefmt.Uint(c, &m.Applied)
	wirefmt.Bool(c, &m.Leads)
	wirefmt.Uint(c, &m.Open)
}

func votedFields(c *wirefmt.Coder, m *Voted) {
	headFields(c, &m.Head)
	placedFields(c, &m.Items)
}

func suggestFields(c *wirefmt.Coder, m *Suggest) {
	headFields(c, &m.Head)
	kit.EntriesFields(c, &m.Entries)
}

func closeFields(c *wirefmt.Coder, m *Close) {
	headFields(c, &m.Head)
	wirefmt.Uint(c, &m.Slot)
}

func acceptFields(c *wirefmt.Coder, m *Accept) {
	headFields(c, &m.Head)
	placedFields(c, &m.Items)
}

func acceptedFields(c *wirefmt.Coder, m *Accepted) {
	headFields(c, &m.Head)
	wirefmt.List(c, &m.Slots, 1, wirefmt.Uint)
}

func earlierDecidedFields(c *wirefmt.Coder, m *Decided) {
	headFields(c, &m.Head)
	placedFields(c, &m.Items)
}

func decidedFields(c *wirefmt.Coder, m *Decided) {
	earlierDecidedFields(c, m)
	wirefmt.Bool(c, &m.More)
}

func prepareFields(c *wirefmt.Coder, m *Prepare) {
	headFields(c, &m.Head)
	wirefmt.Uint(c, &m.Low)
}

func promiseFields(c *wirefmt.Coder, m *Promise) {
	headFields(c, &m.Head)
	wirefmt.Uint(c, &m.Low)
	wirefmt.Uint(c, &m.Applied)
	wirefmt.Uint(c, &m.Next)
	votesFields(c, &m.Votes)
}

func refusalFields(c *wirefmt.Coder, m *Refusal) { headFields(c, &m.Head) }

func fetchFields(c *wirefmt.Coder, m *Fetch) {
	headFields(c, &m.Head)
	wirefmt.Uint(c, &m.Applied)
}

func lookFields(c *wirefmt.Coder, m *Look) {
	headFields(c, &m.Head)
	wirefmt.Uint(c, &m.Round)
}

func followsFields(c *wirefmt.Coder, m *Follows) {
	headFields(c, &m.Head)
	wirefmt.Uint(c, &m.Round)
	wirefmt.Uint(c, &m.Top)
}

func copyFields(c *wirefmt.Coder, m *Copy) { kit.RequestFields(c, &m.Request) }

func castFields(c *wirefmt.Coder, m *Cast) {
	headFields(c, &m.Head)
	wirefmt.Uint32(c, &m.Need)
	wirefmt.Uint(c, &m.Session)
	wirefmt.List(c, &m.Items, 2, kit.EarlyReplyFields)
}

func decidedNamesFields(c *wirefmt.Coder, m *DecidedNames) {
	headFields(c, &m.Head)
	wirefmt.List(c, &m.Items, 3+kit.MinEntryBytes, namedFields)
}

func namedFields(c *wirefmt.Coder, m *Named) {
	wirefmt.Uint(c, &m.Slot)
	kit.EntryFields(c, &m.Entry)
	wirefmt.Uint(c, &m.Length)
	wirefmt.Uint32(c, &m.Sum)
}

func voteRecordFields(c *wirefmt.Coder, m *VoteRecord) { votesFields(c, &m.Votes) }

func promiseRecordFields(c *wirefmt.Coder, m *PromiseRecord) { wirefmt.Uint(c, &m.Era) }

func placedFields(c *wirefmt.Coder, items *[]Placed) {
	wirefmt.List(c, items, 1+kit.MinEntryBytes, func(c *wirefmt.Coder, m *Placed) {
		wirefmt.Uint(c, &m.Slot)
		kit.EntryFields(c, &m.Entry)
	})
}

func votesFields(c *wirefmt.Coder, votes *[]Vote) {
	wirefmt.List(c, votes, 3+kit.MinEntryBytes, func(c *wirefmt.Coder, m *Vote) {
		wirefmt.Uint(c, &m.Slot)
		wirefmt.Uint(c, &m.Era)
		wirefmt.Bool(c, &m.Classic)
		kit.EntryFields(c, &m.Entry)
	})
}
