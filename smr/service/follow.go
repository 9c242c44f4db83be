package service

import (
	"context"
	"slices"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
)

// followMembers has the client ask the members of now, while it runs: those that its file names may
// all be replaced. It looks who they are when somebody can be reached no more, and now and then in
// any case.
func (c *Client) followMembers(ctx context.Context) {
	look := time.NewTicker(followPause)
	defer look.Stop()
	var down map[protocol.ID]string
	due := time.Now().Add(followEvery)
	for {
		select {
		case <-ctx.Done():
			return
		case <-look.C:
		}
		before := down
		down = c.unreachable()
		for id := range down {
			if before[id] == "" {
				due = time.Now()
			}
		}
		if !time.Now().Before(due) && c.follow(ctx) {
			due = time.Now().Add(followEvery)
		}
	}
}

// followPause is the time between two looks at who is reached, followEvery the longest time between
// two questions about who the members are.
const (
	followPause = 200 * time.Millisecond
	followEvery = time.Minute
)

// follow asks all replicas that are known for the members of their groups. It returns false if
// nobody answered.
func (c *Client) follow(ctx context.Context) bool {
	brief, cancel := context.WithTimeout(ctx, max(lookFor*c.cfg.roundTrip, time.Second))
	defer cancel()
	statuses, err := c.Status(brief)
	if err != nil {
		return false
	}
	stay, heard := map[protocol.ID]bool{}, 0
	for i, g := range c.groups {
		var newest Status
		for _, s := range ofGroup(statuses, i+1) {
			if len(s.Members) > 0 && s.Applied >= newest.Applied {
				newest = s
			}
			for _, m := range s.Learners {
				stay[m.ID] = true
			}
		}
		// otherwise only those have answered who are behind what was known before
		if len(newest.Members) > 0 && newest.Applied >= g.followed {
			heard++
			g.followed = newest.Applied
			members := smrMembers(newest.Members)
			g.members.Store(&members)
			g.tellMembers()
		}
		if members := g.members.Load(); members != nil {
			for _, m := range *members {
				stay[m.ID] = true
			}
		}
	}
	if heard == len(c.groups) {
		c.forgetOthers(stay)
	}
	return heard > 0
}

// forgetOthers ends the connections to replicas that were removed.
func (c *Client) forgetOthers(stay map[protocol.ID]bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id := range c.members {
		if !stay[id] {
			delete(c.members, id)
			c.host.RemovePeer(id)
		}
	}
}

// tellMembers tells the client node who the members are, if it has begun and they were found.
func (g *groupClient) tellMembers() {
	node, members := g.begun.Load(), g.members.Load()
	if node != nil && members != nil {
		// a node that is full hears it the next time
		_ = node.TryDeliver(smr.MembersAre{Members: slices.Clone(*members)})
	}
}
