package service

import (
	"context"
	"fmt"

	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/client"
	"github.com/foresay/foresay/smr/kv"
)

// MaxValueBytes bounds a value. It is well below what hosts take as one message.
const MaxValueBytes = 1 << 20

// MaxKeyBytes bounds a key.
const MaxKeyBytes = 64 << 10

// A ConflictError says that a key has another version than the one that a change was for; nothing was changed.
type ConflictError struct {
	Key     string
	Want    uint64 // the version that the change was for
	Version uint64 // the version that is there, 0 if the key is not
	Value   []byte // the value that is there
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("%q has version %d, not %d", e.Key, e.Version, e.Want)
}

// Put sets a key's value and returns the key's new version, which is higher than all versions before.
func (c *Client) Put(ctx context.Context, key string, value []byte) (version uint64, err error) {
	return c.PutLeased(ctx, key, value, 0)
}

// PutLeased is Put of a key that is removed when the lease ends. If the lease has ended, the error is a [*LeaseEndedError].
func (c *Client) PutLeased(ctx context.Context, key string, value []byte, lease kv.LeaseID) (version uint64, err error) {
	r, err := c.write(ctx, key, value, kv.PutLeased([]byte(key), value, lease))
	return r.Version, leaseError(lease, r, err)
}

// Get returns what is at a key: what the last write that was done before Get was called left there, or a later one. It returns false if the key is not
// there.
func (c *Client) Get(ctx context.Context, key string) (item kv.Item, found bool, err error) {
	r, err := known(c.kv.Read(ctx, kv.Get([]byte(key))))
	if err != nil || r.Status == kv.NotFound {
		return kv.Item{}, false, err
	}
	return kv.Item{Key: []byte(key), Value: r.Value, Version: r.Version, Lease: r.Lease}, true, nil
}

// Delete removes a key and returns the version of its removal. It returns false if the key was not there.
func (c *Client) Delete(ctx context.Context, key string) (version uint64, found bool, err error) {
	r, err := c.write(ctx, key, nil, kv.Delete([]byte(key)))
	return r.Version, err == nil && r.Status != kv.NotFound, err
}

// CompareAndSet sets a key's value if the key has the given version, 0 for a key that is not there, and returns its new version. If it has another one, the
// error is a [*ConflictError].
func (c *Client) CompareAndSet(ctx context.Context, key string, version uint64, value []byte) (uint64, error) {
	return c.CompareAndSetLeased(ctx, key, version, value, 0)
}

// CompareAndSetLeased is CompareAndSet of a key that is removed when the lease ends. If the lease has ended, the error is a [*LeaseEndedError].
func (c *Client) CompareAndSetLeased(ctx context.Context, key string, version uint64, value []byte, lease kv.LeaseID) (uint64, error) {
	r, err := c.write(ctx, key, value, kv.CompareAndSetLeased([]byte(key), version, value, lease))
	if err == nil && r.Status == kv.Conflict {
		err = &ConflictError{Key: key, Want: version, Version: r.Version, Value: r.Value}
	}
	return r.Version, leaseError(lease, r, err)
}

// Scan returns the keys from from up to, but not including, to, in their order; an empty to is no end. It returns at most limit keys, 0 for as many as the
// service gives at once; more tells whether there are others, which a scan from the last key on has.
func (c *Client) Scan(ctx context.Context, from, to string, limit int) (items []kv.Item, more bool, err error) {
	r, err := known(c.kv.Read(ctx, kv.Scan([]byte(from), []byte(to), limit)))
	return r.Items, r.More, err
}

// write has a command executed. A key or value that is too large is rejected here: replicas would have to be told it first.
func (c *Client) write(ctx context.Context, key string, value, command []byte) (kv.Result, error) {
	if len(key) > MaxKeyBytes {
		return kv.Result{}, &client.RejectedError{Kind: smr.Execute, Reason: fmt.Sprintf("the key has %d bytes, more than %d", len(key), MaxKeyBytes)}
	}
	if len(value) > MaxValueBytes {
		return kv.Result{}, &client.RejectedError{Kind: smr.Execute, Reason: fmt.Sprintf("the value has %d bytes, more than %d", len(value), MaxValueBytes)}
	}
	return known(c.kv.Execute(ctx, command))
}

// known returns an error also if the store did not know what it was asked, or has no room for it.
func known(r kv.Result, err error) (kv.Result, error) {
	if err != nil {
		return r, err
	}
	if r.Status == kv.QuotaExceeded {
		return r, &QuotaError{r.Message}
	}
	return r, r.Err()
}
