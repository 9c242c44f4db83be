package service

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/client"
)

// Change has the members changed, of all groups one after the other. A change that cannot be made
// yet, or of which nobody knows, is asked for again until ctx is done: making it twice is making it
// once.
func (c *Client) Change(ctx context.Context, change smr.Change) error {
	for _, g := range c.groups {
		if err := g.change(ctx, change); err != nil {
			return c.inGroup(g, err)
		}
	}
	return nil
}

// inGroup adds to an error in which group it was, if there are several.
func (c *Client) inGroup(g *groupClient, err error) error {
	if err == nil || len(c.groups) == 1 {
		return err
	}
	return fmt.Errorf("group %d of %d: %w", g.number+1, len(c.groups), err)
}

func (g *groupClient) change(ctx context.Context, change smr.Change) error {
	for {
		err := g.Reconfigure(ctx, change)
		if _, ok := errors.AsType[*client.UnknownError](err); !ok || ctx.Err() != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(changePause):
		}
	}
}

// changePause is the time between two attempts of change.
const changePause = 100 * time.Millisecond

// A Learning is how far a replica is that waits to be added.
type Learning struct {
	Member
	Heard  bool // it was: some member knows it, and it answers
	Behind smr.Slot
	Groups int // of which it has the state
}

// ErrNoLearners says that a protocol adds replicas before they have anything.
var ErrNoLearners = errors.New("this protocol has no learners: a replica counts from the change that adds it on, " +
	"and is brought up to date then")

// learnPause is the time between two looks at a replica that learns.
const learnPause = 100 * time.Millisecond

// Learner returns how a replica is that waits to be added, from what all replicas say. It returns
// false if none of them knows it, or if it is a member of all groups. If nobody answers until ctx
// is done, or all refuse this client, it is an error; so it is if the replica was removed.
func (c *Client) Learner(ctx context.Context, id protocol.ID) (l Learning, found bool, err error) {
	statuses, err := c.heard(ctx)
	if err != nil {
		return Learning{}, false, err
	}
	l.ID = id
	used := map[int]bool{} // groups that have executed anything
	for _, s := range statuses {
		if slices.Contains(s.Removed, id) {
			return Learning{}, false, fmt.Errorf("replica %d was removed, and does not come back under this ID: give the new "+
				"one an ID that none has had, and an empty directory", id)
		}
		used[s.Group] = used[s.Group] || s.Applied > 0
	}
	for _, s := range statuses {
		for _, m := range s.Learners {
			if m.ID == id {
				l.Address, found = m.Address, true
			}
		}
		if s.Replica == id && s.Role == Learner {
			l.Heard = true
			l.Behind = max(l.Behind, s.Behind)
			if s.Applied > 0 || !used[s.Group] {
				l.Groups++
			}
		}
	}
	return l, found, nil
}

// AwaitLearner waits until a replica that is to be added has the state of all groups, as a learner:
// it gets what is decided, and does not count. tell, if it is not nil, is told now and then how far
// it is. The replica becomes a learner when it is started with Join, and is none any more when it
// is stopped or added.
func (c *Client) AwaitLearner(ctx context.Context, id protocol.ID, tell func(Learning)) (Learning, error) {
	if !c.cfg.proto.Learns {
		return Learning{}, fmt.Errorf("%s: %w", c.cfg.Protocol, ErrNoLearners)
	}
	for {
		l, found, err := c.Learner(ctx, id)
		if err != nil {
			return l, err
		}
		if found && l.Heard && l.Groups == len(c.groups) {
			return l, nil
		}
		if tell != nil {
			tell(l)
		}
		select {
		case <-ctx.Done():
			if !found {
				return l, fmt.Errorf("replica %d has not said that it is there: start it with \"join\": true in its file: %w", id,
					context.Cause(ctx))
			}
			return l, fmt.Errorf("replica %d is being brought up to date: %w", id, context.Cause(ctx))
		case <-time.After(learnPause):
		}
	}
}

// Promote makes a replica a member that waits to be added, at the address that it has said.
func (c *Client) Promote(ctx context.Context, id protocol.ID) (Member, error) {
	l, found, err := c.Learner(ctx, id)
	if err != nil {
		return Member{}, err
	}
	if !found {
		statuses, err := c.heard(ctx)
		if err != nil {
			return Member{}, err
		}
		for _, s := range statuses {
			if i := slices.IndexFunc(s.Members, func(m Member) bool { return m.ID == id }); i >= 0 {
				return s.Members[i], nil // it is one already
			}
		}
		return Member{}, fmt.Errorf("replica %d does not wait to be added, as far as the members know: start it with "+
			"\"join\": true in its file", id)
	}
	return l.Member, c.Change(ctx, smr.Change{Add: smr.Member{ID: id, Address: l.Address}})
}
