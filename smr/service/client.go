package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/foresay/foresay/host"
	"github.com/foresay/foresay/internal/callers"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/quorum"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/client"
	"github.com/foresay/foresay/smr/kv"
	"github.com/foresay/foresay/transport"
)

// ClientOptions are what a client takes beside its file. The zero value is right for a process of
// its own.
type ClientOptions struct {
	Logger *slog.Logger // nil: none
	// Dial connects to a member's address. nil is TCP.
	Dial func(ctx context.Context, address string) (net.Conn, error)
	// Nearest is the member to ask first, 0 for any.
	Nearest protocol.ID

	member bool // the client belongs to a replica, and has its certificate
}

// A Client makes calls to the service: Get, Put and the other methods with keys and values,
// Propose, Execute and Read with commands that package kv encodes. If the service has several
// groups, each call goes to the one that has the key. Its methods may be called concurrently.
//
// What their errors mean is that of package client: a [*client.RejectedError] says that nothing
// happened, nor will; a [*client.UnknownError] that a write may have happened, or may yet, once.
type Client struct {
	cfg    *ClientConfig
	host   *host.Host
	groups []*groupClient
	status *host.Node[statusMessage]
	stop   context.CancelFunc
	ended  chan struct{} // closed when the host has stopped
	err    error         // why it did, if it was not asked to; after ended

	mu       sync.Mutex
	members  map[protocol.ID]string // where the members are that are known
	asking   callers.Table[told]
	lookouts callers.Table[heard]
	number   uint64 // of question 0, and lookout 0: at random, as answers to an earlier client may still come
}

// Dial returns a client of the service that cfg describes. It returns at once: replicas are reached
// in the background, and calls wait for them. They fail with a [*client.RejectedError] as long as
// replicas refuse to talk with this client, because of its certificates, cluster or protocol, and
// none has ever talked with it. The client must be closed.
func Dial(cfg *ClientConfig, o ClientOptions) (*Client, error) {
	c, err := newClient(cfg, o)
	if err != nil {
		return nil, err
	}
	running, stop := context.WithCancel(context.Background())
	c.stop, c.ended = stop, make(chan struct{})
	go func() {
		defer close(c.ended)
		var watch sync.WaitGroup
		watch.Go(func() { c.watchRefusals(running) })
		watch.Go(func() { c.followMembers(running) })
		defer watch.Wait()
		defer stop()
		if err := c.host.Run(running); err != nil {
			c.err = fmt.Errorf("client: %w", err)
		}
		c.endCalls(c.err)
	}()
	return c, nil
}

// Close ends the client. Calls under way return an error, with an unknown outcome if they are
// writes. It returns why the client ended before it was closed, if it did.
func (c *Client) Close() error {
	c.endCalls(nil)
	c.stop()
	<-c.ended
	return c.err
}

// endCalls ends the calls of all groups.
func (c *Client) endCalls(err error) {
	for _, g := range c.groups {
		g.Client.Close(err)
	}
	c.lookouts.Close(errors.New("the client is closed"), func(uint64) heard { return heard{} })
}

// watchRefusals gives up calls if nobody talks with this client, until somebody does: they would
// wait for what is configured wrongly.
func (c *Client) watchRefusals(ctx context.Context) {
	look := time.NewTicker(refusalPause)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-look.C:
		}
		if c.Reached() {
			return
		}
		if err := c.Refused(); err != nil {
			for _, g := range c.groups {
				g.Interrupt(ctx, err)
			}
		}
	}
}

// refusalPause is the time between two looks of watchRefusals.
const refusalPause = 20 * time.Millisecond

// Refused returns why no member takes this client, if all were tried and one at least answered that
// the two do not belong together: another attempt would end in the same way. It is nil otherwise.
func (c *Client) Refused() error { return transport.Refused(c.host.Stats().Network.Peers) }

// Reached reports whether any member has ever talked with this client.
func (c *Client) Reached() bool { return transport.Reached(c.host.Stats().Network.Peers) }

// WithClient runs a client while f runs, and returns what f does, or why the client ended before.
// The context of f ends with the client.
func WithClient(
	ctx context.Context, cfg *ClientConfig, o ClientOptions, f func(context.Context, *Client) error,
) (err error) {
	c, err := Dial(cfg, o)
	if err != nil {
		return err
	}
	running, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	go func() {
		<-c.ended
		stop(c.err)
	}()
	defer func() { err = errors.Join(err, c.Close()) }()
	return f(running, c)
}

