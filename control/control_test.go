package control

import (
	"testing"
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
