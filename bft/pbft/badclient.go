package pbft

import (
	"fmt"
	"time"

	"github.com/foresay/foresay/bft"
	"github.com/foresay/foresay/bft/sessions"
	"github.com/foresay/foresay/protocol"
)

// badClient is a client that does as it likes. It asks for nothing that the service understands, so
// whatever becomes of its requests nobody else can tell.
type badClient struct {
	cfg     bft.ClientConfig
	st      *statements
	session bft.SessionID
	n       bft.Number
	ticks   int
}

func newBadClient(c bft.ClientConfig) protocol.Node[bft.Message] {
	return &badClient{cfg: c, st: newStatements(c.Scheme)}
}

// Start is part of protocol.Node, as are Receive and Expire.
func (b *badClient) Start(env *protocol.Env[bft.Message], _ []protocol.Record[bft.Message]) {
	b.session = 1
	env.After(30*time.Millisecond, clientTimer{})
}

func (b *badClient) Receive(*protocol.Env[bft.Message], protocol.ID, bft.Message) {}

func (b *badClient) Expire(env *protocol.Env[bft.Message], _ protocol.Timer) {
	env.After(30*time.Millisecond, clientTimer{})
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
		signed := b.st.requests.Sign(b.cfg.Scheme, b.cfg.Signer, r)
		if b.ticks%12 == 1 {
			signed = b.st.requests.Forge(b.cfg.Signer.Key(), []byte("trust me"), r)
		}
		env.SendAhead(m.ID, submitted{Request: signed, Full: true})
	}
	if b.ticks%6 == 4 {
		b.session, b.n = b.session+1, 0
	}
}
