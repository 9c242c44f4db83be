package kit

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestPaged plays with a Paged beside a slice, and looks that nothing is kept of what was forgotten.
func TestPaged(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	var v Paged[int]
	var want []int
	for step := range 2000 {
		if rnd.IntN(4) > 0 {
			for range rnd.IntN(2 * pageSize) {
				want = append(want, step+1)
				v.Add(step + 1)
			}
		} else {
			n := rnd.IntN(len(want) + 1)
			v.Forget(n)
			want = slices.Delete(want, 0, n)
		}
		if v.Len() != len(want) || len(v.parts) > len(want)/pageSize+2 {
			t.Fatalf("step %d: %d in %d parts, want %d", step, v.Len(), len(v.parts), len(want))
		}
		for i, x := range want {
			if *v.At(i) != x {
				t.Fatalf("step %d: element %d is %v, want %v", step, i, *v.At(i), x)
			}
		}
		for i := range v.gone {
			if v.parts[0][i] != 0 {
				t.Fatalf("step %d: element %d was forgotten and is still there", step, i)
			}
		}
		if len(want) > 20*pageSize {
			v.Forget(len(want))
			want = nil
		}
	}
}
