package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/experimental"
	"google.golang.org/grpc/keepalive"

	peerv1 "github.com/foresay/foresay/api/foresay/peer/v1"
	"github.com/foresay/foresay/protocol"
)

// A link is this host's way to one member: one stream after the other.
type link struct {
	t      *Transport
	to     protocol.ID
	out    *outbox
	source *source       // what the member sends back to clients of this host
	again  chan struct{} // has an element when the member has been heard: it need not be waited for

	mu       sync.Mutex
	address  string
	state    LinkState
	err      error
	connects uint64
	hangUp   context.CancelFunc // ends the present attempt, or the wait for the next one
	stop     context.CancelFunc // ends the link
}

// LinkState says how a host stands with a member.
type LinkState string

// The states of a link.
const (
	Connecting LinkState = "connecting"
	Up         LinkState = "up"      // the member has welcomed this host
	Waiting    LinkState = "waiting" // for the time of the next attempt
)

// run makes streams until ctx ends.
func (l *link) run(ctx context.Context) {
	backoff := l.t.cfg.MinBackoff
	for {
		attempt, hangUp := context.WithCancel(ctx)
		address := l.begin(hangUp)
		welcomed, err := l.stream(attempt, address)
		if err == nil || ctx.Err() != nil {
			hangUp()
			return
		}
		moved := attempt.Err() != nil
		if welcomed || moved {
			backoff = l.t.cfg.MinBackoff
		}
		l.fail(address, err, welcomed)
		if !welcomed {
			l.out.expire(l.t.cfg.MaxAge)
		}
		if !moved {
			if l.sleep(attempt, time.Duration((0.75+rand.Float64()/2)*float64(backoff))) {
				backoff = l.t.cfg.MinBackoff
			} else {
				backoff = min(backoff*3/2, l.t.cfg.MaxBackoff)
			}
		}
		hangUp()
		select {
		case <-l.t.draining:
			return
		default:
		}
	}
}

// sleep waits for d, or until ctx ends, the transport drains, or the member is heard, which it
// tells.
func (l *link) sleep(ctx context.Context, d time.Duration) (heard bool) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-l.again:
		return true
	case <-ctx.Done():
	case <-l.t.draining:
	}
	return false
}

// heard says that the member has begun to send here, so that it is there again: a link that waits
// tries at once.
func (l *link) heard() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state != Up {
		select {
		case l.again <- struct{}{}:
		default:
		}
	}
}

func (l *link) begin(hangUp context.CancelFunc) (address string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hangUp = hangUp
	l.state = Connecting
	return l.address
}

func (l *link) up(address string) {
	l.mu.Lock()
	l.state, l.err = Up, nil
	l.connects++
	l.mu.Unlock()
	l.t.cfg.Logger.Info("transport: connected", "peer", l.to, "address", address)
}

func (l *link) fail(address string, err error, welcomed bool) {
	l.mu.Lock()
	news := welcomed || l.err == nil || l.err.Error() != err.Error()
	l.state, l.err = Waiting, err
	l.mu.Unlock()
	if news {
		l.t.cfg.Logger.Warn("transport: not connected", "peer", l.to, "address", address, "err", err)
	}
}

// move makes the link go to another address.
func (l *link) move(address string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.address == address {
		return
	}
	l.address = address
	if l.hangUp != nil {
		l.hangUp()
	}
}

// stream connects and sends until that fails, which is an error, or until the transport has
// drained.
func (l *link) stream(ctx context.Context, address string) (welcomed bool, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	raw := new(rawConns)
	cc, err := l.dial(address, raw)
	if err != nil {
		return false, fmt.Errorf("transport: member %d at %s: %w", l.to, address, err)
	}
	defer func() {
		if err != nil || ctx.Err() != nil {
			raw.close() // gRPC would wait until it has said goodbye
		}
		cc.Close() // it was not closed before
	}()
	timeout := l.t.cfg.HandshakeTimeout
	timer := time.AfterFunc(timeout, func() {
		cancel(fmt.Errorf("no welcome within %v", timeout))
	})
	defer timer.Stop()
	stream, err := l.greet(ctx, cc)
	if err == nil && !timer.Stop() {
		<-ctx.Done()
		err = ctx.Err()
	}
	if err == nil {
		welcomed = true
		l.up(address)
		err = l.carry(cancel, stream)
	}
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = cause
	} else if err != nil && !welcomed && raw.made() && l.demandsTLS(ctx, address) {
		err = errTLSOnly
	}
	if err != nil {
		err = fmt.Errorf("transport: member %d at %s: %w", l.to, address, err)
	}
	return welcomed, err
}

