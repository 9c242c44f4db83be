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

// A ConflictError says that a key has another version than the one that a change was for; nothing
// was changed.
type ConflictError struct {
	Key     string
	Want    uint64 // the version that the change was for
	Version uint64 // the version that is there, 0 if the key is not
	Value   []byte // the value that is there
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("%q has version %d, not %d", e.Key, e.Version, e.Want)
}

func (c *groupClient) PutLeased(
	ctx context.Context, key string, value []byte, lease kv.LeaseID,
) (version uint64, err error) {
	inner, err := c.inner(key, lease)
	if err != nil {
		return 0, err
	}
	r, err := c.write(ctx, key, value, kv.PutLeased([]byte(key), value, inner))
	return r.Version, leaseError(lease, r, err)
}

func (c *groupClient) Get(ctx context.Context, key string) (item kv.Item, found bool, err error) {
	r, err := known(c.kv.Read(ctx, kv.Get([]byte(key))))
	if err != nil || r.Status == kv.NotFound {
		return kv.Item{}, false, err
	}
	return kv.Item{Key: []byte(key), Value: r.Value, Version: r.Version, Lease: c.outer(r.Lease)}, true, nil
}

func (c *groupClient) Delete(ctx context.Context, key string) (version uint64, found bool, err error) {
	r, err := c.write(ctx, key, nil, kv.Delete([]byte(key)))
	return r.Version, err == nil && r.Status != kv.NotFound, err
}

func (c *groupClient) CompareAndSetLeased(
	ctx context.Context, key string, version uint64, value []byte, lease kv.LeaseID,
) (uint64, error) {
	inner, err := c.inner(key, lease)
	if err != nil {
		return 0, err
	}
	r, err := c.write(ctx, key, value, kv.CompareAndSetLeased([]byte(key), version, value, inner))
	if err == nil && r.Status == kv.Conflict {
		err = &ConflictError{Key: key, Want: version, Version: r.Version, Value: r.Value}
	}
	return r.Version, leaseError(lease, r, err)
}

func (c *groupClient) Scan(ctx context.Context, from, to string, limit int) (items []kv.Item, more bool, err error) {
	r, err := known(c.kv.Read(ctx, kv.Scan([]byte(from), []byte(to), limit)))
	return c.outerItems(r.Items), r.More, err
}

// write has a command executed. A key or value that is too large is rejected here: replicas would
// have to be told it first.
func (c *groupClient) write(ctx context.Context, key string, value, command []byte) (kv.Result, error) {
	if len(key) > MaxKeyBytes {
		return kv.Result{}, &client.RejectedError{Kind: smr.Execute, Reason: fmt.Sprintf("the key has %d bytes, more than %d",
			len(key), MaxKeyBytes)}
	}
	if len(value) > MaxValueBytes {
		return kv.Result{}, &client.RejectedError{Kind: smr.Execute,
			Reason: fmt.Sprintf("the value has %d bytes, more than %d", len(value), MaxValueBytes)}
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
