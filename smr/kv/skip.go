package kv

import "fmt"

// MaxSkippedTo bounds the version that Skip leads to: the largest integer up to which the numbers
// of JSON are exact everywhere.
const MaxSkippedTo = 1<<53 - 1

// SkippedTo returns the version that is n after one.
func SkippedTo(version, n uint64) (uint64, error) {
	if version > MaxSkippedTo || n > MaxSkippedTo-version {
		return 0, fmt.Errorf("kv: %d versions after %d cannot be skipped: the highest to skip to is %d", n, version,
			uint64(MaxSkippedTo))
	}
	return version + n, nil
}

// Version returns the store's newest version.
func (s *Store) Version() uint64 { return s.last }

// Skip has the store go on n versions later, and forget its changes. It is for a store that may
// have lost what it had acknowledged: with n larger than what was lost, no version is given a
// second time, nor a lease's ID, and who asks for the changes after a lost version is told
// Compacted. It is no command: call it before the store is a replica's. A store into which a part
// of a backup was loaded stays as it is, as the next part has to fit; its last one may skip.
func (s *Store) Skip(n uint64) error {
	to, err := SkippedTo(s.last, n)
	if err != nil || n == 0 || s.loading {
		return err
	}
	s.memory.changes = changes{}
	s.last, s.forgotten, s.changed, s.changedBytes = to, to, 0, 0
	return nil
}
