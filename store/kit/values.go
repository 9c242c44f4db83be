package kit

import (
	"fmt"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
)

// ValuePrefix is before the keys of values in a server's key space.
const ValuePrefix = "v"

// Values are the values in the key space of a server of the protocol that is named.
type Values string

// Key returns what a value is under on disk.
func (v Values) Key(key store.Key) []byte { return []byte(ValuePrefix + string(key)) }

// At returns the value of a key; the zero Value if there is none.
func (v Values) At(keys protocol.Keys, key store.Key) store.Value {
	b, ok := keys.Get(v.Key(key))
	if !ok {
		return store.Value{}
	}
	return v.Parse(key, b)
}

// Parse returns the value of a key that is on disk as b. Runners stop at the panic: a disk that has
// something else there is broken.
func (v Values) Parse(key store.Key, b []byte) store.Value {
	out, err := store.DecodeValue(b)
	if err != nil {
		panic(fmt.Sprintf("%s: the value of %q on disk: %v", string(v), key, err))
	}
	return out
}
