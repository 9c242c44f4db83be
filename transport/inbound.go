package transport

import (
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	peerv1 "github.com/foresay/foresay/api/foresay/peer/v1"
	"github.com/foresay/foresay/protocol"
)

// The versions of the streams' protocol that this package speaks.
const (
	minVersion = 1
	maxVersion = 1
)

// sourceKey says which streams follow each other: those of one run of a host, with one certificate,
// to one member.
type sourceKey struct {
	instance uint64
	to       protocol.ID
	names    string // of the certificate, or its key
}

// An inbound is a stream that another host opened.
type inbound struct {
	t      *Transport
	stream peerv1.Peer_LinkServer
	cert   *x509.Certificate
	key    sourceKey
	epoch  uint64
	seat   *seat                // nil before it is admitted
	heard  map[protocol.ID]bool // whose messages came; written by the reader with the transport's mutex held
	out    *outbox              // for the clients that are heard on the stream
	dead   chan struct{}
	once   sync.Once

	sending chan struct{} // closed when out has been sent to the end; nil before there is a client

	mu     sync.Mutex // held while something is delivered
	source *source
}

// service is what gRPC calls.
type service struct {
	peerv1.UnimplementedPeerServer
	t *Transport
}

// Link serves a stream.
func (s service) Link(stream peerv1.Peer_LinkServer) error {
	t := s.t
	in := &inbound{t: t, stream: stream, cert: peerCertificate(stream.Context()), dead: make(chan struct{}),
		heard: make(map[protocol.ID]bool), out: newOutbox(&t.cfg, 0)}
	if n := t.streams.Add(1); n > int64(t.cfg.MaxStreams) {
		t.streams.Add(-1)
		return in.refuse(status.Errorf(codes.ResourceExhausted, "this host has its limit of %d streams", t.cfg.MaxStreams))
	}
	defer t.streams.Add(-1)
	welcomed := make(chan struct{})
	result := make(chan error, 1)
	// Only the return of this function ends a stream, so another goroutine reads.
	t.readers.Go(func() { result <- in.read(welcomed) })
	timer := time.NewTimer(t.cfg.HandshakeTimeout)
	defer timer.Stop()
	select {
	case <-welcomed:
	case err := <-result:
		return in.end(err)
	case <-t.draining:
		return in.end(nil)
	case <-timer.C:
		return in.end(status.Errorf(codes.DeadlineExceeded, "no hello within %v", t.cfg.HandshakeTimeout))
	}
	select {
	case err := <-result:
		return in.end(err)
	case <-in.dead:
		return in.end(errSuperseded())
	case <-t.draining:
		return in.drain()
	}
}

// end takes the stream out of all tables. err is nil if the stream had a good end.
func (in *inbound) end(err error) error {
	in.kill()
	in.t.forget(in)
	if err != nil && status.Code(err) != codes.Aborted && in.stream.Context().Err() == nil {
		return in.refuse(err)
	}
	return err
}

// drain waits until what clients have to get is sent, and ends the stream.
func (in *inbound) drain() error {
	in.mu.Lock()
	sending := in.sending
	in.mu.Unlock()
	if sending != nil {
		<-sending
	}
	return in.end(nil)
}

func (in *inbound) refuse(err error) error {
	in.t.refused.Add(1)
	in.t.cfg.Logger.Warn("transport: a stream was refused", "from", peerAddress(in.stream.Context()), "err", err)
	return err
}

// kill ends the stream. When it returns, nothing of it is being delivered, nor will be.
func (in *inbound) kill() {
	in.once.Do(func() { close(in.dead) })
	in.mu.Lock()
	defer in.mu.Unlock()
}

func (in *inbound) ended() bool {
	select {
	case <-in.dead:
		return true
	default:
		return false
	}
}

// read takes what arrives until the stream ends. The error is nil if the other host has ended it.
func (in *inbound) read(welcomed chan<- struct{}) error {
	frame, err := in.stream.Recv()
	if err != nil {
		return streamError(err)
	}
	version, err := in.check(frame.GetHello())
	if err != nil {
		return err
	}
	if err := in.t.admit(in, frame.GetHello().GetNext()); err != nil {
		return err
	}
	if err := in.stream.Send(&peerv1.Frame{Welcome: &peerv1.Welcome{Version: version}}); err != nil {
		return err
	}
	close(welcomed)
	for {
		var frame received
		if err := in.stream.RecvMsg(&frame); err != nil {
			return streamError(err)
		}
		err := in.take(&frame)
		frame.free()
		if err != nil {
			return err
		}
	}
}

