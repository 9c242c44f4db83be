package kit

import (
	"math/rand/v2"
	"testing"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
)

// TestWhoLagsAsks: a replica that does not get on asks the one that is furthest of those that were
// just heard, not in each beat; one that gets on asks nobody, one that knows no group asks anybody.
func TestWhoLagsAsks(t *testing.T) {
	env := protocol.NewEnv[smr.Message](nil, 1, rand.New(rand.NewPCG(1, 1)))
	for _, tc := range []struct {
		what          string
		member, knows bool
		moves         bool
		age           int
		want          protocol.ID
	}{
		{"stands still", true, true, false, 0, 3},
		{"gets on", true, true, true, 0, 0},
		{"gets on, but is no member", false, true, true, 0, 3},
		{"nobody was heard lately", true, true, false, 3, 0},
		{"knows no group", false, false, false, 3, 7},
	} {
		p := NewProgress(NewTransfers(nil, nil))
		p.Heard(2, 0, 5)
		p.Heard(3, 0, 9)
		p.Heard(4, 0, 9)
		for range tc.age {
			p.Beat(env)
		}
		for beat, applied := range []smr.Slot{4, 4, 4, 4} {
			if tc.moves {
				applied -= 4 - smr.Slot(beat)
			}
			want := tc.want
			if beat%2 == 0 {
				want = 0
			}
			if got := p.Lags(env, applied, tc.member, tc.knows, []protocol.ID{7}); got != want {
				t.Errorf("%s: in beat %d it asks %d, want %d", tc.what, beat, got, want)
			}
		}
	}
}

// TestOneIsAsked: while the one that was asked is heard, and has more, no other one is asked, for
// quite some time; then another one is.
func TestOneIsAsked(t *testing.T) {
	for _, knows := range []bool{false, true} {
		env := protocol.NewEnv[smr.Message](nil, 1, rand.New(rand.NewPCG(1, 1)))
		p := NewProgress(NewTransfers(nil, nil))
		asked := map[protocol.ID]int{}
		beats := func(n int, silent protocol.ID) {
			clear(asked)
			for beat := range n {
				p.Beat(env)
				for i := range protocol.ID(3) {
					if id := i + 2; id != silent {
						p.Heard(id, 0, smr.Slot(beat+1+(beat+int(i))%3)) // each is furthest at times
					}
				}
				if id := p.Lags(env, 0, false, knows, []protocol.ID{2, 3, 4}); id != 0 {
					asked[id]++
				}
			}
		}
		if beats(2*askSame, 0); len(asked) != 1 {
			t.Errorf("it knows its group: %v; asked are, how often: %v", knows, asked)
		}
		first := p.asked
		if beats(20, first); asked[first] > askSilent || len(asked) == 0 {
			t.Errorf("it knows its group: %v, and %d is not heard; asked are, how often: %v", knows, first, asked)
		}
	}
}

// TestProgressIsBounded: who is not heard any more is forgotten, and strangers take no more room
// than there is.
func TestProgressIsBounded(t *testing.T) {
	env := protocol.NewEnv[smr.Message](nil, 1, nil)
	p := NewProgress(NewTransfers(nil, nil))
	for id := range protocol.ID(200) {
		p.Heard(id+1, 0, 1)
	}
	if n := len(p.Peers(smr.ReplicaConfig{ID: 1})); n != maxProgress-1 {
		t.Errorf("%d peers are known, want %d", n, maxProgress-1)
	}
	for range forgetAfter + 1 {
		p.Beat(env)
		p.Heard(2, 0, 1)
	}
	if peers := p.Peers(smr.ReplicaConfig{ID: 1}, 9); len(peers) != 2 || peers[0] != 2 || peers[1] != 9 {
		t.Errorf("known are %v", peers)
	}
}
