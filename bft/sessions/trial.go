package sessions

import (
	"bytes"
	"time"

	"github.com/foresay/foresay/bft"
	"github.com/foresay/foresay/keyspace"
)

// trial is a space whose changes can be undone: by what the keys had before, in order.
type trial struct {
	keyspace.Space
	was []was
}

type was struct {
	key, value []byte
	found      bool
}

func (t *trial) note(key []byte) {
	v, ok := t.Get(key)
	t.was = append(t.was, was{bytes.Clone(key), v, ok})
}

// Put is part of keyspace.Space, as is Delete.
func (t *trial) Put(key, value []byte) {
	t.note(key)
	t.Space.Put(key, value)
}

func (t *trial) Delete(key []byte) {
	t.note(key)
	t.Space.Delete(key)
}

func (t *trial) undo() {
	for i := len(t.was) - 1; i >= 0; i-- {
		if w := t.was[i]; w.found {
			t.Space.Put(w.key, w.value)
		} else {
			t.Space.Delete(w.key)
		}
	}
}

// apply has the service execute a command, unless its result is too large for the limits, or for
// what the session may have. Then nothing is done.
func apply(
	space keyspace.Space, service bft.Service, l bft.Limits, now time.Duration, m *bft.Request, command []byte,
) bft.Result {
	t := &trial{Space: Service(space)}
	value := service.Apply(t, now, command)
	if len(value) <= l.Value && takes(space, m, charge(len(value)), l.Session) {
		return bft.Result{Outcome: bft.Executed, Value: value}
	}
	t.undo()
	return bft.Result{Outcome: bft.Oversized}
}

// free is how large a result may be that does not count for what a session may have: its window
// bounds these.
const free = 1 << 10

// charge is what a result counts for.
func charge(valueBytes int) int {
	if valueBytes <= free {
		return 0
	}
	return valueBytes
}

// takes adds to what the results of a session have, if it may have so much.
func takes(space keyspace.Space, m *bft.Request, more, limit int) bool {
	if more == 0 {
		return true
	}
	key := sessionKey(sessionPrefix, m.Client, m.Session)
	s, _ := read(space, key, sessionLayout)
	if s.Bytes+uint64(more) > uint64(limit) {
		return false
	}
	s.Bytes += uint64(more)
	space.Put(key, sessionLayout.Encode(s))
	return true
}
