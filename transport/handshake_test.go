package transport_test

import (
	"context"
	"crypto/tls"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	peerv1 "github.com/foresay/foresay/api/foresay/peer/v1"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/transport"
)

// refused checks why a host is not connected to its only peer.
func (p *peer) refused(want string) {
	p.w.Helper()
	s := p.Stats().Peers[0]
	if s.State == transport.Up || s.Err == nil || !strings.Contains(s.Err.Error(), want) {
		p.w.Errorf("the state is %s, the error %v, want one with %q", s.State, s.Err, want)
	}
	if down := want == "connection refused"; s.Refused == (down || s.Connects > 0) {
		p.w.Errorf("%v: a refusal: %v", s.Err, s.Refused)
	}
}

func TestStrangersAreRefused(t *testing.T) {
	good := newAuthority(t, "good")
	evil := newAuthority(t, "evil")
	mixed := evil.issue("replica-1") // trusts the good one, but is the evil one's
	mixed.RootCAs = good.issue().RootCAs
	year2001 := time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC) // a bubble begins with the year 2000
	for name, c := range map[string]struct {
		a, b    *tls.Config
		id      protocol.ID // of a
		wait    time.Duration
		refused string // why, in a's words; empty: they talk
		noisy   bool   // a gets through the handshake and is refused with its first message
	}{
		"good": {a: good.issue("replica-1"), b: good.issue("replica-2"), id: 1},
		"good, of many names": {a: good.issue("x", "replica-1"), b: good.issue("replica-3", "replica-2"),
			id: 1},
		"client":     {a: good.issue("client"), b: good.issue("replica-2"), id: 70000},
		"one client": {a: good.issue("client-70000"), b: good.issue("replica-2"), id: 70000},
		"a member's own client": {a: good.issue("replica-1"), b: good.issue("replica-2"),
			id: transport.FirstMemberClient + 1},
		"a client under a member's client's": {a: good.issue("client-70000"), b: good.issue("replica-2"),
			id: transport.FirstMemberClient + 1, refused: "messages from node", noisy: true},
		"nearly a member": {a: good.issue("replica-"), b: good.issue("replica-2"),
			id: transport.FirstMemberClient + 1, refused: "messages from node", noisy: true},
		"the member is another": {a: good.issue("replica-1"), b: good.issue("replica-3"), id: 1,
			refused: "certificate is valid for replica-3, not replica-2"},
		"the member has another authority": {a: good.issue("replica-1"), b: evil.issue("replica-2"), id: 1,
			refused: "certificate signed by unknown authority"},
		"the sender has another authority": {a: mixed, b: good.issue("replica-2"), id: 1, refused: "tls: "},
		"the sender has no certificate": {a: &tls.Config{RootCAs: mixed.RootCAs, ClientCAs: mixed.RootCAs},
			b: good.issue("replica-2"), id: 1, refused: "tls: certificate required"},
		"the sender has no TLS": {b: good.issue("replica-2"), id: 1,
			refused: "it takes connections with TLS only"},
		"the sender's has ended": {a: good.issueUntil(year2001, "replica-1"), b: good.issue("replica-2"), id: 1,
			wait: 9000 * time.Hour, refused: "tls: expired certificate"},
		"the member's has ended": {a: good.issue("replica-1"), b: good.issueUntil(year2001, "replica-2"), id: 1,
			wait: 9000 * time.Hour, refused: "certificate has expired"},
		"a member under another's ID": {a: good.issue("replica-3"), b: good.issue("replica-2"), id: 1,
			refused: `messages from node 1: the certificate is for ["replica-3"], it would have to be for one of ["replica-1"]`,
			noisy:   true},
		"a client under a member's ID": {a: good.issue("client"), b: good.issue("replica-2"), id: 1,
			refused: "messages from node 1", noisy: true},
		"a member under a client's ID": {a: good.issue("replica-1"), b: good.issue("replica-2"), id: 70000,
			refused: "messages from node 70000", noisy: true},
		"a client under another client's": {a: good.issue("client-70001"), b: good.issue("replica-2"), id: 70000,
			refused: "messages from node 70000", noisy: true},
		"a name that only begins like ours": {a: good.issue("replica-11"), b: good.issue("replica-2"), id: 1,
			refused: "messages from node 1", noisy: true},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				time.Sleep(c.wait)
				b := w.peer(2, transport.Config{TLS: c.b})
				a := w.peer(c.id, transport.Config{TLS: c.a, MaxBackoff: time.Hour}, 2)
				time.Sleep(10 * time.Millisecond)
				a.send(2, "hello")
				time.Sleep(90 * time.Millisecond)
				got := b.got()
				if c.refused == "" {
					if !strings.HasSuffix(got, ": hello") {
						w.Errorf("got %q", got)
					}
					return
				}
				if got != "" {
					w.Errorf("got %q of a stranger", got)
				}
				a.refused(c.refused)
				s := b.Stats()
				if c.noisy && s.RefusedStreams == 0 || !c.noisy && s.RefusedHandshakes == 0 {
					w.Errorf("the member refused %d streams and %d handshakes", s.RefusedStreams, s.RefusedHandshakes)
				}
			})
		})
	}
}

