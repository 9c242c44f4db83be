package shape_test

import (
	"testing"
	"time"

	"github.com/foresay/foresay/wan"
	"github.com/foresay/foresay/wan/shape"
)

func TestLoopbackCall(t *testing.T) {
	n := shape.NewLoopback(wan.Uniform(10*time.Millisecond, "client", "a", "b"), 1)
	t.Cleanup(func() { n.Close() })
	c := connect(t, n, "client", serve(t, n, "a"))
	for i := range 5 {
		got, err := check(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		if got < 10*time.Millisecond {
			t.Errorf("call %d took %v, which is less than a round trip", i, got)
		}
	}
}
