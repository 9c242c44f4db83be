package zyzzyva

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/foresay/foresay/bft"
	"github.com/foresay/foresay/bft/bfttest"
	"github.com/foresay/foresay/bft/kit"
	"github.com/foresay/foresay/internal/wirefmt/wiretest"
)

// TestConfirmedIsExact tries all sets of words of four members.
func TestConfirmedIsExact(t *testing.T) {
	words := []heard{{}}
	for _, d := range []bft.Digest{{1}, {2}} {
		for h := range 2 {
			s := stampBody{View: bft.View(h), Seq: 5, History: bft.Digest{byte(h)}}
			words = append(words, heard{speculated: true, stamp: s, result: d},
				heard{certified: true, at: heldAt{5, s.History, d}})
		}
		words = append(words, heard{final: true, concluded: d})
	}
	words = append(words, heard{certified: true, at: heldAt{6, bft.Digest{}, bft.Digest{1}}},
		heard{speculated: true, stamp: stampBody{Seq: 6}, result: bft.Digest{1}})
	n := len(words)
	for i := range n * n * n * n {
		set := []heard{words[i%n], words[i/n%n], words[i/n/n%n], words[i/n/n/n]}
		same := map[heard]int{}
		for _, h := range set {
			same[h]++
		}
		want := false
		for h, k := range same {
			want = want || h.speculated && k == 4 || h.certified && k >= 3 || h.final && k >= 2
		}
		if _, got := confirmed(set, 3, 2); got != want {
			t.Fatalf("%+v: confirmed is %v", set, got)
		}
	}
}

func samples() (*statements, []bft.Message) {
	var secrets bft.Secrets
	sc, me := bft.NewScheme("test", &secrets), secrets.Signer(1)
	st := newStatements(sc)
	shared := bfttest.Samples(&st.Statements, me)
	r, stable := shared[0].(kit.Submitted).Request, shared[2].(kit.StableProof).Proof
	b := kit.Batch{Entries: []kit.BatchEntry{{Request: bft.Digest{3}, Time: 9}}}
	o := orderBody{View: 1, Seq: 2, Batch: bft.Digest{4}, History: bft.Digest{5}}
	s := stampBody{View: 1, Seq: 2, History: bft.Digest{5}}
	order, stamp := st.orders.Sign(sc, me, o), st.stamps.Sign(sc, me, s)
	proof := bft.Join([]bft.Signed[stampBody]{stamp})
	change := st.changes.Sign(sc, me, changeBody{3, stable, 1, []bft.Digest{{4}}, proof})
	start := st.starts.Sign(sc, me, startBody{3, []bft.Signed[changeBody]{change}})
	result := bft.Result{Outcome: bft.Executed, Value: []byte("v")}
	return st, append(shared,
		replies{1, 2, &stamp, &order, []replyItem{{4, 5, speculated, bft.Digest{}, result.Digest(), true, result}}},
		replies{Session: 2, Items: []replyItem{{Number: 5, Seq: 6, Word: final, History: bft.Digest{6}}}},
		proposal{order, b, []bft.Signed[bft.Request]{r}}, stamped{stamp}, viewChange{change}, newView{start, proof},
		certified{proof, 2, []bft.Number{4}}, misdeed{order, order}, keptRecord{1, 2, b, []bft.Signed[bft.Request]{r}},
		viewRecord{3, true, true, 2, 1, bft.Digest{6}, []bft.Digest{{4}}, proof}, heldRecord{proof}, fillHole{1, 2, 3},
		status{1, true, 8, 9, 10, s}, concluded{1, 8, []bft.Digest{{4}}})
}

func TestCodec(t *testing.T) {
	st, all := samples()
	wiretest.Codec[bft.Message](t, st.format(), 64, all, cmp.Exporter(func(reflect.Type) bool { return true }))
}

func FuzzCodec(f *testing.F) {
	st, all := samples()
	wiretest.Fuzz[bft.Message](f, st.format(), all)
}
