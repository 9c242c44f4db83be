// Package diskid identifies disks. A node that votes must not take part on a second disk, which
// does not know what was promised on the first: so each disk has a name that nobody else has, by
// which other nodes know it. They say yes to one disk of a node for good, durably and before they
// say so, and quorum.FirstDisk says how many yeses it takes.
package diskid

import (
	"math/rand/v2"

	"github.com/foresay/foresay/internal/wirefmt"
)

// An Identity is a disk's own record, written before its node says anything.
type Identity struct {
	Disk    uint64 // its name. Invariant: it is not 0
	Joined  bool   // the node has taken part on it
	Refused string // why the node must not take part on it, for good; empty: it may
}

var layout = wirefmt.NewLayout("identity on disk", func(c *wirefmt.Coder, id *Identity) {
	wirefmt.Uint(c, &id.Disk)
	wirefmt.Bool(c, &id.Joined)
	wirefmt.String(c, &id.Refused)
})

// Keys is the part of a node's key space that an Identity needs: see protocol.Env.
type Keys interface {
	Get(key []byte) (value []byte, ok bool)
	Put(key, value []byte)
}

// New returns the identity of a disk that has none.
func New(rnd *rand.Rand) Identity {
	var id Identity
	for id.Disk == 0 {
		id.Disk = rnd.Uint64()
	}
	return id
}

// Read returns what is under a key. It is not found on a disk that nobody has written to, or that
// has lost a part. After an error, what could be read must not be relied on.
func Read(keys Keys, key string) (id Identity, found bool, err error) {
	b, ok := keys.Get([]byte(key))
	if !ok {
		return id, false, nil
	}
	id, err = layout.Decode(b)
	return id, true, err
}

// Write writes the identity under a key.
func (id Identity) Write(keys Keys, key string) {
	keys.Put([]byte(key), layout.Encode(id))
}
