package wal

import (
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

// Remove deletes all that a node has written, durably. Nobody may have taken the node from this
// store.
func (s *Store) Remove(name string) error {
	fail := func(err error) error { return fmt.Errorf("wal: %s: remove node %q: %w", s.dir, name, err) }
	if err := checkName(name); err != nil {
		return fail(err)
	}
	s.opening.Lock()
	defer s.opening.Unlock()
	if err := s.usable(); err != nil {
		return fail(err)
	}
	if s.nodes[name] != nil {
		return fail(errors.New("it is in use"))
	}
	how := pebble.Sync
	if s.opts.NoSync {
		how = pebble.NoSync
	}
	first, last := entryPrefix(name, kindKey), prefixEnd(entryPrefix(name, kindRecord)) // of the kinds, in order
	if err := s.db.DeleteRange(first, last, how); err != nil {
		return fail(s.fail(err))
	}
	return nil
}
