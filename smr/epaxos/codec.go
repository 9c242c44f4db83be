package epaxos

import (
	"github.com/foresay/foresay/internal/wirefmt"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// Codec returns the codec of the protocol's messages and records.
func Codec() protocol.Codec[smr.Message] {
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

func headFields(c *wirefmt.Coder, m *Head) {
	wirefmt.Uint(c, &m.Gen)
}

func idFields(c *wirefmt.Coder, m *ID) {
	wirefmt.Uint32(c, &m.Row)
	wirefmt.Uint(c, &m.Index)
}

func depsFields(c *wirefmt.Coder, d *Deps) { wirefmt.List(c, d, 1, wirefmt.Uint) }

// commandFields are those of a command, if there is one.
func commandFields(c *wirefmt.Coder, cmd **Command) {
	var m Command
	if *cmd != nil {
		m = **cmd
	}
	wirefmt.Enum(c, &m.Kind, 0, Fence, "kind of command")
	if m.Kind > Nothing {
		wirefmt.Uint(c, &m.Stamp)
	}
	if m.Kind == Work {
		kit.EntriesFields(c, &m.Entries)
	}
	if c.Reading() && m.Kind != 0 {
		*cmd = &m
	}
}

func phaseFields(c *wirefmt.Coder, p *uint8) {
	wirefmt.Enum(c, p, uint8(unknown), uint8(committed), "phase")
}

func preAcceptFields(c *wirefmt.Coder, m *PreAccept) {
	headFields(c, &m.Head)
	idFields(c, &m.ID)
	commandFields(c, &m.Cmd)
	depsFields(c, &m.Deps)
}

func preAcceptedFields(c *wirefmt.Coder, m *PreAccepted) {
	headFields(c, &m.Head)
	idFields(c, &m.ID)
	depsFields(c, &m.Deps)
	wirefmt.Bool(c, &m.Fenced)
}

func acceptFields(c *wirefmt.Coder, m *Accept) {
	headFields(c, &m.Head)
	idFields(c, &m.ID)
	wirefmt.Uint(c, &m.Ballot)
	commandFields(c, &m.Cmd)
	depsFields(c, &m.Deps)
}

func acceptedFields(c *wirefmt.Coder, m *Accepted) {
	headFields(c, &m.Head)
	idFields(c, &m.ID)
	wirefmt.Uint(c, &m.Ballot)
}

func commitFields(c *wirefmt.Coder, m *Commit) {
	headFields(c, &m.Head)
	idFields(c, &m.ID)
	commandFields(c, &m.Cmd)
	depsFields(c, &m.Deps)
}

func lackingFields(c *wirefmt.Coder, m *Lacking) {
	headFields(c, &m.Head)
	idFields(c, &m.ID)
}

func recoverFields(c *wirefmt.Coder, m *Recover) {
	headFields(c, &m.Head)
	idFields(c, &m.ID)
	wirefmt.Uint(c, &m.Ballot)
}

func recoveredFields(c *wirefmt.Coder, m *Recovered) {
	headFields(c, &m.Head)
	idFields(c, &m.ID)
	wirefmt.Uint(c, &m.Ballot)
	phaseFields(c, &m.Phase)
	wirefmt.Uint(c, &m.Voted)
	commandFields(c, &m.Cmd)
	depsFields(c, &m.Init)
	depsFields(c, &m.Deps)
}

func validateFields(c *wirefmt.Coder, m *Validate) {
	headFields(c, &m.Head)
	idFields(c, &m.ID)
	wirefmt.Uint(c, &m.Ballot)
	commandFields(c, &m.Cmd)
	if m.Cmd == nil {
		c.Failf("there is no command")
	}
	depsFields(c, &m.Deps)
}

func validatedFields(c *wirefmt.Coder, m *Validated) {
	headFields(c, &m.Head)
	idFields(c, &m.ID)
	wirefmt.Uint(c, &m.Ballot)
	wirefmt.Bool(c, &m.Invalid)
	wirefmt.List(c, &m.Pending, 2, idFields)
}

func waitingFields(c *wirefmt.Coder, m *Waiting) {
	headFields(c, &m.Head)
	idFields(c, &m.ID)
	wirefmt.Uint(c, &m.Agreed)
}

func refusalFields(c *wirefmt.Coder, m *Refusal) {
	headFields(c, &m.Head)
	idFields(c, &m.ID)
	wirefmt.Uint(c, &m.Promised)
}

func newsFields(c *wirefmt.Coder, m *News) {
	headFields(c, &m.Head)
	depsFields(c, &m.Top)
}

func fetchFields(c *wirefmt.Coder, m *Fetch) {
	headFields(c, &m.Head)
	wirefmt.List(c, &m.Missing, 3, rangeFields)
}

func rangeFields(c *wirefmt.Coder, m *Range) {
	wirefmt.Uint32(c, &m.Row)
	wirefmt.Uint(c, &m.First)
	wirefmt.Uint(c, &m.Last)
}

func pollFields(c *wirefmt.Coder, m *Poll) {
	headFields(c, &m.Head)
	wirefmt.Uint(c, &m.Round)
	wirefmt.Bool(c, &m.All)
	wirefmt.List(c, &m.Keys, 1, wirefmt.String)
}

func polledFields(c *wirefmt.Coder, m *Polled) {
	headFields(c, &m.Head)
	wirefmt.Uint(c, &m.Round)
	depsFields(c, &m.Deps)
}

func settledFields(c *wirefmt.Coder, m *Settled) {
	headFields(c, &m.Head)
	idFields(c, &m.ID)
}

func recordFields(c *wirefmt.Coder, m *InstanceRecord) {
	idFields(c, &m.ID)
	phaseFields(c, &m.Phase)
	wirefmt.Uint(c, &m.Ballot)
	wirefmt.Uint(c, &m.Voted)
	wirefmt.Bool(c, &m.Nothing)
	commandFields(c, &m.Cmd)
	depsFields(c, &m.Init)
	depsFields(c, &m.Deps)
}
