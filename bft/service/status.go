package service

import (
	"context"
	"encoding/json"
	"time"

	"github.com/foresay/foresay/bft"
	"github.com/foresay/foresay/internal/plainerr"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/transport"
)

// Status is how a replica says that it is, for people and programs. It may lie.
type Status struct {
	Replica protocol.ID `json:"replica"`
	Address string      `json:"address"` // where it was asked
	Role    string      `json:"role"`
	Epoch   bft.Epoch   `json:"epoch"`   // of the members and their keys
	View    bft.View    `json:"view"`    // of the epoch
	Primary protocol.ID `json:"primary"` // of the view
	// Stable is the place of the newest stable checkpoint, which is the low water mark. Nothing above
	// High is proposed.
	Stable    bft.Seq `json:"stable"`
	High      bft.Seq `json:"high"`
	Committed bft.Seq `json:"committed"`
	Executed  bft.Seq `json:"executed"`
	Proposed  bft.Seq `json:"proposed"`
	// Behind is how many batches it has not committed of those that f+1 say they have; f+1, as one of
	// them does not lie.
	Behind bft.Seq `json:"behind"`
	// Transfers is how many states it has fetched since it started, and RefusedParts how many parts
	// of them were wrong that others gave it.
	Transfers    int `json:"transfers"`
	RefusedParts int `json:"refused_parts"`
	// Repairs is how many times since it started its disk had something else than it should, which was
	// fetched from others.
	Repairs int `json:"repairs"`
	// Caught is how many views it has ended since it started because what their primaries had signed
	// proved that they lie.
	Caught int `json:"caught"`
	// Unreached are the members that it does not reach, and why. RefusedHandshakes counts connections
	// of hosts without a key of the group, RefusedStreams those that spoke for somebody else, and
	// Malformed messages that could not be read.
	Unreached         []Unreached `json:"unreached"`
	RefusedHandshakes uint64      `json:"refused_handshakes"`
	RefusedStreams    uint64      `json:"refused_streams"`
	Malformed         uint64      `json:"malformed"`
	// UncheckedSignatures are those that it did not check, as their peer had sent too many.
	UncheckedSignatures uint64 `json:"unchecked_signatures"`
	Protocol            string `json:"protocol"`
	Service             string `json:"service"`
	Disk                string `json:"disk"`
	UptimeSeconds       int64  `json:"uptime_seconds"`
	Error               string `json:"error,omitempty"` // why it is unreachable
}

// An Unreached is a member that a replica does not reach.
type Unreached struct {
	ID    protocol.ID `json:"id"`
	Error string      `json:"error"`
}

// The roles of a Status.
const (
	Primary     = "primary"
	Backup      = "backup"
	ViewChange  = "view change" // it has given the view before up, and waits for this one
	Outside     = "outside"     // it is no member, or has not the member's key
	Unreachable = "unreachable" // it did not answer
)

// Status tells how the replica is.
func (r *Replica) Status(ctx context.Context) (Status, error) {
	got := make(chan bft.Standing, 1)
	l := r.life.Load()
	ref, err := l.asking.Add(func(s bft.Standing) { got <- s })
	if err != nil {
		return Status{}, err
	}
	if err := l.node.Deliver(ctx, standingWanted{ref}); err != nil {
		l.asking.Forget(ref)
		return Status{}, err
	}
	select {
	case s := <-got:
		return r.describe(s), nil
	case <-ctx.Done():
		l.asking.Forget(ref)
		return Status{}, context.Cause(ctx)
	}
}

func (r *Replica) describe(s bft.Standing) Status {
	g, l := r.cfg.group, r.life.Load()
	primary := l.members.Primary(s.View).ID
	out := Status{
		Replica: r.cfg.ID, Role: Backup, Epoch: l.members.Epoch, View: bft.View(s.View.Turn()), Primary: primary,
		Stable: s.Stable, High: s.High, Committed: s.Committed, Executed: s.Executed, Proposed: s.Top,
		Transfers: s.Transfers, RefusedParts: s.Refused, Repairs: s.Repairs, Caught: s.Caught, Unreached: []Unreached{},
		Protocol: g.proto.Name, Service: g.Service, Disk: l.node.Disk(),
		UptimeSeconds: int64(time.Since(r.started) / time.Second),
	}
	switch {
	case !s.Member:
		out.Role = Outside
	case !s.Active:
		out.Role = ViewChange
	case primary == r.cfg.ID:
		out.Role = Primary
	}
	h := l.host.Stats()
	out.RefusedHandshakes, out.RefusedStreams = h.Network.RefusedHandshakes, h.Network.RefusedStreams
	out.UncheckedSignatures = l.codec.unchecked.Load()
	for _, n := range h.Nodes {
		out.Malformed += n.Malformed
	}
	for _, p := range h.Network.Peers {
		if p.State != transport.Up && p.Err != nil {
			out.Unreached = append(out.Unreached, Unreached{p.ID, p.Failure()})
		}
	}
	return out
}

// onStatus answers questions of clients. It is called by the status node's goroutine, and does not
// wait.
func (r *Replica) onStatus(msg statusMessage) {
	m, ok := msg.(asked)
	if !ok {
		return
	}
	l := r.life.Load()
	ref, err := l.asking.Add(func(s bft.Standing) {
		body, err := json.Marshal(r.describe(s))
		if err == nil {
			err = l.status.TryDeliver(answered{m.from, answer{m.number, body}})
		}
		if err != nil {
			r.log.Warn("replica: a question about its status was not answered", "from", m.from, "err", plainerr.Text(err))
		}
	})
	if err != nil {
		return // there are too many questions; the client asks again
	}
	if err := l.node.TryDeliver(standingWanted{ref}); err != nil {
		l.asking.Forget(ref)
	}
}
