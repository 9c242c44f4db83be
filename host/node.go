package host

import (
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/transport"
)

// A Node is one node of a host, as programs see it. Its methods may be called concurrently.
type Node[M any] struct {
	spec        Spec[M]
	addr        transport.Addr
	clock       func() time.Duration // what the node is told
	steady      func() time.Duration // what its timers go by
	log         *slog.Logger
	stopTimeout time.Duration
	inbox       inbox[M]
	disk        diskState
	stats       nodeCounters

	// The rest is the node's goroutine's.
	env     *protocol.Env[M]
	linked  protocol.Linked[M] // nil if the node is none
	checked protocol.Checked   // nil if the node is none, or is not to be checked
	records []protocol.Record[M]
	port    *transport.Port
	timers  *timers
	alarm   *time.Timer
	began   time.Duration // when the present call of the node began, by the steady clock
	armed   time.Duration // when alarm rings, by the steady clock
	spare   []input[M]    // an empty slice for the inbox
	batch   writeBatch
	patient PatientDisk // nil if the disk is none
	putOff  bool        // the last commit was unhurried, and nothing has hurried it since
	held    heldQueue[M]
	self    []M // what the node sent to itself
	scratch []byte
	refs    []protocol.Ref
	sharing protocol.SharingCodec[M] // nil if the codec is none
	arenas  sync.Pool                // of *arena
	steps   uint64
}

// roundTimers is how many timers run out in one round, so that messages have their turn.
const roundTimers = 256

// run is the node's goroutine. It returns when the host stops, or with what stopped the node.
func (n *Node[M]) run(stopping <-chan struct{}) (err error) {
	n.alarm = time.NewTimer(time.Hour)
	n.armed = -1
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
		if err != nil {
			err = fmt.Errorf("host: %v: %w", n.addr, err)
		}
		n.alarm.Stop()
		n.abandon()
	}()
	records := n.records
	n.records = nil
	n.begin()
	n.spec.Node.Start(n.env, records)
	if err := n.carryOut(); err != nil {
		return err
	}
	for {
		worked, err := n.round()
		if err != nil {
			return err
		}
		select {
		case <-stopping:
			return n.finish()
		default:
		}
		if !worked {
			n.wait(stopping)
		}
	}
}

// abandon closes what others reach the node by.
func (n *Node[M]) abandon() {
	n.port.Close()
	n.inbox.close()
}

// round does what there is to do, and reports whether there was anything.
func (n *Node[M]) round() (worked bool, err error) {
	for _, part := range [...]func() (bool, error){n.release, n.expire, n.loopBack, n.consume} {
		did, err := part()
		if err != nil {
			return true, err
		}
		worked = worked || did
	}
	n.commit()
	n.port.Flush()
	n.publish()
	return worked, nil
}

// wait sleeps until there may be something to do.
func (n *Node[M]) wait(stopping <-chan struct{}) {
	if due, ok := n.timers.next(); ok && (n.armed < 0 || due < n.armed) {
		n.armed = due
		n.alarm.Reset(max(0, due-n.steady()))
	}
	select {
	case <-n.inbox.wake:
		runtime.Gosched() // others that can go on add to what this round does
	case <-n.alarm.C:
		n.armed = -1
	case <-stopping:
	}
}

// expire calls the node with timers that have run out.
func (n *Node[M]) expire() (worked bool, err error) {
	for range roundTimers {
		t, ok := n.timers.pop(n.steady())
		if !ok {
			break
		}
		worked = true
		n.begin()
		n.spec.Node.Expire(n.env, t)
		if err := n.carryOut(); err != nil {
			return true, err
		}
	}
	return worked, nil
}

// loopBack calls the node with what it has sent to itself.
func (n *Node[M]) loopBack() (worked bool, err error) {
	msgs := n.self
	n.self = nil
	for _, m := range msgs {
		if err := n.receive(n.addr.ID, m); err != nil {
			return true, err
		}
	}
	if n.self == nil {
		clear(msgs)
		n.self = msgs[:0]
	}
	return len(msgs) > 0, nil
}

// consume calls the node with what the inbox has, unless too much waits for the disk.
func (n *Node[M]) consume() (worked bool, err error) {
	if n.held.len() >= n.spec.QueueHeld {
		return false, nil
	}
	ins := n.inbox.take(n.spare)
	for i := range ins {
		in := &ins[i]
		if in.broken {
			n.begin()
			n.linked.Broken(n.env, in.from)
			err = n.carryOut()
		} else {
			err = n.receive(in.from, in.msg)
		}
		if err != nil {
			return true, err
		}
		if i%commitEvery == commitEvery-1 {
			n.commit()
			n.port.Flush()
		}
	}
	clear(ins)
	n.spare = ins[:0]
	return len(ins) > 0, nil
}

func (n *Node[M]) receive(from protocol.ID, msg M) error {
	n.begin()
	n.spec.Node.Receive(n.env, from, msg)
	return n.carryOut()
}

func (n *Node[M]) begin() {
	n.steps++
	n.began = n.steady()
	n.env.Begin(n.clock())
}

// finish waits until what the node wrote is durable, and sends what waited for it. It follows a
// round, so all is with the disk.
func (n *Node[M]) finish() error {
	n.inbox.close()
	timeout := time.NewTimer(n.stopTimeout)
	defer timeout.Stop()
	for {
		if _, err := n.release(); err != nil {
			return err
		}
		if n.disk.durable.Load() == n.batch.number {
			n.port.Flush()
			n.publish()
			return nil
		}
		select {
		case <-n.inbox.wake:
		case <-timeout.C:
			return fmt.Errorf("stop: what it wrote was not durable within %v", n.stopTimeout)
		}
	}
}

func (n *Node[M]) malformed(from protocol.ID, err error) {
	if k := n.stats.malformed.Add(1); k&(k-1) != 0 {
		return // said before; twice as many are news
	}
	n.log.Warn("host: a message cannot be read", "node", n.addr.String(), "from", from, "err", err)
}

// Disk returns the identity of the node's disk.
func (n *Node[M]) Disk() string { return n.spec.Disk.Identity() }

// Addr returns where the node is found.
func (n *Node[M]) Addr() transport.Addr { return n.addr }

var errBroken = errors.New("an invariant is broken")
