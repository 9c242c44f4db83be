package geostore

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/foresay/foresay/host"
	"github.com/foresay/foresay/host/waldisk"
	"github.com/foresay/foresay/store"
	storemachine "github.com/foresay/foresay/store/machine"
	"github.com/foresay/foresay/wal"
)

// Sizes for loading: large batches, large sorted files, and little that waits.
const (
	loadBatch        = 2000 // keys
	loadMemTable     = 64 << 20
	loadPendingBytes = 8 << 20
	servingCache     = 64 << 20
)

// load writes the keys to the disks of all sites, one site after the other, before anybody uses
// them. The keys come in order, so that the database's files do not overlap and need not be merged.
// Only the end is synced: a load that was cut short is done anew.
func (s *Store) load(ctx context.Context) error {
	sites := s.cfg.Matrix.Sites()
	for i, site := range sites {
		if err := s.loadSite(ctx, filepath.Join(s.cfg.Dir, string(site)), uint64(i)*s.cfg.Keys); err != nil {
			return fmt.Errorf("geostore: load %s: %w", site, err)
		}
	}
	s.progress(uint64(len(sites)) * s.cfg.Keys)
	return nil
}

func (s *Store) progress(done uint64) {
	if s.cfg.Loading != nil {
		s.cfg.Loading(done, uint64(len(s.cfg.Matrix.Sites()))*s.cfg.Keys)
	}
}

func (s *Store) loadSite(ctx context.Context, dir string, done uint64) (err error) {
	w, err := wal.Open(dir, wal.Options{NoSync: true, MemTableBytes: loadMemTable, MaxPendingBytes: loadPendingBytes})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	nodes, batches := make([]*wal.Node, s.cfg.Shards), make([]wal.Batch, s.cfg.Shards)
	for i := range nodes {
		if nodes[i], err = w.Node(storemachine.ShardName(i)); err != nil {
			return err
		}
	}
	failed := make(chan error, 1)
	commit := func(i int) {
		nodes[i].Commit(&batches[i], func(err error) {
			if err != nil {
				select {
				case failed <- err:
				default: // the first one counts
				}
			}
		})
	}
	base := s.keyspace()
	n := uint64(0)
	for key := range base.scan(nil, nil) {
		i := store.ShardOf(store.Key(key[len(base.prefix):]), s.cfg.Shards)
		if batches[i].Put(key, base.value); batches[i].Len() == loadBatch {
			commit(i)
		}
		if n++; n%(1<<17) != 0 {
			continue
		}
		s.progress(done + n)
		select {
		case err := <-failed:
			return err
		case <-ctx.Done():
			return context.Cause(ctx)
		default:
		}
	}
	for i := range nodes {
		commit(i)
	}
	return nil // what failed last is the error of Close
}

// openWAL returns the disks of a machine.
func openWAL(dir string) (*wal.Store, func(name string) (host.Disk, error), error) {
	w, err := wal.Open(dir, wal.Options{CacheBytes: servingCache})
	if err != nil {
		return nil, nil, err
	}
	return w, func(name string) (host.Disk, error) {
		d, err := waldisk.New(w, name)
		if err != nil {
			return nil, err
		}
		return d, nil
	}, nil
}
