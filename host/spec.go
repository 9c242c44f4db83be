package host

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/transport"
)

// A Spec is what a node of a host is made from. The zero value of an optional field is its default.
type Spec[M any] struct {
	Group transport.Group
	ID    protocol.ID
	Node  protocol.Node[M]
	Codec protocol.Codec[M]
	// Disk is what the node has written before, and where it writes. nil is a new Memory.
	Disk Disk
	// App gets what the node sends to protocol.App, in order. The node waits for it, so it must not
	// wait for anything itself. nil: nobody.
	App func(msg M)
	// Carry takes what the node sends to other nodes in place of the host's network. The node waits
	// for it, as for App. What these answer is handed to Arrive. nil: the network.
	Carry func(to protocol.ID, msg M)
	// Committed gets how long each commit to the disk took until it was durable. The disk waits for
	// it. nil: nobody.
	Committed func(took time.Duration)

	// QueueMessages and QueueBytes bound what the network has brought and the node has not looked
	// at; more is lost. 0 is 65536 and 64 MiB.
	QueueMessages int
	QueueBytes    int
	// QueueDeliveries bounds the same of the application's; Deliver waits for more. 0 is 4096.
	QueueDeliveries int
	// QueueHeld is how much of what the node wants to send may wait for the disk. At more, the node
	// is not given any input. 0 is 65536.
	QueueHeld int
}

func (s Spec[M]) withDefaults() (Spec[M], error) {
	switch {
	case s.ID == protocol.App:
		return s, errors.New("the ID 0 is no node's")
	case s.Node == nil:
		return s, errors.New("no Spec.Node")
	case s.Codec == nil:
		return s, errors.New("no Spec.Codec")
	}
	for _, q := range []struct {
		name   string
		value  *int
		preset int
	}{
		{"QueueMessages", &s.QueueMessages, 65536}, {"QueueBytes", &s.QueueBytes, 64 << 20},
		{"QueueDeliveries", &s.QueueDeliveries, 4096}, {"QueueHeld", &s.QueueHeld, 65536},
	} {
		if *q.value < 0 {
			return s, fmt.Errorf("the field %s is %d, less than 0", q.name, *q.value)
		}
		if *q.value == 0 {
			*q.value = q.preset
		}
	}
	if s.Disk == nil {
		s.Disk = NewMemory()
	}
	return s, nil
}

// Add makes a node of a host. It reads the disk's log, and fails if that cannot be read, or if the
// host has a node of this ID in the group. The node starts with Run, or at once if the host runs.
func Add[M any](h *Host, spec Spec[M]) (*Node[M], error) {
	addr := transport.Addr{Group: spec.Group, ID: spec.ID}
	fail := func(err error) (*Node[M], error) { return nil, fmt.Errorf("host: add %v: %w", addr, err) }
	spec, err := spec.withDefaults()
	if err != nil {
		return fail(err)
	}
	n := &Node[M]{spec: spec, addr: addr, clock: h.cfg.Clock, steady: h.steady, log: h.cfg.Logger,
		stopTimeout: h.cfg.StopTimeout, timers: newTimers()}
	for r, err := range spec.Disk.Records() {
		if err != nil {
			return fail(err)
		}
		msg, err := spec.Codec.Decode(r.Bytes)
		if err != nil {
			return fail(fmt.Errorf("record %d: %w", r.Index, err))
		}
		n.records = append(n.records, protocol.Record[M]{Index: r.Index, Msg: msg})
	}
	n.env = protocol.NewEnv[M](spec.Disk.Keys(), spec.Disk.NextIndex(), h.random(addr))
	n.linked, _ = spec.Node.(protocol.Linked[M])
	n.patient, _ = spec.Disk.(PatientDisk)
	n.sharing, _ = spec.Codec.(protocol.SharingCodec[M])
	if h.cfg.Check {
		n.checked, _ = spec.Node.(protocol.Checked)
	}
	n.inbox = inbox[M]{
		codec: spec.Codec, linked: n.linked != nil, maxMessages: spec.QueueMessages, maxBytes: spec.QueueBytes,
		room: semaphore.NewWeighted(int64(spec.QueueDeliveries)), wake: make(chan struct{}, 1),
		lost:      make(map[protocol.ID]bool),
		malformed: n.malformed,
	}
	n.inbox.peers, _ = spec.Codec.(protocol.PeerCodec[M])
	if n.port, err = h.transport.Open(addr, &n.inbox); err != nil {
		return fail(err)
	}
	if err := h.enlist(n); err != nil {
		n.port.Close()
		return fail(err)
	}
	return n, nil
}
