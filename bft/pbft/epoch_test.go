package pbft

import (
	"testing"

	"github.com/foresay/foresay/bft"
	"github.com/foresay/foresay/bft/bfttest"
	"github.com/foresay/foresay/bft/kit"
	"github.com/foresay/foresay/bft/sessions"
	"github.com/foresay/foresay/protocol"
)

// afterRotation is the group when the member 4 has the key of the signer 44.
func (g *group) afterRotation(t *testing.T) *bft.Directory {
	t.Helper()
	next, err := g.dir.After(bft.Change{Kind: bft.RotateKeys, Party: bft.Party{ID: 4, Key: g.sign(44).Key()}})
	if err != nil {
		t.Fatal(err)
	}
	return next
}

// link returns the end of an epoch at a place, by the word of some.
func (g *group) link(r *replica, at bft.Seq, next *bft.Directory, signers ...protocol.ID) kit.Link {
	var by []*bft.Signer
	for _, id := range signers {
		by = append(by, g.sign(id))
	}
	return bfttest.Link(&r.st.Statements, kit.Checkpoint{Seq: at, State: bft.Digest{3}}, next, by...)
}

// turned returns a member that has learned that epoch 0 has ended with place 5.
func (g *group) turned(t *testing.T, id protocol.ID) (*replica, *protocol.Env[bft.Message]) {
	t.Helper()
	r, env := g.member(t, id)
	r.Receive(env, 77, kit.Links{Links: []kit.Link{g.link(r, 5, g.afterRotation(t), 1, 2, 4)}})
	if r.Dir.Epoch != 1 || r.View != bft.Epoch(1).First() || r.Low() != 5 {
		t.Fatalf("it stands at %+v", r.Standing())
	}
	return r, env
}

// TestLinks: an epoch ends by the word of a quorum of its members, on the members that they have
// signed, whoever passes it on.
func TestLinks(t *testing.T) {
	g := newGroup()
	next := g.afterRotation(t)
	later := *next
	later.Epoch = 2
	r, _ := g.member(t, 2)
	other := g.link(r, 5, next, 1, 2, 3)
	own, err := g.dir.After(bft.Change{Kind: bft.RotateKeys, Party: bft.Party{ID: 3, Key: g.sign(33).Key()}})
	if err != nil {
		t.Fatal(err)
	}
	other.Members = own.Encode()
	forged := g.link(r, 5, next, 1, 2)
	forged.Proof = bft.Join([]bft.Signed[kit.Checkpoint]{
		r.st.Checkpoints.Sign(g.scheme, g.sign(1), forged.Proof.Body()),
		r.st.Checkpoints.Sign(g.scheme, g.sign(2), forged.Proof.Body()),
		r.st.Checkpoints.Forge(g.sign(3).Key(), []byte("trust me"), forged.Proof.Body()),
	})
	for name, c := range map[string]struct {
		links []kit.Link
		epoch bft.Epoch
	}{
		"a quorum":              {[]kit.Link{g.link(r, 5, next, 1, 2, 3)}, 1},
		"a minority":            {[]kit.Link{g.link(r, 5, next, 1, 2)}, 0},
		"a forged word":         {[]kit.Link{forged}, 0},
		"members of later":      {[]kit.Link{g.link(r, 5, next, 1, 2, 44)}, 0},
		"others than are named": {[]kit.Link{other}, 0},
		"an epoch left out":     {[]kit.Link{g.link(r, 5, &later, 1, 2, 3)}, 0},
		"a chain":               {[]kit.Link{g.link(r, 5, next, 1, 2, 3), g.link(r, 9, &later, 1, 3, 44)}, 2},
		"an old key in it":      {[]kit.Link{g.link(r, 5, next, 1, 2, 3), g.link(r, 9, &later, 1, 3, 4)}, 1},
		"back":                  {[]kit.Link{g.link(r, 5, next, 1, 2, 3), g.link(r, 4, &later, 1, 2, 3)}, 1},
	} {
		r, env := g.member(t, 2)
		r.Receive(env, 77, kit.Links{Links: c.links})
		if r.Dir.Epoch != c.epoch {
			t.Errorf("%s: it is in epoch %d, want %d", name, r.Dir.Epoch, c.epoch)
		}
	}
}

