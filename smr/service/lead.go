package service

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
)

// ErrNoHandOver says that the leadership of a protocol cannot be handed over.
var ErrNoHandOver = errors.New("leadership is handed over with raft and multipaxos only")

// A HandOverError says that the leader did not hand over, and why.
type HandOverError struct {
	Leader protocol.ID
	Reason string
}

func (e *HandOverError) Error() string {
	return fmt.Sprintf("replica %d does not hand over: %s", e.Leader, e.Reason)
}

// handOverPause is the time between two looks whether the successor leads.
const handOverPause = 20 * time.Millisecond

// handOverAgain is how long another one may go on leading before it is asked again: the successor
// may just have ended, or not have been elected.
const handOverAgain = time.Second

// lookFor is how long each look waits for members, who may be stopped: so many round trips, and a
// second at least.
const lookFor = 4

// HandOver has another member lead, or whichever is up to date if to is 0, and returns who led and
// who does. It waits until the successor says that it leads. The group stands still for about two
// round trips. If the service has several groups it is about the first one: see HandOverGroup.
func (c *Client) HandOver(ctx context.Context, to protocol.ID) (from, leader protocol.ID, err error) {
	return c.HandOverGroup(ctx, 1, to)
}

// HandOverGroup is HandOver of a group, from 1 on.
func (c *Client) HandOverGroup(ctx context.Context, group int, to protocol.ID) (from, leader protocol.ID, err error) {
	switch {
	case !c.cfg.proto.HandsOver:
		return 0, 0, fmt.Errorf("%s: %w", c.cfg.Protocol, ErrNoHandOver)
	case group < 1 || group > len(c.groups):
		return 0, 0, fmt.Errorf("hand over: there is no group %d; the service has %d", group, len(c.groups))
	}
	successor, asked := to, time.Time{}
	for {
		statuses, err := c.heard(ctx)
		if err != nil {
			return 0, 0, err
		}
		now := leaderOf(ofGroup(statuses, group))
		switch {
		case now == 0:
		case from == 0 && now == to:
			return now, now, nil
		case from != 0 && (now == successor || to == 0 && now != from):
			return from, now, nil
		case from == 0 || time.Since(asked) > handOverAgain:
			next, err := c.askToLead(ctx, group, now, to)
			if _, refused := errors.AsType[*HandOverError](err); err != nil && (from == 0 || !refused) {
				return now, 0, err
			}
			if asked = time.Now(); err == nil {
				successor = next
			}
			if from == 0 {
				from = now
			}
		}
		select {
		case <-ctx.Done():
			return from, 0, fmt.Errorf("hand over: replica %d does not lead yet: %w", successor, ctx.Err())
		case <-time.After(handOverPause):
		}
	}
}

// A LeaderMove is a group whose leader has handed over.
type LeaderMove struct {
	Group  int         `json:"group"`
	Before protocol.ID `json:"before"`
	Leader protocol.ID `json:"leader"`
}

// SpreadLeaders has leaders hand over until no replica that answers leads two groups more than
// another one, and returns what it did, also if it fails. For a member that is not up to date yet,
// as after its start, it waits until ctx ends.
func (c *Client) SpreadLeaders(ctx context.Context) ([]LeaderMove, error) {
	moves := []LeaderMove{}
	if !c.cfg.proto.HandsOver {
		return moves, fmt.Errorf("%s: %w", c.cfg.Protocol, ErrNoHandOver)
	}
	for len(moves) < len(c.groups) {
		statuses, err := c.heard(ctx)
		if err != nil {
			return moves, err
		}
		group, to := nextMove(statuses)
		if group == 0 {
			return moves, nil
		}
		from, now, err := c.HandOverGroup(ctx, group, to)
		var notYet *HandOverError
		if errors.As(err, &notYet) {
			select {
			case <-ctx.Done():
			case <-time.After(handOverPause):
				continue
			}
		}
		if err != nil {
			return moves, fmt.Errorf("group %d: %w", group, err)
		}
		moves = append(moves, LeaderMove{group, from, now})
	}
	return moves, nil
}

