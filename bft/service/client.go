package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"github.com/foresay/foresay/bft"
	"github.com/foresay/foresay/bft/client"
	"github.com/foresay/foresay/control"
	"github.com/foresay/foresay/host"
	"github.com/foresay/foresay/internal/callers"
	"github.com/foresay/foresay/transport"
)

// ClientOptions are what a client takes beside its file. The zero value is right for a process of
// its own.
type ClientOptions struct {
	Logger *slog.Logger // nil: none
	// Dial connects to a member's address. nil is TCP.
	Dial func(ctx context.Context, address string) (net.Conn, error)
	// Ordered says that no client of the group makes reads that go around the order.
	Ordered bool
	// Mode and Predictors are those of client.Config, for calls in tasks.
	Mode       control.Mode
	Predictors []control.Predictor
}

// A Client makes calls to a group: those of package client, and questions about how its replicas
// are. Its methods may be called concurrently.
type Client struct {
	*client.Client
	cfg     *ClientConfig
	host    *host.Host
	node    *host.Node[bft.Message]
	status  *host.Node[statusMessage]
	asking  callers.Table[told]
	reached atomic.Bool // a member has talked with this client
	number  uint64      // of question 0: at random, as answers to an earlier client may still come
	stop    context.CancelFunc
	ended   chan struct{} // closed when the host has stopped
	err     error         // why it did, if it was not asked to; after ended
}

// Dial returns a client of the group that cfg, which ReadClientConfig has read, describes. It
// returns at once: replicas are reached in the background, and calls wait for them. Calls end with
// an error as long as all replicas refuse to talk with this client and none ever has. The client
// must be closed.
func Dial(cfg *ClientConfig, o ClientOptions) (*Client, error) {
	c, err := newClient(cfg, o)
	if err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	running, stop := context.WithCancel(context.Background())
	c.stop, c.ended = stop, make(chan struct{})
	go func() {
		defer close(c.ended)
		defer stop()
		if err := c.host.Run(running); err != nil {
			c.err = fmt.Errorf("client: %w", err)
		}
		c.Client.Close(c.err)
	}()
	return c, nil
}

func newClient(cfg *ClientConfig, o ClientOptions) (*Client, error) {
	if cfg == nil || cfg.group == nil {
		return nil, errors.New("there is no configuration that ReadClientConfig has read")
	}
	g := cfg.group
	node, err := g.proto.NewClient(bft.ClientConfig{
		ID: cfg.ID, Directory: g.directory, Scheme: g.scheme(), Signer: bft.NewSigner(cfg.key), RoundTrip: g.roundTrip,
		Ordered: o.Ordered, Session: bft.SessionID(time.Now().UnixMicro()), // the key's last process began before
	})
	if err != nil {
		return nil, err
	}
	network, err := g.network(cfg.key)
	if err != nil {
		return nil, err
	}
	network.Dial = o.Dial
	c := &Client{cfg: cfg, number: rand.Uint64()}
	if c.host, err = host.New(host.Config{Network: network, Logger: o.Logger}); err != nil {
		return nil, err
	}
	for _, m := range g.Members {
		if err := c.host.SetPeer(m.ID, m.Address); err != nil {
			return nil, err
		}
	}
	c.Client, err = client.New(client.Config{MaxBytes: MaxCommandBytes, Guard: c.guard, Mode: o.Mode,
		Predictors: o.Predictors,
		Deliver:    func(ctx context.Context, msg bft.Message) error { return c.node.Deliver(ctx, msg) }})
	if err != nil {
		return nil, err
	}
	c.node, err = host.Add(c.host, host.Spec[bft.Message]{
		Group: nodeGroup, ID: cfg.ID, Node: node, Codec: g.proto.Codec(g.scheme()), App: c.Client.Receive,
	})
	if err != nil {
		return nil, err
	}
	c.status, err = host.Add(c.host, host.Spec[statusMessage]{
		Group: statusGroup, ID: cfg.ID, Node: statusNode{}, Codec: statusCodec(), App: c.onStatus,
	})
	return c, err
}

// Close ends the client. Calls under way return an error, with an unknown outcome. It returns why
// the client ended before it was closed, if it did.
func (c *Client) Close() error {
	c.Client.Close(nil)
	c.stop()
	<-c.ended
	return c.err
}

// guard is client.Config.Guard: calls end as long as the group refuses this client.
func (c *Client) guard(ctx context.Context) (context.Context, context.CancelFunc) {
	if c.reached.Load() {
		return ctx, func() {}
	}
	if transport.Reached(c.peers()) {
		c.reached.Store(true)
	}
	ctx, stop := context.WithCancelCause(ctx)
	if !c.reached.Load() {
		go c.watchRefusals(ctx, stop)
	}
	return ctx, func() { stop(nil) }
}

// refusalPause is the time between two looks of watchRefusals.
const refusalPause = 20 * time.Millisecond

// watchRefusals gives a call up if nobody talks with this client, until somebody does: it would
// wait for what is configured wrongly.
func (c *Client) watchRefusals(ctx context.Context, stop context.CancelCauseFunc) {
	look := time.NewTicker(refusalPause)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-look.C:
		}
		if peers := c.peers(); transport.Reached(peers) {
			return
		} else if err := transport.Refused(peers); err != nil {
			stop(err)
		}
	}
}

func (c *Client) peers() []transport.PeerStats { return c.host.Stats().Network.Peers }

// Service returns the name of what the group replicates.
func (c *Client) Service() string { return c.cfg.group.Service }

// Reached reports whether any member has ever talked with this client.
func (c *Client) Reached() bool { return transport.Reached(c.peers()) }

// Refused returns why no member takes this client, if that is so, and another attempt would end in
// the same way.
func (c *Client) Refused() error { return transport.Refused(c.peers()) }

// Explain adds to the error of a call that nobody answered how each member stands with this client:
// not reached and why, silent, or connected. Other errors are returned as they are.
func (c *Client) Explain(err error) error {
	if _, unknown := errors.AsType[*client.UnknownError](err); !unknown {
		return err
	}
	peers := c.peers()
	said := transport.Standing(peers, c.cfg.group.directory.Quorum())
	if said == "" || strings.Contains(err.Error(), said) {
		return err
	}
	return fmt.Errorf("%w (%s)", err, said)
}

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
