package kv

import "fmt"

// A Quota bounds what a store holds. 0 is no bound. It is part of the state, so that all replicas
// refuse the same commands.
type Quota struct {
	Bytes uint64 // of all keys and values
	Keys  uint64
}

// Usage is how much a store holds, and its bounds.
type Usage struct {
	Bytes uint64 // of all keys and values
	Keys  uint64
	Quota Quota
}

// SetQuota returns the command that sets the quota. A store that holds more keeps it, and takes
// only what does not make it grow. The result has the Usage.
func SetQuota(q Quota) []byte { return request{op: opQuota, quota: q}.encode() }

// GetUsage returns the query for the Usage.
func GetUsage() []byte { return request{op: opUsage}.encode() }

// Usage returns how much the store holds. It belongs to who applies commands, as the other methods
// do.
func (s *Store) Usage() Usage { return s.usage() }

func (m *machine) usage() Usage {
	return Usage{Bytes: uint64(m.bytes), Keys: uint64(m.keys), Quota: m.quota}
}

// showUsage answers with the usage. It is in the value, as results of other versions of this
// program have no place for it.
func (m *machine) showUsage() Result {
	return Result{Status: OK, Version: m.last, Value: usageLayout.Encode(m.usage())}
}

// overQuota returns why so much more is not to be taken, "" if it is. What does not grow is taken
// however full the store is.
func (m *machine) overQuota(moreBytes, moreKeys int) string {
	u := m.usage()
	switch {
	case u.Quota.Bytes > 0 && moreBytes > 0 && u.Bytes+uint64(moreBytes) > u.Quota.Bytes:
		return fmt.Sprintf("the keys and values have %d bytes of %d, and would have %d more", u.Bytes, u.Quota.Bytes,
			moreBytes)
	case u.Quota.Keys > 0 && moreKeys > 0 && u.Keys+uint64(moreKeys) > u.Quota.Keys:
		return fmt.Sprintf("there are %d keys of %d, and there would be %d more", u.Keys, u.Quota.Keys, moreKeys)
	}
	return ""
}
