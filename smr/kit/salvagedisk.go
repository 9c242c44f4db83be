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

// Decisions is whether a disk tells what its replica has executed, in protocols whose replicas
// learn decisions that contradict their own votes. They write those down; programs of earlier
// versions did not. So a disk that one of them has written tells it only when a snapshot has taken
// the place of what was executed then.
type Decisions struct{ told bool }

const decisionsKey = "smr/decisions"

// Load reads what the disk says at a start. A blank one begins to tell.
func (d *Decisions) Load(env *protocol.Env[smr.Message], blank bool) {
	if _, d.told = env.Get([]byte(decisionsKey)); blank {
		d.Saved(env)
	}
}

// Saved notes that a snapshot is on the disk, of what was executed by this program.
func (d *Decisions) Saved(env *protocol.Env[smr.Message]) {
	if !d.told {
		d.told = true
		env.Put([]byte(decisionsKey), []byte{1})
	}
}

// Check returns an error if the disk did not tell what was executed when it was loaded.
func (d *Decisions) Check() error {
	if !d.told {
		return fmt.Errorf("an earlier version of the program wrote the disk: %w", smr.ErrNoSalvage)
	}
	return nil
}
