package service

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/client"
	"github.com/foresay/foresay/smr/kv"
)

// Groups returns how many groups the service has.
func (c *Client) Groups() int { return len(c.groups) }

// GroupOf returns the group that has a key, from 1 on.
func (c *Client) GroupOf(key string) int { return c.cfg.of(key) + 1 }

func (c *Client) at(key string) *groupClient { return c.groups[c.cfg.of(key)] }

// ofLease returns the group that a lease is of.
func (c *Client) ofLease(id kv.LeaseID) *groupClient {
	return c.groups[int(id%kv.LeaseID(len(c.groups)))]
}

// Do makes a call with a command or query that package kv encodes, and is about one key, at the
// group that has the key. If there is one group only, it may be about anything. A token of
// smr.Call.After is of the group that gave it.
func (c *Client) Do(ctx context.Context, call smr.Call) (smr.Done, error) {
	g, err := c.route(call.Kind, call.Command)
	if err != nil {
		return smr.Done{}, err
	}
	return g.Do(ctx, call)
}

// Propose returns when the command's position is fixed, with the position, as Do does.
func (c *Client) Propose(ctx context.Context, command []byte) (smr.Slot, error) {
	d, err := c.Do(ctx, smr.Call{Kind: smr.Propose, Command: command})
	return d.Slot, err
}

// Execute returns when the command was executed, with its result, as Do does.
func (c *Client) Execute(ctx context.Context, command []byte) ([]byte, error) {
	d, err := c.Do(ctx, smr.Call{Kind: smr.Execute, Command: command})
	return d.Result, err
}

// Read returns the answer to a query, as Do does. It sees every command that was done before Read
// was called.
func (c *Client) Read(ctx context.Context, query []byte) ([]byte, error) {
	d, err := c.Do(ctx, smr.Call{Kind: smr.Read, Command: query})
	return d.Result, err
}

func (c *Client) route(kind smr.CallKind, command []byte) (*groupClient, error) {
	if len(c.groups) == 1 {
		return c.groups[0], nil
	}
	key, ok := kv.KeyOf(command)
	if !ok {
		return nil, &client.RejectedError{Kind: kind,
			Reason: fmt.Sprintf("it is not about one key, and the service has %d groups", len(c.groups))}
	}
	return c.at(string(key)), nil
}

// Put sets a key's value and returns the key's new version, which is higher than all versions of
// its group before.
func (c *Client) Put(ctx context.Context, key string, value []byte) (version uint64, err error) {
	return c.PutLeased(ctx, key, value, 0)
}

// PutLeased is Put of a key that is removed when the lease ends. If the lease has ended, the error
// is a [*LeaseEndedError]; if it is of another group than the key, a [*LeaseGroupError].
func (c *Client) PutLeased(
	ctx context.Context, key string, value []byte, lease kv.LeaseID,
) (version uint64, err error) {
	return c.at(key).PutLeased(ctx, key, value, lease)
}

// Get returns what is at a key: what the last write that was done before Get was called left there,
// or a later one. It returns false if the key is not there.
func (c *Client) Get(ctx context.Context, key string) (item kv.Item, found bool, err error) {
	return c.at(key).Get(ctx, key)
}

// Delete removes a key and returns the version of its removal. It returns false if the key was not
// there.
func (c *Client) Delete(ctx context.Context, key string) (version uint64, found bool, err error) {
	return c.at(key).Delete(ctx, key)
}

// CompareAndSet sets a key's value if the key has the given version, 0 for a key that is not there,
// and returns its new version. If it has another one, the error is a [*ConflictError].
func (c *Client) CompareAndSet(ctx context.Context, key string, version uint64, value []byte) (uint64, error) {
	return c.CompareAndSetLeased(ctx, key, version, value, 0)
}

// CompareAndSetLeased is CompareAndSet of a key that is removed when the lease ends, with the
// errors of PutLeased.
func (c *Client) CompareAndSetLeased(
	ctx context.Context, key string, version uint64, value []byte, lease kv.LeaseID,
) (uint64, error) {
	return c.at(key).CompareAndSetLeased(ctx, key, version, value, lease)
}

