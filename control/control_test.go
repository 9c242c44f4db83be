package control

import (
	"testing"
	"testing/synctest"
	"time"
)

const ms = time.Millisecond

func mustControl(t testing.TB, cfg Config) *Control {
	t.Helper()
	c, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Only what has no side effects may be sent before it is known to be wanted.
func TestSendPlainlyOfEffects(t *testing.T) {
	for effect, want := range map[Effect]bool{EffectNone: true, EffectStaged: false, EffectImmediate: false,
		EffectUnknown: false} {
		if _, err := NewCallSite(CallSiteConfig{Name: "/s/a", Effect: effect, SendPlainly: true}); (err == nil) != want {
			t.Errorf("effect %v: %v", effect, err)
		}
	}
}

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

// TestQuickest: the least time counts for one window of time, and for another.
func TestQuickest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f quickest
		if got := f.Least(); got != 0 {
			t.Errorf("%v of nothing", got)
		}
		took := func(d time.Duration) {
			begun := time.Now()
			time.Sleep(d)
			f.Took(begun, time.Now())
		}
		took(3 * ms)
		took(ms)
		took(5 * ms)
		for i, want := range []time.Duration{ms, 7 * ms, 7 * ms} {
			time.Sleep(quickestWindow)
			took(7 * ms)
			if got := f.Least(); got != want {
				t.Errorf("%d windows later: %v, want %v", i+1, got, want)
			}
		}
	})
}
