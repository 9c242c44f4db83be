package transport

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/foresay/foresay/protocol"
)

// Stats is what a transport has done since it was made.
type Stats struct {
	Peers []PeerStats // in order of their IDs
	// Streams is how many streams of other hosts are open, Clients how many clients are heard on
	// them, counted for each member here.
	Streams int
	Clients int
	// Received counts messages that arrived, Undeliverable those among them whose node is not here.
	Received      uint64
	Undeliverable uint64
	// Gaps is how often it was noticed that messages to this host were lost.
	Gaps uint64
	// Unroutable counts messages to nodes that are nowhere, Oversized those that were too large.
	// Both were lost.
	Unroutable uint64
	Oversized  uint64
	// RefusedStreams counts streams of others that ended with an error of this host's,
	// RefusedHandshakes connections without valid certificate.
	RefusedStreams    uint64
	RefusedHandshakes uint64
}

// PeerStats is how this host stands with one member.
type PeerStats struct {
	ID       protocol.ID
	Address  string
	State    LinkState
	Err      error  // why the last attempt failed or the last stream ended; nil while the state is Up
	Refused  bool   // Err says that the two hosts do not belong together: by certificate, cluster, ID or version
	Connects uint64 // how often the member has welcomed this host

	QueuedMessages int
	QueuedBytes    int
	SentFrames     uint64
	SentMessages   uint64
	SentBytes      uint64
	Dropped        uint64 // messages that were lost here
}

// Stats returns the present figures.
func (t *Transport) Stats() Stats {
	t.mu.Lock()
	links := make([]*link, 0, len(t.links))
	for _, l := range t.links {
		links = append(links, l)
	}
	t.mu.Unlock()
	t.repliesMu.RLock()
	clients := len(t.replies)
	t.repliesMu.RUnlock()
	slices.SortFunc(links, func(a, b *link) int { return cmp.Compare(a.to, b.to) })
	s := Stats{
		Streams: int(t.streams.Load()), Clients: clients,
		Received: t.received.Load(), Undeliverable: t.undeliverable.Load(), Gaps: t.gaps.Load(),
		Unroutable: t.unroutable.Load(), Oversized: t.oversized.Load(),
		RefusedStreams: t.refused.Load(), RefusedHandshakes: t.handshakes.Load(),
	}
	for _, l := range links {
		s.Peers = append(s.Peers, l.stats())
	}
	return s
}

// refusal reports whether an attempt failed because the hosts do not belong together, so that
// another one fails too until they are configured anew. gRPC makes a text of what TLS says.
func refusal(err error) bool {
	if err == nil {
		return false
	}
	text := err.Error()
	return errors.Is(err, errTLSOnly) || status.Code(err) == codes.FailedPrecondition ||
		strings.Contains(text, "handshake failed: tls: ") || strings.Contains(text, "remote error: tls: ")
}

func (l *link) stats() PeerStats {
	l.mu.Lock()
	p := PeerStats{ID: l.to, Address: l.address, State: l.state, Err: l.err, Refused: refusal(l.err), Connects: l.connects}
	l.mu.Unlock()
	l.out.mu.Lock()
	defer l.out.mu.Unlock()
	p.QueuedMessages, p.QueuedBytes, p.Dropped = l.out.messages, l.out.bytes, l.out.dropped
	p.SentFrames, p.SentMessages, p.SentBytes = l.out.sent.frames, l.out.sent.messages, l.out.sent.bytes
	return p
}