// nextMove returns a group whose leader leads most groups, and the member that leads fewest; 0 if
// they differ by one at most.
func nextMove(statuses []Status) (group int, to protocol.ID) {
	leads := map[protocol.ID][]int{}
	for _, g := range ByGroup(statuses) {
		leader := leaderOf(g)
		for _, s := range g {
			if s.Role != Unreachable && slices.ContainsFunc(s.Members, func(m Member) bool { return m.ID == s.Replica }) {
				leads[s.Replica] = slices.Clip(leads[s.Replica]) // at least there
			}
		}
		if _, ok := leads[leader]; ok {
			leads[leader] = append(leads[leader], max(g[0].Group, 1))
		}
	}
	var most, fewest protocol.ID
	for _, id := range slices.Sorted(maps.Keys(leads)) {
		if most == 0 || len(leads[id]) > len(leads[most]) {
			most = id
		}
		if fewest == 0 || len(leads[id]) < len(leads[fewest]) {
			fewest = id
		}
	}
	if len(leads[most]) < len(leads[fewest])+2 {
		return 0, 0
	}
	return leads[most][0], fewest
}

// leaderOf returns who leads: of those who say that they do the one of the highest term; 0 if
// nobody does.
func leaderOf(statuses []Status) protocol.ID {
	best := Status{}
	for _, s := range statuses {
		if s.Leader == s.Replica && s.Replica != 0 && s.Term >= best.Term {
			best = s
		}
	}
	return best.Replica
}

// askToLead asks the leader to hand over, and returns to whom it does.
func (c *Client) askToLead(ctx context.Context, group int, leader, to protocol.ID) (protocol.ID, error) {
	number, answers, forget := c.expect()
	defer forget()
	if err := c.status.Deliver(ctx, leadAll{leader, leadNow{number, to, uint64(group)}}); err != nil {
		return 0, fmt.Errorf("hand over: %w", err)
	}
	select {
	case m := <-answers:
		var a leadAnswer
		if err := json.Unmarshal(m.Body, &a); err != nil {
			return 0, fmt.Errorf("hand over: the answer of replica %d: %w", leader, err)
		}
		if a.Reason != "" {
			return 0, &HandOverError{leader, a.Reason}
		}
		return a.To, nil
	case <-ctx.Done():
		return 0, fmt.Errorf("hand over: replica %d, which leads, does not answer: %w", leader, ctx.Err())
	}
}

// leadAnswer is a replica's answer, in JSON.
type leadAnswer struct {
	To     protocol.ID `json:"to,omitempty"`
	Reason string      `json:"reason,omitempty"`
}

// handOver asks the replica's node to hand over; then is called on the node's goroutine, and must
// not wait.
func (g *replicaGroup) handOver(to protocol.ID, then func(leadAnswer)) error {
	if !g.cfg.proto.HandsOver {
		then(leadAnswer{Reason: ErrNoHandOver.Error()})
		return nil
	}
	_, err := question(g, &g.handing, func(h smr.HandingOver) {
		then(leadAnswer{h.To, h.Reason})
	}, func(id smr.CallID) smr.Message {
		return smr.HandOver{ID: id, To: to}
	})
	return err
}

// onLead answers a client that wants another leader.
func (r *Replica) onLead(q leadAsked) {
	if q.Group < 1 || q.Group > uint64(len(r.groups)) {
		return // of another cluster, or none of our clients
	}
	err := r.groups[q.Group-1].handOver(q.To, func(a leadAnswer) {
		body, err := json.Marshal(a)
		if err == nil {
			err = r.status.TryDeliver(answered{q.from, answer{q.Number, body}})
		}
		if err != nil {
			r.log.Warn("replica: an answer was not sent", "to", q.from, "err", err)
		}
	})
	if err != nil {
		r.log.Warn("replica: a request to hand over was dropped", "from", q.from, "err", err)
	}
}

// patience of a leader that ends: how long it waits for its successor, in round trips, if one was
// found.
const farewellTrips = 10

// retire hands over before the replica ends, where it leads and another member is up to date. It
// waits for the successors, but not for long.
func (r *Replica) retire() {
	ctx, cancel := context.WithTimeout(context.Background(), farewellTrips*max(r.cfg.roundTrip, 100*time.Millisecond))
	defer cancel()
	var all sync.WaitGroup
	for _, g := range r.groups {
		all.Go(func() { g.retire(ctx) })
	}
	all.Wait()
}

func (g *replicaGroup) retire(ctx context.Context) {
	begun := make(chan leadAnswer, 1)
	if err := g.handOver(0, func(a leadAnswer) { begun <- a }); err != nil {
		return
	}
	select {
	case a := <-begun:
		if a.Reason != "" {
			return // it does not lead, or there is nobody to hand over to
		}
		g.log.Info("replica: hands over before it ends", "group", g.number+1, "to", a.To)
	case <-ctx.Done():
		return
	}
	for {
		s, err := g.Status(ctx)
		if err != nil || s.Leader != 0 && s.Leader != g.cfg.ID {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(handOverPause):
		}
	}
}
