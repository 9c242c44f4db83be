package service

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/foresay/foresay/bft"
	"github.com/foresay/foresay/bft/client"
	"github.com/foresay/foresay/bft/kit"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/quorum"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/transport"
)

// onMessage takes what the client's node says. It is called by the node's goroutine.
func (c *Client) onMessage(msg bft.Message) {
	if m, ok := msg.(bft.Turned); ok {
		c.turn(m.Directory)
		return
	}
	c.Client.Receive(msg)
}

// refusal is how far it is that nobody takes this client.
type refusal struct{ enough int64 } // askings, after which that is so

// refused returns why no member takes this client, if that is so though they were asked whether
// they have other keys now. As long as they are being asked it is nil.
func (c *Client) refused(r *refusal) error {
	err := transport.Refused(c.peers())
	switch asked := c.askings.Load(); {
	case err == nil:
		r.enough = 0
	case r.enough == 0:
		r.enough = asked + 1
		select {
		case c.askNow <- struct{}{}:
		default: // it is about to be done
		}
		return nil
	case asked < r.enough:
		return nil
	}
	return err
}

// turn goes by other members and keys from now on.
func (c *Client) turn(now *bft.Directory) {
	before := c.members.Swap(now)
	c.host.SetKeys(pins(now))
	for _, m := range before.Members {
		if !slices.Contains(now.Members, m) {
			c.host.RemovePeer(m.ID)
		}
	}
	for _, m := range now.Members {
		if err := c.host.SetPeer(m.ID, m.Address); err != nil {
			c.log.Error("client: a member cannot be reached", "member", m.ID, "err", err)
		}
	}
	c.log.Info("client: there are other members or keys", "epoch", now.Epoch)
}

// learn asks how epochs have ended as long as the client reaches too few members.
func (c *Client) learn(ctx context.Context) {
	stranded := func() bool { return alone(c.peers(), c.members.Load(), 0) }
	whileAlone(ctx, c.askNow, stranded, func() {
		defer c.askings.Add(1)
		a := asker{c.cfg.group, c.members.Load(), c.cfg.ID, c.cfg.key, c.dial}
		err := a.ask(ctx, func(ctx context.Context, m kit.Links) {
			if err := c.node.Deliver(ctx, m); err != nil && ctx.Err() == nil {
				c.log.Warn("client: the node does not take what it has learned", "err", err)
			}
			for c.members.Load() == a.members && ctx.Err() == nil { // until the node has
				time.Sleep(refusalPause)
			}
		})
		if err != nil && ctx.Err() == nil {
			c.log.Warn("client: it could not ask how epochs have ended", "err", err)
		}
	})
}

// Change has an administrator's client change the members. It returns when the change is ordered;
// the epoch that begins with it is the result's. A change that is refused is a RejectedError.
func (c *Client) Change(ctx context.Context, change bft.Change) (bft.Epoch, error) {
	r, err := c.Do(ctx, bft.Call{Command: change.Command(), Members: true}, nil)
	if err != nil {
		return 0, err
	}
	changed, err := bft.DecodeChanged(r.Value)
	if err == nil && changed.Refused != "" {
		err = &client.RejectedError{Kind: smr.Execute, Reason: changed.Refused}
	}
	return changed.Epoch, err
}

// Members returns the members as far as the client knows.
func (c *Client) Members() *bft.Directory { return c.members.Load() }

// outdated reports whether a member that does not lie says that it is in a later epoch than the
// client knows. If so the client asks about that.
func (c *Client) outdated(ctx context.Context, got map[protocol.ID]Status) bool {
	var epochs []uint64
	d := c.members.Load()
	for _, m := range d.Members {
		epochs = append(epochs, uint64(got[m.ID].Epoch))
	}
	if quorum.KthLargest(epochs, d.Witness()) <= uint64(d.Epoch) {
		return false
	}
	return c.node.Deliver(ctx, kit.LinksWanted{}) == nil
}

// epochPause is the time between two looks whether an epoch has begun.
const epochPause = 50 * time.Millisecond

// AwaitEpoch waits until a quorum of the members says that an epoch has begun. Until then those of
// the one before are needed, also who is removed by it.
func (c *Client) AwaitEpoch(ctx context.Context, e bft.Epoch) error {
	for {
		brief, cancel := context.WithTimeout(ctx, statusRepeat)
		statuses, err := c.Status(brief)
		cancel()
		if err != nil {
			return err
		}
		there := 0
		for _, s := range statuses {
			if s.Epoch >= e && s.Role != Unreachable {
				there++
			}
		}
		if d := c.members.Load(); d.Epoch >= e && there >= d.Quorum() {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the change is ordered, but %d of %d members are in epoch %d: %w", there, len(statuses), e,
				context.Cause(ctx))
		case <-time.After(epochPause):
		}
	}
}
