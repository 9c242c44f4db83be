package service

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/foresay/foresay/bft"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/quorum"
	"github.com/foresay/foresay/transport"
)

// statusRepeat is how long an answer about a replica's status is waited for before it is asked for
// again.
const statusRepeat = 300 * time.Millisecond

// onStatus takes what the status node says. It is called by its goroutine, and does not wait.
func (c *Client) onStatus(msg statusMessage) {
	if m, ok := msg.(told); ok {
		c.asking.Tell(m.Number-c.number, m)
	}
}

// Status asks all members how they are. It waits until all have answered or cannot be reached, or
// ctx is done; the statuses are in the order of the members, and those of the ones that did not
// answer say why.
func (c *Client) Status(ctx context.Context) ([]Status, error) {
	answers := make(chan told, 64)
	ref, err := c.asking.Add(func(m told) {
		select {
		case answers <- m:
		default: // it is asked again
		}
	})
	if err != nil {
		return nil, err
	}
	defer c.asking.Forget(ref)
	got := map[protocol.ID]Status{}
	again := time.NewTicker(statusRepeat)
	defer again.Stop()
	var r refusal
	look := time.NewTicker(statusRepeat / 10)
	defer look.Stop()
	if err := c.askRest(ctx, c.number+ref, got); err != nil {
		return nil, err
	}
	for {
		select {
		case m := <-answers:
			var s Status
			if err := json.Unmarshal(m.Body, &s); err != nil || s.Replica != m.from {
				s = Status{Role: Unreachable, Error: "what it answers makes no sense"}
			}
			got[m.from] = s
		case <-again.C:
			if err := c.askRest(ctx, c.number+ref, got); err != nil {
				return nil, err
			}
		case <-look.C:
			if c.settled(got, &r) && !c.outdated(ctx, got) {
				return c.summary(got), nil
			}
		case <-ctx.Done():
			return c.summary(got), nil
		}
	}
}

// askRest asks those that have not answered.
func (c *Client) askRest(ctx context.Context, number uint64, got map[protocol.ID]Status) error {
	var to []protocol.ID
	for _, m := range c.members.Load().Members {
		if _, ok := got[m.ID]; !ok {
			to = append(to, m.ID)
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
func (c *Client) settled(got map[protocol.ID]Status, r *refusal) bool {
	if transport.Refused(c.peers()) != nil && c.refused(r) == nil {
		return false
	}
	for _, p := range c.peers() {
		if _, ok := got[p.ID]; !ok && p.Err == nil {
			return false
		}
	}
	return true
}

// summary returns the statuses of all members.
func (c *Client) summary(got map[protocol.ID]Status) []Status {
	failed := map[protocol.ID]string{}
	for _, p := range c.peers() {
		failed[p.ID] = p.Failure()
	}
	var out []Status
	var committed []bft.Seq
	members := c.members.Load()
	for _, m := range members.Members {
		s, ok := got[m.ID]
		if !ok {
			s = Status{Role: Unreachable, Error: cmp.Or(failed[m.ID], "no answer in time")}
		}
		s.Replica, s.Address = m.ID, m.Address
		if s.Unreached == nil {
			s.Unreached = []Unreached{}
		}
		out = append(out, s)
		committed = append(committed, s.Committed)
	}
	sure := quorum.KthLargest(committed, members.Witness())
	for i := range out {
		if s := &out[i]; s.Role != Unreachable && s.Committed < sure {
			s.Behind = sure - s.Committed
		}
	}
	return out
}

// A Catchup tells when the replicas that answer have caught up. The zero value is ready for use.
type Catchup struct {
	begun bool
	goal  bft.Seq // what was committed when it began
}

// Over reports whether all members have answered and have committed what an honest one had at the
// first call that had an answer of enough of them, and a quorum is in one view. One that was cut
// off may have given that view up by itself, and then learns what is committed without being in it.
func (c *Catchup) Over(statuses []Status) bool { return c.Missing(statuses) == "" }

// Missing says what Over lacks, "" if nothing.
func (c *Catchup) Missing(statuses []Status) string {
	var committed []bft.Seq
	answered := 0
	for _, s := range statuses {
		committed = append(committed, s.Committed)
		if s.Role != Unreachable {
			answered++
		}
	}
	enough := quorum.Byzantine(len(statuses))
	if !c.begun && answered >= enough {
		c.begun, c.goal = true, quorum.KthLargest(committed, quorum.Witness(len(statuses)))
	}
	type view struct {
		epoch bft.Epoch
		view  bft.View
	}
	inView := map[view]int{}
	most := 0
	for _, s := range statuses {
		switch {
		case s.Role == Unreachable:
			return fmt.Sprintf("replica %d: %s", s.Replica, s.Error)
		case s.Committed < c.goal:
			return fmt.Sprintf("replica %d has committed %d batches of %d", s.Replica, s.Committed, c.goal)
		case s.Role != ViewChange && s.Role != Outside:
			v := view{s.Epoch, s.View}
			inView[v]++
			most = max(most, inView[v])
		}
	}
	if most < enough {
		return "no view has a quorum"
	}
	return ""
}
