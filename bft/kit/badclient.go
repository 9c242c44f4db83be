package kit

import (
	"fmt"
	"slices"
	"time"

	"github.com/foresay/foresay/bft"
	"github.com/foresay/foresay/bft/sessions"
	"github.com/foresay/foresay/protocol"
)

// ClientStrategies are what clients can do that do as they like. The zero strategy is each of the
// small ones in turn.
func ClientStrategies() []string {
	return []string{badBodies, badConditions, badNumbers, badWindow, badSessions, badPartial, badSignatures, badHuge}
}

const (
	badBodies     = "equivocate" // different bodies for different replicas
	badConditions = "conditions" // false ones, and some that cannot be judged
	badNumbers    = "reuse"      // numbers again, for something else
	badWindow     = "window"     // numbers beyond the window
	badSessions   = "sessions"   // another session each time
	badPartial    = "partial"    // for half of the replicas only, and in another one's name for the others
	badSignatures = "forge"      // nobody's signature
	// badHuge is requests as large as they may be, many at once, and larger ones, each for all
	// replicas but one.
	badHuge = "huge"

	hugeRequests = 12 // at once
)

// BadClient is a client that does as it likes. It asks for nothing that the service understands, so
// whatever becomes of its requests nobody else can tell.
type BadClient struct {
	cfg      bft.ClientConfig
	st       Statements
	strategy string
	session  bft.SessionID
	n        bft.Number
	ticks    int
}

// NewBadClient returns a bad client of a protocol.
func NewBadClient(strategy string, c bft.ClientConfig, st Statements) *BadClient {
	c.Limits, _ = c.Limits.WithDefaults()
	return &BadClient{cfg: c, st: st, strategy: strategy, session: 1}
}

const badClientEvery = 30 * time.Millisecond

// Start is part of protocol.Node, as are Receive and Expire.
func (b *BadClient) Start(env *protocol.Env[bft.Message], _ []protocol.Record[bft.Message]) {
	env.After(badClientEvery, BeatTimer{})
}

// Receive does nothing.
func (b *BadClient) Receive(*protocol.Env[bft.Message], protocol.ID, bft.Message) {}

// Expire sends the next requests.
func (b *BadClient) Expire(env *protocol.Env[bft.Message], _ protocol.Timer) {
	env.After(badClientEvery, BeatTimer{})
	b.ticks++
	strategy := b.strategy
	if strategy == "" {
		strategy = []string{badBodies, badConditions, badNumbers, badWindow, badSessions, badPartial}[b.ticks%6]
	}
	if strategy == badHuge {
		b.huge(env)
		return
	}
	b.n++
	r := bft.Request{Client: b.cfg.ID, Session: b.session, First: b.n}
	for i, m := range b.cfg.Directory.Members {
		op := bft.Operation{Command: []byte("nonsense")}
		switch strategy {
		case badBodies:
			op.Command = fmt.Append(nil, "nonsense ", i%2)
		case badConditions:
			op.Conditions = []bft.Condition{{Number: b.n - 1}, {Number: b.n / 2}}
		case badNumbers:
			r.First = max(b.n/2, 1)
		case badWindow:
			r.First = b.n + 2*sessions.Window
		case badSessions:
			r.Session = b.session + 1
		case badPartial:
			r.Client ^= 1
		}
		r.Operations = []bft.Operation{op}
		signed := b.sign(r)
		if strategy == badSignatures || b.strategy == "" && b.ticks%12 == 1 {
			signed = b.st.Requests.Forge(b.cfg.Signer.Key(), []byte("trust me"), r)
		}
		env.SendAhead(m.ID, Submitted{Request: signed, Full: true})
	}
	if strategy == badSessions {
		b.session, b.n = b.session+1, 0
	}
}

func (b *BadClient) sign(r bft.Request) bft.Signed[bft.Request] {
	return b.st.Requests.Sign(b.cfg.Scheme, b.cfg.Signer, r)
}

// huge sends as much as it can: each replica but one gets a request that is too large, and some
// that are just small enough, together more than replicas keep of a client. Now and then it
// acknowledges all, so that there is always room for its numbers.
func (b *BadClient) huge(env *protocol.Env[bft.Message]) {
	if b.ticks%8 != 0 {
		return
	}
	l := b.cfg.Limits
	members := b.cfg.Directory.Members
	apart := members[b.ticks/8%len(members)].ID
	r := bft.Request{Client: b.cfg.ID, Session: b.session, Acked: b.n, First: b.n + 1}
	for i := range hugeRequests {
		r.Operations = slices.Repeat([]bft.Operation{{Command: make([]byte, l.Command)}}, l.Request/l.Command)
		if i == 0 {
			r.Operations = []bft.Operation{{Command: make([]byte, l.Command+1)}}
		}
		signed := b.sign(r)
		for _, m := range members {
			if m.ID != apart {
				env.SendAhead(m.ID, Submitted{Request: signed, Full: true})
			}
		}
		if i > 0 {
			b.n += bft.Number(len(r.Operations))
			r.First = b.n + 1
		}
	}
}
