package smr

import (
	"errors"
	"fmt"

	"github.com/foresay/foresay/internal/wirefmt"
	"github.com/foresay/foresay/protocol"
)

// Salvaged is what was found on the disk of a replica whose group has lost its quorum. The state machine has executed all of it.
type Salvaged struct {
	Members  []Member // of the group, as the disk knows it, in order of their IDs
	Snapshot Slot     // of the snapshot on the disk
	Applied  Slot     // of the last entry that was executed
	// Doubtful counts the entries that were executed though the disk does not say that they were decided: whether their clients were told so, nobody can know.
	Doubtful int
}

// ErrNoSalvage says that the disks of a protocol's replicas do not tell what was executed.
var ErrNoSalvage = errors.New("a replica's disk has its votes, which do not tell what was decided and executed")

// SalvageDisk has cfg.Machine execute all that the disk of a replica holds: what was decided, and what was accepted here and may have been. So everything is there that the
// replica had executed and written, and nothing of what it had not heard of. It changes nothing: what it has written in env is to be thrown away.
func (p Protocol) SalvageDisk(cfg ReplicaConfig, env *protocol.Env[Message], log []protocol.Record[Message]) (Salvaged, error) {
	if p.Salvage == nil {
		return Salvaged{}, fmt.Errorf("%s: %w", p.Name, ErrNoSalvage)
	}
	head, err := readSnapshotHead(env)
	if err != nil {
		return Salvaged{}, err
	}
	self, _ := env.Get([]byte(selfKey))
	r := wirefmt.NewReader(self)
	_, admitted, refused := r.Uint(), r.Bool(), r.String()
	switch {
	case !head.there() || r.Close() != nil || !admitted && refused == "":
		return Salvaged{}, fmt.Errorf("%s: the disk has nothing of a group: replica %d has never taken part", p.Name, cfg.ID)
	case refused != "":
		return Salvaged{}, fmt.Errorf("%s: replica %d was refused by the group: %s", p.Name, cfg.ID, refused)
	}
	s, err := p.Salvage(cfg, env, log)
	if err != nil {
		return Salvaged{}, err
	}
	s.Snapshot = head.slot
	for _, m := range s.Members {
		if m.ID == cfg.ID {
			return s, nil
		}
	}
	return Salvaged{}, fmt.Errorf("%s: replica %d is no member of the group, as its own disk says: others know more", p.Name, cfg.ID)
}

// Salvaged returns what is known of a state that has everything.
func (s *State) Salvaged(doubtful int) Salvaged {
	return Salvaged{Members: s.Members(), Applied: s.applied, Doubtful: doubtful}
}