// Who may not speak for a client does not get what is for it, nor ends its stream.
func TestStrangerUnderAClientsID(t *testing.T) {
	ca := newAuthority(t, "cluster")
	inWorld(t, func(w *world) {
		b := w.peer(2, transport.Config{TLS: ca.issue("replica-2")})
		client := w.peer(70000, transport.Config{TLS: ca.issue("client-70000")}, 2)
		client.send(2, "hello")
		time.Sleep(time.Second)
		stranger := w.peer(70000, transport.Config{TLS: ca.issue("client-70001")}, 2)
		stranger.send(2, "it is me")
		time.Sleep(time.Second)
		b.send(70000, "secret")
		time.Sleep(time.Second)
		b.wants("70000: hello")
		client.wants("2: secret")
		stranger.wants("")
		if got := client.Stats().Peers[0].Connects; got != 1 {
			w.Errorf("the client was connected %d times", got)
		}
	})
}

func TestHostsOfDifferentClusters(t *testing.T) {
	inWorld(t, func(w *world) {
		b := w.peer(2, transport.Config{Cluster: "theirs"})
		a := w.peer(1, transport.Config{Cluster: "ours"}, 2)
		a.send(2, "hello")
		time.Sleep(time.Second)
		a.refused(`this is a host of the cluster "theirs", not of "ours"`)
		b.wants("")
	})
}

func TestWrongAddress(t *testing.T) {
	inWorld(t, func(w *world) {
		b, c := w.peer(2, transport.Config{}), w.peer(3, transport.Config{})
		a := w.peer(1, transport.Config{})
		if err := a.SetPeer(2, place(3)); err != nil {
			w.Fatal(err)
		}
		a.send(2, "one")
		time.Sleep(100 * time.Millisecond)
		a.refused("this host is [3], not 2: the address is of another member")
		if err := a.SetPeer(2, place(2)); err != nil {
			w.Fatal(err)
		}
		time.Sleep(100 * time.Millisecond)
		b.wants("1: one")
		// It moves.
		if err := a.SetPeer(2, "c:2"); err != nil {
			w.Fatal(err)
		}
		time.Sleep(time.Millisecond)
		a.send(2, "two")
		time.Sleep(100 * time.Millisecond)
		a.refused("connection refused")
		if err := a.SetPeer(2, place(2)); err != nil {
			w.Fatal(err)
		}
		a.send(2, "three")
		time.Sleep(100 * time.Millisecond)
		b.wants("1: two, 1: three")
		a.RemovePeer(2)
		a.send(2, "four")
		if err := a.SetPeer(2, place(2)); err != nil {
			w.Fatal(err)
		}
		a.send(2, "five")
		time.Sleep(100 * time.Millisecond)
		b.wants("1 broken, 1: five")
		c.wants("")
	})
}

