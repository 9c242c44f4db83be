package byzantine

import "testing"

// TestFaulty: a wrong first reply costs no more than what it takes until it is confirmed, and a
// primary that lies more often is not believed any more, which makes clients wait as with plain
// PBFT.
func TestFaulty(t *testing.T) {
	took := map[string]float64{}
	// Each is a confirmation, and the updates that were under way again.
	for _, r := range quick(t, faultyExperiment()) {
		name := r.Text("service") + " " + r.Text("label") + " " + r.Text("wrong")
		took[name] = number(t, r, "total_s")
		wrong, first := number(t, r, "failed_directly"), number(t, r, "first_replies")
		switch r.Text("wrong") {
		case right:
			if wrong > 0 || number(t, r, "failed_with_them") > 0 {
				t.Errorf("%s: %v failed", name, wrong)
			}
		case atClient:
			if each := number(t, r, "each_confirmations"); wrong == 0 || each > 1.05 {
				t.Errorf("%s: each of %v costs %v confirmations", name, wrong, each)
			}
		case allOfIt:
			if wrong == 0 || wrong > 3 || first < 300 { // it is replaced
				t.Errorf("%s: %v of %v first replies failed", name, wrong, first)
			}
		}
	}
	for _, c := range []struct {
		of, to    string
		low, high float64
	}{
		{"counter pbft-0spec none", "counter pbft none", 1, 1}, // of the counter nothing can be predicted
		{"kv pbft-0spec none", "kv pbft none", 0.5, 0.51},      // of a key's writes all
		{"kv pbft-cs (100) none", "kv pbft-0spec none", 0, 0.02},
		// The next primary is at another site than the client: see bft-counter, uniform.
		{"counter pbft-cs (100) all by the primary", "counter pbft none", 0.66, 0.69},
		{"kv pbft-cs (100) all by the primary", "kv pbft-0spec none", 0.66, 0.69},
	} {
		if ratio := took[c.of] / took[c.to]; !(ratio >= c.low && ratio <= c.high) {
			t.Errorf("%s takes %.4f of %s", c.of, ratio, c.to)
		}
	}
}
