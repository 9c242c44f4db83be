package pbft

import (
	"testing"

	"github.com/foresay/foresay/bft"
	"github.com/foresay/foresay/bft/kit"
	"github.com/foresay/foresay/protocol"
)

// asked is a client of four members that has made a call, and what it is told.
type asked struct {
	*group
	t    *testing.T
	node *client
	env  *protocol.Env[bft.Message]
}

func ask(t *testing.T, ordered bool) *asked {
	t.Helper()
	a := &asked{group: newGroup(), t: t, env: protocol.NewEnv[bft.Message](nil, 1, nil)}
	var err error
	a.node, err = newClient(bft.ClientConfig{ID: 9, Directory: &a.dir, Scheme: a.scheme, Signer: a.sign(9),
		Ordered: ordered})
	if err != nil {
		t.Fatal(err)
	}
	a.node.Start(a.env, nil)
	a.call(bft.Call{ID: 1, Command: []byte("put")})
	return a
}

// call has the client make a call, and returns what it sends for it.
func (a *asked) call(c bft.Call) (out []kit.Submitted) {
	a.env.Begin(0)
	a.node.Receive(a.env, protocol.App, c)
	a.node.Expire(a.env, kit.FlushTimer{})
	for _, e := range effects[kit.Submitted](a.env) {
		out = append(out, e.Msg.(kit.Submitted))
	}
	return out
}

func executedTo(value string) bft.Result {
	return bft.Result{Outcome: bft.Executed, Value: []byte(value)}
}

// early has the primary of the first view tell what it executed early.
func (a *asked) early(value string) {
	e := earlyBody{Client: 9, Session: 1, Items: []earlyItem{{1, executedTo(value)}}}
	a.node.Receive(a.env, 1, earlyReply{a.node.st.early.Sign(a.scheme, a.sign(1), e)})
}

// reply has a member tell what it executed in a view, and perhaps committed.
func (a *asked) reply(from protocol.ID, v bft.View, tentative bool, value string) {
	r := executedTo(value)
	a.node.Receive(a.env, from, replies{View: v, Session: 1,
		Items: []replyItem{{Number: 1, Seq: 5, Tentative: tentative, Digest: r.Digest(), Full: true, Result: r}}})
}

// confirmed checks what the application was told that is confirmed; "" is nothing.
func (a *asked) confirmed(when, want string) {
	a.t.Helper()
	got := ""
	for _, e := range effects[bft.Done](a.env) {
		got = string(e.Msg.(bft.Done).Result.Value)
	}
	if got != want {
		a.t.Errorf("%s: %q is confirmed, want %q", when, got, want)
	}
}

// TestFMatchingIsNotEnough: by §2.3.1 of the paper a client can take f committed replies that match
// the early one. All of them may be the primary's own, and wrong.
func TestFMatchingIsNotEnough(t *testing.T) {
	for _, ordered := range []bool{true, false} {
		a := ask(t, ordered)
		a.early("lie")
		a.reply(1, 0, false, "lie")
		a.confirmed("f committed replies match the early one", "")
		a.reply(2, 0, false, "truth")
		a.confirmed("one honest reply", "")
		a.reply(3, 0, false, "truth")
		if ordered {
			a.confirmed("f+1 committed replies", "truth")
			continue
		}
		a.confirmed("f+1 committed replies, which a quorum of reads may miss", "")
		a.reply(4, 0, false, "truth")
		a.confirmed("2f+1 committed replies", "truth")
	}
}

// TestThreeTentativeRepliesOfTwoViews: an honest word is left over from view 0, a liar says the
// same as in view 1, and one honest replica has executed it there. Only that one would tell the
// next view of it, so a quorum without it drops the request.
func TestThreeTentativeRepliesOfTwoViews(t *testing.T) {
	a := ask(t, false)
	a.reply(2, 0, true, "v")
	a.reply(1, 1, true, "v")
	a.reply(3, 1, true, "v")
	a.confirmed("three tentative replies of two views", "")
	a.reply(4, 1, true, "v")
	a.confirmed("three of one view", "v")
}

// TestThreshold is §3.3 of the paper: above one wrong early reply in a hundred a primary's are not
// taken for guesses, and they are again when fewer than half of that are wrong.
func TestThreshold(t *testing.T) {
	var s score
	for i := range 3 {
		if s.off {
			t.Errorf("off after %d wrong early replies", i)
		}
		s.note(false)
	}
	if !s.off {
		t.Error("on after three wrong early replies of 200")
	}
	for n := 1; s.off; n++ {
		if s.note(true); n > scored {
			t.Fatal("it stays off")
		} else if !s.off && n < scored {
			t.Errorf("on again after %d right ones", n)
		}
	}
}

