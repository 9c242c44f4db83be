package mencius

import (
	"github.com/foresay/foresay/internal/wirefmt"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// codec returns the codec of the protocol's messages and records.
func codec() protocol.Codec[smr.Message] {
	return kit.NewFormat("mencius", 1,
		kit.Kind(64, acceptFields), kit.Kind(65, acceptedFields), kit.Kind(66, missingFields), kit.Kind(67, refusalFields),
		kit.Kind(68, prepareFields),
		kit.Kind(69, promiseFields), kit.Kind(70, beatFields), kit.Kind(71, fetchFields), kit.Kind(72, decidedFields),
		kit.Kind(73, pollFields), kit.Kind(74, polledFields),
		kit.Kind(80, acceptRecordFields), kit.Kind(81, promiseRecordFields),
	)
}

func placeFields(c *wirefmt.Coder, m *place) {
	wirefmt.Uint(c, &m.Epoch)
	wirefmt.Uint32(c, &m.Track)
	wirefmt.Uint(c, &m.Ballot)
}

func itemsFields(c *wirefmt.Coder, items *[]item) { wirefmt.List(c, items, 2, itemFields) }

func itemFields(c *wirefmt.Coder, m *item) {
	wirefmt.Uint(c, &m.Skips)
	there := m.Entry.Kind != 0
	if wirefmt.Bool(c, &there); there {
		kit.EntryFields(c, &m.Entry)
	}
}

func acceptFields(c *wirefmt.Coder, m *accept) {
	placeFields(c, &m.place)
	wirefmt.Uint(c, &m.First)
	wirefmt.Uint(c, &m.Commit)
	itemsFields(c, &m.Items)
}

func acceptedFields(c *wirefmt.Coder, m *accepted) {
	placeFields(c, &m.place)
	wirefmt.Uint(c, &m.Match)
}

func missingFields(c *wirefmt.Coder, m *missing) {
	placeFields(c, &m.place)
	wirefmt.Uint(c, &m.Want)
}

func refusalFields(c *wirefmt.Coder, m *refusal) { placeFields(c, &m.place) }

func prepareFields(c *wirefmt.Coder, m *prepare) {
	placeFields(c, &m.place)
	wirefmt.Uint(c, &m.Low)
}

func promiseFields(c *wirefmt.Coder, m *promise) {
	placeFields(c, &m.place)
	wirefmt.Uint(c, &m.Low)
	wirefmt.Uint(c, &m.Base)
	wirefmt.Bool(c, &m.Last)
	wirefmt.List(c, &m.Votes, 2+kit.MinEntryBytes, voteFields)
}

func voteFields(c *wirefmt.Coder, m *vote) {
	wirefmt.Uint(c, &m.Ballot)
	wirefmt.Bool(c, &m.Skip)
	kit.EntryFields(c, &m.Entry)
}

func beatFields(c *wirefmt.Coder, m *beat) {
	wirefmt.Uint(c, &m.Epoch)
	wirefmt.Uint(c, &m.Applied)
	wirefmt.Uint(c, &m.Seen)
	wirefmt.List(c, &m.Leads, 3, ledFields)
}

func ledFields(c *wirefmt.Coder, m *led) {
	wirefmt.Uint32(c, &m.Track)
	wirefmt.Uint(c, &m.Ballot)
	wirefmt.Uint(c, &m.Commit)
}

func fetchFields(c *wirefmt.Coder, m *fetch) {
	wirefmt.Uint(c, &m.Epoch)
	wirefmt.Uint(c, &m.Applied)
}

func decidedFields(c *wirefmt.Coder, m *decided) {
	wirefmt.Uint(c, &m.Epoch)
	wirefmt.Uint(c, &m.First)
	kit.EntriesFields(c, &m.Entries)
}

func pollFields(c *wirefmt.Coder, m *poll) {
	wirefmt.Uint(c, &m.Epoch)
	wirefmt.Uint(c, &m.Round)
}

func polledFields(c *wirefmt.Coder, m *polled) {
	wirefmt.Uint(c, &m.Epoch)
	wirefmt.Uint(c, &m.Round)
	wirefmt.Uint(c, &m.Slot)
}

func acceptRecordFields(c *wirefmt.Coder, m *acceptRecord) {
	wirefmt.Uint(c, &m.Epoch)
	wirefmt.List(c, &m.Parts, 4, partFields)
}

func partFields(c *wirefmt.Coder, m *part) {
	wirefmt.Uint32(c, &m.Track)
	wirefmt.Uint(c, &m.Ballot)
	wirefmt.Uint(c, &m.First)
	itemsFields(c, &m.Items)
}

func promiseRecordFields(c *wirefmt.Coder, m *promiseRecord) {
	wirefmt.Uint(c, &m.Epoch)
	wirefmt.List(c, &m.Ballots, 1, wirefmt.Uint)
}