// TestOldKeys: the word of a key that is not a member's any more is none, and the new one's counts.
func TestOldKeys(t *testing.T) {
	g := newGroup()
	for signer, want := range map[protocol.ID]bool{4: false, 44: true} {
		r, env := g.turned(t, 2)
		o := orderBody{View: r.View, Seq: 6}
		r.Receive(env, 1, proposal{Order: r.st.orders.Sign(g.scheme, g.sign(1), o)})
		r.Receive(env, 4, prepare{r.st.votes.Sign(g.scheme, g.sign(signer), voteBody(o))})
		if got := r.places[6].prepared != nil; got != want {
			t.Errorf("with a vote of the key %d it is prepared: %v", signer, got)
		}
	}
}

// TestEpochsDoNotMix: nothing that was said in an earlier epoch counts, and nothing of what that
// has decided is decided again.
func TestEpochsDoNotMix(t *testing.T) {
	g := newGroup()
	r, env := g.turned(t, 2)
	old := orderBody{View: 3, Seq: 6, Batch: bft.Digest{1}}
	for _, id := range []protocol.ID{1, 3, 4} {
		r.Receive(env, id, commit{Order: old, Done: true})
	}
	if p := r.places[6]; p != nil && r.decide(p) {
		t.Error("a place is decided by the word of an earlier epoch")
	}
	now := r.View
	r.Receive(env, 1, proposal{Order: r.st.orders.Sign(g.scheme, g.sign(1), orderBody{View: now, Seq: 5})})
	if r.places[5] != nil {
		t.Error("a place of an earlier epoch is offered again")
	}
	var votes []bft.Signed[voteBody]
	for _, id := range []protocol.ID{1, 2, 3} {
		votes = append(votes, r.st.votes.Sign(g.scheme, g.sign(id), voteBody(old)))
	}
	c := changeBody{View: now + 1, Stable: r.Stable}
	if !lawfulChange(r.Dir, &c, 128) {
		t.Error("the checkpoint with which an epoch has begun is no lawful one")
	}
	c.Prepared = []preparedProof{{r.st.orders.Sign(g.scheme, g.sign(4), old), bft.Join(votes)}}
	if g.dir.Primary(3).ID != 4 || !lawfulPrepared(kit.Genesis(&g.dir), &c.Prepared[0]) {
		t.Error("what was prepared in epoch 0 was not")
	}
	c.Prepared[0].Order = r.st.orders.Sign(g.scheme, g.sign(44), old) // as if the votes were of this epoch
	if lawfulChange(r.Dir, &c, 128) {
		t.Error("what was prepared in an earlier epoch counts")
	}
}

