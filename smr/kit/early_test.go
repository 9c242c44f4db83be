package kit

import (
	"math/rand/v2"
	"testing"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
)

// TestEarlyIsNotAcknowledged: a client that was told that a command's position is fixed is done
// with the call, but does not acknowledge the command before it is executed: what a session's
// client has acknowledged is not executed any more.
func TestEarlyIsNotAcknowledged(t *testing.T) {
	c, err := NewClient(smr.ClientConfig{ID: 9, Members: group(1)}, Hooks{})
	if err != nil {
		t.Fatal(err)
	}
	env := protocol.NewEnv[smr.Message](nil, 1, rand.New(rand.NewPCG(1, 1)))
	var done []smr.Done
	var sent []Request
	step := func(f func()) {
		t.Helper()
		env.Begin(0)
		f()
		for _, e := range env.Out {
			switch m := e.Msg.(type) {
			case smr.Done:
				done = append(done, m)
			case Request:
				sent = append(sent, m)
			}
		}
		if err := c.Check(); err != nil {
			t.Fatal(err)
		}
	}
	ask := func(id smr.CallID, ack smr.Ack, after smr.Slot) {
		step(func() { c.Receive(env, protocol.App, smr.Call{ID: id, Kind: smr.Propose, Ack: ack, After: after}) })
		step(func() { c.Expire(env, FlushTimer{}) })
	}
	step(func() { c.Start(env, nil) })
	step(func() { c.Receive(env, 1, OpenReply{Nonce: c.nonce, Session: 4, Window: 10}) })
	ask(1, smr.AckDurable, 7)
	if len(sent) != 1 || !sent[0].Commands[0].Early || sent[0].After != 7 {
		t.Fatalf("sent %+v", sent)
	}
	for range 2 {
		step(func() {
			c.Receive(env, 1, Early{Session: 4, Items: []EarlyReply{{Seq: 1, Slot: 12}, {Seq: 9, Slot: 3}}})
		})
	}
	if len(done) != 1 || done[0].Outcome != smr.Committed || done[0].Slot != 12 {
		t.Fatalf("done %+v", done)
	}
	step(func() { c.Receive(env, protocol.App, smr.Cancel{ID: 1}) }) // too late: it is done
	ask(2, smr.AckOrdered, 0)
	if last := sent[len(sent)-1]; last.Acked != 1 || last.Commands[0].Early {
		t.Errorf("before the command was executed: %+v", last)
	}
	step(func() { c.Receive(env, 1, Early{Session: 4, Items: []EarlyReply{{Seq: 2, Slot: 13}}}) }) // nobody asked
	step(func() {
		c.Receive(env, 1, Replies{Session: 4, Items: []CommandReply{{Seq: 1, Outcome: smr.Committed, Slot: 12}}})
	})
	ask(3, smr.AckDefault, 0)
	if last := sent[len(sent)-1]; last.Acked != 2 {
		t.Errorf("after the command was executed: %+v", last)
	}
	if len(done) != 1 {
		t.Errorf("done %+v", done)
	}
}
