package kit

import (
	"fmt"
	"time"

	"github.com/foresay/foresay/bft"
	"github.com/foresay/foresay/bft/sessions"
	"github.com/foresay/foresay/protocol"
)

// BadClient is a client that does as it likes. It asks for nothing that the service understands, so
// whatever becomes of its requests nobody else can tell.
type BadClient struct {
	cfg     bft.ClientConfig
	st      Statements
	session bft.SessionID
	n       bft.Number
	ticks   int
}

// NewBadClient returns a bad client of a protocol.
func NewBadClient(c bft.ClientConfig, st Statements) *BadClient {
	return &BadClient{cfg: c, st: st, session: 1}
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
	b.n++
	r := bft.Request{Client: b.cfg.ID, Session: b.session, First: b.n}
	for i, m := range b.cfg.Directory.Members {
		op := bft.Operation{Command: []byte("nonsense")}
		switch b.ticks % 6 {
		case 0: // different bodies for different replicas
			op.Command = fmt.Append(nil, "nonsense ", i%2)
		case 1: // a false condition, and one that cannot be judged
			op.Conditions = []bft.Condition{{Number: b.n - 1}, {Number: b.n / 2}}
		case 2: // a number again, for something else
			r.First = max(b.n/2, 1)
		case 3: // beyond the window
			r.First = b.n + 2*sessions.Window
		case 4: // another session than ever before
			r.Session = b.session + 1
		default: // for half of the replicas only, and in another one's name for the others
			r.Client ^= 1
		}
		r.Operations = []bft.Operation{op}
		signed := b.st.Requests.Sign(b.cfg.Scheme, b.cfg.Signer, r)
		if b.ticks%12 == 1 {
			signed = b.st.Requests.Forge(b.cfg.Signer.Key(), []byte("trust me"), r)
		}
		env.SendAhead(m.ID, Submitted{Request: signed, Full: true})
	}
	if b.ticks%6 == 4 {
		b.session, b.n = b.session+1, 0
	}
}
