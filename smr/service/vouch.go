package service

import (
	"slices"
	"sync"

	"github.com/foresay/foresay/host"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// hostBeats is a node by which the hosts of all members say that they are there, once for all
// groups that they share. The groups' replicas ask it about each other.
type hostBeats struct {
	self protocol.ID

	mu      sync.Mutex
	beats   *kit.HostBeats
	members []protocol.ID
}

// addHostBeats adds the node, if there are several groups: with one it would only add to what the
// group's own leader says.
func (r *Replica) addHostBeats() error {
	if r.cfg.count() == 1 {
		return nil
	}
	r.beats = &hostBeats{self: r.cfg.ID, beats: kit.NewHostBeats(r.cfg.roundTrip)}
	for _, m := range r.cfg.Members {
		r.beats.members = append(r.beats.members, m.ID)
	}
	_, err := host.Add(r.host, host.Spec[smr.Message]{Group: hostGroup, ID: r.cfg.ID, Node: r.beats,
		Codec: r.cfg.proto.Codec})
	return err
}

// vouch is what replicas ask; nil if hosts do not beat.
func (h *hostBeats) vouch() func(protocol.ID) (smr.Vouched, bool) {
	if h == nil {
		return nil
	}
	return func(id protocol.ID) (smr.Vouched, bool) {
		h.mu.Lock()
		defer h.mu.Unlock()
		return h.beats.Vouch(id)
	}
}

// know takes the members of all groups.
func (h *hostBeats) know(members []smr.Member) {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.members = nil
	for _, m := range members {
		h.members = append(h.members, m.ID)
	}
}

// Start is part of protocol.Node.
func (h *hostBeats) Start(env *protocol.Env[smr.Message], _ []protocol.Record[smr.Message]) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.beats.Start(env)
}

// Receive is part of protocol.Node.
func (h *hostBeats) Receive(env *protocol.Env[smr.Message], from protocol.ID, msg smr.Message) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if m, ok := msg.(kit.HostBeat); ok && slices.Contains(h.members, from) {
		h.beats.Receive(env.Now, from, m)
	}
}

// Expire is part of protocol.Node.
func (h *hostBeats) Expire(env *protocol.Env[smr.Message], _ protocol.Timer) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.beats.Beat(env, h.self, h.members)
}
