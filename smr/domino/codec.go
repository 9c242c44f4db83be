package domino

import (
	"math"

	"github.com/foresay/foresay/internal/wirefmt"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// codec returns the codec of the protocol's messages and records.
func codec() protocol.Codec[smr.Message] {
	return kit.NewFormat("domino", 1,
		wirefmt.NewEarlierKind[smr.Message](64, func(m news) bool { return len(m.Names) == 0 }, earlierNewsFields),
		kit.Kind(65, acceptFields), kit.Kind(66, prepareFields), kit.Kind(67, promiseFields), kit.Kind(68, refusalFields),
		kit.Kind(69, revokeFields),
		kit.Kind(70, revokedFields), wirefmt.NewEarlierKind[smr.Message](71, func(m learned) bool {
			return len(m.Names) == 0
		}, earlierLearnedFields), kit.Kind(72, fetchFields), kit.Kind(73, decidedFields), kit.Kind(74, pollFields),
		kit.Kind(75, polledFields),
		kit.Kind(76, missingFields), kit.Kind(77, newsFields), kit.Kind(78, learnedFields), kit.Kind(80, submitFields),
		kit.Kind(81, voteFields), kit.Kind(82, placedFields),
		kit.Kind(83, outcomeFields), kit.Kind(84, orderedFields), kit.Kind(85, probeFields),
		wirefmt.NewEarlierKind[smr.Message](86, func(m echo) bool { return m.Shown == 0 }, earlierEchoFields),
		kit.Kind(87, echoFields),
		kit.Kind(96, ownRecordFields), kit.Kind(97, trackRecordFields), kit.Kind(98, closeRecordFields),
		kit.Kind(99, executedRecordFields),
	)
}

func itemFields(c *wirefmt.Coder, m *item) {
	wirefmt.Uint(c, &m.Slot)
	wirefmt.Uint32(c, &m.Answer)
	kit.EntriesFields(c, &m.Entries)
}

func itemsFields(c *wirefmt.Coder, items *[]item) { wirefmt.List(c, items, 3, itemFields) }

func closeFields(c *wirefmt.Coder, m *closeSlots) {
	wirefmt.Uint32(c, &m.Track)
	wirefmt.Uint(c, &m.Low)
	wirefmt.Uint(c, &m.High)
	itemsFields(c, &m.Items)
}

func partFields(c *wirefmt.Coder, m *part) {
	wirefmt.Uint(c, &m.Ballot)
	closeFields(c, &m.closeSlots)
}

func earlierNewsFields(c *wirefmt.Coder, m *news) {
	wirefmt.Uint(c, &m.First)
	itemsFields(c, &m.Items)
	wirefmt.Uint(c, &m.Base)
	wirefmt.Uint(c, &m.Through)
	wirefmt.Uint(c, &m.Count)
	wirefmt.Uint(c, &m.Closed)
	wirefmt.Uint(c, &m.Skipped)
	wirefmt.Uint(c, &m.Executed)
	wirefmt.List(c, &m.Have, 3, haveFields)
	wirefmt.Uint(c, &m.Promised)
	wirefmt.Uint(c, &m.Accepted)
	wirefmt.Bool(c, &m.Leads)
}

func haveFields(c *wirefmt.Coder, m *have) {
	wirefmt.Uint32(c, &m.Owner)
	wirefmt.Uint(c, &m.Count)
	wirefmt.Uint(c, &m.Revoked)
}

func newsFields(c *wirefmt.Coder, m *news) {
	earlierNewsFields(c, m)
	wirefmt.List(c, &m.Names, 3, nameFields)
}

func nameFields(c *wirefmt.Coder, m *name) {
	wirefmt.Uint(c, &m.Index)
	wirefmt.Uint32(c, &m.Sum)
	wirefmt.List(c, &m.Lengths, 1, wirefmt.Uint)
}

func acceptFields(c *wirefmt.Coder, m *accept) {
	wirefmt.Uint(c, &m.Ballot)
	wirefmt.Uint(c, &m.Generation)
	wirefmt.Uint(c, &m.Base)
	wirefmt.Uint(c, &m.Through)
	wirefmt.Uint(c, &m.First)
	wirefmt.List(c, &m.Closes, 4, closeFields)
}

func prepareFields(c *wirefmt.Coder, m *prepare) {
	wirefmt.Uint(c, &m.Ballot)
}

func promiseFields(c *wirefmt.Coder, m *promise) {
	wirefmt.Uint(c, &m.Ballot)
	wirefmt.Uint(c, &m.Executed)
	wirefmt.Uint(c, &m.Number)
	wirefmt.Uint(c, &m.Count)
	wirefmt.List(c, &m.Parts, 5, partFields)
}

func refusalFields(c *wirefmt.Coder, m *refusal) {
	wirefmt.Uint(c, &m.Promised)
}

func revokeFields(c *wirefmt.Coder, m *revoke) {
	wirefmt.Uint(c, &m.Ballot)
	wirefmt.Uint32(c, &m.Track)
	wirefmt.Uint(c, &m.High)
}

func revokedFields(c *wirefmt.Coder, m *revoked) {
	wirefmt.Uint(c, &m.Ballot)
	wirefmt.Uint32(c, &m.Track)
	wirefmt.Uint(c, &m.Asked)
	wirefmt.Uint(c, &m.High)
	wirefmt.Uint(c, &m.Executed)
	itemsFields(c, &m.Items)
}

func earlierLearnedFields(c *wirefmt.Coder, m *learned) {
	closeFields(c, &m.closeSlots)
}

func learnedFields(c *wirefmt.Coder, m *learned) {
	earlierLearnedFields(c, m)
	wirefmt.List(c, &m.Names, 3, nameFields)
}

func fetchFields(c *wirefmt.Coder, m *fetch) {
	wirefmt.Uint(c, &m.After)
	wirefmt.Bool(c, &m.Blank)
}

func decidedFields(c *wirefmt.Coder, m *decided) {
	wirefmt.Uint(c, &m.Low)
	wirefmt.Uint(c, &m.High)
	wirefmt.Uint(c, &m.Executed)
	itemsFields(c, &m.Items)
}

func pollFields(c *wirefmt.Coder, m *poll) {
	wirefmt.Uint(c, &m.Round)
}

func polledFields(c *wirefmt.Coder, m *polled) {
	wirefmt.Uint(c, &m.Round)
	wirefmt.Uint(c, &m.Slot)
}

func missingFields(c *wirefmt.Coder, m *missing) {
	wirefmt.Uint(c, &m.Number)
}

func submitFields(c *wirefmt.Coder, m *submit) {
	kit.RequestFields(c, &m.Request)
	wirefmt.Uint(c, &m.Slot)
	wirefmt.Uint32(c, &m.Answer)
	wirefmt.List(c, &m.Acks, 1, ackFields)
	if len(m.Acks) != len(m.Commands) {
		c.Failf("%d kinds of acknowledgements for %d commands", len(m.Acks), len(m.Commands))
	}
}

func ackFields(c *wirefmt.Coder, a *smr.Ack) {
	wirefmt.Enum(c, a, 0, smr.AckExecuted, "kind of acknowledgement")
}

func voteFields(c *wirefmt.Coder, m *vote) {
	wirefmt.Uint(c, &m.Session)
	wirefmt.Uint(c, &m.Slot)
	wirefmt.Uint32(c, &m.Members)
	wirefmt.Enum(c, &m.Verdict, yes, full, "verdict")
	wirefmt.Int(c, &m.Late)
}

func placedFields(c *wirefmt.Coder, m *placed) {
	wirefmt.Uint(c, &m.Session)
	wirefmt.Uint(c, &m.Slot)
	wirefmt.Uint32(c, &m.Members)
	wirefmt.Bool(c, &m.Whole)
	wirefmt.List(c, &m.Seqs, 1, wirefmt.Uint)
}

func outcomeFields(c *wirefmt.Coder, m *outcome) {
	wirefmt.Uint(c, &m.Session)
	wirefmt.Uint(c, &m.Slot)
	wirefmt.Bool(c, &m.Committed)
}

func orderedFields(c *wirefmt.Coder, m *ordered) {
	wirefmt.Uint(c, &m.Session)
	wirefmt.Uint(c, &m.Slot)
	wirefmt.List(c, &m.Seqs, 1, wirefmt.Uint)
}

func probeFields(c *wirefmt.Coder, m *probe) {
	wirefmt.Int(c, &m.Sent)
	wirefmt.Uint(c, &m.Generation)
}

func echoFields(c *wirefmt.Coder, m *echo) {
	earlierEchoFields(c, m)
	wirefmt.Int(c, &m.Shown)
}

func earlierEchoFields(c *wirefmt.Coder, m *echo) {
	wirefmt.Int(c, &m.Sent)
	wirefmt.Int(c, &m.Now)
	wirefmt.List(c, &m.Delays, 2, delayFields)
	wirefmt.Uint32(c, &m.Leader)
	wirefmt.Uint(c, &m.Generation)
	wirefmt.List(c, &m.Members, 2, kit.MemberFields)
}

func delayFields(c *wirefmt.Coder, m *delay) {
	wirefmt.Uint32(c, &m.ID)
	wirefmt.Int(c, &m.Round)
}

func ownRecordFields(c *wirefmt.Coder, m *ownRecord) {
	wirefmt.Uint(c, &m.First)
	itemsFields(c, &m.Items)
}

func trackRecordFields(c *wirefmt.Coder, m *trackRecord) {
	wirefmt.Uint32(c, &m.Owner)
	itemsFields(c, &m.Items)
}

func closeRecordFields(c *wirefmt.Coder, m *closeRecord) { partFields(c, &m.part) }

func executedRecordFields(c *wirefmt.Coder, m *executedRecord) { itemsFields(c, &m.Items) }

// maxSlot bounds the slots that are taken from others: sums of slots and durations do not overflow.
const maxSlot = smr.Slot(math.MaxInt64 / 4)
