package specgrpc

import (
	"sync"

	"google.golang.org/grpc"

	specv1 "github.com/foresay/foresay/api/foresay/spec/v1"
)

// quietBytes is how much may be sent on a stream without its client reading
// any: well within grpc's write quota and HTTP/2's first window, 64 KB each.
const quietBytes = 32 << 10

// outbox sends a call's frames, one after the other. Sending on a stream waits
// for its client to read, for which no lease of ours could end the wait: grpc
// ends it when the handler has returned. So the handler does not send itself
// what might wait.
type outbox struct {
	mu      sync.Mutex
	queue   []letter
	sending bool // a goroutine sends the queue
	bytes   int  // posted so far
}

type letter struct {
	frame *specv1.ServerFrame
	sent  chan error
}

// post sends a frame after all those before: at once if that cannot wait, and
// else later, which the channel then tells of. Under mu.
func (o *outbox) post(
	stream grpc.ServerStream, frame *specv1.ServerFrame, sizeBytes int,
) (later <-chan error, err error) {
	o.bytes += sizeBytes + frameOverheadBytes
	if o.bytes <= quietBytes {
		return nil, stream.SendMsg(frame)
	}
	l := letter{frame, make(chan error, 1)}
	o.queue = append(o.queue, l)
	if !o.sending {
		o.sending = true
		go o.send(stream)
	}
	return l.sent, nil
}

// send empties the queue. It ends when the stream does, at the latest.
func (o *outbox) send(stream grpc.ServerStream) {
	for {
		o.mu.Lock()
		if len(o.queue) == 0 {
			o.sending = false
			o.mu.Unlock()
			return
		}
		l := o.queue[0]
		o.queue = o.queue[1:]
		o.mu.Unlock()
		l.sent <- stream.SendMsg(l.frame)
	}
}

// drop forgets the frames that have not been sent, and returns how many they
// are. Under mu.
func (o *outbox) drop() int {
	n := len(o.queue)
	o.queue = nil
	return n
}

// unread reports whether the client may have left frames unread in the
// transport, behind which the end of the stream waits.
func (o *outbox) unread() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.bytes > quietBytes
}
