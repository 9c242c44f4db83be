package transport

import (
	"slices"

	"github.com/foresay/foresay/protocol"
)

// An Inbound is a message that arrived.
type Inbound struct {
	From    protocol.ID
	Payload []byte // the sink's during the call only
}

// A Sink takes what arrives for one node. Its methods are called concurrently, but those that
// concern one sender are not, and they must not wait: what a sink has no room for it loses.
type Sink interface {
	// Receive gets messages in their order. It keeps neither the slice nor the payloads.
	Receive(msgs []Inbound)
	// Broken says that messages from a node may have been lost since the last one that arrived.
	Broken(from protocol.ID)
}

// A Port is where a node sends. It is not for concurrent use.
type Port struct {
	t    *Transport
	addr Addr
	sink Sink

	dirty []*outbox // with messages of this port, and perhaps asleep
	local []localBatch
}

// A localBatch is what waits for a node of this host until Flush: one hand-over for all, as each
// wakes a goroutine.
type localBatch struct {
	to       protocol.ID
	ends     []int // of the messages
	payloads []byte
	msgs     []Inbound // an empty slice for Flush
}

// maxLocalBytes is how much memory for what is handed over in the host a port keeps for each node.
const maxLocalBytes = 64 << 10

// Send queues a message for a node, which may be lost. The payload is the caller's again when Send
// returns. Nothing leaves before Flush, or the queue's next turn.
func (p *Port) Send(to protocol.ID, payload []byte) { p.SendShared(to, payload, nil) }

// SendShared is Send for a payload into which refs belong. Their bytes are not copied, and must not
// be changed any more; the slice is the caller's again.
func (p *Port) SendShared(to protocol.ID, payload []byte, refs []protocol.Ref) {
	if p.t.port(Addr{p.addr.Group, to}) != nil {
		i := slices.IndexFunc(p.local, func(b localBatch) bool { return b.to == to })
		if i < 0 {
			i, p.local = len(p.local), append(p.local, localBatch{to: to})
		}
		b := &p.local[i]
		b.payloads = protocol.AppendJoined(b.payloads, payload, refs)
		b.ends = append(b.ends, len(b.payloads))
		return
	}
	o := p.t.route(p.addr.ID, to)
	switch {
	case o == nil:
		p.t.unrouted(p.addr.ID, to)
	case len(payload)+protocol.RefBytes(refs) > p.t.cfg.MaxMessageBytes:
		o.lose()
		p.t.tooLarge(p.addr, to, len(payload)+protocol.RefBytes(refs))
	case o.push(p, to, payload, refs):
		p.dirty = append(p.dirty, o)
	}
}

// Flush lets what was sent go.
func (p *Port) Flush() {
	for i, o := range p.dirty {
		o.rouse()
		p.dirty[i] = nil
	}
	p.dirty = p.dirty[:0]
	for i := range p.local {
		if b := &p.local[i]; len(b.ends) > 0 {
			p.handOver(b)
		}
	}
}

// handOver gives a node of this host what was sent to it, unless it has been closed meanwhile.
func (p *Port) handOver(b *localBatch) {
	start := 0
	for _, end := range b.ends {
		b.msgs = append(b.msgs, Inbound{p.addr.ID, b.payloads[start:end:end]})
		start = end
	}
	if q := p.t.port(Addr{p.addr.Group, b.to}); q != nil {
		q.sink.Receive(b.msgs)
	}
	clear(b.msgs)
	b.msgs, b.ends, b.payloads = b.msgs[:0], b.ends[:0], b.payloads[:0]
	if cap(b.payloads) > maxLocalBytes {
		b.payloads = nil
	}
}

// Close ends the port: what arrives for its node is lost.
func (p *Port) Close() {
	p.Flush()
	p.t.closePort(p)
}
