package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/foresay/foresay"
	"github.com/foresay/foresay/store"
)

// Tx is one attempt of a transaction. Its methods may be called concurrently; under an engine (modes Spec and Off) goroutines of a transaction's function are to be those of a
// foresay.Group, with its contexts.
type Tx struct {
	txn *txn

	mu     sync.Mutex
	buffer store.Buffer
	err    error // ended the reads
}

// Get returns what a key holds, as the transaction sees it: what it wrote or read before, else what the store has. The value is the caller's. An error ends the transaction:
// the function can do no better than to return it.
func (tx *Tx) Get(ctx context.Context, key string) (value []byte, ok bool, err error) {
	k := store.Key(key)
	tx.mu.Lock()
	v, known := tx.buffer.Get(k)
	err = tx.err
	tx.mu.Unlock()
	if err != nil {
		return nil, false, err
	}
	if !known {
		if v, err = tx.txn.client.performRead(ctx, tx.txn, k); err != nil {
			tx.mu.Lock()
			defer tx.mu.Unlock()
			if tx.err == nil {
				tx.err = err
			}
			return nil, false, err
		}
		tx.mu.Lock()
		if w, ok := tx.buffer.Get(k); ok {
			v = w // another goroutine was faster
		} else {
			tx.buffer.Saw(k, v)
		}
		tx.mu.Unlock()
	}
	return bytes.Clone(v.Bytes), v.Present, nil
}

// Put has the transaction write a key, when it commits. The error says what is beyond its limit.
func (tx *Tx) Put(key string, value []byte) error {
	switch {
	case len(key) > store.MaxKeyBytes:
		return &RejectedError{Detail: fmt.Sprintf("a key of %d bytes (the limit is %d)", len(key), store.MaxKeyBytes)}
	case len(value) > store.MaxValueBytes:
		return &RejectedError{Detail: fmt.Sprintf("key %.40q: a value of %d bytes (the limit is %d)", key, len(value), store.MaxValueBytes)}
	}
	tx.mu.Lock()
	defer tx.mu.Unlock()
	tx.buffer.Put(store.Key(key), append([]byte{}, value...))
	return nil
}

// Delete has the transaction delete a key, be it there or not, when it commits.
func (tx *Tx) Delete(key string) error {
	if len(key) > store.MaxKeyBytes {
		return &RejectedError{Detail: fmt.Sprintf("a key of %d bytes (the limit is %d)", len(key), store.MaxKeyBytes)}
	}
	tx.mu.Lock()
	defer tx.mu.Unlock()
	tx.buffer.Delete(store.Key(key))
	return nil
}

// Attempt returns which attempt this is, 1 for the first.
func (tx *Tx) Attempt() int { return tx.txn.attempts }

// failed returns what ended the reads, nil if nothing did.
func (tx *Tx) failed() error {
	tx.mu.Lock()
	defer tx.mu.Unlock()
	return tx.err
}

// accesses returns what the attempt read and is to write; what goroutines that the function left behind do later is not in it.
func (tx *Tx) accesses() ([]store.Read, []store.Write) {
	tx.mu.Lock()
	defer tx.mu.Unlock()
	if tx.err == nil {
		tx.err = errOver
	}
	reads, writes := tx.buffer.Accesses()
	return append([]store.Read(nil), reads...), append([]store.Write(nil), writes...)
}

var errOver = errors.New("client: the transaction's function has returned")

// performRead reads a key for the code that runs under ctx.
func (c *Client) performRead(ctx context.Context, t *txn, key store.Key) (store.Value, error) {
	// Mode GRPC is outside of a task, unless the application has one of its own, which needs the same answers when it runs again.
	if !foresay.InTask(ctx) {
		read := t.trace.read(key)
		a, err := c.cfg.Backend.Read(ctx, key, t.priority, read.first)
		read.done(a, err)
		return a.Value, err
	}
	v, err := foresay.Perform(ctx, &foresay.Operation{
		Site: c.read, Conn: c.name, Identity: string(key), Request: string(key), CanSpeculate: true, Transport: &reading{c, t, t.validation, key, t.priority},
	})
	if err != nil {
		return store.Value{}, err
	}
	return v.(store.Value), nil
}
