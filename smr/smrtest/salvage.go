package smrtest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// salvage has groups live under faults, and salvages the disk of each replica again and again:
// whatever the replica had executed must come out, in the same order.
func salvage(t *testing.T, p smr.Protocol, seeds uint64) {
	t.Helper()
	checks, doubtful := 0, 0
	checkDisks(t, p, seeds, func(cfg smr.ReplicaConfig) (protocol.Node[smr.Message], *onDisk, func() error, error) {
		s := &salvager{p: p, cfg: cfg, ids: map[int]commandID{}}
		s.cfg.Machine = nil
		m := plain(cfg.Machine)
		note := m.note
		m.note = func(first int, id commandID) {
			s.ids[first] = id
			note(first, id)
		}
		s.live = m
		n, err := p.NewReplica(cfg)
		s.Node = n
		return s, &s.onDisk, func() error {
			d, err := s.check()
			if err == nil {
				checks++
				doubtful += d
			}
			return err
		}, err
	})
	if checks == 0 || doubtful == 0 {
		t.Errorf("%d disks were salvaged, with %d commands that were not decided: nothing was tried", checks, doubtful)
	}
}

// salvager is a replica whose disk can be salvaged.
type salvager struct {
	onDisk
	p    smr.Protocol
	cfg  smr.ReplicaConfig
	live *machine
	ids  map[int]commandID // what the replica executed since it began or restored a snapshot, by position
}

// check salvages the disk, and compares what comes out with what the replica has executed.
func (s *salvager) check() (doubtful int, err error) {
	cfg := s.cfg
	out := newMachine(func(at int, id commandID) {
		if want, ok := s.ids[at]; ok && at < s.live.count && want != id && err == nil {
			err = fmt.Errorf("replica %d had executed command %d at %d, and its disk gives %d", cfg.ID, want, at, id)
		}
	})
	cfg.Machine = out
	found, failed := kit.SalvageDisk(s.p, cfg, s.disk.Env(), s.disk.Log)
	said := func(why string) bool { return strings.Contains(failed.Error(), why) }
	switch {
	case failed != nil && (s.live.count == 0 || said("is no member") || said("was refused") || cfg.Join &&
		said("has never taken part")):
		return 0, nil
	case failed != nil:
		return 0, fmt.Errorf("replica %d: %w", cfg.ID, failed)
	case err == nil && out.count < s.live.count:
		err = fmt.Errorf("replica %d had executed %d commands, and its disk gives %d", cfg.ID, s.live.count, out.count)
	}
	return found.Doubtful, err
}
