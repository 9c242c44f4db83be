package observe

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/foresay/foresay/control"
)

// TestSimpleRequests: what is worked out without thinking is what thinking gives.
func TestSimpleRequests(t *testing.T) {
	chance := rand.New(rand.NewPCG(1, 2))
	some := func() time.Duration { return time.Duration(chance.IntN(10)) * time.Millisecond }
	simple := 0
	for range 5000 {
		r := &control.RequestRecord{Duration: some() + some()}
		for range chance.IntN(3) {
			start := some() / 2
			r.Calls = append(r.Calls, control.CallRecord{
				CallSite: "/a.S/Get", Effect: control.Effect(chance.IntN(4)), Start: start, End: start + some(),
				Guessed: chance.IntN(2) > 0, Right: chance.IntN(2) > 0, Digest: chance.IntN(2) > 0,
			})
		}
		m := &method{name: "/a.S/Get", reads: chance.IntN(2) > 0, predicted: chance.IntN(2) > 0, loses: chance.IntN(4) == 0}
		results := make([]*work, 2)
		for i := range results {
			w := new(work)
			if !w.read(r) {
				t.Fatalf("%+v is refused", r)
			}
			for at := range r.Calls {
				w.assign(at, m)
			}
			for at := range w.used {
				w.used[at].weighed = w.used[at].guessed > 0
			}
			if i == 0 && w.simple(r.Duration) {
				simple++
			} else if err := w.replay(r.Duration); err != nil {
				t.Fatal(err)
			}
			results[i] = w
		}
		if diff := cmp.Diff(results[1], results[0], cmp.AllowUnexported(work{}, use{}), cmpopts.IgnoreFields(use{}, "method"),
			cmpopts.IgnoreFields(work{}, "calls", "stops")); diff != "" {
			t.Fatalf("%+v (-replayed +simple):\n%s", r, diff)
		}
	}
	if simple < 2000 {
		t.Errorf("only %d requests were simple", simple)
	}
}
