package host

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"

	"golang.org/x/sync/semaphore"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/transport"
)

var (
	// ErrStopped is the error of handing something to a node that has stopped.
	ErrStopped = errors.New("host: the node has stopped")
	// ErrOverload is the error of handing something to a node that has no room for it.
	ErrOverload = errors.New("host: the node has too much to do")
)

// An input is a message, or the news that messages of a peer were lost.
type input[M any] struct {
	msg    M
	from   protocol.ID
	size   int32 // bytes on the wire
	broken bool
}

// decodeChunk is how many messages are decoded before the inbox is locked.
const decodeChunk = 32

// An inbox is where inputs wait for a node. It is the node's transport.Sink.
type inbox[M any] struct {
	codec       protocol.Codec[M]
	peers       protocol.PeerCodec[M] // nil: it is the same for all
	linked      bool                  // the node wants to know what is lost
	maxMessages int
	maxBytes    int
	room        *semaphore.Weighted // for messages of the application
	wake        chan struct{}       // has an element when there is something to do for the node
	malformed   func(from protocol.ID, err error)

	mu       sync.Mutex
	queue    []input[M]
	messages int // of the network
	bytes    int
	lost     map[protocol.ID]bool // of whom messages were lost that the queue does not say
	dropped  uint64
	closed   bool
}

func (b *inbox[M]) signal() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// Receive queues messages that arrived, as far as there is room.
func (b *inbox[M]) Receive(msgs []transport.Inbound) {
	var chunk [decodeChunk]input[M]
	for len(msgs) > 0 {
		n := min(len(msgs), decodeChunk)
		for i, m := range msgs[:n] {
			msg, err := b.decode(m.From, m.Payload)
			chunk[i] = input[M]{msg: msg, from: m.From, size: int32(len(m.Payload))}
			if err != nil {
				// What cannot be read is as good as lost.
				chunk[i].broken = true
				b.malformed(m.From, err)
			}
		}
		b.add(chunk[:n])
		msgs = msgs[n:]
	}
}

// decode is the codec's, whose mistakes must not end the process: anybody can send anything.
func (b *inbox[M]) decode(from protocol.ID, payload []byte) (msg M, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	if b.peers != nil {
		return b.peers.DecodeFrom(from, payload)
	}
	return b.codec.Decode(payload)
}

func (b *inbox[M]) add(ins []input[M]) {
	b.mu.Lock()
	wake := len(b.queue) == 0 && len(b.lost) == 0
	for i := range ins {
		b.addOne(&ins[i])
	}
	b.mu.Unlock()
	if wake {
		b.signal()
	}
}

// addOne queues one input of the network. Once one of a peer was lost, so are all until the node
// has been told.
func (b *inbox[M]) addOne(in *input[M]) {
	if b.closed {
		return
	}
	full := b.messages >= b.maxMessages || b.bytes > 0 && b.bytes+int(in.size) > b.maxBytes
	if full || b.lost[in.from] {
		if !in.broken {
			b.dropped++
		}
		b.lost[in.from] = true
		return
	}
	if in.broken && !b.linked {
		return
	}
	b.queue = append(b.queue, *in)
	b.messages++
	b.bytes += int(in.size)
}

// Broken queues the news that messages of a peer were lost.
func (b *inbox[M]) Broken(from protocol.ID) {
	b.add([]input[M]{{from: from, broken: true}})
}

// deliver queues a message of the application. There is room for it.
func (b *inbox[M]) deliver(msg M) error {
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		b.room.Release(1)
		return ErrStopped
	}
	wake := len(b.queue) == 0 && len(b.lost) == 0
	b.queue = append(b.queue, input[M]{msg: msg, from: protocol.App})
	b.mu.Unlock()
	if wake {
		b.signal()
	}
	return nil
}

// take returns what is queued, in its order, in exchange for an empty slice. It makes room.
func (b *inbox[M]) take(empty []input[M]) []input[M] {
	b.mu.Lock()
	queue := b.queue
	b.queue = empty
	app := len(queue) - b.messages
	b.messages, b.bytes = 0, 0
	if len(b.lost) > 0 {
		if b.linked {
			for _, id := range slices.Sorted(maps.Keys(b.lost)) {
				queue = append(queue, input[M]{from: id, broken: true})
			}
		}
		clear(b.lost)
	}
	b.mu.Unlock()
	if app > 0 {
		b.room.Release(int64(app))
	}
	return queue
}

// close drops what is queued, and all that comes.
func (b *inbox[M]) close() {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.take(nil)
}

// Arrive hands the node a message of another one that came by other means than the host's network:
// see Spec.Carry. Its size counts as those of the network do. It does not wait; when there is no
// room the message is lost, and the node is told by Broken.
func (n *Node[M]) Arrive(from protocol.ID, msg M, sizeBytes int) {
	n.inbox.add([]input[M]{{msg: msg, from: from, size: int32(min(sizeBytes, math.MaxInt32))}})
}

// Deliver hands a message of the application to the node. If too many wait, it waits until ctx is
// done, and its error is then an ErrOverload too. Nothing is handed over if ctx is done before. It
// is for any goroutine but the node's: not for the App function.
func (n *Node[M]) Deliver(ctx context.Context, msg M) error {
	if ctx.Err() != nil {
		return fmt.Errorf("host: nothing was handed over: %w", context.Cause(ctx))
	}
	if err := n.inbox.room.Acquire(ctx, 1); err != nil {
		return fmt.Errorf("%w: %w", ErrOverload, err)
	}
	return n.inbox.deliver(msg)
}

// TryDeliver is Deliver without waiting.
func (n *Node[M]) TryDeliver(msg M) error {
	if !n.inbox.room.TryAcquire(1) {
		return ErrOverload
	}
	return n.inbox.deliver(msg)
}
