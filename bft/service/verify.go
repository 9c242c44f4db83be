package service

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/foresay/foresay/bft"
	"github.com/foresay/foresay/protocol"
)

// How many signatures a replica checks for one peer: at most so many in a second, and so many at
// once, which is more than there are in the largest message.
const (
	signaturesPerSecond = 20_000
	signaturesAtOnce    = 40_000
)

// metered is a group's codec that checks a bounded number of signatures for each peer, as who sends
// nonsense could have a replica do nothing else. What is beyond that is not checked, so it proves
// nothing; an honest peer does not get there, and sends again what it needs.
type metered struct {
	protocol.Codec[bft.Message]
	protocol.SharingCodec[bft.Message]
	codec     func(*bft.Scheme) protocol.Codec[bft.Message]
	scheme    *bft.Scheme // which remembers what was right, whoever sent it
	verifier  bft.Verifier
	unchecked atomic.Uint64 // signatures

	mu    sync.Mutex
	peers map[protocol.ID]protocol.Codec[bft.Message]
}

func newMetered(codec func(*bft.Scheme) protocol.Codec[bft.Message], group string, v bft.Verifier) *metered {
	scheme := bft.NewScheme(group, v)
	c := codec(scheme)
	m := &metered{Codec: c, codec: codec, scheme: scheme, verifier: v,
		peers: map[protocol.ID]protocol.Codec[bft.Message]{}}
	m.SharingCodec = c.(protocol.SharingCodec[bft.Message]) // as all of package wirefmt are
	return m
}

// DecodeFrom is part of protocol.PeerCodec.
func (m *metered) DecodeFrom(from protocol.ID, b []byte) (bft.Message, error) {
	m.mu.Lock()
	c := m.peers[from]
	if c == nil {
		c = m.codec(m.scheme.By(&meter{inner: m.verifier, unchecked: &m.unchecked, left: signaturesAtOnce, at: time.Now()}))
		m.peers[from] = c
	}
	m.mu.Unlock()
	return c.Decode(b)
}

// meter is the verifier of what one peer sends.
type meter struct {
	inner     bft.Verifier
	unchecked *atomic.Uint64

	mu   sync.Mutex
	left float64
	at   time.Time // when left was right
}

// Verify is part of bft.Verifier.
func (m *meter) Verify(key bft.Key, message, signature []byte) bool {
	m.mu.Lock()
	now := time.Now()
	m.left = min(m.left+now.Sub(m.at).Seconds()*signaturesPerSecond, signaturesAtOnce)
	m.at = now
	may := m.left >= 1
	if may {
		m.left--
	}
	m.mu.Unlock()
	if !may {
		m.unchecked.Add(1)
		return false
	}
	return m.inner.Verify(key, message, signature)
}
