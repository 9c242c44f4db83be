package bft

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"slices"

	"github.com/foresay/foresay/internal/wirefmt"
	"github.com/foresay/foresay/keyspace"
)

// A Key is a public key. It names who holds the private one.
type Key [ed25519.PublicKeySize]byte

func (k Key) String() string { return hex.EncodeToString(k[:4]) }

// KeyFields takes a Key.
func KeyFields(c *wirefmt.Coder, k *Key) { fixed(c, k[:], "key") }

// A Digest is a SHA-256 of something that has one form as bytes.
type Digest = keyspace.Digest

// DigestFields takes a Digest.
func DigestFields(c *wirefmt.Coder, d *Digest) { fixed(c, d[:], "digest") }

func fixed(c *wirefmt.Coder, v []byte, what string) {
	b := slices.Clone(v)
	wirefmt.View(c, &b)
	if c.Reading() && c.Err() == nil && copy(v, b) != len(b) || len(b) != len(v) {
		c.Failf("a %s of %d bytes", what, len(b))
	}
}

// A Verifier checks signatures. It is safe for concurrent use.
type Verifier interface {
	Verify(key Key, message, signature []byte) bool
}

// Ed25519 checks signatures of Ed25519, one by one and by one equation everywhere: checking many at
// once accepts others.
type Ed25519 struct{}

// Verify is part of Verifier.
func (Ed25519) Verify(key Key, message, signature []byte) bool {
	return ed25519.Verify(key[:], message, signature)
}

// A Signer signs with one private key. Only this package makes one, so that nobody can sign with a
// key that is not theirs.
type Signer struct {
	key     Key
	private ed25519.PrivateKey // nil for one of Secrets
	secret  []byte
}

// NewSigner returns the signer of an Ed25519 key.
func NewSigner(private ed25519.PrivateKey) *Signer {
	return &Signer{key: Key(private.Public().(ed25519.PublicKey)), private: private}
}

// Key returns the public key.
func (s *Signer) Key() Key { return s.key }

func (s *Signer) sign(message []byte) []byte {
	if s.private != nil {
		return ed25519.Sign(s.private, message)
	}
	return tag(s.secret, message)
}

// Secrets are the keys of a simulation, where signatures must be cheap. Whoever checks one knows
// all secrets, so they prove nothing outside of the process; but as for those of Ed25519, nobody
// makes one without the key's Signer. The zero value has no keys.
type Secrets struct{ of map[Key][]byte }

// Signer returns the signer of the key that a seed gives.
func (s *Secrets) Signer(seed uint64) *Signer {
	secret := sha256.Sum256(binary.BigEndian.AppendUint64([]byte("foresay secret "), seed))
	key := Key(sha256.Sum256(secret[:]))
	if s.of == nil {
		s.of = map[Key][]byte{}
	}
	s.of[key] = secret[:]
	return &Signer{key: key, secret: secret[:]}
}

// Verify is part of Verifier.
func (s *Secrets) Verify(key Key, message, signature []byte) bool {
	secret, ok := s.of[key]
	return ok && bytes.Equal(signature, tag(secret, message))
}

func tag(secret, message []byte) []byte {
	h := sha256.New()
	h.Write(secret)
	h.Write(message)
	return h.Sum(nil)[:16]
}

// A Scheme is how a group signs: its name is a part of all that is signed.
type Scheme struct {
	group    string
	verifier *proven
}

// NewScheme returns the scheme of the group of that name. It remembers for a while which signatures
// are right.
func NewScheme(group string, v Verifier) *Scheme {
	return &Scheme{group: group, verifier: &proven{v, newMemory()}}
}

// By returns a scheme of the same group with another verifier, for what one has to check oneself:
// both remember the signatures that either has found right.
func (s *Scheme) By(v Verifier) *Scheme {
	return &Scheme{group: s.group, verifier: &proven{v, s.verifier.memory}}
}

// A Statement is a kind of what is signed, with the fields of its bodies.
type Statement[B any] struct {
	fields func(*wirefmt.Coder, *B)
	spoken *wirefmt.Layout[spoken[B]]
}

// spoken is what is signed. Its version is one of all statements.
type spoken[B any] struct {
	group string
	body  B
}

const spokenVersion = 1

