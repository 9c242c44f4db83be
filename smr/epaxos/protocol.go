package epaxos

import (
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// Protocol returns EPaxos as a member of its family.
func Protocol() smr.Protocol {
	return smr.Protocol{
		Name:       "epaxos",
		Doc:        "Egalitarian Paxos: each replica has its clients' commands decided, with what they depend on.",
		NewReplica: kit.NodeOf(newReplica),
		NewClient:  kit.NodeOf(newClient),
		Salvage:    kit.SalvageOf(newReplica),
		Codec:      codec(),
		Leaderless: true,
	}
}

// newClient returns a client's node. It asks the nearest replica, and the next one if that is
// silent. What a client was told of comes before what it asks for later, by whichever replica.
func newClient(cfg smr.ClientConfig) (c *kit.Client, err error) {
	c, err = kit.NewClient(cfg, kit.Hooks{Send: func(env *protocol.Env[smr.Message], to protocol.ID, req kit.Request) {
		req.After = max(req.After, c.Seen())
		env.Send(to, req)
	}})
	return c, err
}
