package transport

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"golang.org/x/net/netutil"
	"google.golang.org/grpc"
	"google.golang.org/grpc/experimental"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/peer"

	peerv1 "github.com/foresay/foresay/api/foresay/peer/v1"
)

const (
	ioBufferBytes      = 128 << 10
	maxHeaderListBytes = 16 << 10
	// streamsPerConnection is more than a host opens to one address: one for each member there, and
	// health checks.
	streamsPerConnection = 128
	// frameSlackBytes is more than what is in a frame beside its messages.
	frameSlackBytes = 4 << 10
)

// maxFrameBytes bounds a frame: many small messages, or a large one.
func (c *Config) maxFrameBytes() int {
	return max(maxFrame, c.MaxMessageBytes+maxHeaderBytes) + frameSlackBytes
}

// Run connects to the members and, unless lis is nil, accepts the streams of others, until ctx
// ends. It then sends what is queued, within Config.DrainTimeout, closes all, waits until no
// goroutine is left, and returns nil. The error is the listener's, after which all is closed
// likewise. A transport runs once; Run owns the listener.
func (t *Transport) Run(ctx context.Context, lis net.Listener) error {
	links, cutOff := context.WithCancel(context.WithoutCancel(ctx))
	defer cutOff()
	if err := t.start(links); err != nil {
		return err
	}
	var server *grpc.Server
	var status *health.Server
	served := make(chan error, 1)
	if lis != nil {
		server, status = t.server()
		go func() { served <- server.Serve(netutil.LimitListener(lis, t.cfg.MaxStreams)) }()
	}
	var err error
	select {
	case <-ctx.Done():
	case err = <-served:
		err = fmt.Errorf("transport: serve %v: %w", lis.Addr(), err)
	}
	t.mu.Lock()
	close(t.draining)
	t.mu.Unlock()
	if status != nil {
		status.Shutdown()
	}
	over := time.AfterFunc(t.cfg.DrainTimeout, func() {
		cutOff()
		if server != nil {
			server.Stop()
		}
	})
	defer over.Stop()
	t.running.Wait()
	if server != nil {
		server.GracefulStop()
		if err == nil {
			if e := <-served; e != nil && !errors.Is(e, grpc.ErrServerStopped) {
				err = fmt.Errorf("transport: serve %v: %w", lis.Addr(), e)
			}
		}
	}
	t.readers.Wait()
	return err
}

func (t *Transport) start(ctx context.Context) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ctx != nil {
		return errors.New("transport: run: it ran already")
	}
	t.ctx = ctx
	for _, l := range t.links {
		t.startLink(l)
	}
	return nil
}

// server returns a server with the limits that one which strangers can reach should have, and its
// health service.
func (t *Transport) server() (*grpc.Server, *health.Server) {
	cfg := &t.cfg
	s := grpc.NewServer(
		grpc.Creds(cfg.serverCredentials(&t.handshakes)),
		grpc.WaitForHandlers(true),
		grpc.ForceServerCodecV2(newFrameCodec()), experimental.BufferPool(frameBuffers),
		grpc.ConnectionTimeout(cfg.HandshakeTimeout),
		grpc.MaxConcurrentStreams(streamsPerConnection),
		grpc.MaxRecvMsgSize(cfg.maxFrameBytes()), grpc.MaxSendMsgSize(cfg.maxFrameBytes()),
		grpc.MaxHeaderListSize(maxHeaderListBytes),
		grpc.InitialWindowSize(windowBytes), grpc.InitialConnWindowSize(windowBytes),
		grpc.ReadBufferSize(ioBufferBytes), grpc.WriteBufferSize(ioBufferBytes),
		grpc.KeepaliveParams(keepalive.ServerParameters{
			Time: 3 * cfg.Keepalive, Timeout: keepaliveTimeout, MaxConnectionIdle: 15 * time.Minute,
		}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: minKeepalive / 2}),
	)
	peerv1.RegisterPeerServer(s, service{t: t})
	h := health.NewServer()
	h.SetServingStatus(peerv1.Peer_ServiceDesc.ServiceName, healthpb.HealthCheckResponse_SERVING)
	healthpb.RegisterHealthServer(s, h)
	return s, h
}

func peerAddress(ctx context.Context) string {
	if p, ok := peer.FromContext(ctx); ok {
		return p.Addr.String()
	}
	return "an unknown address"
}
