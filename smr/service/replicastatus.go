package service

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/foresay/foresay/internal/callers"
	"github.com/foresay/foresay/internal/cli/configfile"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
)

// Status is how a replica of a group is, for people and programs.
type Status struct {
	Group      int         `json:"group,omitempty"` // from 1 on, if there are several; 0 if there is one
	Replica    protocol.ID `json:"replica"`
	Address    string      `json:"address"` // where it was asked
	Role       string      `json:"role"`    // in the protocol's words; "unreachable" if it did not answer
	Leader     protocol.ID `json:"leader"`  // 0: it knows of none, or there is none
	Leaderless bool        `json:"leaderless"`
	// what a client asks for would be done: by itself, or by the leader that it knows
	Ready     bool          `json:"ready"`
	Term      uint64        `json:"term"`
	Committed smr.Slot      `json:"committed"`
	Applied   smr.Slot      `json:"applied"`
	Log       int           `json:"log"` // records
	Snapshot  smr.Slot      `json:"snapshot"`
	Sessions  int           `json:"sessions"`
	Members   []Member      `json:"members"`
	Learners  []Member      `json:"learners,omitempty"` // replicas that wait to be added, as far as this one knows
	Removed   []protocol.ID `json:"removed,omitempty"`  // members before, which do not come back under these IDs
	// the group has nothing to do, and its members send each other no beats: their hosts do, once
	// for all groups
	Resting bool `json:"resting,omitempty"`
	// how far what was promised by time is ahead of the replica's clock; absent if its protocol goes
	// by no clock
	ClaimsAheadSeconds *float64 `json:"claims_ahead_seconds,omitempty"`
	// by how much the replica's clock is ahead and not followed, of the same protocols
	ClockHeldSeconds float64 `json:"clock_held_seconds,omitempty"`
	// what a replica of a new group waits for before it takes part
	Waits string `json:"waits,omitempty"`
	// what others of the group have executed and it has not, in slots: see Client.Status
	Behind        smr.Slot `json:"behind"`
	Keys          uint64   `json:"keys"`  // what this replica's store holds
	Bytes         uint64   `json:"bytes"` // of keys and values
	QuotaKeys     uint64   `json:"quota_keys,omitempty"`
	QuotaBytes    uint64   `json:"quota_bytes,omitempty"`
	Protocol      string   `json:"protocol"`
	Recovery      string   `json:"recovery,omitempty"`
	Disk          string   `json:"disk"`
	UptimeSeconds int64    `json:"uptime_seconds"`
	Error         string   `json:"error,omitempty"` // why it is unreachable
}

// Unreachable is the Role of a replica that did not answer.
const Unreachable = "unreachable"

// Learner is the Role of a replica that waits to be added, and is brought up to date meanwhile.
const Learner = "learner"

// maxQuestions bounds the questions to a replica that are not answered.
const maxQuestions = 256

// query asks the group's replica; then is called on its node's goroutine, and must not wait.
func (g *replicaGroup) query(then func(Status)) (smr.CallID, error) {
	return question(g, &g.asking, func(s smr.Status) { then(g.describe(s)) }, func(id smr.CallID) smr.Message {
		return smr.StatusQuery{ID: id}
	})
}

// question asks the group's replica; then is called on its node's goroutine, and must not wait.
func question[A any](
	g *replicaGroup, table *callers.Table[A], then func(A), message func(smr.CallID) smr.Message,
) (smr.CallID, error) {
	ref, err := table.Add(then)
	if err != nil {
		return 0, fmt.Errorf("service: %w", err)
	}
	id := smr.CallID(ref)
	if err := g.node.TryDeliver(message(id)); err != nil {
		table.Forget(ref)
		return 0, err
	}
	return id, nil
}

