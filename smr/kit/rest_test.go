package kit_test

import (
	"testing"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// TestHostHeardDuringACall has a host's beat come while a call of a replica runs, beside it, so
// that the moment is after the one at which the call began. The host is there. But a beat that is
// far ahead of the clock, since that was set back, says nothing.
func TestHostHeardDuringACall(t *testing.T) {
	const roundTrip, patience, began = 100 * time.Millisecond, time.Second, time.Hour
	for _, c := range []struct {
		heard time.Duration
		there bool
	}{
		{began, true},
		{began + time.Millisecond, true},
		{began - patience + 1, true},
		{began - patience, false},
		{began + patience, false},
	} {
		leader := smr.Vouched{Run: 7, At: began}
		rest := kit.NewRest(smr.ReplicaConfig{ID: 1, RoundTrip: roundTrip, Vouch: func(id protocol.ID) (smr.Vouched, bool) {
			if id == 2 {
				return leader, true
			}
			return smr.Vouched{Run: 3, At: began}, true
		}})
		env := protocol.NewEnv[smr.Message](nil, 1, nil)
		if !rest.Follow(env, 2, kit.RestNow{Run: 7}, 5) {
			t.Fatal("the follower does not rest")
		}
		leader.At = c.heard
		at, there := rest.Heard(began, patience)
		if there != c.there || there && at != min(c.heard, began) {
			t.Errorf("heard at %v, asked at %v: heard at %v, %v; want %v", c.heard, began, at, there, c.there)
		}
	}
}

// TestAskDuringABeat has a leader ask its followers to rest although a host's beat came while it
// looked.
func TestAskDuringABeat(t *testing.T) {
	const roundTrip, began = 100 * time.Millisecond, time.Hour
	rest := kit.NewRest(smr.ReplicaConfig{ID: 1, RoundTrip: roundTrip, Vouch: func(protocol.ID) (smr.Vouched, bool) {
		return smr.Vouched{Run: 7, At: began + time.Millisecond}, true
	}})
	env := protocol.NewEnv[smr.Message](nil, 1, nil)
	env.Now = began
	if _, asked := rest.Ask(env, kit.RestNow{}, 5, []protocol.ID{2, 3}); !asked || len(env.Out) != 2 {
		t.Errorf("asked: %v, by %d messages", asked, len(env.Out))
	}
}
