package transport

import (
	"context"
	"crypto/ed25519"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync/atomic"
	"time"

	"github.com/foresay/foresay/protocol"
)

// Config is what a Transport is made from. The zero value of a field that is not required is its
// default.
type Config struct {
	// Cluster is the name of the cluster. Hosts of different clusters do not talk. Required.
	Cluster string
	// Explain returns what a host of a cluster with another name is told of why it is refused, nil or
	// "" for the two names.
	Explain func(cluster string) string
	// IDs are the members that this host is. None for a host of clients.
	IDs []protocol.ID
	// FirstClient is the lowest ID of a client, the same in the whole cluster. 0 is 65536.
	FirstClient protocol.ID

	// TLS has this host's certificate, and the authority of the others' as RootCAs and ClientCAs.
	// See the package documentation for the names that certificates have. Versions before TLS 1.3
	// are not spoken.
	TLS *tls.Config
	// Keys are those of the members and clients: whoever speaks for one proves its key, whatever the
	// certificate says and whoever signed it, and TLS needs no authority. [Pinned] makes such a
	// configuration. nil: certificates have names.
	Keys map[protocol.ID]ed25519.PublicKey
	// Anybody has a host with Keys take any host for the member that it dials: for messages that prove
	// themselves. Others still go by the key of this host.
	Anybody bool
	// CertifiedAs returns the member in whose name the host of a member has its certificate: a member
	// that a host was given later need not be named there, if all hosts agree whose it is. nil: each
	// goes by its own name.
	CertifiedAs func(protocol.ID) protocol.ID
	// Insecure allows TLS to be nil: anybody who reaches the host is then whoever it says.
	Insecure bool

	// Dial connects to a member's address. nil is TCP.
	Dial func(ctx context.Context, address string) (net.Conn, error)

	// QueueMessages and QueueBytes bound what waits to be sent to one peer; what is sent to a full
	// queue is lost. 0 is 65536 and 16 MiB.
	QueueMessages int
	QueueBytes    int
	// MaxMessageBytes bounds one message. 0 is 4 MiB.
	MaxMessageBytes int
	// MaxStreams bounds the streams that this host accepts. 0 is 4096.
	MaxStreams int

	// HandshakeTimeout bounds the time in which a connection is made and welcomed. 0 is 5 s.
	HandshakeTimeout time.Duration
	// MinBackoff and MaxBackoff bound the time between two attempts to reach a member. It grows by
	// half with each, and ends when the member is heard. 0 is 50 ms and 2 s.
	MinBackoff time.Duration
	MaxBackoff time.Duration
	// MaxAge is how old a message may be that waits for an unreachable member. 0 is 1 s.
	MaxAge time.Duration
	// Keepalive is how long a connection may be silent until it is probed; 5 s later it is given
	// up. 0 is 10 s, which is also the least.
	Keepalive time.Duration
	// DrainTimeout bounds the time in which a transport that ends sends what is queued. 0 is 1 s.
	DrainTimeout time.Duration

	// Logger gets connections made, lost and refused. nil is none.
	Logger *slog.Logger

	pinned *atomic.Pointer[map[protocol.ID]ed25519.PublicKey] // Keys, or others since; nil before New
}

const (
	// DefaultQueueBytes is Config's QueueBytes if that is 0.
	DefaultQueueBytes = 16 << 20

	defaultFirstClient = 1 << 16
	// maxFrame is how many bytes of small messages travel together.
	maxFrame = 128 << 10
	// maxHeaderBytes is more than what stands before one message in a frame.
	maxHeaderBytes = 32
	// windowBytes is what gRPC lets a peer send ahead: enough for 400 Mbit/s over 80 ms.
	windowBytes = 4 << 20
	// maxSendersPerStream bounds the nodes that are heard on one stream.
	maxSendersPerStream = 4096
	// maxOwners bounds the pairs of sender and receiver of which it is known over which streams
	// they talk.
	maxOwners = 1 << 18
	// maxParked bounds the ended streams of which it is known what arrived last.
	maxParked = 4096
	// minKeepalive is what gRPC allows a client at least.
	minKeepalive = 10 * time.Second
	// keepaliveTimeout is how long a probe may stay without an answer.
	keepaliveTimeout = 5 * time.Second
)