// describe is called by the node's goroutine.
func (g *replicaGroup) describe(s smr.Status) Status {
	u := g.machine.Usage()
	out := Status{
		Replica: s.Replica, Role: s.Role, Leader: s.Leader, Leaderless: g.cfg.proto.Leaderless, Ready: s.Ready(),
		Term:      s.Ballot,
		Committed: s.Committed, Applied: s.Applied, Log: s.LogSize, Snapshot: s.Snapshot, Sessions: s.Sessions,
		Resting: s.Resting, Removed: s.Removed, Members: []Member{}, Protocol: g.cfg.Protocol,
		Recovery: g.cfg.Recovery, Disk: g.disk, Waits: s.Waits,
		Keys: u.Keys, Bytes: u.Bytes, QuotaKeys: u.Quota.Keys, QuotaBytes: u.Quota.Bytes,
		UptimeSeconds: int64(time.Since(g.started) / time.Second),
	}
	if len(g.groups) > 1 {
		out.Group = g.number + 1
	}
	if s.Timed {
		ahead := s.ClaimsAhead.Seconds()
		out.ClaimsAheadSeconds, out.ClockHeldSeconds = &ahead, s.ClockHeld.Seconds()
	}
	member := false
	for _, m := range s.Members {
		member = member || m.ID == g.cfg.ID
		out.Members = append(out.Members, Member{m.ID, g.cfg.addressOf(m)})
	}
	if s.Role == "blank" && g.cfg.Join && !member && g.cfg.proto.Learns {
		out.Role = Learner
	}
	if waiting := g.learners.Load(); waiting != nil {
		for _, l := range *waiting {
			if !slices.ContainsFunc(s.Members, func(m smr.Member) bool { return m.ID == l.ID }) {
				out.Learners = append(out.Learners, l)
			}
		}
	}
	return out
}

// Status returns how the group's replica is.
func (g *replicaGroup) Status(ctx context.Context) (Status, error) {
	got := make(chan Status, 1)
	id, err := g.query(func(s Status) { got <- s })
	if err != nil {
		return Status{}, fmt.Errorf("replica %d: status: %w", g.cfg.ID, err)
	}
	select {
	case s := <-got:
		return s, nil
	case <-ctx.Done():
		g.asking.Forget(uint64(id))
		return Status{}, fmt.Errorf("replica %d: status: %w", g.cfg.ID, ctx.Err())
	}
}

// Status returns how the replica is in each group.
func (r *Replica) Status(ctx context.Context) ([]Status, error) {
	var out []Status
	for _, g := range r.groups {
		s, err := g.Status(ctx)
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}

// onStatus takes what the status node says to its application: somebody asks, or waits to be added.
// It is called by that node's goroutine. Who gets no answer comes again.
func (r *Replica) onStatus(msg statusMessage) {
	switch m := msg.(type) {
	case asked:
		r.answer(m)
	case leadAsked:
		r.onLead(m)
	case heard:
		r.onWaits(m)
	case hereIs:
		if m.from >= firstClient || configfile.CheckAddress("", m.address, false) != nil {
			r.log.Warn("replica: somebody who is no replica, or has no address, wants to join", "from", m.from, "address",
				m.address)
			return
		}
		select {
		case r.joiners <- Member{m.from, m.address}:
		default:
		}
	}
}

// answer asks the replicas of all groups, and sends what they say when the last one has.
func (r *Replica) answer(q asked) {
	var mu sync.Mutex
	all := make([]Status, len(r.groups))
	left := len(all)
	for i, g := range r.groups {
		_, err := g.query(func(s Status) {
			mu.Lock()
			defer mu.Unlock()
			all[i] = s
			if left--; left == 0 {
				r.tell(q, all)
			}
		})
		if err != nil {
			r.log.Warn("replica: a question about the status was dropped", "from", q.from, "err", err)
			return
		}
	}
}

func (r *Replica) tell(q asked, all []Status) {
	body, err := json.Marshal(all)
	if err == nil {
		err = r.status.TryDeliver(answered{q.from, answer{q.number, body}})
	}
	if err != nil {
		r.log.Warn("replica: a status was not sent", "to", q.from, "err", err)
	}
}
