package service

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/foresay/foresay/internal/cli/configfile"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
)

// Status is how a replica is, for people and programs.
type Status struct {
	Replica       protocol.ID `json:"replica"`
	Address       string      `json:"address"` // where it was asked
	Role          string      `json:"role"`    // in the protocol's words; "unreachable" if it did not answer
	Leader        protocol.ID `json:"leader"`  // 0: it knows of none, or there is none
	Leaderless    bool        `json:"leaderless"`
	Ready         bool        `json:"ready"` // what a client asks for would be done: by itself, or by the leader that it knows
	Term          uint64      `json:"term"`
	Committed     smr.Slot    `json:"committed"`
	Applied       smr.Slot    `json:"applied"`
	Log           int         `json:"log"` // records
	Snapshot      smr.Slot    `json:"snapshot"`
	Sessions      int         `json:"sessions"`
	Members       []Member    `json:"members"`
	Keys          uint64      `json:"keys"`  // what this replica's store holds
	Bytes         uint64      `json:"bytes"` // of keys and values
	QuotaKeys     uint64      `json:"quota_keys,omitempty"`
	QuotaBytes    uint64      `json:"quota_bytes,omitempty"`
	Protocol      string      `json:"protocol"`
	Generation    string      `json:"generation,omitempty"`
	Disk          string      `json:"disk"`
	UptimeSeconds int64       `json:"uptime_seconds"`
	Error         string      `json:"error,omitempty"` // why it is unreachable
}

// Unreachable is the Role of a replica that did not answer.
const Unreachable = "unreachable"

// maxQuestions bounds the questions to a replica that are not answered.
const maxQuestions = 256

var errQuestions = errors.New("service: too many ask the replica")

// A questionDesk knows who waits for a replica's answers.
type questionDesk[A any] struct {
	mu      sync.Mutex
	last    smr.CallID
	waiting map[smr.CallID]func(A)
}

// ask notes a question, which the caller delivers under the number returned.
func (d *questionDesk[A]) ask(then func(A)) (smr.CallID, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.waiting) >= maxQuestions {
		return 0, errQuestions
	}
	if d.waiting == nil {
		d.waiting = map[smr.CallID]func(A){}
	}
	d.last++
	d.waiting[d.last] = then
	return d.last, nil
}

// forget removes a question, and returns nil if it was answered.
func (d *questionDesk[A]) forget(id smr.CallID) func(A) {
	d.mu.Lock()
	defer d.mu.Unlock()
	then := d.waiting[id]
	delete(d.waiting, id)
	return then
}

func (d *questionDesk[A]) take(id smr.CallID, a A) {
	if then := d.forget(id); then != nil {
		then(a)
	}
}

// query asks the replica; then is called on the replica's goroutine, and must not wait.
func (r *Replica) query(then func(Status)) (smr.CallID, error) {
	id, err := r.desk.ask(func(s smr.Status) { then(r.describe(s)) })
	if err != nil {
		return 0, err
	}
	if err := r.node.TryDeliver(smr.StatusQuery{ID: id}); err != nil {
		r.desk.forget(id)
		return 0, err
	}
	return id, nil
}

// describe is called by the replica's goroutine.
func (r *Replica) describe(s smr.Status) Status {
	u := r.machine.Usage()
	out := Status{
		Replica: s.Replica, Role: s.Role, Leader: s.Leader, Leaderless: r.cfg.proto.Leaderless, Ready: s.Ready(), Term: s.Ballot,
		Committed: s.Committed, Applied: s.Applied, Log: s.LogSize, Snapshot: s.Snapshot, Sessions: s.Sessions, Members: []Member{}, Protocol: r.cfg.Protocol, Generation: r.cfg.Generation, Disk: r.disk,
		Keys: u.Keys, Bytes: u.Bytes, QuotaKeys: u.Quota.Keys, QuotaBytes: u.Quota.Bytes,
		UptimeSeconds: int64(time.Since(r.started) / time.Second),
	}
	for _, m := range s.Members {
		out.Members = append(out.Members, Member{m.ID, r.cfg.addressOf(m)})
	}
	return out
}

// Status returns how the replica is.
func (r *Replica) Status(ctx context.Context) (Status, error) {
	got := make(chan Status, 1)
	id, err := r.query(func(s Status) { got <- s })
	if err != nil {
		return Status{}, fmt.Errorf("replica %d: status: %w", r.cfg.ID, err)
	}
	select {
	case s := <-got:
		return s, nil
	case <-ctx.Done():
		r.desk.forget(id)
		return Status{}, fmt.Errorf("replica %d: status: %w", r.cfg.ID, ctx.Err())
	}
}

// onStatus takes what the status node says to its application: somebody asks, or waits to be added. It is called by that node's goroutine. Who gets no
// answer comes again.
func (r *Replica) onStatus(msg statusMessage) {
	switch m := msg.(type) {
	case asked:
		r.answer(m)
	case leadAsked:
		r.onLead(m)
	case hereIs:
		if m.from >= firstClient || configfile.CheckAddress("", m.address, false) != nil {
			r.log.Warn("replica: somebody who is no replica, or has no address, wants to join", "from", m.from, "address", m.address)
			return
		}
		select {
		case r.joiners <- Member{m.from, m.address}:
		default:
		}
	}
}

func (r *Replica) answer(q asked) {
	_, err := r.query(func(s Status) {
		body, err := json.Marshal(s)
		if err == nil {
			err = r.status.TryDeliver(answered{q.from, answer{q.number, body}})
		}
		if err != nil {
			r.log.Warn("replica: a status was not sent", "to", q.from, "err", err)
		}
	})
	if err != nil {
		r.log.Warn("replica: a question about the status was dropped", "from", q.from, "err", err)
	}
}