// raw opens a stream to member 2 by hand.
func (w *world) raw(p *peer) peerv1.Peer_LinkClient {
	w.Helper()
	cc, err := grpc.NewClient("passthrough:///"+place(2), grpc.WithContextDialer(w.net.DialContext("client")),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { cc.Close() })
	stream, err := peerv1.NewPeerClient(cc).Link(w.Context())
	if err != nil {
		w.Fatal(err)
	}
	return stream
}

func hello(change func(*peerv1.Hello)) *peerv1.Frame {
	h := &peerv1.Hello{MinVersion: 1, MaxVersion: 1, Cluster: "test", To: 2, Instance: 1, Epoch: 1}
	change(h)
	return &peerv1.Frame{Hello: h}
}

func TestMalformedStreams(t *testing.T) {
	fine := hello(func(*peerv1.Hello) {})
	message := []byte{0, 1, 2, 2, 'h', 'i'} // from 1 to 2 of group 0
	for name, c := range map[string]struct {
		frames []*peerv1.Frame
		code   codes.Code
		want   string
	}{
		"nothing":  {nil, codes.DeadlineExceeded, "no hello within 5s"},
		"no hello": {[]*peerv1.Frame{{Messages: message}}, codes.InvalidArgument, "no hello"},
		"old version": {[]*peerv1.Frame{hello(func(h *peerv1.Hello) {
			h.MinVersion, h.MaxVersion = 0, 0
		})}, codes.FailedPrecondition, "speaks versions 0 to 0 of the peer streams, this one 1 to 1"},
		"new version": {[]*peerv1.Frame{hello(func(h *peerv1.Hello) {
			h.MinVersion, h.MaxVersion = 2, 7
		})}, codes.FailedPrecondition, "speaks versions 2 to 7"},
		"long cluster": {[]*peerv1.Frame{hello(func(h *peerv1.Hello) {
			h.Cluster = strings.Repeat("x", 3000)
		})}, codes.FailedPrecondition, `of the cluster "test"`},
		"no epoch":     {[]*peerv1.Frame{hello(func(h *peerv1.Hello) { h.Epoch = 0 })}, codes.Aborted, "newer"},
		"second hello": {[]*peerv1.Frame{fine, fine}, codes.InvalidArgument, "second hello"},
		"cut off": {[]*peerv1.Frame{fine, {Messages: message[:5]}}, codes.InvalidArgument,
			"2 bytes announced, 1 left"},
		"number too long": {[]*peerv1.Frame{fine, {Messages: []byte{0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}}},
			codes.InvalidArgument, "field 1"},
		"from nobody": {[]*peerv1.Frame{fine, {Messages: []byte{0, 0, 2, 0}}}, codes.PermissionDenied, "node 0"},
		"repeated": {[]*peerv1.Frame{fine, {Messages: message}, {Messages: message}}, codes.InvalidArgument,
			"message 0 repeats: 1 is next"},
		"too large": {[]*peerv1.Frame{fine, {Messages: make([]byte, 5<<20)}}, codes.ResourceExhausted,
			"larger than max"},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				stream := w.raw(w.peer(2, transport.Config{}))
				for _, f := range c.frames {
					if err := stream.Send(f); err != nil {
						break // Recv says why
					}
				}
				var err error
				for err == nil {
					_, err = stream.Recv()
				}
				if status.Code(err) != c.code || !strings.Contains(err.Error(), c.want) {
					w.Errorf("got %v, want %v with %q", err, c.code, c.want)
				}
			})
		})
	}
}

// Versions that do not exist yet are negotiated down.
func TestNewerHostSpeaksOurVersion(t *testing.T) {
	inWorld(t, func(w *world) {
		b := w.peer(2, transport.Config{})
		stream := w.raw(b)
		if err := stream.Send(hello(func(h *peerv1.Hello) { h.MaxVersion = 9 })); err != nil {
			w.Fatal(err)
		}
		f, err := stream.Recv()
		if err != nil || f.GetWelcome().GetVersion() != 1 {
			w.Errorf("got %v, %v", f, err)
		}
	})
}