// Scan returns the keys from from up to, but not including, to, in their order; an empty to is no
// end. It returns at most limit keys, 0 for as many as the service gives at once; more tells
// whether there are others, which a scan from the last key on has.
//
// The keys of one group are as they were at one moment. If several groups have some, each is asked
// for itself: what a scan shows of one may be older than what it shows of another, though never
// older than the call.
func (c *Client) Scan(ctx context.Context, from, to string, limit int) (items []kv.Item, more bool, err error) {
	first, last := c.cfg.span(from, to)
	if first == last {
		return c.groups[first].Scan(ctx, from, to, limit)
	}
	parts := make([]scanned, last-first+1)
	err = c.each(ctx, first, last, func(ctx context.Context, g *groupClient) (err error) {
		p := &parts[g.number-first]
		p.items, p.more, err = g.Scan(ctx, from, to, limit)
		return err
	})
	if err != nil {
		return nil, false, err
	}
	items, more = merge(parts, limit)
	return items, more, nil
}

// scanned is what one group has told of a scan.
type scanned struct {
	items []kv.Item
	more  bool
}

// merge returns the first keys of all parts. What comes after the last key of a part that has more
// is left out: nobody knows what is there.
func merge(parts []scanned, limit int) (items []kv.Item, more bool) {
	var end []byte
	for _, p := range parts {
		items = append(items, p.items...)
		if n := len(p.items); p.more && n > 0 && (!more || bytes.Compare(p.items[n-1].Key, end) < 0) {
			more, end = true, p.items[n-1].Key
		}
	}
	slices.SortFunc(items, func(a, b kv.Item) int { return bytes.Compare(a.Key, b.Key) })
	if more {
		n, _ := slices.BinarySearchFunc(items, end, func(i kv.Item, k []byte) int { return bytes.Compare(i.Key, k) })
		items = items[:n+1]
	}
	if limit > 0 && len(items) > limit {
		return items[:limit], true
	}
	return items, more
}

// eachAtOnce is how many groups are asked at the same time.
const eachAtOnce = 32

