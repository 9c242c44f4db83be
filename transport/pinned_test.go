package transport_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/tls"
	"strings"
	"testing"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/transport"
)

// pinKey returns the key of a seed.
func pinKey(seed byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed}, ed25519.SeedSize))
}

// pin returns the TLS of a host with the key of a seed.
func pin(t *testing.T, seed byte) *tls.Config {
	t.Helper()
	c, err := transport.Pinned(pinKey(seed))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func pins(of map[protocol.ID]byte) map[protocol.ID]ed25519.PublicKey {
	out := map[protocol.ID]ed25519.PublicKey{}
	for id, seed := range of {
		out[id] = pinKey(seed).Public().(ed25519.PublicKey)
	}
	return out
}

// TestKeysArePinned: who has a node's key is that node, and no authority can change that.
func TestKeysArePinned(t *testing.T) {
	all := pins(map[protocol.ID]byte{1: 1, 2: 2, 3: 3, 70000: 70})
	trusted := newAuthority(t, "trusted")
	signed := trusted.issue("replica-1", "replica-2", "client")
	both := pin(t, 2)
	both.RootCAs, both.ClientCAs = signed.RootCAs, signed.ClientCAs // which nobody asks
	for name, c := range map[string]struct {
		a, b    *tls.Config
		keys    map[protocol.ID]ed25519.PublicKey // of b; nil: all
		id      protocol.ID
		refused string
		noisy   bool // as in TestStrangersAreRefused
		anybody bool
	}{
		"members":         {a: pin(t, 1), b: pin(t, 2), id: 1},
		"client":          {a: pin(t, 70), b: pin(t, 2), id: 70000},
		"a stranger":      {a: pin(t, 9), b: pin(t, 2), id: 1, refused: "tls: "},
		"other's address": {a: pin(t, 1), b: pin(t, 3), id: 1, refused: "node 2 has the key"},
		"one with the authority's word": {a: signed, b: both, id: 1,
			refused: "tls: "},
		"a member with the authority's word": {a: pin(t, 1), b: signed, id: 1,
			refused: "in the group's file here, not none of Ed25519"},
		"another group's file": {a: pin(t, 1), b: pin(t, 2), id: 1,
			keys: pins(map[protocol.ID]byte{1: 11, 2: 2}), refused: "tls: "},
		"a member under another's ID": {a: pin(t, 3), b: pin(t, 2), id: 1, refused: "node 1 has the key", noisy: true},
		"a client under a member's":   {a: pin(t, 70), b: pin(t, 2), id: 1, refused: "node 1 has the key", noisy: true},
		"a member under a client's":   {a: pin(t, 1), b: pin(t, 2), id: 70000, refused: "node 70000 has", noisy: true},
		"a client of no name": {a: pin(t, 70), b: pin(t, 2), id: 70001, refused: "node 70001 is unknown",
			noisy: true},
		"a member's own client": {a: pin(t, 1), b: pin(t, 2), id: transport.FirstMemberClient + 1},
		"a client's own client": {a: pin(t, 70), b: pin(t, 2), id: transport.FirstMemberClient + 1,
			refused: "is unknown", noisy: true},
		"anybody for another":      {a: pin(t, 70), b: pin(t, 3), id: 70000, anybody: true},
		"a stranger for anybody's": {a: pin(t, 9), b: pin(t, 2), id: 1, anybody: true, refused: "tls: "},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				if c.keys == nil {
					c.keys = all
				}
				b := w.peer(2, transport.Config{TLS: c.b, Keys: c.keys})
				a := w.peer(c.id, transport.Config{TLS: c.a, Keys: all, MaxBackoff: time.Hour, Anybody: c.anybody}, 2)
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
				if s := b.Stats(); c.noisy != (s.RefusedStreams > 0) {
					w.Errorf("the member refused %d streams", s.RefusedStreams)
				}
			})
		})
	}
}

// TestSetKeys: a host that has other keys from now on takes those who have them, and nobody else.
func TestSetKeys(t *testing.T) {
	inWorld(t, func(w *world) {
		b := w.peer(2, transport.Config{TLS: pin(t, 2), Keys: pins(map[protocol.ID]byte{1: 11, 2: 2})})
		a := w.peer(1, transport.Config{TLS: pin(t, 1), Keys: pins(map[protocol.ID]byte{1: 1, 2: 2})}, 2)
		for _, seed := range []byte{11, 1} {
			b.SetKeys(pins(map[protocol.ID]byte{1: seed, 2: 2}))
			time.Sleep(5 * time.Second) // longer than a link waits
			a.send(2, "hello")
			time.Sleep(time.Second)
			if got := b.got(); (got != "") != (seed == 1) {
				w.Errorf("with the key of the seed %d for node 1 it gets %q", seed, got)
			}
		}
	})
}

func TestKeysThatCannotBe(t *testing.T) {
	keys := pins(map[protocol.ID]byte{1: 1})
	same := func(id protocol.ID) protocol.ID { return id }
	for want, c := range map[string]transport.Config{
		"Config.Keys is set and Config.TLS is nil":    {Insecure: true, Keys: keys},
		"Config.Keys and Config.CertifiedAs are both": {TLS: pin(t, 1), Keys: keys, CertifiedAs: same},
		"that of node 1 has 3 bytes, not 32": {TLS: pin(t, 1),
			Keys: map[protocol.ID]ed25519.PublicKey{1: {1, 2, 3}}},
	} {
		c.Cluster = "test"
		if _, err := transport.New(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want one with %q", err, want)
		}
	}
}
