package service

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/foresay/foresay/protocol"
)

// onStatus takes what the status node says. It is called by its goroutine, and does not wait.
func (c *Client) onStatus(msg statusMessage) {
	m, ok := msg.(told)
	if !ok {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case c.asking[m.Number] <- m: // nil, and so never, if nobody asks
	default:
	}
}

// Status asks all members that are known, and those that they know of, how they are. It waits until all have answered, cannot be reached, or ctx is
// done; the statuses are in order of the replicas, and those of the ones that did not answer say why.
func (c *Client) Status(ctx context.Context) ([]Status, error) {
	number := rand.Uint64()
	answers, forget := c.expect(number)
	defer forget()
	got := map[protocol.ID]Status{}
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
			if c.meetAll(s.Members) {
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

// expect returns where the answers to a question will come, until forget is called.
func (c *Client) expect(number uint64) (answers chan told, forget func()) {
	answers = make(chan told, 64)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asking[number] = answers
	return answers, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.asking, number)
	}
}

func (c *Client) decode(m told) (Status, error) {
	var s Status
	if err := json.Unmarshal(m.Body, &s); err != nil {
		return s, err
	}
	if s.Replica != m.from {
		return s, fmt.Errorf("it says that it is replica %d", s.Replica)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s.Address = c.members[m.from]
	return s, nil
}

// meetAll makes members known, and tells whether any was new.
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
func (c *Client) askRest(ctx context.Context, number uint64, got map[protocol.ID]Status) error {
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

// settled tells whether no more answers are to be expected soon.
func (c *Client) settled(got map[protocol.ID]Status) bool {
	failed := c.unreachable()
	for _, id := range c.known() {
		if _, ok := got[id]; !ok && failed[id] == nil {
			return false
		}
	}
	return true
}

// summary adds those that did not answer. Those that were removed, as the newest answer has it, are left out unless they answered.
func (c *Client) summary(got map[protocol.ID]Status) []Status {
	out := slices.Collect(maps.Values(got))
	newest := Status{}
	for _, s := range out {
		if s.Applied >= newest.Applied {
			newest = s
		}
	}
	failed := c.unreachable()
	for _, id := range c.known() {
		if _, ok := got[id]; ok {
			continue
		}
		if newest.Replica != 0 && !slices.ContainsFunc(newest.Members, func(m Member) bool { return m.ID == id }) {
			continue
		}
		c.mu.Lock()
		s := Status{Replica: id, Address: c.members[id], Role: Unreachable, Members: []Member{}}
		c.mu.Unlock()
		why := failed[id]
		if why == nil {
			why = errors.New("no answer in time")
		}
		s.Error = why.Error()
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b Status) int { return cmp.Compare(a.Replica, b.Replica) })
	return out
}
