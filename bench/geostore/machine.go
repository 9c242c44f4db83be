package geostore

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"time"

	"github.com/foresay/foresay/host"
	"github.com/foresay/foresay/store"
	storemachine "github.com/foresay/foresay/store/machine"
	"github.com/foresay/foresay/wal"
	"github.com/foresay/foresay/wan"
)

// A machine is a site's.
type machine struct {
	site           wan.Site
	number         int
	peers, clients net.Listener
	disk           func(name string) (host.Disk, error)
	wal            *wal.Store // nil: its disks are in memory
	node           *storemachine.Node
	stop           context.CancelFunc
	ended          chan struct{}
}

// listen has a machine listen at its addresses, which are the same each time.
func (s *Store) listen(m *machine) (err error) {
	if m.peers, err = s.network.Listen(m.site); err != nil {
		return err
	}
	m.clients, err = s.network.Listen(m.site)
	return err
}

// run runs a machine that listens, with the disks that it had.
func (s *Store) run(m *machine) (err error) {
	if err := s.openDisks(m); err != nil {
		return err
	}
	m.node, err = storemachine.Open(storemachine.Config{
		Protocol: s.cfg.Protocol, Cluster: "bench", Topology: s.topology, Machine: machineName(m.site),
		Disk: m.disk, PeerListener: m.peers, ClientListener: m.clients,
		PeerDial: s.network.DialContext(m.site), Insecure: true, RoundTrip: s.longest, Retain: s.cfg.Retain,
		MaxOffset: s.cfg.MaxOffset, ByArrival: s.cfg.ByArrival,
		Seed: s.seed(machineSeeds + uint64(m.number)), Logger: s.cfg.Logger, Clock: s.clock(m.number),
	})
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(s.failed)
	node, ended := m.node, make(chan struct{})
	m.stop, m.ended = stop, ended
	s.running.Go(func() error {
		defer close(ended)
		if err := node.Run(ctx); ctx.Err() == nil { // what ends a machine that is stopped is no error
			return err
		}
		return nil
	})
	return nil
}

// clock returns that of a machine, by its number; nil is the right one.
func (s *Store) clock(number int) func() time.Duration {
	if s.cfg.Offset == 0 {
		return nil
	}
	off := s.cfg.Offset * time.Duration(number) / time.Duration(max(len(s.cfg.Matrix.Sites())-1, 1))
	return func() time.Duration { return time.Duration(time.Now().UnixNano()) + off - s.cfg.Offset/2 }
}

// openDisks opens a machine's disks, unless they are in memory and were opened before.
func (s *Store) openDisks(m *machine) (err error) {
	if s.cfg.Dir != "" {
		m.wal, m.disk, err = openWAL(filepath.Join(s.cfg.Dir, string(m.site)))
		return err
	}
	if m.disk != nil {
		return nil
	}
	d, base, all := &device{sync: s.cfg.Sync}, s.keyspace(), map[string]host.Disk{}
	m.disk = func(name string) (host.Disk, error) {
		if all[name] == nil {
			all[name] = newDisk(d, base)
		}
		return all[name], nil
	}
	return nil
}

func (m *machine) close() error {
	if m.wal == nil {
		return nil
	}
	w := m.wal
	m.wal = nil
	return w.Close()
}

func (s *Store) machine(site wan.Site) (*machine, error) {
	for _, m := range s.machines {
		if m.site == site {
			return m, nil
		}
	}
	return nil, fmt.Errorf("geostore: there is no site %s", site)
}

// Kill ends a site's machine and its connections.
func (s *Store) Kill(site wan.Site) error {
	m, err := s.machine(site)
	if err != nil {
		return err
	}
	m.stop()
	s.network.Crash(site)
	<-m.ended
	return m.close()
}

// Restart runs a site's machine again, with its disks.
func (s *Store) Restart(site wan.Site) error {
	m, err := s.machine(site)
	if err != nil {
		return err
	}
	if err := s.listen(m); err != nil {
		return fmt.Errorf("geostore: %w", err)
	}
	return s.run(m)
}

// Status returns how the servers of a site are that runs.
func (s *Store) Status(ctx context.Context, site wan.Site) ([]store.ServerStatus, error) {
	m, err := s.machine(site)
	if err != nil {
		return nil, err
	}
	return m.node.Servers(ctx)
}
