package smr

import (
	"math/rand/v2"
	"testing"

	"github.com/foresay/foresay/protocol"
)

// TestEarlyIsNotAcknowledged: a client that was told that a command's position is fixed is done with the call, but does not acknowledge the command before it is executed: what a
// session's client has acknowledged is not executed any more.
func TestEarlyIsNotAcknowledged(t *testing.T) {
	c, err := NewLeaderClient(ClientConfig{ID: 9, Members: group(1)})
	if err != nil {
		t.Fatal(err)
	}
	env := protocol.NewEnv[Message](nil, 1, rand.New(rand.NewPCG(1, 1)))
	var done []Done
	var sent []Request
	step := func(f func()) {
		t.Helper()
		env.Begin(0)
		f()
		for _, e := range env.Out {
			switch m := e.Msg.(type) {
			case Done:
				done = append(done, m)
			case Request:
				sent = append(sent, m)
			}
		}
		if err := c.Check(); err != nil {
			t.Fatal(err)
		}
	}
	ask := func(id CallID, ack Ack, after Slot) {
		step(func() { c.Receive(env, protocol.App, Call{ID: id, Kind: Propose, Ack: ack, After: after}) })
		step(func() { c.Expire(env, flushTimer{}) })
	}
	step(func() { c.Start(env, nil) })
	step(func() { c.Receive(env, 1, OpenReply{Nonce: c.nonce, Session: 4, Window: 10}) })
	ask(1, AckDurable, 7)
	if len(sent) != 1 || !sent[0].Commands[0].Early || sent[0].After != 7 {
		t.Fatalf("sent %+v", sent)
	}
	for range 2 {
		step(func() {
			c.Receive(env, 1, Early{Session: 4, Items: []EarlyReply{{Seq: 1, Slot: 12}, {Seq: 9, Slot: 3}}})
		})
	}
	if len(done) != 1 || done[0].Outcome != Committed || done[0].Slot != 12 {
		t.Fatalf("done %+v", done)
	}
	step(func() { c.Receive(env, protocol.App, Cancel{ID: 1}) }) // too late: it is done
	ask(2, AckOrdered, 0)
	if last := sent[len(sent)-1]; last.Acked != 1 || last.Commands[0].Early {
		t.Errorf("before the command was executed: %+v", last)
	}
	step(func() { c.Receive(env, 1, Early{Session: 4, Items: []EarlyReply{{Seq: 2, Slot: 13}}}) }) // nobody asked
	step(func() {
		c.Receive(env, 1, Replies{Session: 4, Items: []CommandReply{{Seq: 1, Outcome: Committed, Slot: 12}}})
	})
	ask(3, AckDefault, 0)
	if last := sent[len(sent)-1]; last.Acked != 2 {
		t.Errorf("after the command was executed: %+v", last)
	}
	if len(done) != 1 {
		t.Errorf("done %+v", done)
	}
}
