package kit

import (
	"testing"
	"time"

	"github.com/foresay/foresay/internal/plant"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
)

// TestRestPlants leaves out one rule of resting at a time, in the source: TestRest of each protocol
// that rests must notice.
func TestRestPlants(t *testing.T) {
	const dir = "smr/kit"
	for _, in := range []string{"smr/raft", "smr/multipaxos"} {
		t.Run(in, func(t *testing.T) {
			plant.Catch(t, []plant.Bug{
				{
					Name: "a follower at rest does not miss its leader's host",
					Dir:  dir, In: in, Test: "TestRest/the_leader_is_killed",
					Old: "\tat, ok := s.Heard(env.Now)\n\tif !ok {\n",
					New: "\tat, ok := s.Heard(env.Now)\n\tif MUTANT && s.resting {\n\t\tat, ok = env.Now, true\n\t}\n\tif !ok {\n",
				},
				{
					Name: "a leader at rest does not look whether its followers' hosts are there",
					Dir:  dir, In: in, Test: "TestRest/the_leader_hears_nobody",
					Old: "if _, ok := s.Heard(env.Now); ok {\n\t\tenv.After(restLooks",
					New: "if _, ok := s.Heard(env.Now); ok || MUTANT {\n\t\tenv.After(restLooks",
				},
				{
					Name: "a call does not wake a leader",
					Dir:  dir, In: in, Test: "TestRest/nothing_happens",
					Old: "s.rules.Leads() && (wakes(msg) ||", New: "s.rules.Leads() && !MUTANT && (wakes(msg) ||",
				},
				{
					Name: "a follower that hears its leader rests on",
					Dir:  dir, In: in, Test: "TestRest/nothing_happens",
					Old: "\tif s.resting && !s.rules.Leads() && s.relies(from) {\n",
					New: "\tif s.resting && !MUTANT && !s.rules.Leads() && s.relies(from) {\n",
				},
			})
		})
	}
}

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
		rest := newRest(smr.ReplicaConfig{ID: 1, RoundTrip: roundTrip, Vouch: func(id protocol.ID) (smr.Vouched, bool) {
			if id == 2 {
				return leader, true
			}
			return smr.Vouched{Run: 3, At: began}, true
		}})
		env := protocol.NewEnv[smr.Message](nil, 1, nil)
		if !rest.follow(env, 2, RestNow{Run: 7}, 5) {
			t.Fatal("the follower does not rest")
		}
		leader.At = c.heard
		at, there := rest.heard(began, patience)
		if there != c.there || there && at != min(c.heard, began) {
			t.Errorf("heard at %v, asked at %v: heard at %v, %v; want %v", c.heard, began, at, there, c.there)
		}
	}
}

// TestAskDuringABeat has a leader ask its followers to rest although a host's beat came while it
// looked.
func TestAskDuringABeat(t *testing.T) {
	const roundTrip, began = 100 * time.Millisecond, time.Hour
	rest := newRest(smr.ReplicaConfig{ID: 1, RoundTrip: roundTrip, Vouch: func(protocol.ID) (smr.Vouched, bool) {
		return smr.Vouched{Run: 7, At: began + time.Millisecond}, true
	}})
	env := protocol.NewEnv[smr.Message](nil, 1, nil)
	env.Now = began
	if _, asked := rest.ask(env, RestNow{}, 5, []protocol.ID{2, 3}); !asked || len(env.Out) != 2 {
		t.Errorf("asked: %v, by %d messages", asked, len(env.Out))
	}
}
