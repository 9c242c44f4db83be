package kit

import (
	"fmt"

	"github.com/foresay/foresay/internal/diskid"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
)

// SalvageDisk has cfg.Machine execute all that the disk of a replica holds: what was decided, and
// what was accepted here and may have been. So everything is there that the replica had executed
// and written, and nothing of what it had not heard of. It changes nothing: what it has written in
// env is to be thrown away.
func SalvageDisk(
	p smr.Protocol, cfg smr.ReplicaConfig, env *protocol.Env[smr.Message], log []protocol.Record[smr.Message],
) (smr.Salvaged, error) {
	if p.Salvage == nil {
		return smr.Salvaged{}, fmt.Errorf("%s: %w", p.Name, smr.ErrNoSalvage)
	}
	head, err := readSnapshotHead(env)
	if err != nil {
		return smr.Salvaged{}, err
	}
	self, found, err := diskid.Read(env, selfKey)
	switch {
	case !head.there() || !found || err != nil || !self.Joined && self.Refused == "":
		return smr.Salvaged{}, fmt.Errorf("%s: the disk has nothing of a group: replica %d has never taken part", p.Name,
			cfg.ID)
	case self.Refused != "":
		return smr.Salvaged{}, fmt.Errorf("%s: replica %d was refused by the group: %s", p.Name, cfg.ID, self.Refused)
	}
	s, err := p.Salvage(cfg, env, log)
	if err != nil {
		return smr.Salvaged{}, err
	}
	s.Snapshot = head.newest()
	for _, m := range s.Members {
		if m.ID == cfg.ID {
			return s, nil
		}
	}
	return smr.Salvaged{}, fmt.Errorf("%s: replica %d is no member of the group, as its own disk says: others know more",
		p.Name, cfg.ID)
}
