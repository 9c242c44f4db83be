package zyzzyva

import (
	"slices"
	"testing"

	"github.com/foresay/foresay/bft"
	"github.com/foresay/foresay/bft/kit"
	"github.com/foresay/foresay/protocol"
)

// logOf is what a member of a small world says when it gives a view up: its log of a view, and how
// much of it has a certificate, less than none if there is none.
type logOf struct {
	view   bft.View
	log    string
	proven int
}

// has reports whether a log begins with a history.
func has(log, history string) bool {
	return len(log) >= len(history) && log[:len(history)] == history
}

// together reports whether two histories can be of one view: one of them goes on from the other.
func together(a, b string) bool { return has(a, b) || has(b, a) }

func (l logOf) certificate() string { return l.log[:max(l.proven, 0)] }

// small makes the kinds of changes of a small world: two views, two batches, logs of up to two.
func small() (kinds []logOf) {
	for view := range bft.View(2) {
		for _, log := range []string{"", "a", "b", "aa", "ab", "ba", "bb"} {
			for proven := 0; proven <= len(log); proven++ {
				kinds = append(kinds, logOf{view, log, proven})
			}
		}
	}
	return kinds
}

func batchesOf(log string) (out []bft.Digest) {
	for _, b := range []byte(log) {
		out = append(out, bft.Digest{b})
	}
	return out
}

func historyOf(log string) (h bft.Digest) {
	for _, b := range batchesOf(log) {
		h = chain(h, b)
	}
	return h
}

// change returns the change, with a stable checkpoint after so much of the log.
func (w *chooseWorld) change(l logOf, stable int) *changeBody {
	c := &changeBody{View: 2, LogView: l.view, Batches: batchesOf(l.log[stable:])}
	if l.view > 0 || l.proven > 0 {
		s := stampBody{l.view, bft.Seq(l.proven), historyOf(l.certificate())}
		c.Proof = bft.Join([]bft.Signed[stampBody]{w.st.stamps.Sign(w.scheme, w.sign(1), s)})
	}
	if stable > 0 {
		at := kit.Checkpoint{Seq: bft.Seq(stable), History: historyOf(l.log[:stable])}
		c.Stable = bft.Join([]bft.Signed[kit.Checkpoint]{w.st.Checkpoints.Sign(w.scheme, w.sign(1), at)})
	}
	return c
}

type chooseWorld struct {
	*group
	st *statements
}

// mayBe reports whether a history may have been confirmed in a view, by what three of four members
// say of which one, or none, is a traitor; -1 is the fourth. Everybody has stamped it; or a quorum
// holds certificates of it, so an honest one of the three. What the theory says of later views is
// presumed: they began with it.
func mayBe(set [3]logOf, traitor int, view bft.View, history string) bool {
	all, held := true, false
	for i, l := range set {
		switch {
		case l.view > view && !has(l.certificate(), history),
			l.view == view && l.proven > 0 && !together(l.certificate(), history):
			return false // certificates are nobody's to forge
		case i == traitor:
			continue
		}
		all = all && l.view >= view && has(l.log, history)
		held = held || l.view >= view && has(l.certificate(), history)
	}
	return all || held
}

// TestChoiceKeepsWhatMayBeConfirmed tries all sets of three changes of a small world: whatever may
// have been confirmed, the new view begins with it.
func TestChoiceKeepsWhatMayBeConfirmed(t *testing.T) {
	g := newGroup()
	w := &chooseWorld{g, newStatements(g.scheme)}
	kinds := small()
	changes := map[logOf]*changeBody{}
	for _, k := range kinds {
		changes[k] = w.change(k, 0)
	}
	checked := 0
	for i, a := range kinds {
		for j, b := range kinds {
			for k, c := range kinds {
				set := [3]logOf{a, b, c}
				got := choose(2, []*changeBody{changes[a], changes[b], changes[c]}, 1)
				for _, h := range []string{"a", "b", "aa", "ab", "ba", "bb"} {
					for try := range 8 {
						if mayBe(set, try%4-1, bft.View(try/4), h) {
							checked++
							if want := batchesOf(h); len(got.batches) < len(want) || !slices.Equal(got.batches[:len(want)], want) {
								t.Fatalf("%d %d %d: %+v with traitor %d: %q may be confirmed in view %d, and it begins with %v",
									i, j, k, set, try%4-1, h, try/4, got.batches)
							}
						}
					}
				}
			}
		}
	}
	if checked < 1000 {
		t.Errorf("in %d cases only something may be confirmed", checked)
	}
}