// Messages to nodes that are not here are counted; a stream that is not the newest is refused.
func TestStreamsByHand(t *testing.T) {
	inWorld(t, func(w *world) {
		b := w.peer(2, transport.Config{})
		newer := w.raw(b)
		if err := newer.Send(hello(func(h *peerv1.Hello) { h.Epoch = 5 })); err != nil {
			w.Fatal(err)
		}
		if err := newer.Send(&peerv1.Frame{Messages: []byte{0, 1, 9, 1, 'x', 7, 1, 2, 1, 'y', 0, 1, 2, 1, 'z'}}); err != nil {
			w.Fatal(err)
		}
		time.Sleep(time.Second)
		b.wants("1: z")
		if s := b.Stats(); s.Received != 3 || s.Undeliverable != 2 || s.Streams != 1 {
			w.Errorf("%d received, %d undeliverable, %d streams", s.Received, s.Undeliverable, s.Streams)
		}
		older := w.raw(b)
		if err := older.Send(hello(func(h *peerv1.Hello) { h.Epoch = 4 })); err != nil {
			w.Fatal(err)
		}
		if _, err := older.Recv(); status.Code(err) != codes.Aborted {
			w.Errorf("an older stream got %v", err)
		}
		newest := w.raw(b)
		if err := newest.Send(hello(func(h *peerv1.Hello) { h.Epoch, h.Next = 6, 3 })); err != nil {
			w.Fatal(err)
		}
		var err error
		for err == nil {
			_, err = newer.Recv()
		}
		if status.Code(err) != codes.Aborted {
			w.Errorf("the stream that was replaced got %v", err)
		}
		if err := newest.Send(&peerv1.Frame{First: 4, Messages: []byte{0, 1, 2, 1, 'u'}}); err != nil {
			w.Fatal(err)
		}
		time.Sleep(time.Second)
		b.wants("1 broken, 1: u")
	})
}

func TestTooManyStreams(t *testing.T) {
	inWorld(t, func(w *world) {
		b := w.peer(2, transport.Config{MaxStreams: 2})
		one := w.peer(70001, transport.Config{}, 2)
		time.Sleep(time.Second)
		// Two streams on one connection, since the number of connections is limited likewise.
		stream := w.raw(b)
		if err := stream.Send(hello(func(*peerv1.Hello) {})); err != nil {
			w.Fatal(err)
		}
		if _, err := stream.Recv(); err != nil {
			w.Fatal(err)
		}
		one.send(2, "hello")
		time.Sleep(time.Second)
		b.wants("70001: hello")
		third := w.peer(70003, transport.Config{HandshakeTimeout: time.Second}, 2)
		time.Sleep(5 * time.Second)
		if s := third.Stats().Peers[0]; s.State == transport.Up {
			w.Error("a third stream was accepted")
		}
	})
}

func TestHealth(t *testing.T) {
	ca := newAuthority(t, "cluster")
	inWorld(t, func(w *world) {
		b := w.peer(2, transport.Config{TLS: ca.issue("replica-2")})
		cfg := ca.issue("client")
		cfg.ServerName = "replica-2"
		cc, err := grpc.NewClient("passthrough:///"+place(2), grpc.WithContextDialer(w.net.DialContext("client")),
			grpc.WithTransportCredentials(credentials.NewTLS(cfg)))
		if err != nil {
			w.Fatal(err)
		}
		defer cc.Close()
		watch, err := healthpb.NewHealthClient(cc).Watch(w.Context(),
			&healthpb.HealthCheckRequest{Service: "foresay.peer.v1.Peer"})
		if err != nil {
			w.Fatal(err)
		}
		for _, want := range []healthpb.HealthCheckResponse_ServingStatus{healthpb.HealthCheckResponse_SERVING,
			healthpb.HealthCheckResponse_NOT_SERVING} {
			r, err := watch.Recv()
			if err != nil || r.GetStatus() != want {
				w.Errorf("got %v, %v, want %v", r, err, want)
			}
			go b.end()
		}
	})
}