// TestGuessesOfOldViews: guesses go with their view, when an honest replica says that it is over,
// and one of a view that nobody vouches for is none.
func TestGuessesOfOldViews(t *testing.T) {
	a := ask(t, false)
	a.early("v")
	if len(effects[bft.First](a.env)) != 1 {
		t.Fatal("the early reply is no guess")
	}
	for i, id := range []protocol.ID{2, 3} {
		a.node.Receive(a.env, id, replies{View: 1})
		if got := len(effects[bft.Withdrawn](a.env)); got != i {
			t.Errorf("%d say that the view is over, and %d guesses are withdrawn", i+1, got)
		}
	}
	a.early("v")
	if len(effects[bft.First](a.env)) != 1 {
		t.Error("the early reply of an old view is a guess")
	}
}

// TestReadsBehindWrites: as §3.2.2 says, a client whose writes are not confirmed has its reads
// ordered.
func TestReadsBehindWrites(t *testing.T) {
	a := ask(t, false)
	read := bft.Call{ID: 2, Read: true}
	if sent := a.call(read); len(sent) != 4 || len(effects[kit.ReadAsk](a.env)) > 0 {
		t.Errorf("behind a write it sends %d requests", len(sent))
	}
	for n := bft.Number(1); n <= 2; n++ {
		for id := protocol.ID(1); id <= 3; id++ {
			r := executedTo("v")
			a.node.Receive(a.env, id, replies{Session: 1,
				Items: []replyItem{{Number: n, Digest: r.Digest(), Full: true, Result: r}}})
		}
	}
	read.ID = 3
	if sent := a.call(read); len(sent) > 0 || len(effects[kit.ReadAsk](a.env)) != 4 {
		t.Errorf("behind no write it sends %d requests", len(sent))
	}
}

// TestReadsInConditions: as §3.2.2 says, no write depends on a read that goes around the order. One
// that is under way is ordered first. One that is confirmed the client judges itself, and a read
// that depends on something is ordered, so that somebody judges that.
func TestReadsInConditions(t *testing.T) {
	for _, confirmed := range []bool{false, true} {
		for _, assumed := range []string{"v", "w"} {
			a := ask(t, false)
			for id := protocol.ID(1); id <= 3; id++ {
				a.reply(id, 0, false, "put")
			}
			a.call(bft.Call{ID: 2, Command: []byte("get"), Read: true})
			asked := effects[kit.ReadAsk](a.env)
			if len(asked) != 4 {
				t.Fatal("the read is not optimised")
			}
			for id := protocol.ID(1); confirmed && id <= 3; id++ {
				a.node.Receive(a.env, id, kit.ReadReply{ID: 2, Digest: executedTo("v").Digest(), Full: true, Value: []byte("v")})
			}
			condition := bft.Assumption{Call: 2, Digest: executedTo(assumed).Digest()}
			sent := a.call(bft.Call{ID: 3, Command: []byte("put"), Assumes: []bft.Assumption{condition}})
			switch {
			case !confirmed:
				if len(sent) != 4 || len(sent[0].Request.Body().Operations) != 2 {
					t.Fatalf("the read is under way: %+v", sent)
				}
				ops := sent[0].Request.Body().Operations
				want := bft.Condition{Number: 2, Digest: condition.Digest}
				if string(ops[0].Command) != "get" || len(ops[1].Conditions) != 1 || ops[1].Conditions[0] != want {
					t.Errorf("the read is under way, and the operations are %+v", ops)
				}
			case assumed == "v":
				if len(sent) != 4 || len(sent[0].Request.Body().Operations[0].Conditions) != 0 {
					t.Errorf("the read is confirmed, and as assumed: %+v", sent)
				}
			default:
				done := effects[bft.Done](a.env)
				if len(sent) > 0 || len(done) != 1 || done[0].Msg.(bft.Done).Result.Outcome != bft.Aborted {
					t.Errorf("the read is confirmed, and not as assumed: %+v, %+v", sent, done)
				}
			}
		}
	}
	a := ask(t, false)
	for id := protocol.ID(1); id <= 3; id++ {
		a.reply(id, 0, false, "put")
	}
	condition := bft.Assumption{Call: 1, Digest: executedTo("lie").Digest()}
	if sent := a.call(bft.Call{ID: 2, Read: true, Assumes: []bft.Assumption{condition}}); len(sent) != 4 ||
		len(sent[0].Request.Body().Operations[0].Conditions) != 1 {
		t.Errorf("a read that depends on something is sent as %+v", sent)
	}
}

// TestAcknowledged: what an unanswered request names in a condition is not acknowledged.
func TestAcknowledged(t *testing.T) {
	a := ask(t, false)
	on := executedTo("v")
	a.call(bft.Call{ID: 2, Assumes: []bft.Assumption{{Call: 1, Digest: on.Digest()}}})
	for id := protocol.ID(1); id <= 3; id++ {
		a.reply(id, 0, false, "v")
	}
	if got := a.call(bft.Call{ID: 3})[0].Request.Body().Acked; got != 0 {
		t.Errorf("a request acknowledges %d, which an earlier one names", got)
	}
}
