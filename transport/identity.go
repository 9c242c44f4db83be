package transport

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/peer"

	"github.com/foresay/foresay/protocol"
)

// The names in certificates.

// MemberName returns the DNS name that the certificate of a member has: replica-3.
func MemberName(id protocol.ID) string { return fmt.Sprintf("%s%d", memberPrefix, id) }

const memberPrefix = "replica-"

// AnyClientName is the DNS name that the certificate of a host has which may use any client ID.
const AnyClientName = "client"

// ClientName returns the DNS name that the certificate of a host has which may use one client ID:
// client-70000.
func ClientName(id protocol.ID) string { return fmt.Sprintf("client-%d", id) }

// FirstMemberClient is the lowest of the client IDs that a member may use as well, under its own
// certificate: for the calls that a member makes to the service which it is part of.
const FirstMemberClient = protocol.ID(1 << 31)

// isMember reports whether a certificate is a member's.
func isMember(cert *x509.Certificate) bool {
	return slices.ContainsFunc(cert.DNSNames, func(name string) bool {
		id, ok := strings.CutPrefix(name, memberPrefix)
		_, err := strconv.ParseUint(id, 10, 32)
		return ok && err == nil
	})
}

// memberName returns the DNS name that the certificate of a member's host has.
func (c *Config) memberName(id protocol.ID) string {
	if c.CertifiedAs != nil {
		id = c.CertifiedAs(id)
	}
	return MemberName(id)
}

// dialCredentials are for connections to one member: no other host will do.
func (c *Config) dialCredentials(to protocol.ID) credentials.TransportCredentials {
	if c.TLS == nil {
		return insecure.NewCredentials()
	}
	cfg := c.TLS.Clone()
	cfg.MinVersion = tls.VersionTLS13
	cfg.ServerName = c.memberName(to)
	cfg.InsecureSkipVerify = false
	if c.Keys != nil {
		c.pinDialed(cfg, to)
	}
	return credentials.NewTLS(cfg)
}

func (c *Config) serverCredentials(refused *atomic.Uint64) credentials.TransportCredentials {
	if c.TLS == nil {
		return insecure.NewCredentials()
	}
	cfg := c.TLS.Clone()
	cfg.MinVersion = tls.VersionTLS13
	cfg.ClientAuth = tls.RequireAndVerifyClientCert
	if c.Keys != nil {
		c.pinAccepted(cfg)
	}
	return loudCredentials{credentials.NewTLS(cfg), c.Logger, refused}
}

// errTLSOnly says that a host without TLS dialed one that has it.
var errTLSOnly = errors.New("it takes connections with TLS only, and this host is configured without")

// demandsTLS reports whether a member that has ended a connection without TLS speaks TLS. Such a
// member says nothing of it: it ends the connection, like one that is being stopped. The question
// is a
// handshake, which is ended before anything is sent in it, so it does not matter whose certificate
// the member has.
func (l *link) demandsTLS(ctx context.Context, address string) bool {
	if l.t.cfg.TLS != nil {
		return false
	}
	raw, err := l.t.cfg.Dial(ctx, address)
	if err != nil {
		return false
	}
	defer raw.Close() // nothing was sent
	ctx, cancel := context.WithTimeout(ctx, l.t.cfg.HandshakeTimeout)
	defer cancel()
	err = tls.Client(raw, &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13}).HandshakeContext(ctx)
	_, alert := errors.AsType[tls.AlertError](err)
	return err == nil || alert
}

// loudCredentials say why a host could not connect. gRPC itself tells nobody.
type loudCredentials struct {
	credentials.TransportCredentials
	log     *slog.Logger
	refused *atomic.Uint64
}

func (l loudCredentials) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	c, info, err := l.TransportCredentials.ServerHandshake(raw)
	if err != nil {
		l.refused.Add(1)
		l.log.Warn("transport: a TLS handshake failed", "from", raw.RemoteAddr(), "err", err)
	}
	return c, info, err
}

func (l loudCredentials) Clone() credentials.TransportCredentials {
	return loudCredentials{l.TransportCredentials.Clone(), l.log, l.refused}
}

// peerCertificate returns the certificate of the host that opened a stream, nil if the connection
// has none. One that serverCredentials would not have has not come so far.
func peerCertificate(ctx context.Context) *x509.Certificate {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return nil
	}
	info, ok := p.AuthInfo.(credentials.TLSInfo)
	if !ok || len(info.State.PeerCertificates) == 0 {
		return nil
	}
	return info.State.PeerCertificates[0]
}

// CheckSender says with an error that other hosts take nothing from a node here, by the certificate
// that this host shows them: they would end each stream that it opens. It knows nothing of a
// certificate that is chosen for each connection.
func (c *Config) CheckSender(id protocol.ID) error {
	if c.TLS == nil || len(c.TLS.Certificates) == 0 || c.TLS.Certificates[0].Leaf == nil {
		return nil
	}
	return c.maySpeakFor(c.TLS.Certificates[0].Leaf, id)
}

// maySpeakFor says with an error that a host must not send messages from a node.
func (c *Config) maySpeakFor(cert *x509.Certificate, id protocol.ID) error {
	if id == protocol.App {
		return fmt.Errorf("messages from node %d, which is nobody on a network", id)
	}
	if c.TLS == nil {
		return nil
	}
	if cert == nil {
		return fmt.Errorf("messages from node %d without a certificate", id)
	}
	if c.Keys != nil {
		return c.hasKey(cert, id)
	}
	names := []string{c.memberName(id)}
	if id >= c.FirstClient {
		names = []string{AnyClientName, ClientName(id)}
	}
	if id >= FirstMemberClient && isMember(cert) {
		return nil
	}
	for _, name := range names {
		if slices.Contains(cert.DNSNames, name) {
			return nil
		}
	}
	return fmt.Errorf("messages from node %d: the certificate is for %q, it would have to be for one of %q", id,
		cert.DNSNames, names)
}
