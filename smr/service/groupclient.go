package service

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/foresay/foresay/host"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/client"
	"github.com/foresay/foresay/smr/kv"
)

// A groupClient makes calls to one group of the service. IDs of leases are those that clients see:
// see outer.
type groupClient struct {
	*client.Client
	kv client.Typed[[]byte, []byte, kv.Result]
	// node returns what speaks to the group. It begins with the first call, as it has a session
	// opened in the group: a program that asks one of a hundred groups leaves the others at rest.
	node   func() (*host.Node[smr.Message], error)
	whole  *Client // that it is part of
	number int     // from 0 on
	of     int     // groups

	begun   atomic.Pointer[host.Node[smr.Message]] // what node returns, once it was asked for
	members atomic.Pointer[[]smr.Member]           // what followMembers has found; nil at first

	followed smr.Slot // how far the replica was that told of them; of followMembers alone
}

// A LeaseGroupError says that a key cannot have a lease, since another group has it.
type LeaseGroupError struct {
	Lease kv.LeaseID
	Key   string
}

func (e *LeaseGroupError) Error() string {
	return fmt.Sprintf("lease %d is of another group than the key %q: a lease is for keys of one group; grant one for "+
		"this key", e.Lease, e.Key)
}

// A QuotaError says that the service would hold more than its quota; nothing was changed.
// Deletions, and changes that do not make it grow, go on.
type QuotaError struct {
	Reason string // what is there, and what it would be
}

func (e *QuotaError) Error() string { return "the quota is used up: " + e.Reason }

// outer returns the ID by which clients know a lease of the group: groups number their leases each
// for itself, and a lease is to tell its group.
func (c *groupClient) outer(id kv.LeaseID) kv.LeaseID {
	if id == 0 {
		return 0
	}
	return id*kv.LeaseID(c.of) + kv.LeaseID(c.number)
}

// innerID returns the ID by which the group knows a lease of its own.
func (c *groupClient) innerID(id kv.LeaseID) kv.LeaseID { return id / kv.LeaseID(c.of) }

// inner is innerID of the lease that a key is to have.
func (c *groupClient) inner(key string, id kv.LeaseID) (kv.LeaseID, error) {
	if id != 0 && int(id%kv.LeaseID(c.of)) != c.number {
		return 0, &LeaseGroupError{Lease: id, Key: key}
	}
	return c.innerID(id), nil
}

// outerItems gives items the IDs of leases that clients know.
func (c *groupClient) outerItems(items []kv.Item) []kv.Item {
	for i := range items {
		items[i].Lease = c.outer(items[i].Lease)
	}
	return items
}

func (c *groupClient) SetQuota(ctx context.Context, q kv.Quota) (kv.Usage, error) {
	r, err := c.write(ctx, "", nil, kv.SetQuota(q))
	if err != nil {
		return kv.Usage{}, err
	}
	return r.Usage()
}

func (c *groupClient) Usage(ctx context.Context) (kv.Usage, error) {
	r, err := known(c.kv.Read(ctx, kv.GetUsage()))
	if err != nil {
		return kv.Usage{}, err
	}
	return r.Usage()
}
