package service

import (
	"context"
	"crypto/ed25519"
	"net"
	"time"

	"github.com/foresay/foresay/bft"
	"github.com/foresay/foresay/bft/kit"
	"github.com/foresay/foresay/host"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/quorum"
	"github.com/foresay/foresay/transport"
)

// How long a host waits when it reaches too few members until it asks whoever is there how epochs
// have ended, and how long for that.
const (
	learnAfter = 2 * time.Second
	learnFor   = 3 * time.Second
)

// learner is a node that asks members how epochs have ended. What they say proves itself, so it
// does not matter who they are.
type learner struct {
	to    []protocol.ID
	after bft.Epoch
}

// Start is part of protocol.Node, as are Receive and Expire.
func (n learner) Start(env *protocol.Env[bft.Message], _ []protocol.Record[bft.Message]) {
	for _, id := range n.to {
		env.Send(id, kit.LinksWanted{After: n.after})
	}
}

func (learner) Receive(env *protocol.Env[bft.Message], _ protocol.ID, msg bft.Message) {
	if m, ok := msg.(kit.Links); ok && len(m.Links) > 0 {
		env.Send(protocol.App, m)
	}
}

func (learner) Expire(*protocol.Env[bft.Message], protocol.Timer) {}

// asker is who wants to learn how epochs have ended.
type asker struct {
	group   *Group
	members *bft.Directory // that it knows
	id      protocol.ID    // a client's
	key     ed25519.PrivateKey
	dial    func(ctx context.Context, address string) (net.Conn, error)
}

// ask asks whoever is at the members' addresses, and hands over the first answer that proves
// another epoch. It gives up after a while, or if nobody talks with this host.
func (a asker) ask(ctx context.Context, take func(context.Context, kit.Links)) error {
	network, err := a.group.network(a.members, a.key)
	if err != nil {
		return err
	}
	network.Dial, network.Anybody = a.dial, true
	h, err := host.New(host.Config{Network: network})
	if err != nil {
		return err
	}
	ctx, stop := context.WithTimeout(ctx, learnFor)
	defer stop()
	n := learner{after: a.members.Epoch}
	for _, m := range a.members.Members {
		if err := h.SetPeer(m.ID, m.Address); err != nil {
			return err
		}
		n.to = append(n.to, m.ID)
	}
	said := make(chan kit.Links, 1)
	_, err = host.Add(h, host.Spec[bft.Message]{Group: nodeGroup, ID: a.id, Node: n,
		Codec: a.group.proto.Codec(a.group.scheme()), App: func(msg bft.Message) {
			select {
			case said <- msg.(kit.Links):
			default: // what another one has said is being looked at
			}
		}})
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- h.Run(ctx) }()
	look := time.NewTicker(refusalPause)
	defer look.Stop()
	for {
		select {
		case m := <-said:
			if _, ok := kit.Genesis(a.members).Next(&m.Links[0]); ok {
				take(ctx, m)
				stop()
			}
		case <-look.C:
			if transport.Refused(h.Stats().Network.Peers) != nil {
				stop()
			}
		case err := <-ended:
			return err
		}
	}
}

// alone reports whether a host reaches too few of the members: it may be that they have other keys.
func alone(peers []transport.PeerStats, members *bft.Directory, own int) bool {
	up := own
	for _, p := range peers {
		if p.State == transport.Up {
			up++
		}
	}
	return up < quorum.Byzantine(len(members.Members))
}

// learn asks how epochs have ended as long as the replica reaches too few members, by its next key
// if it has one, as its own may be nobody's any more.
func (r *Replica) learn(ctx context.Context, l *life) {
	stranded := func() bool { return alone(l.host.Stats().Network.Peers, l.members, 1) }
	whileAlone(ctx, nil, stranded, func() {
		next, err := r.cfg.readNextKey()
		for _, key := range []ed25519.PrivateKey{r.cfg.key, next} {
			if key == nil || err != nil {
				continue
			}
			a := asker{r.cfg.group, l.members, transport.FirstMemberClient + r.cfg.ID, key, r.o.Dial}
			err = a.ask(ctx, func(ctx context.Context, m kit.Links) {
				if err := l.node.Deliver(ctx, m); err != nil && ctx.Err() == nil {
					r.log.Warn("replica: the node does not take what it has learned", "err", err)
				}
			})
		}
		if err != nil && ctx.Err() == nil {
			r.log.Warn("replica: it could not ask how epochs have ended", "err", err)
		}
	})
}

// whileAlone does something again and again while a host is alone, until ctx ends; sooner if now
// has something.
func whileAlone(ctx context.Context, now <-chan struct{}, alone func() bool, do func()) {
	look := time.NewTicker(learnAfter)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-now:
		case <-look.C:
		}
		if alone() {
			do()
		}
	}
}
