package simulated

import (
	"bytes"
	"context"
	"errors"
	"iter"

	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/workload"
)

// A program is a transaction as its author writes it, the same that runs on store/client: its code,
// and what it declares. That is a hint: what is missing is read when the code comes to it.
type program struct {
	ops           []workload.Op // what is known of it, for who measures it
	reads, writes []string
	priority      store.Priority // from an attempt before this one; zero: this is the first
	code          func(context.Context, workload.Tx) error
	// local, if not nil, is told when the transaction is committed locally, before it ends, and after
	// are those of its client that were and are not final: if one is refused, so is this one.
	local func(store.TxnID)
	after []store.TxnID
}

// A coroutine is a program's code that runs in the simulator, where nothing can block: it is left
// when it comes to a key that nobody has read for it, and resumed when somebody has.
type coroutine struct {
	buffer store.Buffer
	err    error // what the code has ended with
	// next has the code go on. It returns the key that has to be known before next is called again, or
	// false: the code has ended.
	next func() (store.Key, bool)
	stop func() // ends code that nobody resumes any more; it may be called whenever the code is left
}

// start returns code that has not begun, with the values of keys that are read for it.
func start(code func(context.Context, workload.Tx) error, known map[store.Key]store.Value) *coroutine {
	c := &coroutine{}
	c.next, c.stop = iter.Pull(func(leave func(store.Key) bool) {
		c.err = code(context.Background(), &transaction{&c.buffer, known, leave})
	})
	return c
}

// A transaction is a coroutine as its code sees it.
type transaction struct {
	buffer *store.Buffer
	known  map[store.Key]store.Value
	leave  func(store.Key) bool
}

// errStopped is what code gets that is not to go on.
var errStopped = errors.New("simulated: the transaction is over")

// Get implements workload.Tx.
func (t *transaction) Get(_ context.Context, name string) ([]byte, bool, error) {
	key := store.Key(name)
	v, ok := t.buffer.Get(key)
	if !ok {
		if _, known := t.known[key]; !known && !t.leave(key) {
			return nil, false, errStopped
		}
		v = t.known[key]
		t.buffer.Saw(key, v)
	}
	return bytes.Clone(v.Bytes), v.Present, nil
}

// Put implements workload.Tx.
func (t *transaction) Put(name string, value []byte) error {
	t.buffer.Put(store.Key(name), bytes.Clone(value))
	return nil
}