// withDefaults returns a valid configuration without zero values, or says what is wrong.
func (c Config) withDefaults() (Config, error) {
	if c.Cluster == "" {
		return c, errors.New("transport: Config.Cluster is empty")
	}
	if len(c.Cluster) > 255 {
		return c, fmt.Errorf("transport: Config.Cluster has %d bytes, more than 255", len(c.Cluster))
	}
	if c.TLS == nil && !c.Insecure {
		return c, errors.New("transport: Config.TLS is nil and Config.Insecure is not set")
	}
	if c.TLS != nil && c.Insecure {
		return c, errors.New("transport: Config.TLS and Config.Insecure are both set")
	}
	if c.Keys != nil {
		if err := c.checkKeys(); err != nil {
			return c, err
		}
		c.pinned = new(atomic.Pointer[map[protocol.ID]ed25519.PublicKey])
		c.pinned.Store(&c.Keys)
	}
	if c.TLS != nil && c.Keys == nil && (c.TLS.RootCAs == nil || c.TLS.ClientCAs == nil) {
		return c, errors.New("transport: Config.TLS lacks RootCAs or ClientCAs: the authorities of this machine are not " +
			"the cluster's")
	}
	for name, p := range map[string]*int{
		"QueueMessages": &c.QueueMessages, "QueueBytes": &c.QueueBytes, "MaxMessageBytes": &c.MaxMessageBytes,
		"MaxStreams": &c.MaxStreams,
	} {
		if *p < 0 {
			return c, fmt.Errorf("transport: Config.%s is %d, less than 0", name, *p)
		}
	}
	orInt(&c.QueueMessages, 65536)
	orInt(&c.QueueBytes, DefaultQueueBytes)
	orInt(&c.MaxMessageBytes, 4<<20)
	orInt(&c.MaxStreams, 4096)
	if c.FirstClient == 0 {
		c.FirstClient = defaultFirstClient
	}
	for _, id := range c.IDs {
		if id == protocol.App || id >= c.FirstClient {
			return c, fmt.Errorf("transport: Config.IDs has %d, which is no member's ID (1 to %d)", id, c.FirstClient-1)
		}
	}
	c.IDs = slices.Clone(c.IDs)
	return c.withTimes()
}

func (c Config) withTimes() (Config, error) {
	for name, p := range map[string]*time.Duration{
		"HandshakeTimeout": &c.HandshakeTimeout, "MinBackoff": &c.MinBackoff, "MaxBackoff": &c.MaxBackoff,
		"MaxAge":    &c.MaxAge,
		"Keepalive": &c.Keepalive, "DrainTimeout": &c.DrainTimeout,
	} {
		if *p < 0 {
			return c, fmt.Errorf("transport: Config.%s is %v, less than 0", name, *p)
		}
	}
	orTime(&c.HandshakeTimeout, 5*time.Second)
	orTime(&c.MinBackoff, 50*time.Millisecond)
	orTime(&c.MaxBackoff, 2*time.Second)
	c.MaxBackoff = max(c.MaxBackoff, c.MinBackoff)
	orTime(&c.MaxAge, time.Second)
	c.Keepalive = max(c.Keepalive, minKeepalive)
	orTime(&c.DrainTimeout, time.Second)
	if c.Dial == nil {
		c.Dial = func(ctx context.Context, address string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", address)
		}
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c, nil
}

func orInt(p *int, preset int) {
	if *p == 0 {
		*p = preset
	}
}

func orTime(p *time.Duration, preset time.Duration) {
	if *p == 0 {
		*p = preset
	}
}

// A Group is one replicated service, or one partition of it, among those that share hosts.
type Group uint32

// An Addr says which node is meant.
type Addr struct {
	Group Group
	ID    protocol.ID
}

func (a Addr) String() string { return fmt.Sprintf("node %d of group %d", a.ID, a.Group) }
