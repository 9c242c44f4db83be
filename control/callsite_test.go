package control

import "testing"

// Only what has no side effects may be sent before it is known to be wanted.
func TestSendPlainlyOfEffects(t *testing.T) {
	for effect, want := range map[Effect]bool{EffectNone: true, EffectStaged: false, EffectImmediate: false,
		EffectUnknown: false} {
		if _, err := NewCallSite(CallSiteConfig{Name: "/s/a", Effect: effect, SendPlainly: true}); (err == nil) != want {
			t.Errorf("effect %v: %v", effect, err)
		}
	}
}
