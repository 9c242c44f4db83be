package host

import (
	"context"
	"crypto/ed25519"
	crand "crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"sync"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/transport"
)

// Config is what a Host is made from. The zero value of an optional field is its default.
type Config struct {
	// Network says who this host is and how it talks to others.
	Network transport.Config
	// Listener is where other hosts and clients come in. nil: nowhere, as for a host of clients.
	// Run closes it.
	Listener net.Listener
	// Clock is the time that all nodes here are told, as protocol.Env.Now. Timers do not go by it, so
	// it may jump. nil is the time since 1970 when the host was made, and from then on what the
	// machine's steady clock counts: it does not jump when the machine's time is set. TimeOfDay does.
	Clock func() time.Duration
	// Seed is for the nodes' random numbers. 0 is a new one.
	Seed uint64
	// StopTimeout bounds how long Run, when it ends, waits for the disk. 0 is 10 s.
	StopTimeout time.Duration
	// Check has each node that is a protocol.Checked look for broken invariants after each call,
	// and stop at one.
	Check bool
	// Logger gets what goes wrong. nil is none. Network.Logger is this one unless it is set.
	Logger *slog.Logger
}

// A Host runs nodes. Its methods may be called concurrently.
type Host struct {
	cfg       Config
	steady    func() time.Duration // what timers go by
	transport *transport.Transport
	stopping  chan struct{}
	failed    chan error // the first failure

	mu      sync.Mutex
	running bool // Run has begun
	stopped bool // no more nodes
	nodes   []member
	wg      sync.WaitGroup // nodes
}

// member is a Node[M], whatever M is.
type member interface {
	run(stopping <-chan struct{}) error
	abandon()
	Stats() NodeStats
}

// New returns a host without nodes, which does nothing before Run.
func New(cfg Config) (*Host, error) {
	if cfg.StopTimeout < 0 {
		return nil, fmt.Errorf("host: Config.StopTimeout is %v, less than 0", cfg.StopTimeout)
	}
	if cfg.StopTimeout == 0 {
		cfg.StopTimeout = 10 * time.Second
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Network.Logger == nil {
		cfg.Network.Logger = cfg.Logger
	}
	steady := steadyClock()
	if cfg.Clock == nil {
		cfg.Clock = steady
	}
	for cfg.Seed == 0 {
		var b [8]byte
		if _, err := crand.Read(b[:]); err != nil {
			return nil, fmt.Errorf("host: %w", err)
		}
		cfg.Seed = binary.LittleEndian.Uint64(b[:])
	}
	t, err := transport.New(cfg.Network)
	if err != nil {
		return nil, fmt.Errorf("host: %w", err)
	}
	return &Host{cfg: cfg, steady: steady, transport: t, stopping: make(chan struct{}), failed: make(chan error, 1)}, nil
}

// TimeOfDay is a Config.Clock for nodes to which the time of day matters: the time since 1970, as
// the machine has it. It jumps when the machine's time is set.
func TimeOfDay() time.Duration { return time.Duration(time.Now().UnixNano()) }

func steadyClock() func() time.Duration {
	start := time.Now()
	base := time.Duration(start.UnixNano())
	return func() time.Duration { return base + time.Since(start) }
}

// Now returns the time that the nodes are told.
func (h *Host) Now() time.Duration { return h.cfg.Clock() }

// SetPeer says where a member is. The address may change while the host runs. Members that are this
// host are ignored.
func (h *Host) SetPeer(id protocol.ID, address string) error { return h.transport.SetPeer(id, address) }

// RemovePeer says that a member is gone.
func (h *Host) RemovePeer(id protocol.ID) { h.transport.RemovePeer(id) }

// SetKeys puts other keys in the place of those of Config.Network, which must have had some. Who is
// connected stays so until RemovePeer.
func (h *Host) SetKeys(keys map[protocol.ID]ed25519.PublicKey) { h.transport.SetKeys(keys) }

// random returns a source of random numbers of a node's own.
func (h *Host) random(a transport.Addr) *rand.Rand {
	return rand.New(rand.NewPCG(h.cfg.Seed, uint64(a.Group)<<32|uint64(a.ID)))
}

// enlist makes a node one of the host's.
func (h *Host) enlist(m member) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.stopped {
		return ErrStopped
	}
	h.nodes = append(h.nodes, m)
	if h.running {
		h.start(m)
	}
	return nil
}

// start runs a node. h.mu is held.
func (h *Host) start(m member) {
	h.wg.Go(func() {
		if err := m.run(h.stopping); err != nil {
			h.cfg.Logger.Error("host: a node has stopped", "err", err)
			select {
			case h.failed <- err:
			default: // the first one stops the host
			}
		}
	})
}

// Run runs the nodes until ctx ends. It then takes no more inputs, waits until what the nodes wrote
// is durable, sends what waited for that, closes all streams and returns nil. The error is that of
// the first node that failed, or of the listener; all is stopped likewise then. A host runs once.
func (h *Host) Run(ctx context.Context) error {
	network, hangUp := context.WithCancel(context.WithoutCancel(ctx))
	defer hangUp()
	if err := h.begin(); err != nil {
		return err
	}
	down := make(chan error, 1)
	go func() { down <- h.transport.Run(network, h.cfg.Listener) }()
	var err error
	ended := false
	select {
	case <-ctx.Done():
	case err = <-h.failed:
	case err = <-down:
		ended = true
	}
	h.mu.Lock()
	h.stopped = true
	h.mu.Unlock()
	close(h.stopping)
	h.wg.Wait()
	hangUp()
	if !ended {
		err = errors.Join(err, <-down)
	}
	select {
	case e := <-h.failed:
		err = errors.Join(err, e)
	default:
	}
	return err
}

func (h *Host) begin() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.running {
		return errors.New("host: run: it ran already")
	}
	h.running = true
	for _, m := range h.nodes {
		h.start(m)
	}
	return nil
}

// Stats returns the present figures.
func (h *Host) Stats() Stats {
	h.mu.Lock()
	nodes := h.nodes
	h.mu.Unlock()
	s := Stats{Network: h.transport.Stats()}
	for _, m := range nodes {
		s.Nodes = append(s.Nodes, m.Stats())
	}
	return s
}
