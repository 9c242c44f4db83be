package service

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/client"
	"github.com/foresay/foresay/smr/kv"
)

// lessor ends the leases of a group's key-value store that nobody renews. Each replica has one,
// which times the renewals that its own store executes; when a lease was not renewed for its TTL,
// it proposes as a client that the lease end with as many renewals as it has seen. That does
// nothing if the lease was renewed elsewhere meanwhile, so all replicas may do it. They do it one
// after the other, so that mostly one command does.
type lessor struct {
	replica *Replica
	group   int
	wake    chan struct{} // of one place

	mu      sync.Mutex
	leases  map[kv.LeaseID]watchedLease
	next    time.Time // when run looks again by itself
	members []Member  // now, as far as this replica knows
}

type watchedLease struct {
	renewals uint64
	due      time.Time
}

// lessorPatience bounds how long a lessor waits for one lease's end to be executed before it tries
// again.
const lessorPatience = 5 * time.Second

func newLessor(r *Replica, group int) *lessor {
	return &lessor{replica: r, group: group, wake: make(chan struct{}, 1), leases: map[kv.LeaseID]watchedLease{},
		members: r.cfg.Members}
}

// know takes the members of the group.
func (l *lessor) know(members []smr.Member) {
	now := make([]Member, 0, len(members))
	for _, m := range members {
		now = append(now, Member{m.ID, l.replica.cfg.addressOf(m)})
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.members = now
}

// observe is told of leases by the store.
func (l *lessor) observe(lease kv.Lease, ended bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if ended {
		delete(l.leases, lease.ID)
		return
	}
	w := watchedLease{renewals: lease.Renewals, due: time.Now().Add(lease.TTL + l.turn())}
	l.leases[lease.ID] = w
	if w.due.Before(l.next) {
		select {
		case l.wake <- struct{}{}:
		default:
		}
	}
}

// turn is how long this replica lets those before it try first. The caller holds the lock.
func (l *lessor) turn() time.Duration {
	before := 0
	for _, m := range l.members {
		if m.ID < l.replica.cfg.ID {
			before++
		}
	}
	return time.Duration(before) * 4 * max(l.replica.cfg.roundTrip, 100*time.Millisecond)
}

// due returns the leases whose time has come, and when the next one's does.
func (l *lessor) due(now time.Time) (ends []kv.Lease, next time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	next = now.Add(time.Hour)
	for id, w := range l.leases {
		if !w.due.After(now) {
			ends = append(ends, kv.Lease{ID: id, Renewals: w.renewals})
			w.due = now.Add(lessorPatience) // to try again, unless it ends or is renewed
			l.leases[id] = w
		}
		if w.due.Before(next) {
			next = w.due
		}
	}
	l.next = next
	return ends, next
}

// run ends leases until ctx is done.
func (l *lessor) run(ctx context.Context) error {
	for {
		ends, next := l.due(time.Now())
		if len(ends) > 0 {
			c, err := l.replica.caller.client()
			if err != nil {
				return err
			}
			l.end(ctx, c.groups[l.group], ends)
		}
		timer := time.NewTimer(time.Until(next))
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-l.wake:
			timer.Stop()
		case <-timer.C:
		}
	}
}

// end has leases ended, several at a time. What fails is tried again when it is due again.
func (l *lessor) end(ctx context.Context, c *groupClient, leases []kv.Lease) {
	var group errgroup.Group
	group.SetLimit(64)
	for _, lease := range leases {
		group.Go(func() error {
			ctx, cancel := context.WithTimeout(ctx, lessorPatience)
			defer cancel()
			r, err := c.write(ctx, "", nil, kv.Expire(lease.ID, lease.Renewals))
			_, unknown := errors.AsType[*client.UnknownError](err)
			switch {
			case err == nil && r.Status == kv.OK:
				l.replica.log.Info("lease: ended, nobody renewed it", "lease", uint64(lease.ID))
			case err != nil && !unknown:
				l.replica.log.Warn("lease: it cannot be ended now", "lease", uint64(lease.ID), "err", err)
			}
			return nil
		})
	}
	_ = group.Wait() // none returns an error
}
