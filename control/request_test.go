package control

import (
	"testing"
)

// TestNoCallAfterEnd: what ends after its request is not kept either.
func TestNoCallAfterEnd(t *testing.T) {
	c := mustControl(t, Config{})
	_, r := c.Begin(t.Context(), "page", "1")
	r.Engine().AddCall(CallRecord{})
	r.End(nil)
	r.Engine().AddCall(CallRecord{})
	if n := len(r.calls); n != 1 {
		t.Errorf("%d calls are entered, want 1", n)
	}
}

func TestArmOnOutweighsOff(t *testing.T) {
	c := mustControl(t, Config{})
	_, r := c.Begin(t.Context(), "page", "1")
	r.chose(true, 0.5, true)
	r.chose(false, 0.5, true)
	if r.arm != ArmOn {
		t.Errorf("arm %v", r.arm)
	}
}
