package storeconfig

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/foresay/foresay/internal/cli/configfile"
	"github.com/foresay/foresay/store"
)

// Moving returns the store's next epoch, in which a shard's copy is being moved from one site to
// another.
func (s *Store) Moving(shard int, from, to string) (*Store, error) {
	t, err := s.Topology().Moving(shard, from, to)
	if err != nil {
		return nil, err
	}
	return s.with(t)
}

// TakingBack returns the store's next epoch, in which the move that is under way is taken back.
func (s *Store) TakingBack() (*Store, error) { return s.with(s.Topology().TakingBack()) }

// Moved returns the store's next epoch, in which the move that is under way is over, and has moved
// the copy or not.
func (s *Store) Moved(moved bool) (*Store, error) { return s.with(s.Topology().Moved(moved)) }

// with returns the store of the next epoch, with what a topology says of copies.
func (s *Store) with(t store.Topology) (*Store, error) {
	next := s.next()
	next.Placement, next.Coordinating, next.Moves = t.Placement, t.Coordinating, nil
	for _, m := range t.Moves {
		next.Moves = append(next.Moves, Move(m))
	}
	return next, next.check()
}

// BringUpToDate writes an epoch that the machines have agreed on to the store's file that a
// clients' file names, for clients at a site if that is not empty, unless the file is of that
// epoch, or a later one. Of the file as it was a copy is kept beside it. Machines stay where
// clients know them from the file. It returns the file's name.
func BringUpToDate(clients, site string, next *Store) (name string, err error) {
	c, err := ReadClient(clients, site)
	if err != nil {
		return "", err
	}
	if name = c.StorePath(); site != "" {
		name = filepath.Clean(configfile.Beside(clients, c.Views[site]))
	}
	if c.Store.Epoch >= next.Epoch {
		return name, nil
	}
	kept := filepath.Join(filepath.Dir(name), epochFile(c.Store.Epoch))
	if filepath.Base(name) != StoreFile {
		kept = fmt.Sprintf("%s.epoch-%d", name, c.Store.Epoch)
	}
	return name, replaceFile(name, kept, c.Store, next.SeenAs(c.Store))
}

// replaceFile writes an epoch of the store in place of another one, of which it keeps a file.
func replaceFile(name, kept string, old, next *Store) error {
	for _, f := range []struct {
		name string
		s    *Store
	}{{kept, old}, {name, next}} {
		if err := configfile.Write(f.name+".new", f.s); err != nil {
			return err
		}
		if err := os.Rename(f.name+".new", f.name); err != nil {
			return err
		}
	}
	return nil
}
