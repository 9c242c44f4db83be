package counter

import (
	"crypto/sha256"
	"encoding/binary"
	"time"

	"github.com/foresay/foresay/internal/wirefmt"
	"github.com/foresay/foresay/keyspace"
)

// Service is the counter. It is a bft.Service.
type Service struct{}

// A Reply is what an increment came to, and is shown with the next one. The zero Reply is for the
// first one.
type Reply struct {
	Value uint64 // after the increment
	// Token is a function of the value, but one that the service computes: a client that has not seen
	// the value does not know it.
	Token uint64
	// Refused says that what was shown is no reply of the counter's: nothing was done.
	Refused bool
}

var commandLayout = wirefmt.NewLayout("counter: increment", func(c *wirefmt.Coder, m *Reply) {
	wirefmt.Version(c, 1)
	wirefmt.Uint(c, &m.Value)
	wirefmt.Uint(c, &m.Token)
})

var replyLayout = wirefmt.NewLayout("counter: reply", func(c *wirefmt.Coder, m *Reply) {
	wirefmt.Version(c, 1)
	wirefmt.Uint(c, &m.Value)
	wirefmt.Uint(c, &m.Token)
	wirefmt.Bool(c, &m.Refused)
})

// Increment returns the command that increments the counter. It shows the reply to the client's
// increment before.
func Increment(shown Reply) []byte { return commandLayout.Encode(shown) }

// Query returns the query for the value, which is answered with no token. Like all queries it can
// be ordered, too.
func Query() []byte { return []byte(query) }

const query = "value"

// Decode returns the reply to a command, or to a query, that a result has.
func Decode(value []byte) (Reply, error) { return replyLayout.Decode(value) }

const valueKey = "n"

func valueOf(keys keyspace.Reader) uint64 {
	b, ok := keys.Get([]byte(valueKey))
	if !ok || len(b) != 8 {
		return 0
	}
	return binary.BigEndian.Uint64(b)
}

// tokenOf returns the token of a value. That of 0 is 0, so that the first increment needs none.
func tokenOf(value uint64) uint64 {
	if value == 0 {
		return 0
	}
	h := sha256.Sum256(binary.BigEndian.AppendUint64([]byte("foresay counter "), value))
	return binary.BigEndian.Uint64(h[:])
}

// Apply is part of bft.Service.
func (Service) Apply(space keyspace.Space, _ time.Duration, command []byte) []byte {
	if string(command) == query {
		return Service{}.Read(space, command)
	}
	value := valueOf(space)
	shown, err := commandLayout.Decode(command)
	if err != nil || shown.Value > value || shown.Token != tokenOf(shown.Value) {
		return replyLayout.Encode(Reply{Refused: true})
	}
	value++
	space.Put([]byte(valueKey), binary.BigEndian.AppendUint64(nil, value))
	return replyLayout.Encode(Reply{Value: value, Token: tokenOf(value)})
}

// Read is part of bft.Service. All queries ask for the value.
func (Service) Read(keys keyspace.Reader, _ []byte) []byte {
	return replyLayout.Encode(Reply{Value: valueOf(keys)})
}
