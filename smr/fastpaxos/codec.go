package fastpaxos

import (
	"github.com/foresay/foresay/internal/wirefmt"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// codec returns the codec of the protocol's messages and records.
func codec() protocol.Codec[smr.Message] {
	return kit.NewFormat("fastpaxos", 1,
		kit.Kind(64, beatFields), kit.Kind(65, votedFields), kit.Kind(66, suggestFields), kit.Kind(67, closeFields),
		kit.Kind(68, acceptFields),
		kit.Kind(69, acceptedFields), wirefmt.NewEarlierKind[smr.Message](70, func(m decided) bool {
			return !m.More
		}, earlierDecidedFields),
		kit.Kind(71, prepareFields), kit.Kind(72, promiseFields), kit.Kind(73, refusalFields), kit.Kind(74, fetchFields),
		kit.Kind(75, pollFields),
		kit.Kind(76, polledFields), kit.Kind(78, copyFields), kit.Kind(79, castFields), kit.Kind(80, voteRecordFields),
		kit.Kind(81, promiseRecordFields), kit.Kind(82, decidedNamesFields), kit.Kind(83, decidedFields),
		kit.Kind(84, decidedRecordFields),
	)
}

func headFields(c *wirefmt.Coder, m *head) {
	wirefmt.Uint(c, &m.Era)
	wirefmt.Uint(c, &m.Generation)
}

func beatFields(c *wirefmt.Coder, m *beat) {
	headFields(c, &m.head)
	wirefmt.Uint(c, &m.Applied)
	wirefmt.Bool(c, &m.Leads)
	wirefmt.Uint(c, &m.Open)
}

func votedFields(c *wirefmt.Coder, m *voted) {
	headFields(c, &m.head)
	itemsFields(c, &m.Items)
}

func suggestFields(c *wirefmt.Coder, m *suggest) {
	headFields(c, &m.head)
	kit.EntriesFields(c, &m.Entries)
}

func closeFields(c *wirefmt.Coder, m *closeSlots) {
	headFields(c, &m.head)
	wirefmt.Uint(c, &m.Slot)
}

func acceptFields(c *wirefmt.Coder, m *accept) {
	headFields(c, &m.head)
	itemsFields(c, &m.Items)
}

func acceptedFields(c *wirefmt.Coder, m *accepted) {
	headFields(c, &m.head)
	wirefmt.List(c, &m.Slots, 1, wirefmt.Uint)
}

func earlierDecidedFields(c *wirefmt.Coder, m *decided) {
	headFields(c, &m.head)
	itemsFields(c, &m.Items)
}

func decidedFields(c *wirefmt.Coder, m *decided) {
	earlierDecidedFields(c, m)
	wirefmt.Bool(c, &m.More)
}

func prepareFields(c *wirefmt.Coder, m *prepare) {
	headFields(c, &m.head)
	wirefmt.Uint(c, &m.Low)
}

func promiseFields(c *wirefmt.Coder, m *promise) {
	headFields(c, &m.head)
	wirefmt.Uint(c, &m.Low)
	wirefmt.Uint(c, &m.Applied)
	wirefmt.Uint(c, &m.Next)
	votesFields(c, &m.Votes)
}

func refusalFields(c *wirefmt.Coder, m *refusal) { headFields(c, &m.head) }

func fetchFields(c *wirefmt.Coder, m *fetch) {
	headFields(c, &m.head)
	wirefmt.Uint(c, &m.Applied)
}

func pollFields(c *wirefmt.Coder, m *poll) {
	headFields(c, &m.head)
	wirefmt.Uint(c, &m.Round)
}

func polledFields(c *wirefmt.Coder, m *polled) {
	headFields(c, &m.head)
	wirefmt.Uint(c, &m.Round)
	wirefmt.Uint(c, &m.Slot)
}

func copyFields(c *wirefmt.Coder, m *requestCopy) { kit.RequestFields(c, &m.Request) }

func castFields(c *wirefmt.Coder, m *cast) {
	headFields(c, &m.head)
	wirefmt.Uint32(c, &m.Need)
	wirefmt.Uint(c, &m.Session)
	wirefmt.List(c, &m.Items, 2, kit.EarlyReplyFields)
}

func decidedNamesFields(c *wirefmt.Coder, m *decidedNames) {
	headFields(c, &m.head)
	wirefmt.List(c, &m.Items, 3+kit.MinEntryBytes, namedFields)
}

func namedFields(c *wirefmt.Coder, m *named) {
	wirefmt.Uint(c, &m.Slot)
	kit.EntryFields(c, &m.Entry)
	wirefmt.Uint(c, &m.Length)
	wirefmt.Uint32(c, &m.Sum)
}

func voteRecordFields(c *wirefmt.Coder, m *voteRecord) { votesFields(c, &m.Votes) }

func decidedRecordFields(c *wirefmt.Coder, m *decidedRecord) { itemsFields(c, &m.Items) }

func promiseRecordFields(c *wirefmt.Coder, m *promiseRecord) { wirefmt.Uint(c, &m.Era) }

func itemsFields(c *wirefmt.Coder, items *[]item) {
	wirefmt.List(c, items, 1+kit.MinEntryBytes, func(c *wirefmt.Coder, m *item) {
		wirefmt.Uint(c, &m.Slot)
		kit.EntryFields(c, &m.Entry)
	})
}

func votesFields(c *wirefmt.Coder, votes *[]vote) {
	wirefmt.List(c, votes, 3+kit.MinEntryBytes, func(c *wirefmt.Coder, m *vote) {
		wirefmt.Uint(c, &m.Slot)
		wirefmt.Uint(c, &m.Era)
		wirefmt.Bool(c, &m.Classic)
		kit.EntryFields(c, &m.Entry)
	})
}
