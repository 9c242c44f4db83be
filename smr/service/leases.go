package service

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/foresay/foresay/smr/client"
	"github.com/foresay/foresay/smr/kv"
)

// A LeaseEndedError says that a lease has ended, or may have.
type LeaseEndedError struct {
	Lease kv.LeaseID
	// Err is why the lease could not be renewed for so long that it may have ended; nil if it has.
	Err error
}

func (e *LeaseEndedError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("lease %d may have ended: it could not be renewed: %v", e.Lease, e.Err)
	}
	return fmt.Sprintf("lease %d has ended", e.Lease)
}

// Unwrap returns Err.
func (e *LeaseEndedError) Unwrap() error { return e.Err }

// leaseError returns the error of a command for which a lease was needed.
func leaseError(lease kv.LeaseID, r kv.Result, err error) error {
	if err == nil && lease != 0 && r.Status == kv.NotFound {
		return &LeaseEndedError{Lease: lease}
	}
	return err
}

func (c *groupClient) Grant(ctx context.Context, ttl time.Duration) (kv.LeaseID, error) {
	r, err := c.write(ctx, "", nil, kv.Grant(ttl))
	return c.outer(kv.LeaseID(r.Version)), err
}

func (c *groupClient) KeepAlive(ctx context.Context, lease kv.LeaseID) error {
	r, err := c.write(ctx, "", nil, kv.KeepAlive(c.innerID(lease)))
	return leaseError(lease, r, err)
}

func (c *groupClient) Revoke(ctx context.Context, lease kv.LeaseID) error {
	r, err := c.write(ctx, "", nil, kv.Revoke(c.innerID(lease)))
	return leaseError(lease, r, err)
}

func (c *groupClient) Leases(ctx context.Context) ([]kv.Lease, error) {
	r, err := known(c.kv.Read(ctx, kv.Leases()))
	for i := range r.Leases {
		r.Leases[i].ID = c.outer(r.Leases[i].ID)
	}
	return r.Leases, err
}

func (c *groupClient) Keep(ctx context.Context, lease kv.LeaseID, ttl time.Duration) error {
	if ttl < kv.MinTTL {
		return fmt.Errorf("keep lease %d: no lease has a TTL of %v; the least is %v", lease, ttl, kv.MinTTL)
	}
	return c.keep(ctx, lease, ttl, time.Now().Add(ttl))
}

// keep is Keep of a lease that lasts until then if it is not renewed.
func (c *groupClient) keep(ctx context.Context, lease kv.LeaseID, ttl time.Duration, until time.Time) error {
	tick := time.NewTicker(ttl / 3)
	defer tick.Stop()
	why := errors.New("this process was not running in time")
	for time.Until(until) > 0 {
		began := time.Now()
		err := c.keepOnce(ctx, lease, min(ttl/3, time.Until(until)))
		if ctx.Err() != nil {
			return nil
		}
		if _, ended := errors.AsType[*LeaseEndedError](err); ended {
			return err
		}
		if err == nil {
			// The lease has ttl from when the renewal was executed, which was after it began.
			until = began.Add(ttl)
		} else {
			why = err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
	return &LeaseEndedError{Lease: lease, Err: why}
}

func (c *groupClient) keepOnce(ctx context.Context, lease kv.LeaseID, within time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	return c.KeepAlive(ctx, lease)
}

func (c *groupClient) WithLock(
	ctx context.Context, name string, ttl time.Duration, f func(ctx context.Context, token uint64) error,
) (err error) {
	began := time.Now()
	lease, err := c.Grant(ctx, ttl)
	if err != nil {
		return fmt.Errorf("lock %q: %w", name, err)
	}
	held, stop := context.WithCancelCause(ctx)
	kept := make(chan error, 1)
	go func() {
		err := c.keep(held, lease, ttl, began.Add(ttl))
		stop(err)
		kept <- err
	}()
	defer func() {
		stop(nil)
		lost := <-kept
		if errors.Is(err, lost) {
			lost = nil // f, or the wait for the lock, has told it already
		}
		err = errors.Join(err, lost)
		c.release(ctx, lease)
	}()
	token, err := c.acquire(held, name, lease)
	if err != nil {
		return fmt.Errorf("lock %q: %w", name, err)
	}
	return f(held, token)
}

// release ends the lease of a lock. If that does not come through, the lease ends by itself.
func (c *groupClient) release(ctx context.Context, lease kv.LeaseID) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_ = c.Revoke(ctx, lease)
}

// acquire makes a key with a lease when nobody else has it, and returns its version.
func (c *groupClient) acquire(ctx context.Context, key string, lease kv.LeaseID) (uint64, error) {
	for ctx.Err() == nil {
		version, err := c.CompareAndSetLeased(ctx, key, 0, nil, lease)
		_, taken := errors.AsType[*ConflictError](err)
		_, unknown := errors.AsType[*client.UnknownError](err)
		if !taken && !unknown {
			return version, err
		}
		if version, err = c.awaitRelease(ctx, key, lease); version > 0 || err != nil {
			return version, err
		}
	}
	return 0, context.Cause(ctx)
}

// awaitRelease waits until a key is not there, or ctx is done. If the key has the lease, which an
// attempt of unknown outcome gave it, it returns its version.
func (c *groupClient) awaitRelease(ctx context.Context, key string, lease kv.LeaseID) (uint64, error) {
	for items, err := range c.Watch(ctx, OnlyKey(key)) {
		if err != nil {
			if _, unknown := errors.AsType[*client.UnknownError](err); unknown {
				continue
			}
			return 0, err
		}
		if len(items) == 0 {
			return 0, nil
		}
		switch last := items[len(items)-1]; {
		case last.Deleted:
			return 0, nil
		case last.Lease == lease:
			return last.Version, nil
		}
	}
	return 0, nil
}