// A transport that ends sends what is queued, and leaves no goroutine: the bubble would say so.
func TestGracefulStop(t *testing.T) {
	inWorld(t, func(w *world) {
		a, b := w.peer(1, transport.Config{}, 2), w.peer(2, transport.Config{})
		c := w.peer(70000, transport.Config{}, 2)
		c.send(2, "hello")
		time.Sleep(time.Second)
		b.wants("70000: hello")
		a.send(2, "last")
		b.send(70000, "last")
		if err := a.end(); err != nil {
			w.Error(err)
		}
		time.Sleep(time.Second)
		b.wants("1: last")
		b.send(70000, "really")
		start := time.Now()
		if err := b.end(); err != nil {
			w.Error(err)
		}
		if took := time.Since(start); took > 100*time.Millisecond {
			w.Errorf("the stop took %v", took)
		}
		synctest.Wait()
		time.Sleep(time.Second)
		c.wants("2: last, 2: really")
		if err := b.SetPeer(1, place(1)); err != nil {
			w.Error(err) // it has no effect
		}
	})
}

// A peer that does not read cannot hold up the end.
func TestStopWithASilentPeer(t *testing.T) {
	inWorld(t, func(w *world) {
		a := w.peer(1, transport.Config{DrainTimeout: 3 * time.Second}, 2)
		w.peer(2, transport.Config{})
		time.Sleep(time.Second)
		w.net.SetDown("a", "b", true)
		for range 100 {
			a.send(2, strings.Repeat("x", 100<<10))
		}
		start := time.Now()
		if err := a.end(); err != nil {
			w.Error(err)
		}
		if took := time.Since(start); took != 3*time.Second {
			w.Errorf("the stop took %v, want 3s", took)
		}
	})
}

func TestListenerThatFails(t *testing.T) {
	inWorld(t, func(w *world) {
		lis, err := w.net.Listen("a")
		if err != nil {
			w.Fatal(err)
		}
		tr, err := transport.New(transport.Config{Cluster: "test", IDs: []protocol.ID{1}, Insecure: true})
		if err != nil {
			w.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- tr.Run(w.Context(), lis) }()
		synctest.Wait()
		lis.Close()
		if err := <-ended; err == nil || !strings.HasPrefix(err.Error(), "transport: serve a:1: ") {
			w.Errorf("got %v", err)
		}
		if err := tr.Run(w.Context(), nil); err == nil {
			w.Error("a transport ran twice")
		}
	})
}

// The same over real sockets.
func TestMutualTLSOverTCP(t *testing.T) {
	ca := newAuthority(t, "cluster")
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	member, err := transport.New(transport.Config{Cluster: "test", IDs: []protocol.ID{1}, TLS: ca.issue("replica-1")})
	if err != nil {
		t.Fatal(err)
	}
	client, err := transport.New(transport.Config{Cluster: "test", TLS: ca.issue("client")})
	if err != nil {
		t.Fatal(err)
	}
	if err := client.SetPeer(1, lis.Addr().String()); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 2)
	go func() { ended <- member.Run(ctx, lis) }()
	go func() { ended <- client.Run(ctx, nil) }()
	atMember, atClient := make(inbox, 10), make(inbox, 10)
	one, err := member.Open(transport.Addr{ID: 1}, atMember)
	if err != nil {
		t.Fatal(err)
	}
	other, err := client.Open(transport.Addr{ID: 70000}, atClient)
	if err != nil {
		t.Fatal(err)
	}
	other.Send(1, []byte("hello"))
	other.Flush()
	atMember.wants(t, "hello from 70000")
	one.Send(70000, []byte("welcome"))
	one.Flush()
	atClient.wants(t, "welcome from 1")
	stop()
	for range 2 {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

func (b inbox) wants(t *testing.T, want string) {
	t.Helper()
	select {
	case got := <-b:
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	case <-time.After(10 * time.Second):
		t.Fatalf("nothing came, want %q", want)
	}
}
