package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/foresay/foresay/driver"

	"github.com/foresay/foresay"
	"github.com/foresay/foresay/store"
)

// Tx is one attempt of a transaction. Its methods may be called concurrently; under an engine
// (modes Spec and Off) goroutines of a transaction's function are to be those of a foresay.Group,
// with its contexts. What one of them has read, another one gets when all of the run's guesses are
// confirmed, for it may stand on guesses of its own.
type Tx struct {
	attempt *attempt

	// of the function's own goroutine; who asks has the engine make a task, which a function that
	// only writes does not need
	lane func() any

	mu     sync.Mutex
	buffer store.Buffer
	lanes  map[store.Key]any // which goroutine read a key
	shared bool              // others than the function's own goroutine read, too
	notes  map[string]any
	err    error // ended the reads
}

// Get returns what a key holds, as the transaction sees it: what it wrote or read before, else what
// the store has. The value is the caller's. An error ends the transaction: the function can do no
// better than to return it.
func (tx *Tx) Get(ctx context.Context, key string) (value []byte, ok bool, err error) {
	k := store.Key(key)
	lane := driver.Lane(ctx)
	other := lane != tx.lane()
	v, known, others, err := tx.find(lane, other, k)
	if err == nil && !known {
		if v, err = tx.attempt.performRead(ctx, tx, k); err == nil {
			others = !tx.saw(lane, k, v)
		}
	}
	if err == nil && others {
		// Whoever put it there may stand on guesses that this goroutine does not stand on.
		tx.attempt.validation.hurry()
		if err = foresay.Barrier(ctx); err == nil {
			v, _, _, err = tx.find(lane, other, k)
		}
	}
	if err != nil {
		tx.mu.Lock()
		defer tx.mu.Unlock()
		if tx.err == nil {
			tx.err = err
		}
		return nil, false, err
	}
	return bytes.Clone(v.Bytes), v.Present, nil
}

// find returns what the attempt knows of a key, and whether that may come from another goroutine.
// It is told whether who asks is another than the function's own.
func (tx *Tx) find(lane any, other bool, key store.Key) (v store.Value, known, others bool, err error) {
	tx.mu.Lock()
	defer tx.mu.Unlock()
	if tx.err != nil {
		return v, false, false, tx.err
	}
	if err := checkKey(string(key)); err != nil {
		return v, false, false, err
	}
	tx.shared = tx.shared || other
	v, known = tx.buffer.Get(key)
	if reads, _ := tx.buffer.Accesses(); !known && len(reads) >= store.MaxAccesses {
		return v, false, false, &RejectedError{
			Detail: fmt.Sprintf("read %.40q: it has read %d keys already (that is the limit)", key, store.MaxAccesses)}
	}
	owner, read := tx.lanes[key]
	return v, known, known && (read && owner != lane || !read && tx.shared), nil
}

// saw keeps what a goroutine has read. It returns false if another one was faster, whose value
// counts.
func (tx *Tx) saw(lane any, key store.Key, v store.Value) bool {
	tx.mu.Lock()
	defer tx.mu.Unlock()
	if _, ok := tx.buffer.Get(key); ok {
		return false
	}
	tx.buffer.Saw(key, v)
	if tx.lanes == nil {
		tx.lanes = map[store.Key]any{}
	}
	tx.lanes[key] = lane
	return true
}

// Put has the transaction write a key, when it commits. The error says what is beyond its limit, or
// that the transaction is over: ErrEnded if its function has returned.
func (tx *Tx) Put(key string, value []byte) error {
	if err := checkKey(key); err != nil {
		return err
	}
	if len(value) > store.MaxValueBytes {
		return &RejectedError{Detail: fmt.Sprintf("key %.40q: a value of %d bytes (the limit is %d)", key, len(value),
			store.MaxValueBytes)}
	}
	return tx.write(func() { tx.buffer.Put(store.Key(key), append([]byte{}, value...)) })
}

// Delete has the transaction delete a key, be it there or not, when it commits. The error is as
// that of Put.
func (tx *Tx) Delete(key string) error {
	if err := checkKey(key); err != nil {
		return err
	}
	return tx.write(func() { tx.buffer.Delete(store.Key(key)) })
}

// checkKey returns an error for what is no key of a store. Protocols would take the empty one; it
// is more likely a mistake.
func checkKey(key string) error {
	switch {
	case key == "":
		return &RejectedError{Detail: "the key is empty"}
	case len(key) > store.MaxKeyBytes:
		return &RejectedError{Detail: fmt.Sprintf("a key of %d bytes (the limit is %d)", len(key), store.MaxKeyBytes)}
	}
	return nil
}

// write does what is to be done to the buffer, unless the transaction is over.
func (tx *Tx) write(do func()) error {
	tx.mu.Lock()
	defer tx.mu.Unlock()
	if tx.err != nil {
		return tx.err
	}
	do()
	return nil
}

// touched returns the keys that the attempt has read and written so far, in ascending order.
func (tx *Tx) touched() (reads, writes []store.Key) {
	tx.mu.Lock()
	defer tx.mu.Unlock()
	r, w := tx.buffer.Accesses()
	for _, read := range r {
		reads = append(reads, read.Key)
	}
	for _, write := range w {
		writes = append(writes, write.Key)
	}
	return reads, writes
}

// Attempt returns which attempt this is, 1 for the first.
func (tx *Tx) Attempt() int { return tx.attempt.number }

// failed returns what ended the reads, nil if nothing did.
func (tx *Tx) failed() error {
	tx.mu.Lock()
	defer tx.mu.Unlock()
	return tx.err
}

// accesses returns what the attempt read, and is to write; what goroutines that the function left
// behind do later is not in it. The values are those of the reads.
func (tx *Tx) accesses() (reads []store.Read, values []store.Value, writes []store.Write) {
	tx.mu.Lock()
	defer tx.mu.Unlock()
	if tx.err == nil {
		tx.err = ErrEnded
	}
	reads, writes = tx.buffer.Accesses()
	return slices.Clone(reads), slices.Clone(tx.buffer.Values()), slices.Clone(writes)
}

// ErrEnded is what the methods of a Tx return when the transaction's function has returned: what is
// read or written then is no part of the transaction.
var ErrEnded = errors.New("client: the transaction's function has returned")

// performRead reads a key for the code that runs under ctx.
func (a *attempt) performRead(ctx context.Context, tx *Tx, key store.Key) (store.Value, error) {
	c := a.client
	// Mode GRPC is outside of a task, unless the application has one of its own, which needs the
	// same answers when it runs again.
	if !driver.InTask(ctx) {
		read := a.trace.read(key)
		a.reads.ask(key, 1)
		answer, err := a.sites.Read(ctx, key, read.first)
		read.done(answer, err)
		if err == nil {
			a.reads.saw(key, answer)
		}
		return answer.Value, err
	}
	v, err := driver.Perform(ctx, &driver.Operation{
		CallSite: c.read, Conn: c.name, Identity: a.snapshot + string(key), Request: string(key),
		CanSpeculate: true, Domain: c.domain,
		Transport: &reading{a, tx, key},
	})
	if err != nil {
		if ctx.Err() != nil && !isTyped(err) && !errors.Is(err, foresay.ErrMisspeculated) {
			err = Unread(ctx, &UnavailableError{Key: key, Err: plainEnd{err}})
		}
		return store.Value{}, err
	}
	return v.(store.Value), nil
}
