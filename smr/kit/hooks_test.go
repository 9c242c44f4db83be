package kit

import (
	"math/rand/v2"
	"testing"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
)

// hooked is a client with a session, whose requests go where its hooks say.
func hooked(t *testing.T, hooks Hooks) (*Client, *protocol.Env[smr.Message]) {
	t.Helper()
	c, err := NewClient(smr.ClientConfig{ID: 9, Members: group(1, 2)}, hooks)
	if err != nil {
		t.Fatal(err)
	}
	env := protocol.NewEnv[smr.Message](nil, 1, rand.New(rand.NewPCG(1, 1)))
	env.Begin(0)
	c.Start(env, nil)
	c.Receive(env, 1, OpenReply{Nonce: c.nonce, Session: 4, Window: 10})
	return c, env
}

// ask makes a call and returns the request that is sent for it.
func ask(t *testing.T, c *Client, env *protocol.Env[smr.Message], call smr.Call) (req Request) {
	t.Helper()
	env.Begin(0)
	c.Receive(env, protocol.App, call)
	c.Expire(env, FlushTimer{})
	for _, e := range env.Out {
		if m, ok := e.Msg.(Request); ok {
			req = m
		}
	}
	if len(req.Commands) == 0 {
		t.Fatalf("no request was sent for %+v: %+v", call, env.Out)
	}
	return req
}

// TestHooks: a request goes where the hook sends it, and what the hook has taken is not for the
// client.
func TestHooks(t *testing.T) {
	var sent []protocol.ID
	takes := true
	c, env := hooked(t, Hooks{
		Send: func(env *protocol.Env[smr.Message], to protocol.ID, req Request) {
			for id := range protocol.ID(3) {
				sent = append(sent, id+1)
				env.Send(id+1, req)
			}
		},
		Receive: func(_ *protocol.Env[smr.Message], _ protocol.ID, msg smr.Message) bool {
			_, ok := msg.(Replies)
			return ok && takes
		},
	})
	ask(t, c, env, smr.Call{ID: 1, Kind: smr.Execute})
	if len(sent) != 3 {
		t.Errorf("the request was sent to %v", sent)
	}
	done := func() bool {
		env.Begin(0)
		c.Receive(env, 1, Replies{Session: 4, Items: []CommandReply{{Seq: 1, Outcome: smr.Committed, Slot: 12}}})
		return c.Command(1) == nil
	}
	if done() {
		t.Error("a reply that the hook has taken ends a call")
	}
	if takes = false; !done() {
		t.Error("a reply that the hook has left to the client ends no call")
	}
}