// TestNothingAboveTheEnd: what is ordered above a change of the members is not executed, nor is
// another change with it; and only an administrator makes one.
func TestNothingAboveTheEnd(t *testing.T) {
	g := newGroup()
	g.dir.Administrators = []protocol.ID{9}
	g.dir.Clients[8] = g.sign(8).Key()
	change := bft.Change{Kind: bft.RotateKeys, Party: bft.Party{ID: 4, Key: g.sign(44).Key()}}.Command()
	request := func(r *replica, by protocol.ID, n bft.Number) bft.Signed[bft.Request] {
		return r.st.Requests.Sign(g.scheme, g.sign(by), bft.Request{Client: by, Session: 1, First: n,
			Operations: []bft.Operation{{Command: change, Members: true}, {Command: change, Members: true}}})
	}
	for by, refused := range map[protocol.ID][2]string{
		9: {"", "another change is under way"},
		8: {"only an administrator changes the members", "only an administrator changes the members"},
	} {
		r, env := g.member(t, 1)
		r.Receive(env, by, kit.Submitted{Request: request(r, by, 1), Full: true})
		r.Receive(env, by, kit.Submitted{Request: request(r, by, 3), Full: true})
		early := effects[earlyReply](env)
		for i, want := range refused {
			reply := early[0].Msg.(earlyReply).Reply
			got, err := bft.DecodeChanged(reply.Body().Items[i].Result.Value)
			if err != nil || got.Refused != want {
				t.Errorf("client %d: change %d: %+v, %v, want %q", by, i, got, err, want)
			}
		}
		if top, want := r.Top, map[protocol.ID]bft.Seq{9: 1, 8: 2}[by]; top != want {
			t.Errorf("client %d: it has proposed %d batches, want %d", by, top, want)
		}
		r.Store.Enter(env)
		if done := r.Perform(r.Top+1, bft.Digest{}); done != (by == 8) {
			t.Errorf("client %d: the next place is executed: %v", by, done)
		}
		_, there := sessions.Members(r.Performed(1).Layer)
		r.Store.Leave()
		if there != (by == 9) {
			t.Errorf("client %d: there are other members: %v", by, there)
		}
	}
}

// TestEpochAfterCrash: a replica that comes back is in the epoch in which it was, and goes by its
// keys.
func TestEpochAfterCrash(t *testing.T) {
	g := newGroup()
	r, env := g.turned(t, 2)
	r.giveUp(env, r.View+1)
	d := disk{}
	for _, e := range env.Out {
		if e.Kind == protocol.KindPut {
			d[string(e.Key)] = e.Value
		}
	}
	again, err := newReplica(r.Config)
	if err != nil {
		t.Fatal(err)
	}
	env = protocol.NewEnv[bft.Message](d, 1, nil)
	old := voteBody{View: 2, Seq: 6}
	again.Start(env, []protocol.Record[bft.Message]{{Index: 1, Msg: preparedRecord{preparedProof{
		r.st.orders.Sign(g.scheme, g.sign(3), orderBody(old)), bft.Join([]bft.Signed[voteBody]{
			r.st.votes.Sign(g.scheme, g.sign(1), old), r.st.votes.Sign(g.scheme, g.sign(4), old)})}}}})
	if s := again.Standing(); s.Epoch != 1 || s.View != r.View || s.Active || s.Stable != 5 {
		t.Fatalf("it stands at %+v", s)
	}
	if p := again.places[6]; p != nil {
		t.Error("what an earlier epoch has prepared is there again")
	}
	c := again.st.changes.Sign(g.scheme, g.sign(44), changeBody{View: r.View, Stable: r.Stable})
	if again.Receive(env, 4, viewChange{c}); again.changes.Gone(r.View) != 2 {
		t.Errorf("%d have given the view up, with the one that has another key", again.changes.Gone(r.View))
	}
}

// TestOutside: who has no member's key says nothing of orders, and still tells how epochs have
// ended.
func TestOutside(t *testing.T) {
	g := newGroup()
	r, env := g.turned(t, 4)
	env.Begin(0)
	o := orderBody{View: r.View, Seq: 6}
	r.Receive(env, 1, proposal{Order: r.st.orders.Sign(g.scheme, g.sign(1), o)})
	r.Expire(env, kit.BeatTimer{})
	if n := len(effects[prepare](env)) + len(effects[status](env)); n > 0 || r.Standing().Member {
		t.Errorf("it says something %d times, member: %v", n, r.Standing().Member)
	}
	if r.Receive(env, 77, kit.LinksWanted{}); len(effects[kit.Links](env)) != 1 {
		t.Error("it does not tell how epoch 0 has ended")
	}
	r, env = g.member(t, 4)
	r.Config.NextSigner = g.sign(44)
	r.Receive(env, 77, kit.Links{Links: []kit.Link{g.link(r, 5, g.afterRotation(t), 1, 2, 3)}})
	if !r.Standing().Member || r.Config.Signer.Key() != g.sign(44).Key() {
		t.Error("it does not take its next key")
	}
}

