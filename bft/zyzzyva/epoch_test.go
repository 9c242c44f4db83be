package zyzzyva

import (
	"testing"

	"github.com/foresay/foresay/bft"
	"github.com/foresay/foresay/bft/bfttest"
	"github.com/foresay/foresay/bft/kit"
	"github.com/foresay/foresay/protocol"
)

// turned returns a member that has learned that epoch 0 has ended with place 5, and that member 4
// has the key of the signer 44 since.
func (g *group) turned(t *testing.T, id protocol.ID) (*replica, *protocol.Env[bft.Message]) {
	t.Helper()
	next, err := g.dir.After(bft.Change{Kind: bft.RotateKeys, Party: bft.Party{ID: 4, Key: g.sign(44).Key()}})
	if err != nil {
		t.Fatal(err)
	}
	r, env := g.member(t, id)
	r.Receive(env, 77, kit.Links{Links: []kit.Link{bfttest.Link(&r.st.Statements,
		kit.Checkpoint{Seq: 5, History: bft.Digest{3}}, next, g.sign(1), g.sign(2), g.sign(4))}})
	if r.Dir.Epoch != 1 || r.View != bft.Epoch(1).First() || r.last != 5 || r.logView != r.View {
		t.Fatalf("it stands at %+v", r.Standing())
	}
	return r, env
}

// TestEpochsDoNotMix: nothing that was said in an earlier epoch counts, and an epoch begins with
// the history with which the one before has ended.
func TestEpochsDoNotMix(t *testing.T) {
	g := newGroup()
	r, env := g.turned(t, 2)
	if h, ok := r.history(5); !ok || h != (bft.Digest{3}) {
		t.Errorf("the epoch begins with the history %v, %v", h, ok)
	}
	now := r.View
	r.giveUp(env, now+1)
	for _, id := range []protocol.ID{1, 3} {
		r.Receive(env, id, concluded{Epoch: 0, After: 5, Batches: make([]bft.Digest, 1)})
	}
	if len(r.told) > 0 {
		t.Error("it is told what is committed by the word of an earlier epoch")
	}
	for name, c := range map[string]struct {
		body   changeBody
		lawful bool
	}{
		"this epoch's":                  {changeBody{View: now + 1, Stable: r.Stable, LogView: now}, true},
		"an earlier log":                {changeBody{View: now + 1, Stable: r.Stable, LogView: 0}, false},
		"an earlier change":             {changeBody{View: 1, Stable: r.Stable}, false},
		"without the epoch's beginning": {changeBody{View: now + 1, LogView: now}, false},
	} {
		if lawfulChange(r.Dir, &c.body, 128) != c.lawful {
			t.Errorf("%s: lawful is %v", name, !c.lawful)
		}
	}
}

// TestOldKeys: the stamp of a key that is not a member's any more is none, and the new one's
// counts.
func TestOldKeys(t *testing.T) {
	g := newGroup()
	for signer, want := range map[protocol.ID]bool{4: false, 44: true} {
		r, env := g.turned(t, 2)
		o := orderBody{View: r.View, Seq: 6, History: chain(bft.Digest{3}, bft.Digest{})}
		r.Receive(env, 1, proposal{Order: r.st.orders.Sign(g.scheme, g.sign(1), o)})
		s := stampBody{r.View, 6, o.History}
		r.Receive(env, 1, g.stamp(r, 1, s))
		r.Receive(env, 3, g.stamp(r, 3, s))
		r.Receive(env, 4, g.stamp(r, signer, s))
		if got := r.held.Body() == s; got != want {
			t.Errorf("with a stamp of the key %d it holds a certificate: %v", signer, got)
		}
	}
}