// each calls f for the groups from first to last, several at a time, and returns the first error.
func (c *Client) each(ctx context.Context, first, last int, f func(context.Context, *groupClient) error) error {
	if first == last {
		return f(ctx, c.groups[first])
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(eachAtOnce)
	for _, g := range c.groups[first : last+1] {
		group.Go(func() error {
			if err := f(ctx, g); err != nil {
				return fmt.Errorf("group %d: %w", g.number+1, err)
			}
			return nil
		})
	}
	return group.Wait()
}

func (c *Client) all(ctx context.Context, f func(context.Context, *groupClient) error) error {
	return c.each(ctx, 0, len(c.groups)-1, f)
}

// Watch yields what is at the keys, in their order, as its first batch, which is empty if nothing
// is there; then each change of them, in batches that are never empty and in order of their
// versions, until ctx is done, which ends it without an error. No change is left out. Without the
// first batch it begins with the changes after WatchOptions.After.
//
// A read that was not answered in time is yielded as a [*client.UnknownError], and Watch goes on.
// Other errors end it, a [*CompactedError] among them: then begin again, without After.
//
// The members tell when there is something to read, so a change is yielded some round trips after
// it was made, and a group that is watched rests while there is none. While fewer than a majority
// of the members tell, the keys are read every WatchOptions.Every.
//
// If several groups have some of the keys, the changes of each are in order, and those of different
// groups in any. Versions are of one group, so After is an error then.
func (c *Client) Watch(ctx context.Context, o WatchOptions) iter.Seq2[[]kv.Item, error] {
	first, last := c.cfg.span(o.From, o.To)
	if first != last && o.After > 0 {
		return func(yield func([]kv.Item, error) bool) {
			yield(nil, &client.RejectedError{Kind: smr.Read,
				Reason: "the keys are of several groups, each with versions of its own: a watch of them cannot go on after a " +
					"version"})
		}
	}
	return watchGroups(ctx, c.groups[first:last+1], o)
}

// Grant makes a lease that ends when it was not renewed for ttl, kv.MinTTL to kv.MaxTTL. Its keys
// are removed then. It never ends early. It may end late: by four round trips for each replica that
// is down, and by up to ttl if all replicas start again meanwhile, as each times renewals by its
// own clock. A group has kv.MaxLeases at most. If the service has several groups use GrantFor:
// Grant is rejected.
func (c *Client) Grant(ctx context.Context, ttl time.Duration) (kv.LeaseID, error) {
	if n := len(c.groups); n > 1 {
		return 0, &client.RejectedError{Kind: smr.Execute,
			Reason: fmt.Sprintf("the service has %d groups, and a lease is for keys of one: say for which key it is", n)}
	}
	return c.groups[0].Grant(ctx, ttl)
}

// GrantFor is Grant of a lease for a key, and others that the same group has (see GroupOf).
func (c *Client) GrantFor(ctx context.Context, key string, ttl time.Duration) (kv.LeaseID, error) {
	return c.at(key).Grant(ctx, ttl)
}

// KeepAlive renews a lease. If the lease has ended, the error is a [*LeaseEndedError].
func (c *Client) KeepAlive(ctx context.Context, lease kv.LeaseID) error {
	return c.ofLease(lease).KeepAlive(ctx, lease)
}

// Revoke ends a lease and removes its keys. If the lease had ended before, the error is a
// [*LeaseEndedError].
func (c *Client) Revoke(ctx context.Context, lease kv.LeaseID) error {
	return c.ofLease(lease).Revoke(ctx, lease)
}

// Leases returns all leases, in order of their IDs.
func (c *Client) Leases(ctx context.Context) ([]kv.Lease, error) {
	parts := make([][]kv.Lease, len(c.groups))
	err := c.all(ctx, func(ctx context.Context, g *groupClient) (err error) {
		parts[g.number], err = g.Leases(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	leases := slices.Concat(parts...)
	slices.SortFunc(leases, func(a, b kv.Lease) int { return cmp.Compare(a.ID, b.ID) })
	return leases, nil
}

// Keep renews a lease of the given TTL, at once and then three times in each TTL, until ctx is
// done, which is no error. Otherwise the lease has ended or, if it could not be renewed in time,
// may have: the error is a [*LeaseEndedError].
func (c *Client) Keep(ctx context.Context, lease kv.LeaseID, ttl time.Duration) error {
	return c.ofLease(lease).Keep(ctx, lease, ttl)
}

// WithLock runs f while this client, and no other, holds the lock of a name, which is a key: it
// waits until the key is not there, makes it with a lease of the given TTL, and removes it
// afterwards. The context of f ends when the lock may be lost; WithLock then returns a
// [*LeaseEndedError]. Clocks and pauses of this process can still have f go on while another one
// holds the lock, so whatever f changes elsewhere should refuse a token lower than the highest it
// has seen: each holder gets a higher one.
func (c *Client) WithLock(
	ctx context.Context, name string, ttl time.Duration, f func(ctx context.Context, token uint64) error,
) error {
	return c.at(name).WithLock(ctx, name, ttl, f)
}

// SetQuota bounds what each group of the service holds, on all replicas from the same command on,
// and returns what all hold. A quota below that removes nothing. If it fails with several groups,
// some may have it: set it again.
func (c *Client) SetQuota(ctx context.Context, q kv.Quota) (kv.Usage, error) {
	return c.usage(ctx, func(ctx context.Context, g *groupClient) (kv.Usage, error) { return g.SetQuota(ctx, q) })
}

// Usage returns what the service holds, and its quota: of several groups the sums.
func (c *Client) Usage(ctx context.Context) (kv.Usage, error) {
	return c.usage(ctx, func(ctx context.Context, g *groupClient) (kv.Usage, error) { return g.Usage(ctx) })
}

// GroupQuota returns the quota of each group, as the first one has it.
func (c *Client) GroupQuota(ctx context.Context) (kv.Quota, error) {
	u, err := c.groups[0].Usage(ctx)
	return u.Quota, err
}

func (c *Client) usage(
	ctx context.Context, of func(context.Context, *groupClient) (kv.Usage, error),
) (kv.Usage, error) {
	parts := make([]kv.Usage, len(c.groups))
	err := c.all(ctx, func(ctx context.Context, g *groupClient) (err error) {
		parts[g.number], err = of(ctx, g)
		return err
	})
	if err != nil {
		return kv.Usage{}, err
	}
	sum := parts[0]
	for _, p := range parts[1:] {
		sum.Bytes += p.Bytes
		sum.Keys += p.Keys
		sum.Quota = kv.Quota{Bytes: sumOfBounds(sum.Quota.Bytes, p.Quota.Bytes),
			Keys: sumOfBounds(sum.Quota.Keys, p.Quota.Keys)}
	}
	return sum, nil
}

// sumOfBounds adds two bounds, of which 0 is none.
func sumOfBounds(a, b uint64) uint64 {
	if a == 0 || b == 0 {
		return 0
	}
	return a + b
}
