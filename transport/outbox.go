package transport

import (
	"runtime"
	"sync"
	"time"

	"github.com/foresay/foresay/protocol"
)

// A batch is consecutive messages as they travel in one frame.
type batch struct {
	first uint64 // the number of its first message
	count int
	bytes []byte
	refs  []protocol.Ref // what belongs into bytes
	size  int            // with refs
	since time.Time      // when its first message came
}

// An outbox is the queue of messages to one host. Ports fill it, one goroutine at a time empties
// it.
type outbox struct {
	maxMessages int
	maxBytes    int
	maxSpan     time.Duration // between the first message of a batch and its last, which grow too old together
	wake        chan struct{} // has an element when there is something to do for the emptying goroutine

	mu       sync.Mutex
	next     uint64 // the number of the next message. Lost ones have numbers too: so the receiver sees that they are.
	queue    []batch
	spare    [][]byte // of sent batches, for new ones
	messages int
	bytes    int
	asleep   bool  // the emptying goroutine waits, or soon will
	listedBy *Port // has this outbox among those to wake
	sent     counts
	dropped  uint64
}

type counts struct{ frames, messages, bytes uint64 }

func newOutbox(cfg *Config, next uint64) *outbox {
	return &outbox{maxMessages: cfg.QueueMessages, maxBytes: cfg.QueueBytes, maxSpan: cfg.MaxAge / 4,
		wake: make(chan struct{}, 1), next: next, asleep: true}
}

// push queues a message, unless the queue is full. list says that p has to call rouse later.
func (o *outbox) push(p *Port, to protocol.ID, payload []byte, refs []protocol.Ref) (list bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	number := o.next
	o.next++
	length := len(payload) + protocol.RefBytes(refs)
	size := length + maxHeaderBytes
	// A message larger than the whole queue passes when it is alone.
	if o.messages >= o.maxMessages || o.messages > 0 && o.bytes+size > o.maxBytes {
		o.dropped++
		return false
	}
	b := o.tail(number, size)
	before := len(b.bytes)
	b.bytes = packHead(b.bytes, p.addr, to, length)
	for _, r := range refs {
		b.refs = append(b.refs, protocol.Ref{At: len(b.bytes) + r.At, Data: r.Data})
	}
	b.bytes = append(b.bytes, payload...)
	grown := len(b.bytes) - before + length - len(payload)
	b.count++
	b.size += grown
	o.messages++
	o.bytes += grown
	if !o.asleep || o.listedBy == p {
		return false
	}
	o.listedBy = p
	return true
}

// tail returns the batch for a message.
func (o *outbox) tail(number uint64, sizeBytes int) *batch {
	if n := len(o.queue); n > 0 {
		b := &o.queue[n-1]
		if b.first+uint64(b.count) == number && b.size+sizeBytes <= maxFrame && time.Since(b.since) <= o.maxSpan {
			return b
		}
	}
	var buf []byte
	if n := len(o.spare); n > 0 {
		buf, o.spare = o.spare[n-1], o.spare[:n-1]
	}
	o.queue = append(o.queue, batch{first: number, bytes: buf[:0], since: time.Now()})
	return &o.queue[len(o.queue)-1]
}

// lose counts a message that was not even queued.
func (o *outbox) lose() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.next++
	o.dropped++
}

// rouse wakes the emptying goroutine.
func (o *outbox) rouse() {
	o.mu.Lock()
	wake := o.asleep
	o.asleep, o.listedBy = false, nil
	o.mu.Unlock()
	if wake {
		o.signal()
	}
}

func (o *outbox) signal() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// pop takes the oldest batch. Without one, the next rouse will signal.
func (o *outbox) pop() (batch, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.queue) == 0 {
		o.asleep = true
		return batch{}, false
	}
	b := o.queue[0]
	o.drop(1)
	return b, true
}

// drop takes the oldest n batches off the queue.
func (o *outbox) drop(n int) {
	for _, b := range o.queue[:n] {
		o.messages -= b.count
		o.bytes -= b.size
	}
	rest := copy(o.queue, o.queue[n:])
	clear(o.queue[rest:])
	o.queue = o.queue[:rest]
}

// done notes that a batch was sent, or could not be, and its memory is free.
func (o *outbox) done(b batch, sent bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if sent {
		o.sent.frames++
		o.sent.messages += uint64(b.count)
		o.sent.bytes += uint64(b.size)
	} else {
		o.dropped += uint64(b.count)
	}
	if cap(b.bytes) <= 2*maxFrame && len(o.spare) < 2 {
		o.spare = append(o.spare, b.bytes)
	}
}

// expire drops what is older than maxAge.
func (o *outbox) expire(maxAge time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := 0
	for n < len(o.queue) && time.Since(o.queue[n].since) > maxAge {
		o.dropped += uint64(o.queue[n].count)
		n++
	}
	o.drop(n)
}

// upcoming returns the number of the message that pop would return first.
func (o *outbox) upcoming() uint64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.queue) > 0 {
		return o.queue[0].first
	}
	return o.next
}

// run sends what is in the outbox until ended is closed, or draining is and the outbox is empty.
// The error is send's.
func (o *outbox) run(ended, draining <-chan struct{}, send func(frame any) error) error {
	for {
		select {
		case <-ended:
			return nil
		default:
		}
		b, ok := o.pop()
		if ok {
			err := send(&b)
			o.done(b, err == nil)
			if err != nil {
				return err
			}
			continue
		}
		select {
		case <-o.wake:
			runtime.Gosched() // others that can go on add to what is sent in one frame
		case <-ended:
		case <-draining:
			if o.upcoming() == o.number() {
				return nil
			}
		}
	}
}

func (o *outbox) number() uint64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.next
}