func newClient(cfg *ClientConfig, o ClientOptions) (*Client, error) {
	fail := func(err error) (*Client, error) { return nil, fmt.Errorf("client: %w", err) }
	if cfg == nil {
		return fail(errors.New("there is no configuration"))
	}
	own := *cfg
	if err := own.Check(); err != nil {
		return fail(fmt.Errorf("config: %w", err))
	}
	cfg = &own
	tlsConfig, err := cfg.TLS.Load()
	if err != nil {
		return fail(err)
	}
	c := &Client{cfg: cfg, members: map[protocol.ID]string{}, number: rand.Uint64()}
	// Clients need no names of their own, only different ones.
	id := firstClient + protocol.ID(rand.Uint32N(uint32(transport.FirstMemberClient-firstClient)))
	if o.member {
		id = transport.FirstMemberClient + protocol.ID(rand.Uint32N(uint32(transport.FirstMemberClient)))
	}
	network := transport.Config{
		Cluster: clusterName(cfg.Cluster, cfg.Protocol, cfg.Recovery, cfg.Routing), FirstClient: firstClient,
		TLS: tlsConfig, Insecure: cfg.Insecure, Dial: o.Dial,
	}
	if err := network.CheckSender(id); err != nil {
		return fail(fmt.Errorf("this is no client's certificate: %w", err))
	}
	c.host, err = host.New(host.Config{Network: network, Logger: o.Logger})
	if err != nil {
		return fail(err)
	}
	for _, m := range cfg.Members {
		if err := c.meet(m); err != nil {
			return fail(err)
		}
	}
	for i := range cfg.count() {
		g, err := c.newGroup(i, id, o)
		if err != nil {
			return fail(err)
		}
		c.groups = append(c.groups, g)
	}
	c.status, err = host.Add(c.host, host.Spec[statusMessage]{Group: statusGroup, ID: id, Node: statusNode{},
		Codec: statusCodec(), App: c.onStatus})
	if err != nil {
		return fail(err)
	}
	return c, nil
}

// newGroup adds what makes calls to one group.
func (c *Client) newGroup(i int, id protocol.ID, o ClientOptions) (*groupClient, error) {
	cfg := c.cfg
	node, err := cfg.proto.NewClient(smr.ClientConfig{ID: id, Members: smrMembers(cfg.Members), RoundTrip: cfg.roundTrip,
		Nearest: o.Nearest})
	if err != nil {
		return nil, err
	}
	g := &groupClient{whole: c, number: i, of: cfg.count()}
	g.Client = client.New(func(ctx context.Context, msg smr.Message) error {
		node, err := g.node()
		if err != nil {
			return err
		}
		return node.Deliver(ctx, msg)
	})
	same := func(b []byte) ([]byte, error) { return b, nil }
	g.kv = client.Typed[[]byte, []byte, kv.Result]{
		Client: g.Client, Coding: client.Coding[[]byte, []byte, kv.Result]{Command: same, Query: same,
			Result: kv.DecodeResult},
	}
	g.node = sync.OnceValues(func() (*host.Node[smr.Message], error) {
		begun, err := host.Add(c.host, host.Spec[smr.Message]{
			Group: nodeGroup(i), ID: id, Node: node, Codec: cfg.proto.Codec, App: func(msg smr.Message) { c.onMessage(g, msg) },
		})
		if err == nil {
			g.begun.Store(begun)
			g.tellMembers()
		}
		return begun, err
	})
	if g.of == 1 {
		_, err = g.node() // the first call need not wait for a session
	}
	return g, err
}

// meet makes a member known.
func (c *Client) meet(m Member) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.members[m.ID] != "" {
		return nil // the file knows where it is
	}
	if err := c.host.SetPeer(m.ID, m.Address); err != nil {
		return err
	}
	c.members[m.ID] = m.Address
	return nil
}

// onMessage takes what the client node says. It is called by its goroutine, and does not wait.
func (c *Client) onMessage(g *groupClient, msg smr.Message) {
	if m, ok := msg.(smr.MembersChanged); ok {
		for _, member := range m.Members {
			// One without an address is asked about again when somebody names it.
			_ = c.meet(Member{member.ID, member.Address})
		}
		return
	}
	g.Receive(msg)
}

// Unreachable says which members this client does not reach, and why; "" if it reaches all.
func (c *Client) Unreachable() string { return transport.Unreached(c.host.Stats().Network.Peers) }

// Explain adds to the error of a call that nobody answered how each member stands with this client:
// not reached and why, silent, or connected. Other errors are returned as they are. The members are
// those of now, as far as the client has learned of them.
func (c *Client) Explain(err error) error {
	_, unknown := errors.AsType[*client.UnknownError](err)
	rejected, _ := errors.AsType[*client.RejectedError](err)
	if !unknown && (rejected == nil || !rejected.Unsent) {
		return err
	}
	peers := c.presentPeers()
	said := transport.Standing(peers, quorum.Majority(len(peers)))
	if said == "" || strings.Contains(err.Error(), said) {
		return err
	}
	return fmt.Errorf("%w (%s)", err, said)
}

// presentPeers returns how this client stands with the replicas that are members of any group. What
// its file names may have been replaced, and replicas that wait to be added are no members yet.
func (c *Client) presentPeers() []transport.PeerStats {
	present := map[protocol.ID]bool{}
	for _, g := range c.groups {
		members := g.members.Load()
		if members == nil {
			return c.host.Stats().Network.Peers // nobody has told yet
		}
		for _, m := range *members {
			present[m.ID] = true
		}
	}
	return slices.DeleteFunc(c.host.Stats().Network.Peers, func(p transport.PeerStats) bool { return !present[p.ID] })
}

// unreachable returns why this client does not reach a member, "" if it does, or has not tried to
// the end.
func (c *Client) unreachable() map[protocol.ID]string {
	out := map[protocol.ID]string{}
	for _, p := range c.host.Stats().Network.Peers {
		if p.Err != nil {
			out[p.ID] = p.Failure()
		}
	}
	return out
}

// statusRepeat is how long an answer about a replica's status is waited for before it is asked for
// again.
const statusRepeat = 300 * time.Millisecond