// TestReadsAwaitTheEpoch: a member that is behind answers no reads from a state of an earlier
// epoch, whether they came before it has heard of this one or after.
func TestReadsAwaitTheEpoch(t *testing.T) {
	g := newGroup()
	for _, before := range []bool{false, true} {
		r, env := g.member(t, 2)
		ask := kit.ReadAsk{ID: 1, Query: []byte("q")}
		if before {
			r.OnRead(env, 9, ask, 7)
		}
		r.Receive(env, 77, kit.Links{Links: []kit.Link{g.link(r, 5, g.afterRotation(t), 1, 2, 4)}})
		if !before {
			r.Receive(env, 9, ask)
		}
		if r.Expire(env, kit.BeatTimer{}); len(effects[kit.ReadReply](env)) > 0 {
			t.Errorf("asked before: %v: it answers from place %d, and the epoch begins at 5", before, r.Committed)
		}
		r.Committed, r.Executed, r.Top = 5, 5, 5
		if r.Expire(env, kit.BeatTimer{}); len(effects[kit.ReadReply](env)) != 1 {
			t.Errorf("asked before: %v: it does not answer when it is there", before)
		}
	}
}

// TestLinksAreBounded: who asks again and again how epochs have ended is told a bounded amount.
func TestLinksAreBounded(t *testing.T) {
	r, env := newGroup().turned(t, 2)
	const asked = 20_000
	for range asked {
		r.Receive(env, 9, kit.LinksWanted{})
	}
	told := len(effects[kit.Links](env))
	if told == 0 || told == asked {
		t.Errorf("asked %d times, it tells %d times", asked, told)
	}
	r.Receive(env, 77, kit.LinksWanted{})
	if len(effects[kit.Links](env)) != told+1 {
		t.Error("somebody else is not told")
	}
}

// TestClientTurns: a client counts nothing that members say in another epoch, asks how that has
// come, and sends again what is under way.
func TestClientTurns(t *testing.T) {
	g := newGroup()
	c, err := newClient(bft.ClientConfig{ID: 9, Directory: &g.dir, Scheme: g.scheme, Signer: g.sign(9)})
	if err != nil {
		t.Fatal(err)
	}
	env := protocol.NewEnv[bft.Message](nil, 1, nil)
	c.Start(env, nil)
	c.Receive(env, protocol.App, bft.Call{ID: 1, Command: []byte("c")})
	c.Expire(env, kit.FlushTimer{})
	result := bft.Result{Outcome: bft.Executed, Value: []byte("v")}
	say := func(view bft.View) {
		for id := protocol.ID(1); id <= 3; id++ {
			c.Receive(env, id, replies{View: view, Session: c.Session, Items: []replyItem{
				{Number: 1, Seq: 1, Digest: result.Digest(), Full: true, Result: result}}})
		}
	}
	say(bft.Epoch(1).First())
	if len(effects[bft.Done](env)) > 0 || len(effects[kit.LinksWanted](env)) != 3 {
		t.Error("a client takes the word of another epoch, or does not ask")
	}
	sent := len(effects[kit.Submitted](env))
	r, _ := g.member(t, 2)
	c.Receive(env, 1, kit.Links{Links: []kit.Link{g.link(r, 5, g.afterRotation(t), 1, 2, 3)}})
	if len(effects[bft.Turned](env)) != 1 || len(effects[kit.Submitted](env)) != sent+4 {
		t.Error("a client that has learned of an epoch does not send its requests again")
	}
	say(0)
	if len(effects[bft.Done](env)) > 0 {
		t.Error("a client takes the word of an earlier epoch")
	}
	if say(bft.Epoch(1).First()); len(effects[bft.Done](env)) != 1 {
		t.Error("a client does not take the word of its epoch")
	}
}
