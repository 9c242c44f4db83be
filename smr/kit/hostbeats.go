package kit

import (
	"cmp"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
)

// HostBeat says that a host is there.
type HostBeat struct{ Run uint64 }

// HostBeats are the beats of a host: it says to the hosts of all members that it is there, and
// notes whom it hears. It is the core of a node of its own, whose timer has the name HostBeatTimer.
type HostBeats struct {
	every time.Duration
	own   uint64
	heard map[protocol.ID]smr.Vouched
}

// HostBeatTimer is the timer of HostBeats.
type HostBeatTimer struct{}

// NewHostBeats returns the beats of a host of replicas that are configured with a round trip. 0 is
// 100 ms.
func NewHostBeats(roundTrip time.Duration) *HostBeats {
	return &HostBeats{every: max(cmp.Or(roundTrip, smr.DefaultRoundTrip)/2, time.Millisecond),
		heard: map[protocol.ID]smr.Vouched{}}
}

// Start begins to beat.
func (h *HostBeats) Start(env *protocol.Env[smr.Message]) {
	h.own = max(env.Rand.Uint64(), 1)
	env.After(0, HostBeatTimer{})
}

// Beat sends a beat to the other members, and sets the timer for the next one.
func (h *HostBeats) Beat(env *protocol.Env[smr.Message], self protocol.ID, members []protocol.ID) {
	h.heard[self] = smr.Vouched{Run: h.own, At: env.Now}
	for _, id := range members {
		if id != self {
			env.SendAhead(id, HostBeat{h.own})
		}
	}
	env.After(untilBeat(env.Now, h.every), HostBeatTimer{})
}

// Receive notes a beat of another host.
func (h *HostBeats) Receive(now time.Duration, from protocol.ID, m HostBeat) {
	h.heard[from] = smr.Vouched{Run: m.Run, At: now}
}

// Vouch returns what is known of a host.
func (h *HostBeats) Vouch(id protocol.ID) (smr.Vouched, bool) {
	v, ok := h.heard[id]
	return v, ok
}