// TestChoiceFromCheckpoints: what a view begins with does not depend on which members have a stable
// checkpoint of a part of it.
func TestChoiceFromCheckpoints(t *testing.T) {
	g := newGroup()
	w := &chooseWorld{g, newStatements(g.scheme)}
	plain, stable := map[logOf]*changeBody{}, map[logOf]*changeBody{}
	var kinds []logOf
	for _, k := range small() {
		if k.view == 0 || has(k.log, "a") { // the later view began after the checkpoint
			kinds = append(kinds, k)
		}
	}
	for _, k := range kinds {
		plain[k] = w.change(k, 0)
		if has(k.log, "a") {
			stable[k] = w.change(k, 1)
		}
	}
	for i := range len(kinds) * len(kinds) * len(kinds) {
		n := len(kinds)
		set := [3]logOf{kinds[i%n], kinds[i/n%n], kinds[i/n/n]}
		all := []*changeBody{plain[set[0]], plain[set[1]], plain[set[2]]}
		want := choose(2, all, 1)
		if len(want.batches) == 0 || want.batches[0] != (bft.Digest{'a'}) {
			continue
		}
		for mask := 1; mask < 8; mask++ {
			some := slices.Clone(all)
			for m, l := range set {
				if mask>>m&1 == 1 && stable[l] != nil {
					some[m] = stable[l]
				}
			}
			if got := choose(2, some, 1); got.stamp != want.stamp {
				t.Fatalf("%+v, checkpoints of %b: it begins with %+v, want %+v", set, mask, got, want)
			}
		}
	}
}

// certificate returns what members 1 to 4 but one have stamped.
func (w *chooseWorld) certificate(without protocol.ID, b stampBody) bft.Certificate[stampBody] {
	var all []bft.Signed[stampBody]
	for id := protocol.ID(1); id <= 4; id++ {
		if id != without {
			all = append(all, w.st.stamps.Sign(w.scheme, w.sign(id), b))
		}
	}
	return bft.Join(all)
}

// TestPublishedAttack is that of Abraham, Gueta, Malkhi and Martin (arXiv:1712.01367, for four
// members): the traitor 1 leads view 0 and alone has a certificate of a. It hides that, so view 1
// begins with nothing, and all four stamp b there: a client has it confirmed. In the change to view
// 2 the traitor comes out with its certificate. By the paper's rule it counts for more than the
// orders of b, although it is of an older view, and b is lost.
func TestPublishedAttack(t *testing.T) {
	g := newGroup()
	w := &chooseWorld{g, newStatements(g.scheme)}
	a, b := bft.Digest{'a'}, bft.Digest{'b'}
	ofA := w.certificate(4, stampBody{0, 1, chain(bft.Digest{}, a)})
	nothing := w.certificate(1, stampBody{View: 1})
	sign := func(by protocol.ID, c changeBody) bft.Signed[changeBody] {
		return w.st.changes.Sign(w.scheme, w.sign(by), c)
	}

	first := startBody{1, []bft.Signed[changeBody]{
		sign(1, changeBody{View: 1}), sign(3, changeBody{View: 1, Batches: []bft.Digest{a}}), sign(4, changeBody{View: 1}),
	}}
	signed := w.st.starts.Sign(w.scheme, w.sign(2), first)
	if got, ok := lawfulStart(kit.Genesis(&w.dir), &signed, 128); !ok || got.stamp != nothing.Body() {
		t.Fatalf("view 1 begins with %+v, lawful: %v", got, ok)
	}

	withB := changeBody{View: 2, LogView: 1, Batches: []bft.Digest{b}, Proof: nothing}
	second := w.st.starts.Sign(w.scheme, w.sign(3), startBody{2, []bft.Signed[changeBody]{
		sign(1, changeBody{View: 2, Batches: []bft.Digest{a}, Proof: ofA}), sign(2, withB), sign(3, withB),
	}})
	r, env := g.member(t, 4)
	confirmed := w.certificate(1, stampBody{2, 1, chain(bft.Digest{}, b)})
	if r.Receive(env, 3, newView{second, confirmed}); r.View != 2 || !r.Active || r.places[1].batch != b {
		t.Errorf("a member is in view %d, active: %v, with the log %+v", r.View, r.Active, r.places[1])
	}
}

// TestUnlawfulChanges: nothing in a change is believed that it does not prove.
func TestUnlawfulChanges(t *testing.T) {
	g := newGroup()
	w := &chooseWorld{g, newStatements(g.scheme)}
	a := bft.Digest{'a'}
	ofA := stampBody{1, 1, chain(bft.Digest{}, a)}
	wrong := w.certificate(1, stampBody{0, 1, a})
	few := bft.Join([]bft.Signed[stampBody]{w.st.stamps.Sign(w.scheme, w.sign(1), ofA)})
	for name, c := range map[string]changeBody{
		"a view without certificate":           {View: 2, LogView: 1},
		"a certificate by one":                 {View: 2, LogView: 1, Batches: []bft.Digest{a}, Proof: few},
		"a certificate of another view":        {View: 2, LogView: 1, Proof: w.certificate(1, stampBody{View: 2})},
		"a certificate of another log":         {View: 2, Batches: []bft.Digest{{}}, Proof: wrong},
		"a certificate beyond the log":         {View: 2, Proof: w.certificate(1, stampBody{0, 1, chain(bft.Digest{}, a)})},
		"a log of the view that is to begin":   {View: 2, LogView: 2, Proof: w.certificate(1, stampBody{View: 2})},
		"more places than there are under way": {View: 2, Batches: make([]bft.Digest, 129)},
	} {
		if lawfulChange(kit.Genesis(&w.dir), &c, 128) {
			t.Errorf("%s is lawful", name)
		}
	}
}
