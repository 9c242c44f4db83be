package storeconfig

import "github.com/foresay/foresay/store"

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
