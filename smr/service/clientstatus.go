package service

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/foresay/foresay/protocol"
)

// onStatus takes what the status node says. It is called by its goroutine, and does not wait.
func (c *Client) onStatus(msg statusMessage) {
	switch m := msg.(type) {
	case told:
		c.asking.Tell(m.Number-c.number, m)
	case heard:
		switch about := m.msg.(type) {
		case waiting:
			c.lookouts.Tell(about.Number-c.number, m)
		case changed:
			c.lookouts.Tell(about.Number-c.number, m)
		}
	case broken:
		for _, ref := range c.lookouts.Refs() {
			c.lookouts.Tell(ref, heard{m.from, m})
		}
	}
}

// Status asks all members that are known, those that they know of, and those that wait to be added,
// how they are. It waits until all have answered, cannot be reached, or ctx is done; the statuses
// are in order of the groups and of the replicas, and those of the ones that did not answer say
// why.
func (c *Client) Status(ctx context.Context) ([]Status, error) {
	number, answers, forget := c.expect()
	defer forget()
	got := map[protocol.ID][]Status{}
	again := time.NewTicker(statusRepeat)
	defer again.Stop()
	look := time.NewTicker(statusRepeat / 10)
	defer look.Stop()
	if err := c.askRest(ctx, number, got); err != nil {
		return nil, err
	}
	for {
		select {
		case m := <-answers:
			s, err := c.decode(m)
			if err != nil {
				return nil, fmt.Errorf("client: the status of replica %d: %w", m.from, err)
			}
			got[m.from] = s
			var others []Member
			for _, one := range s {
				others = slices.Concat(others, one.Members, one.Learners)
			}
			if c.meetAll(others) {
				if err := c.askRest(ctx, number, got); err != nil {
					return nil, err
				}
			}
		case <-again.C:
			if err := c.askRest(ctx, number, got); err != nil {
				return nil, err
			}
		case <-look.C:
			if c.settled(got) {
				return c.summary(got), nil
			}
		case <-ctx.Done():
			return c.summary(got), nil
		}
	}
}

// heard is Status as soon as a member answers. If all refuse this client, or none has answered when
// ctx is done, it is an error that says why.
func (c *Client) heard(ctx context.Context) ([]Status, error) {
	for {
		brief, cancel := context.WithTimeout(ctx, max(lookFor*c.cfg.roundTrip, time.Second))
		statuses, err := c.Status(brief)
		cancel()
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(statuses, func(s Status) bool { return s.Role != Unreachable }) {
			return statuses, nil
		}
		if err := c.Refused(); err != nil {
			return nil, err
		}
		select {
		case <-ctx.Done():
			err := fmt.Errorf("no member answers: %w", context.Cause(ctx))
			if why := c.Unreachable(); why != "" {
				err = fmt.Errorf("%w: %s", err, why)
			}
			return nil, err
		case <-time.After(learnPause):
		}
	}
}

// expect returns the number of a new question, and where the answers to it will come until forget
// is called.
func (c *Client) expect() (number uint64, answers chan told, forget func()) {
	answers = make(chan told, 64)
	ref, _ := c.asking.Add(func(m told) { // the table has no bound, and is never closed
		select {
		case answers <- m:
		default: // it is asked again
		}
	})
	return c.number + ref, answers, func() { c.asking.Forget(ref) }
}

func (c *Client) decode(m told) ([]Status, error) {
	var all []Status
	if err := json.Unmarshal(m.Body, &all); err != nil {
		return nil, err
	}
	if len(all) != len(c.groups) {
		return nil, fmt.Errorf("it has %d groups, not %d", len(all), len(c.groups))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range all {
		if all[i].Replica != m.from {
			return nil, fmt.Errorf("it says that it is replica %d", all[i].Replica)
		}
		all[i].Address = c.members[m.from]
	}
	return all, nil
}

// meetAll makes members known, and reports whether any was new.
func (c *Client) meetAll(members []Member) bool {
	before := len(c.known())
	for _, m := range members {
		_ = c.meet(m) // one with a bad address stays unknown
	}
	return len(c.known()) > before
}

func (c *Client) known() []protocol.ID {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Sorted(maps.Keys(c.members))
}

// askRest asks those that have not answered.
func (c *Client) askRest(ctx context.Context, number uint64, got map[protocol.ID][]Status) error {
	var to []protocol.ID
	for _, id := range c.known() {
		if _, ok := got[id]; !ok {
			to = append(to, id)
		}
	}
	if len(to) == 0 {
		return nil
	}
	if err := c.status.Deliver(ctx, askAll{number, to}); err != nil && ctx.Err() == nil {
		return fmt.Errorf("client: ask for the status: %w", err)
	}
	return nil
}

// settled reports whether no more answers are to be expected soon.
func (c *Client) settled(got map[protocol.ID][]Status) bool {
	failed := c.unreachable()
	for _, id := range c.known() {
		if _, ok := got[id]; !ok && failed[id] == "" {
			return false
		}
	}
	return true
}

// summary returns the statuses of all groups.
func (c *Client) summary(got map[protocol.ID][]Status) []Status {
	failed := c.unreachable()
	var out []Status
	for i := range c.groups {
		out = append(out, c.summaryOf(i, got, failed)...)
	}
	return out
}

// summaryOf adds to the statuses of a group those that did not answer. Those that were removed, as
// the newest answer has it, are left out unless they answered.
func (c *Client) summaryOf(group int, got map[protocol.ID][]Status, failed map[protocol.ID]string) []Status {
	var out []Status
	newest := Status{}
	for _, all := range got {
		s := all[group]
		out = append(out, s)
		if s.Applied >= newest.Applied {
			newest = s
		}
	}
	for i := range out {
		out[i].Behind = newest.Applied - out[i].Applied
	}
	for _, id := range c.known() {
		if _, ok := got[id]; ok {
			continue
		}
		is := func(m Member) bool { return m.ID == id }
		if newest.Replica != 0 && !slices.ContainsFunc(newest.Members, is) && !slices.ContainsFunc(newest.Learners, is) {
			continue
		}
		c.mu.Lock()
		s := Status{Replica: id, Address: c.members[id], Role: Unreachable, Members: []Member{}}
		c.mu.Unlock()
		if len(c.groups) > 1 {
			s.Group = group + 1
		}
		s.Error = cmp.Or(failed[id], "no answer in time")
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b Status) int { return cmp.Compare(a.Replica, b.Replica) })
	return out
}

// ofGroup returns the statuses of a group, from 1 on.
func ofGroup(statuses []Status, group int) []Status {
	var out []Status
	for _, s := range statuses {
		if max(s.Group, 1) == group {
			out = append(out, s)
		}
	}
	return out
}

// ByGroup returns the statuses of each group, in order of the groups.
func ByGroup(statuses []Status) [][]Status {
	var out [][]Status
	for _, s := range statuses {
		n := len(out)
		if n == 0 || out[n-1][0].Group != s.Group {
			out = append(out, nil)
			n++
		}
		out[n-1] = append(out[n-1], s)
	}
	return out
}
