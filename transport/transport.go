package transport

import (
	"context"
	crand "crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/foresay/foresay/protocol"
)

// A Transport connects the nodes of one host with those of others. Its methods may be called
// concurrently.
type Transport struct {
	cfg      Config
	instance uint64

	// Replaced as a whole when they change.
	ports  atomic.Pointer[map[Addr]*Port]
	routes atomic.Pointer[map[protocol.ID]*outbox]

	// For clients, who have no addresses.
	repliesMu sync.RWMutex
	replies   map[claimKey]*outbox
	// Clients that something was sent to while they were nowhere. They are told.
	missed     map[claimKey]bool
	missedMany bool // they were too many, some are forgotten

	// From which source each receiver last got a sender's messages.
	ownersMu   sync.Mutex
	owners     map[pair]uint64
	ownersLost bool // they were too many, some are forgotten

	epochs   atomic.Uint64
	sources  atomic.Uint64
	streams  atomic.Int64
	readers  sync.WaitGroup // goroutines of inbound streams
	draining chan struct{}

	received      atomic.Uint64
	undeliverable atomic.Uint64
	unroutable    atomic.Uint64
	oversized     atomic.Uint64
	gaps          atomic.Uint64
	refused       atomic.Uint64
	handshakes    atomic.Uint64

	mu      sync.Mutex
	ctx     context.Context // of Run; nil before it //tidy:ok links are started during Run
	running sync.WaitGroup  // links
	links   map[protocol.ID]*link
	resume  map[protocol.ID]uint64       // where the numbers of a link that is made later begin
	active  map[sourceKey]*seat          // with streams
	parked  *lru.Cache[sourceKey, *seat] // without
	claims  map[claimKey]*inbound
}

// New returns a transport that does nothing before Run.
func New(cfg Config) (*Transport, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	parked, err := lru.New[sourceKey, *seat](maxParked)
	if err != nil {
		return nil, fmt.Errorf("transport: %w", err)
	}
	var random [8]byte
	if _, err := crand.Read(random[:]); err != nil {
		return nil, fmt.Errorf("transport: %w", err)
	}
	t := &Transport{
		cfg: cfg, instance: binary.LittleEndian.Uint64(random[:]), draining: make(chan struct{}),
		links: make(map[protocol.ID]*link), resume: make(map[protocol.ID]uint64),
		active: make(map[sourceKey]*seat), parked: parked, claims: make(map[claimKey]*inbound),
		replies: make(map[claimKey]*outbox), missed: make(map[claimKey]bool), owners: make(map[pair]uint64),
	}
	t.ports.Store(&map[Addr]*Port{})
	t.routes.Store(&map[protocol.ID]*outbox{})
	return t, nil
}

// Open makes sink the place for what arrives for a node, and returns the port that the node sends
// through. It fails if the node has one.
func (t *Transport) Open(addr Addr, sink Sink) (*Port, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if addr.ID == protocol.App {
		return nil, errors.New("transport: open: the ID 0 is no node's")
	}
	old := *t.ports.Load()
	if old[addr] != nil {
		return nil, fmt.Errorf("transport: open: %v is open already", addr)
	}
	p := &Port{t: t, addr: addr, sink: sink}
	ports := maps.Clone(old)
	ports[addr] = p
	t.ports.Store(&ports)
	return p, nil
}

func (t *Transport) closePort(p *Port) {
	t.mu.Lock()
	defer t.mu.Unlock()
	ports := maps.Clone(*t.ports.Load())
	if ports[p.addr] == p {
		delete(ports, p.addr)
	}
	t.ports.Store(&ports)
}

// SetPeer says where a member is, and that this host may send to it. The address may change while
// the transport runs. Members that are this host are ignored.
func (t *Transport) SetPeer(id protocol.ID, address string) error {
	if id == protocol.App || id >= t.cfg.FirstClient {
		return fmt.Errorf("transport: set peer: %d is no member's ID (1 to %d)", id, t.cfg.FirstClient-1)
	}
	if address == "" {
		return fmt.Errorf("transport: set peer: the address of member %d is empty", id)
	}
	for _, own := range t.cfg.IDs {
		if own == id {
			return nil
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if l := t.links[id]; l != nil {
		l.move(address)
		return nil
	}
	l := &link{t: t, to: id, address: address, out: newOutbox(&t.cfg, t.resume[id]), state: Waiting,
		again: make(chan struct{}, 1)}
	delete(t.resume, id)
	t.links[id] = l
	t.setRoute(id, l.out)
	if t.ctx != nil {
		t.startLink(l)
	}
	return nil
}

// RemovePeer says that a member is gone: its stream ends, and what is sent to it is lost.
func (t *Transport) RemovePeer(id protocol.ID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.links[id]
	if l == nil {
		return
	}
	delete(t.links, id)
	t.setRoute(id, nil)
	t.resume[id] = l.out.number() // what it still sends, if it does, comes over another stream
	if l.stop != nil {
		l.stop()
	}
}

// startLink runs a link. t.mu is held.
func (t *Transport) startLink(l *link) {
	select {
	case <-t.draining:
		return
	default:
	}
	ctx, stop := context.WithCancel(t.ctx)
	l.stop = stop
	t.running.Go(func() {
		defer stop()
		l.run(ctx)
	})
}

// setRoute changes where messages to a node go; nil is nowhere. t.mu is held.
func (t *Transport) setRoute(id protocol.ID, o *outbox) {
	routes := maps.Clone(*t.routes.Load())
	if o == nil {
		delete(routes, id)
	} else {
		routes[id] = o
	}
	t.routes.Store(&routes)
}

// heard says that a node's first messages came over a new stream.
func (t *Transport) heard(id protocol.ID) {
	t.mu.Lock()
	l := t.links[id]
	t.mu.Unlock()
	if l != nil {
		l.heard()
	}
}

func (t *Transport) port(a Addr) *Port { return (*t.ports.Load())[a] }

// route returns where messages of a node here to one elsewhere go.
func (t *Transport) route(from, to protocol.ID) *outbox {
	if to < t.cfg.FirstClient {
		return (*t.routes.Load())[to]
	}
	t.repliesMu.RLock()
	defer t.repliesMu.RUnlock()
	return t.replies[claimKey{to, from}]
}

// unrouted counts a message to a node that is nowhere.
func (t *Transport) unrouted(from, to protocol.ID) {
	t.unroutable.Add(1)
	if to >= t.cfg.FirstClient {
		t.miss(claimKey{to, from})
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if l := t.links[to]; l != nil {
		l.out.lose() // it has just appeared
		return
	}
	// The link that is made once begins with a gap.
	if n, ok := t.resume[to]; ok || len(t.resume) < maxParked {
		t.resume[to] = n + 1
	}
}

// miss notes that a client missed a message.
func (t *Transport) miss(key claimKey) {
	t.repliesMu.Lock()
	defer t.repliesMu.Unlock()
	if o := t.replies[key]; o != nil {
		o.lose() // it has just appeared
		return
	}
	if len(t.missed) >= maxOwners {
		clear(t.missed)
		t.missedMany = true
	}
	t.missed[key] = true
}

func (t *Transport) tooLarge(from Addr, to protocol.ID, sizeBytes int) {
	if n := t.oversized.Add(1); n&(n-1) != 0 {
		return // said before; twice as many are news
	}
	t.cfg.Logger.Error("transport: a message is too large and was not sent", "from", from.String(), "to", to,
		"bytes", sizeBytes, "limit", t.cfg.MaxMessageBytes)
}