// NewStatement declares a kind of statement. The name is a part of what is signed: "pbft prepare".
func NewStatement[B any](name string, fields func(*wirefmt.Coder, *B)) *Statement[B] {
	return &Statement[B]{fields: fields, spoken: wirefmt.NewLayout(name, func(c *wirefmt.Coder, m *spoken[B]) {
		wirefmt.Version(c, spokenVersion)
		kind := "foresay bft: " + name
		if wirefmt.String(c, &kind); kind != "foresay bft: "+name {
			c.Failf("%q, want %q", kind, name)
		}
		wirefmt.String(c, &m.group)
		fields(c, &m.body)
	})}
}

// bytes returns what is signed.
func (s *Statement[B]) bytes(group string, body *B) []byte {
	return s.spoken.Append(make([]byte, 0, 256), spoken[B]{group, *body})
}

// Digest returns the digest of a body of this kind. It does not depend on who signs it.
func (s *Statement[B]) Digest(sc *Scheme, body B) Digest {
	return sha256.Sum256(s.bytes(sc.group, &body))
}

// Sign signs a body.
func (s *Statement[B]) Sign(sc *Scheme, by *Signer, body B) Signed[B] {
	return Signed[B]{body, seal{by.key, by.sign(s.bytes(sc.group, &body)), true}}
}

// Forge returns a body with a signature that nobody made. It is what adversaries in tests send.
func (s *Statement[B]) Forge(key Key, signature []byte, body B) Signed[B] {
	return Signed[B]{body, seal{key, signature, false}}
}

// A seal is a signature; proven says that it was checked, or made here.
type seal struct {
	key       Key
	signature []byte
	proven    bool
}

func sealFields(c *wirefmt.Coder, s *seal) {
	KeyFields(c, &s.key)
	wirefmt.Bytes(c, &s.signature)
}

// A Signed is a body with a signature.
type Signed[B any] struct {
	body B
	seal seal
}

// Body returns what is said. It is not changed.
func (s *Signed[B]) Body() *B { return &s.body }

// By reports whether a key signed the body.
func (s *Signed[B]) By(key Key) bool { return s.seal.proven && s.seal.key == key }

// Fields returns how a Signed looks as bytes. Reading it checks the signature. A wrong one is no
// error: the message is as it was sent, and proves nothing.
func (s *Statement[B]) Fields(sc *Scheme) func(*wirefmt.Coder, *Signed[B]) {
	return func(c *wirefmt.Coder, m *Signed[B]) {
		s.fields(c, &m.body)
		sealFields(c, &m.seal)
		if c.Reading() && c.Err() == nil {
			m.seal.proven = sc.verifier.Verify(m.seal.key, s.bytes(sc.group, &m.body), m.seal.signature)
		}
	}
}

// A Certificate is one body that several have signed. Its zero value says the zero body, and nobody
// has signed it.
type Certificate[B comparable] struct {
	body  B
	seals []seal
}

// Join returns the certificate of what has been signed by several. Those that say something else
// than the first one are left out.
func Join[B comparable](signed []Signed[B]) Certificate[B] {
	var c Certificate[B]
	for i, s := range signed {
		if i == 0 {
			c.body = s.body
		}
		if s.body == c.body {
			c.seals = append(c.seals, s.seal)
		}
	}
	return c
}

// Body returns what is said.
func (c *Certificate[B]) Body() B { return c.body }

// Count returns how many different keys of those that ok accepts have signed the body.
func (c *Certificate[B]) Count(ok func(Key) bool) int {
	n := 0
	for i, s := range c.seals {
		again := slices.ContainsFunc(c.seals[:i], func(t seal) bool { return t.proven && t.key == s.key })
		if s.proven && !again && ok(s.key) {
			n++
		}
	}
	return n
}

// CertificateFields returns how a Certificate looks as bytes. Reading it checks the signatures.
func CertificateFields[B comparable](s *Statement[B], sc *Scheme) func(*wirefmt.Coder, *Certificate[B]) {
	return func(c *wirefmt.Coder, m *Certificate[B]) {
		s.fields(c, &m.body)
		wirefmt.List(c, &m.seals, len(Key{})+2, sealFields)
		if !c.Reading() || c.Err() != nil || len(m.seals) == 0 {
			return
		}
		if len(m.seals) > maxSeals {
			c.Failf("a certificate with %d signatures, more than %d", len(m.seals), maxSeals)
			return
		}
		signed := s.bytes(sc.group, &m.body)
		for i := range m.seals {
			x := &m.seals[i]
			x.proven = sc.verifier.Verify(x.key, signed, x.signature)
		}
	}
}

// maxSeals bounds how many signatures of one certificate are checked: those of the largest group.
const maxSeals = 64
