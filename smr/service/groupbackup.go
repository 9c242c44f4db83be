package service

import (
	"context"
	"fmt"
	"sync/atomic"
)

// Backup reads the contents of the service while it is used. It is one moment's: what was there at
// Backup.Version, which is not before Backup was called. If there are several groups, each has a
// moment of its own. progress, if it is not nil, is told how many keys have been read.
//
// Changes may come meanwhile, though not faster than they can be read: 1 MiB, or 10,000 of them, in
// a round trip. If the service forgets some before they are read it begins again, and after the
// third time returns an error that is a [*CompactedError].
func (c *Client) Backup(ctx context.Context, progress func(keys int)) (*Backup, error) {
	parts := make([]*Backup, len(c.groups))
	total := newTotal(len(c.groups), progress)
	err := c.all(ctx, func(ctx context.Context, g *groupClient) (err error) {
		parts[g.number], err = g.Backup(ctx, total.of(g.number))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("backup: %w", err)
	}
	b := parts[0]
	if len(parts) > 1 {
		b.Others, b.Routing = parts[1:], c.cfg.Routing.String()
	}
	return b, nil
}

// Restore loads a backup into a new service, whose keys have the versions of the backup then, and
// leases their IDs, with their whole time to go. A restore that was interrupted is called again,
// and goes on. A service that has contents of its own is left alone: the error is a
// [*NotEmptyError]. Until it is done the service refuses other changes. The backup of several
// groups is for a service that has the same. progress, if it is not nil, is told how many keys are
// loaded.
//
// What is written then has versions more than skipVersions above the backup's. If they are more
// than the old service has given since, such as [DefaultSkipVersions], no version, lease ID or
// token of a lock is given a second time, and a watch that goes on after one of the old service is
// told that the changes are not kept. 0 is for the backup of a service to which nothing was written
// since.
func (c *Client) Restore(ctx context.Context, b *Backup, skipVersions uint64, progress func(keys int)) error {
	parts := b.parts()
	routing := ""
	if len(c.groups) > 1 {
		routing = c.cfg.Routing.String()
	}
	if len(parts) != len(c.groups) || b.Routing != routing {
		return fmt.Errorf("restore: the backup is of %s, and the service has %s", groupsName(b.Routing), groupsName(routing))
	}
	for _, part := range parts {
		if err := part.check(); err != nil {
			return fmt.Errorf("restore: %w", err)
		}
	}
	// All groups are looked at before the first one is changed.
	err := c.all(ctx, func(ctx context.Context, g *groupClient) error {
		_, err := g.prepare(ctx, parts[g.number], skipVersions)
		return err
	})
	if err == nil {
		total := newTotal(len(c.groups), progress)
		err = c.all(ctx, func(ctx context.Context, g *groupClient) error {
			return g.Restore(ctx, parts[g.number], skipVersions, total.of(g.number))
		})
	}
	if err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	return nil
}

func groupsName(routing string) string {
	if routing == "" {
		return Routing{}.String()
	}
	return routing
}

// total tells the sum of what several groups tell of their progress.
type total struct {
	parts []atomic.Int64
	tell  func(int) // nil: nobody listens
	turn  chan struct{}
}

func newTotal(groups int, tell func(int)) *total {
	return &total{parts: make([]atomic.Int64, groups), tell: tell, turn: make(chan struct{}, 1)}
}

// of returns what one group tells its progress to. Only one of them tells the sum at a time.
func (t *total) of(group int) func(int) {
	return func(n int) {
		t.parts[group].Store(int64(n))
		if t.tell == nil {
			return
		}
		t.turn <- struct{}{}
		defer func() { <-t.turn }()
		sum := 0
		for i := range t.parts {
			sum += int(t.parts[i].Load())
		}
		t.tell(sum)
	}
}
