package pbft

import (
	"testing"

	"github.com/foresay/foresay/bft"
	"github.com/foresay/foresay/protocol"
)

// asked is a client of four members that has made a call, and what it is told.
type asked struct {
	t      *testing.T
	node   *client
	env    *protocol.Env[bft.Message]
	scheme *bft.Scheme
	sign   func(protocol.ID) *bft.Signer
}

func ask(t *testing.T, ordered bool) *asked {
	t.Helper()
	var secrets bft.Secrets
	sign := func(id protocol.ID) *bft.Signer { return secrets.Signer(uint64(id)) }
	d := &bft.Directory{Clients: map[protocol.ID]bft.Key{9: sign(9).Key()}}
	for id := protocol.ID(1); id <= 4; id++ {
		d.Members = append(d.Members, bft.Party{ID: id, Key: sign(id).Key()})
	}
	a := &asked{t: t, env: protocol.NewEnv[bft.Message](nil, 1, nil), scheme: bft.NewScheme("test", &secrets), sign: sign}
	var err error
	a.node, err = newClient(bft.ClientConfig{ID: 9, Directory: d, Scheme: a.scheme, Signer: sign(9), Ordered: ordered})
	if err != nil {
		t.Fatal(err)
	}
	a.node.Start(a.env, nil)
	a.node.Receive(a.env, protocol.App, bft.Call{ID: 1, Command: []byte("put")})
	a.node.Expire(a.env, flushTimer{})
	a.env.Out = nil
	return a
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
	for _, e := range a.env.Out {
		if d, ok := e.Msg.(bft.Done); ok {
			got = string(d.Result.Value)
		}
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