func (l *link) dial(address string, raw *rawConns) (*grpc.ClientConn, error) {
	cfg := &l.t.cfg
	return grpc.NewClient("passthrough:///"+address,
		grpc.WithTransportCredentials(cfg.dialCredentials(l.to)),
		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			return raw.add(cfg.Dial(ctx, address))
		}),
		grpc.WithConnectParams(grpc.ConnectParams{MinConnectTimeout: cfg.HandshakeTimeout}),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: cfg.Keepalive, Timeout: keepaliveTimeout}),
		grpc.WithInitialWindowSize(windowBytes), grpc.WithInitialConnWindowSize(windowBytes),
		grpc.WithReadBufferSize(ioBufferBytes), grpc.WithWriteBufferSize(ioBufferBytes),
		grpc.WithDisableRetry(), grpc.WithDisableServiceConfig(), grpc.WithIdleTimeout(0),
		grpc.WithMaxHeaderListSize(maxHeaderListBytes), experimental.WithBufferPool(frameBuffers),
		grpc.WithDefaultCallOptions(
			grpc.ForceCodecV2(newFrameCodec()), grpc.MaxCallRecvMsgSize(cfg.maxFrameBytes()),
			grpc.MaxCallSendMsgSize(cfg.maxFrameBytes())),
	)
}

// rawConns are the connections that gRPC has made for a stream: one, as a rule.
type rawConns struct {
	mu     sync.Mutex
	conns  []net.Conn
	closed bool
}

func (r *rawConns) add(c net.Conn, err error) (net.Conn, error) {
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		c.Close() // nobody has seen it
		return nil, net.ErrClosed
	}
	r.conns = append(r.conns, c)
	return c, nil
}

// made reports whether there was a connection.
func (r *rawConns) made() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.conns) > 0
}

func (r *rawConns) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	for _, c := range r.conns {
		c.Close() // it failed already, or is given up
	}
}

// greet opens a stream and has it welcomed.
func (l *link) greet(ctx context.Context, cc *grpc.ClientConn) (peerv1.Peer_LinkClient, error) {
	stream, err := peerv1.NewPeerClient(cc).Link(ctx)
	if err != nil {
		return nil, err
	}
	l.out.expire(l.t.cfg.MaxAge) // what came since the last attempt is no better for it
	hello := &peerv1.Hello{
		MinVersion: minVersion, MaxVersion: maxVersion, Cluster: l.t.cfg.Cluster, To: uint32(l.to),
		Instance: l.t.instance, Epoch: l.t.epochs.Add(1), Next: l.out.upcoming(),
	}
	// If Send fails with io.EOF, Recv says why.
	if err := stream.Send(&peerv1.Frame{Hello: hello}); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	frame, err := stream.Recv()
	switch {
	case errors.Is(err, io.EOF):
		return nil, errors.New("the stream ended without a welcome")
	case err != nil:
		return nil, err
	case frame.GetWelcome() == nil:
		return nil, errors.New("the first frame is no welcome")
	}
	if v := frame.GetWelcome().GetVersion(); v < minVersion || v > maxVersion {
		return nil, fmt.Errorf("welcomed with version %d, this host speaks %d to %d", v, minVersion, maxVersion)
	}
	return stream, nil
}

// carry sends what is in the outbox and takes what comes back. It returns nil if the transport has
// drained.
func (l *link) carry(hangUp context.CancelCauseFunc, stream peerv1.Peer_LinkClient) error {
	first := l.source == nil
	if first {
		l.source = l.t.newSource()
	}
	cert := peerCertificate(stream.Context())
	l.source.begin(func(id protocol.ID) error {
		if l.t.cfg.Anybody && id == l.to {
			return nil
		}
		return l.t.cfg.maySpeakFor(cert, id)
	})
	if !first {
		l.source.next = 0
		l.source.lose(l.t)
	}
	received := make(chan error, 1)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		received <- l.receive(stream)
	}()
	err := l.out.run(ended, l.t.draining, stream.SendMsg)
	if err == nil {
		err = stream.CloseSend()
	}
	if err != nil && !errors.Is(err, io.EOF) {
		hangUp(err)
	}
	err = <-received // says why Send failed
	select {
	case <-l.t.draining:
		return nil
	default:
	}
	if errors.Is(err, io.EOF) {
		return errors.New("the member ended the stream")
	}
	return err
}

func (l *link) receive(stream peerv1.Peer_LinkClient) error {
	for {
		var frame received
		if err := stream.RecvMsg(&frame); err != nil {
			return err
		}
		err := l.source.take(l.t, frame.first, frame.messages)
		frame.free()
		if err != nil {
			return err
		}
	}
}
