package transport_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"math/big"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/transport"
	"github.com/foresay/foresay/wan"
	"github.com/foresay/foresay/wan/shape"
)

// world is hosts at the sites of a network in memory, with 10 ms between any two. Member 1 is at a,
// 2 at b, 3 at c.
type world struct {
	*testing.T
	net *shape.Network
}

func sites() []wan.Site { return []wan.Site{"a", "b", "c", "client"} }

func inWorld(t *testing.T, test func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		test(&world{t, shape.NewNetwork(wan.Uniform(10*time.Millisecond, sites()...), 1)})
	})
}

// peer is a transport with a node in group 0, which remembers what it gets.
type peer struct {
	*transport.Transport
	w    *world
	port *transport.Port
	stop context.CancelFunc
	done chan error

	mu    sync.Mutex
	notes []string
}

// Receive remembers messages.
func (p *peer) Receive(msgs []transport.Inbound) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range msgs {
		p.notes = append(p.notes, fmt.Sprintf("%d: %s", m.From, m.Payload))
	}
}

// Broken remembers that messages were lost.
func (p *peer) Broken(from protocol.ID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.notes = append(p.notes, fmt.Sprintf("%d broken", from))
}

// got returns what the node got since the last time.
func (p *peer) got() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := strings.Join(p.notes, ", ")
	p.notes = nil
	return s
}

func (p *peer) wants(want string) {
	p.w.Helper()
	if got := p.got(); got != want {
		p.w.Errorf("got %q, want %q", got, want)
	}
}

func (p *peer) send(to protocol.ID, msgs ...string) {
	for _, m := range msgs {
		p.port.Send(to, []byte(m))
	}
	p.port.Flush()
}

// peer makes and runs a transport of the node with an ID: a member at its site, or a client. It
// stops with the test, if not before.
func (w *world) peer(id protocol.ID, cfg transport.Config, members ...protocol.ID) *peer {
	w.Helper()
	site := wan.Site("client")
	var lis net.Listener
	if id < 65536 {
		cfg.IDs = []protocol.ID{id}
		site = sites()[id-1]
		var err error
		if lis, err = w.net.Listen(site); err != nil {
			w.Fatal(err)
		}
	}
	if cfg.Cluster == "" {
		cfg.Cluster = "test"
	}
	cfg.Insecure = cfg.TLS == nil
	cfg.Dial = w.net.DialContext(site)
	t, err := transport.New(cfg)
	if err != nil {
		w.Fatal(err)
	}
	p := &peer{Transport: t, w: w, done: make(chan error, 1)}
	if p.port, err = t.Open(transport.Addr{ID: id}, p); err != nil {
		w.Fatal(err)
	}
	for _, m := range members {
		if err := t.SetPeer(m, place(m)); err != nil {
			w.Fatal(err)
		}
	}
	ctx, stop := context.WithCancel(context.Background())
	p.stop = stop
	go func() { p.done <- t.Run(ctx, lis) }()
	w.Cleanup(func() {
		if err := p.end(); err != nil {
			w.Error(err)
		}
	})
	return p
}

// place is the address of a member.
func place(id protocol.ID) string { return string(sites()[id-1]) + ":1" }

// end stops the transport, if it was not, and returns what Run did.
func (p *peer) end() error {
	p.stop()
	err := <-p.done
	p.done <- nil
	return err
}

// authority makes certificates. They are valid in a bubble, whose time begins with the year 2000,
// and today.
type authority struct {
	t    testing.TB
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t testing.TB, name string) *authority {
	t.Helper()
	a := &authority{t: t}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1<<32, 0),
		DNSNames: []string{name}, IsCA: true, BasicConstraintsValid: true,
	}
	a.cert, a.key = a.sign(template, nil, nil)
	return a
}

func (a *authority) sign(
	template, parent *x509.Certificate, by *ecdsa.PrivateKey,
) (*x509.Certificate, *ecdsa.PrivateKey) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	if parent == nil {
		parent, by = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), by)
	if err != nil {
		a.t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return cert, key
}

// issue returns the configuration of a host with names, which trusts this authority.
func (a *authority) issue(names ...string) *tls.Config {
	return a.issueUntil(time.Unix(1<<32, 0), names...)
}

func (a *authority) issueUntil(end time.Time, names ...string) *tls.Config {
	a.t.Helper()
	cert, key := a.sign(&x509.Certificate{
		SerialNumber: big.NewInt(2), NotBefore: time.Unix(0, 0), NotAfter: end, DNSNames: slices.Clone(names),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth,
			x509.ExtKeyUsageServerAuth},
	}, a.cert, a.key)
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return &tls.Config{
		Certificates: []tls.Certificate{{Certificate: [][]byte{cert.Raw}, PrivateKey: key, Leaf: cert}},
		RootCAs:      pool, ClientCAs: pool,
	}
}
