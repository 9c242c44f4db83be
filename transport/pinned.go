package transport

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"errors"
	"fmt"
	"math/big"
	"time"

	"github.com/foresay/foresay/protocol"
)

// Pinned returns the TLS configuration of a host that goes by Config.Keys: it proves this key. Its
// certificate is made here, as nobody looks at more of it than the key.
func Pinned(key ed25519.PrivateKey) (*tls.Config, error) {
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "foresay"}, NotBefore: time.Unix(0, 0),
		NotAfter: time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC), // the value for none
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("transport: a certificate: %w", err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("transport: a certificate: %w", err)
	}
	return &tls.Config{MinVersion: tls.VersionTLS13,
		Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}}}, nil
}

// keyOf returns the key of a certificate, nil if that is none of Ed25519.
func keyOf(cert *x509.Certificate) ed25519.PublicKey {
	key, _ := cert.PublicKey.(ed25519.PublicKey)
	return key
}

func keyName(key ed25519.PublicKey) string {
	if len(key) == 0 {
		return "none of Ed25519"
	}
	return hex.EncodeToString(key[:4])
}

// keys returns the present keys.
func (c *Config) keys() map[protocol.ID]ed25519.PublicKey {
	if c.pinned == nil {
		return c.Keys
	}
	return *c.pinned.Load()
}

// SetKeys puts other keys in the place of Config.Keys, which the host had. Connections that are
// there stay: RemovePeer ends those to a member.
func (t *Transport) SetKeys(keys map[protocol.ID]ed25519.PublicKey) { t.cfg.pinned.Store(&keys) }

// hasKey says with an error that a host does not prove the key of a node.
func (c *Config) hasKey(cert *x509.Certificate, id protocol.ID) error {
	want, ok := c.keys()[id]
	if !ok && id >= FirstMemberClient && c.isMembers(keyOf(cert)) {
		return nil
	}
	if !ok {
		return fmt.Errorf("node %d is unknown here: it has no key in the group's file", id)
	}
	if got := keyOf(cert); !want.Equal(got) {
		return fmt.Errorf("node %d has the key %s in the group's file here, not %s", id, keyName(want), keyName(got))
	}
	return nil
}

// isMembers reports whether a key is one of a member.
func (c *Config) isMembers(key ed25519.PublicKey) bool {
	for id, k := range c.keys() {
		if id < c.FirstClient && k.Equal(key) {
			return true
		}
	}
	return false
}

// pinDialed changes the TLS of connections to a member: that one's key will do and no other, unless
// anybody will.
func (c *Config) pinDialed(cfg *tls.Config, to protocol.ID) {
	cfg.InsecureSkipVerify = true // names and authorities are of no matter, VerifyConnection is all
	cfg.VerifyConnection = func(s tls.ConnectionState) error {
		if c.Anybody {
			return nil
		}
		if err := c.hasKey(s.PeerCertificates[0], to); err != nil {
			return fmt.Errorf("tls: %w", err)
		}
		return nil
	}
}

// pinAccepted changes the TLS of connections that others make: they must have one of the keys. For
// whom they may speak is looked at when they do.
func (c *Config) pinAccepted(cfg *tls.Config) {
	cfg.ClientAuth = tls.RequireAnyClientCert
	cfg.VerifyConnection = func(s tls.ConnectionState) error {
		got := keyOf(s.PeerCertificates[0])
		for _, key := range c.keys() {
			if key.Equal(got) {
				return nil
			}
		}
		return fmt.Errorf("tls: the key %s is nobody's in the group's file here", keyName(got))
	}
}

// checkKeys says what is wrong with the keys, or with TLS beside them.
func (c *Config) checkKeys() error {
	switch {
	case c.TLS == nil:
		return errors.New("transport: Config.Keys is set and Config.TLS is nil")
	case c.CertifiedAs != nil:
		return errors.New("transport: Config.Keys and Config.CertifiedAs are both set")
	}
	for id, key := range c.Keys {
		if len(key) != ed25519.PublicKeySize {
			return fmt.Errorf("transport: Config.Keys: that of node %d has %d bytes, not %d", id, len(key),
				ed25519.PublicKeySize)
		}
	}
	return nil
}
