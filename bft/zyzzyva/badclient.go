package zyzzyva

import (
	"github.com/foresay/foresay/bft"
	"github.com/foresay/foresay/bft/kit"
	"github.com/foresay/foresay/protocol"
)

// badClient is a client that does as it likes, also with what it is told: it gives certificates to
// one member only, and others that have too few stamps, or say something else.
type badClient struct {
	*kit.BadClient
	cfg    bft.ClientConfig
	st     *statements
	stamps map[stampBody][]bft.Signed[stampBody]
}

func newBadClient(strategy string, c bft.ClientConfig) protocol.Node[bft.Message] {
	st := newStatements(c.Scheme)
	return &badClient{kit.NewBadClient(strategy, c, st.Statements), c, st, map[stampBody][]bft.Signed[stampBody]{}}
}

// Receive is part of protocol.Node.
func (b *badClient) Receive(env *protocol.Env[bft.Message], _ protocol.ID, msg bft.Message) {
	m, ok := msg.(replies)
	if !ok || m.Stamp == nil {
		return
	}
	body, members := *m.Stamp.Body(), b.cfg.Directory.Members
	said := append(b.stamps[body], *m.Stamp)
	if len(said) > len(members) {
		return // they are answers to its certificates
	}
	b.stamps[body] = said
	to := members[int(body.Seq)%len(members)].ID
	wrong := body
	wrong.History[0]++
	forged := append(said[:1:1], b.st.stamps.Forge(members[0].Key, []byte("trust me"), wrong))
	for _, proof := range []bft.Certificate[stampBody]{bft.Join(said), bft.Join(forged[1:])} {
		env.SendAhead(to, certified{Proof: proof, Session: m.Session, Numbers: []bft.Number{1}})
	}
	if len(b.stamps) > maxStamps {
		clear(b.stamps)
	}
}

const maxStamps = 64
