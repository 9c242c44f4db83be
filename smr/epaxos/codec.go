package epaxos

import (
	"github.com/foresay/foresay/internal/wirefmt"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// codec returns the codec of the protocol's messages and records.
func codec() protocol.Codec[smr.Message] {
	return kit.NewFormat("epaxos", 1,
		kit.Kind(64, preAcceptFields), kit.Kind(65, preAcceptedFields), kit.Kind(66, acceptFields),
		kit.Kind(67, acceptedFields), kit.Kind(68, commitFields),
		kit.Kind(69, recoverFields), kit.Kind(70, recoveredFields), kit.Kind(71, validateFields),
		kit.Kind(72, validatedFields), kit.Kind(73, waitingFields),
		kit.Kind(74, refusalFields), kit.Kind(75, newsFields), kit.Kind(76, fetchFields), kit.Kind(77, pollFields),
		kit.Kind(78, polledFields), kit.Kind(79, settledFields),
		kit.Kind(81, lackingFields), kit.Kind(90, recordFields),
	)
}

func headFields(c *wirefmt.Coder, m *head) {
	wirefmt.Uint(c, &m.Generation)
}

func idFields(c *wirefmt.Coder, m *instanceID) {
	wirefmt.Uint32(c, &m.Row)
	wirefmt.Uint(c, &m.Index)
}

func depsFields(c *wirefmt.Coder, d *deps) { wirefmt.List(c, d, 1, wirefmt.Uint) }

// commandFields are those of a command, if there is one.
func commandFields(c *wirefmt.Coder, cmd **command) {
	var m command
	if *cmd != nil {
		m = **cmd
	}
	wirefmt.Enum(c, &m.Kind, 0, fence, "kind of command")
	if m.Kind > nothing {
		wirefmt.Uint(c, &m.Stamp)
	}
	if m.Kind == work {
		kit.EntriesFields(c, &m.Entries)
	}
	if c.Reading() && m.Kind != 0 {
		*cmd = &m
	}
}

func phaseFields(c *wirefmt.Coder, p *uint8) {
	wirefmt.Enum(c, p, uint8(phaseUnknown), uint8(phaseCommitted), "phase")
}

func preAcceptFields(c *wirefmt.Coder, m *preAccept) {
	headFields(c, &m.head)
	idFields(c, &m.ID)
	commandFields(c, &m.Cmd)
	depsFields(c, &m.Deps)
}

func preAcceptedFields(c *wirefmt.Coder, m *preAccepted) {
	headFields(c, &m.head)
	idFields(c, &m.ID)
	depsFields(c, &m.Deps)
	wirefmt.Bool(c, &m.Fenced)
}

func acceptFields(c *wirefmt.Coder, m *accept) {
	headFields(c, &m.head)
	idFields(c, &m.ID)
	wirefmt.Uint(c, &m.Ballot)
	commandFields(c, &m.Cmd)
	depsFields(c, &m.Deps)
}

func acceptedFields(c *wirefmt.Coder, m *accepted) {
	headFields(c, &m.head)
	idFields(c, &m.ID)
	wirefmt.Uint(c, &m.Ballot)
}

func commitFields(c *wirefmt.Coder, m *commit) {
	headFields(c, &m.head)
	idFields(c, &m.ID)
	commandFields(c, &m.Cmd)
	depsFields(c, &m.Deps)
}

func lackingFields(c *wirefmt.Coder, m *lacking) {
	headFields(c, &m.head)
	idFields(c, &m.ID)
}

func recoverFields(c *wirefmt.Coder, m *recover) {
	headFields(c, &m.head)
	idFields(c, &m.ID)
	wirefmt.Uint(c, &m.Ballot)
}

func recoveredFields(c *wirefmt.Coder, m *recovered) {
	headFields(c, &m.head)
	idFields(c, &m.ID)
	wirefmt.Uint(c, &m.Ballot)
	phaseFields(c, &m.Phase)
	wirefmt.Uint(c, &m.Voted)
	commandFields(c, &m.Cmd)
	depsFields(c, &m.Init)
	depsFields(c, &m.Deps)
}

func validateFields(c *wirefmt.Coder, m *validate) {
	headFields(c, &m.head)
	idFields(c, &m.ID)
	wirefmt.Uint(c, &m.Ballot)
	commandFields(c, &m.Cmd)
	if m.Cmd == nil {
		c.Failf("there is no command")
	}
	depsFields(c, &m.Deps)
}

func validatedFields(c *wirefmt.Coder, m *validated) {
	headFields(c, &m.head)
	idFields(c, &m.ID)
	wirefmt.Uint(c, &m.Ballot)
	wirefmt.Bool(c, &m.Invalid)
	wirefmt.List(c, &m.Pending, 2, idFields)
}

func waitingFields(c *wirefmt.Coder, m *waiting) {
	headFields(c, &m.head)
	idFields(c, &m.ID)
	wirefmt.Uint(c, &m.Agreed)
}

func refusalFields(c *wirefmt.Coder, m *refusal) {
	headFields(c, &m.head)
	idFields(c, &m.ID)
	wirefmt.Uint(c, &m.Promised)
}

func newsFields(c *wirefmt.Coder, m *news) {
	headFields(c, &m.head)
	depsFields(c, &m.Top)
}

func fetchFields(c *wirefmt.Coder, m *fetch) {
	headFields(c, &m.head)
	wirefmt.List(c, &m.Missing, 3, rangeFields)
}

func rangeFields(c *wirefmt.Coder, m *span) {
	wirefmt.Uint32(c, &m.Row)
	wirefmt.Uint(c, &m.First)
	wirefmt.Uint(c, &m.Last)
}

func pollFields(c *wirefmt.Coder, m *poll) {
	headFields(c, &m.head)
	wirefmt.Uint(c, &m.Round)
	wirefmt.Bool(c, &m.All)
	wirefmt.List(c, &m.Keys, 1, wirefmt.String)
}

func polledFields(c *wirefmt.Coder, m *polled) {
	headFields(c, &m.head)
	wirefmt.Uint(c, &m.Round)
	depsFields(c, &m.Deps)
}

func settledFields(c *wirefmt.Coder, m *settled) {
	headFields(c, &m.head)
	idFields(c, &m.ID)
}

func recordFields(c *wirefmt.Coder, m *instanceRecord) {
	idFields(c, &m.ID)
	phaseFields(c, &m.Phase)
	wirefmt.Uint(c, &m.Ballot)
	wirefmt.Uint(c, &m.Voted)
	wirefmt.Bool(c, &m.Nothing)
	commandFields(c, &m.Cmd)
	depsFields(c, &m.Init)
	depsFields(c, &m.Deps)
}