func streamError(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// check returns the version that both hosts speak.
func (in *inbound) check(h *peerv1.Hello) (version uint32, err error) {
	cfg := &in.t.cfg
	switch {
	case h == nil:
		return 0, status.Error(codes.InvalidArgument, "the first frame is no hello")
	case h.GetMinVersion() > maxVersion || h.GetMaxVersion() < minVersion:
		return 0, status.Errorf(codes.FailedPrecondition,
			"the other host speaks versions %d to %d of the peer streams, this one %d to %d",
			h.GetMinVersion(), h.GetMaxVersion(), minVersion, maxVersion)
	case h.GetCluster() != cfg.Cluster:
		return 0, status.Error(codes.FailedPrecondition, cfg.foreign(h.GetCluster()))
	}
	for _, id := range cfg.IDs {
		if uint32(id) == h.GetTo() {
			in.key = sourceKey{instance: h.GetInstance(), to: id}
			if in.cert != nil {
				in.key.names = strings.Join(in.cert.DNSNames, " ")
				if cfg.Keys != nil {
					in.key.names = string(keyOf(in.cert))
				}
			}
			in.epoch = h.GetEpoch()
			return min(h.GetMaxVersion(), maxVersion), nil
		}
	}
	return 0, status.Errorf(codes.FailedPrecondition, "this host is %d, not %d: the address is of another member", cfg.IDs,
		h.GetTo())
}

// foreign says why a host of another cluster is refused.
func (c *Config) foreign(cluster string) string {
	if c.Explain != nil {
		if why := c.Explain(cluster); why != "" {
			return why
		}
	}
	return fmt.Sprintf("this is a host of the cluster %q, not of %.300q", c.Cluster, cluster)
}

// start begins with the messages of a source, unless the stream is dead already.
func (in *inbound) start(s *source, next uint64) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.ended() {
		return errSuperseded()
	}
	in.source = s
	s.begin(in.accept)
	if err := s.expect(in.t, next); err != nil {
		return status.Error(codes.InvalidArgument, err.Error())
	}
	return nil
}

func (in *inbound) take(f *received) error {
	if f.greets {
		return status.Error(codes.InvalidArgument, "a second hello, or a welcome")
	}
	// Older streams of nodes that are new here end first, and not while this one is locked: they
	// may wait for it likewise.
	if err := in.claim(f.messages); err != nil {
		return err
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.ended() {
		return errSuperseded()
	}
	if err := in.source.take(in.t, f.first, f.messages); err != nil {
		if status.Code(err) == codes.Unknown {
			err = status.Error(codes.InvalidArgument, err.Error())
		}
		return err
	}
	return nil
}

// claim makes this stream the one of each node that a batch is the first here to have messages of:
// older ones end, and what is sent to clients goes here.
func (in *inbound) claim(messages []byte) error {
	var last protocol.ID
	for len(messages) > 0 {
		from, _, _, rest, err := unpack(messages)
		if err != nil {
			return status.Error(codes.InvalidArgument, err.Error())
		}
		messages = rest
		if from == last || in.heard[from] {
			continue
		}
		last = from
		if err := in.accept(from); err != nil {
			return err
		}
		if len(in.heard) >= maxSendersPerStream {
			return status.Errorf(codes.ResourceExhausted, "messages of more than %d nodes on one stream", maxSendersPerStream)
		}
		old, ok := in.t.claim(from, in)
		if !ok {
			return errSuperseded()
		}
		if old != nil {
			old.kill()
		}
		in.t.heard(from)
		if from >= in.t.cfg.FirstClient {
			in.serveClients()
		}
	}
	return nil
}

func errSuperseded() error {
	return status.Error(codes.Aborted, "a newer stream of the same sender took the place of this one")
}

// accept says with an error that the other host must not send messages of a node.
func (in *inbound) accept(id protocol.ID) error {
	if err := in.t.cfg.maySpeakFor(in.cert, id); err != nil {
		return status.Error(codes.PermissionDenied, err.Error())
	}
	return nil
}

// serveClients starts to send what nodes here have for the clients on the stream.
func (in *inbound) serveClients() {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.sending != nil {
		return
	}
	sending := make(chan struct{})
	in.sending = sending
	in.t.readers.Go(func() {
		defer close(sending)
		if err := in.out.run(in.dead, in.t.draining, in.stream.SendMsg); err != nil {
			in.once.Do(func() { close(in.dead) })
		}
	})
}
