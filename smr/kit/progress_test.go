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

// TestProgressIsBounded: who is not heard any more is forgotten, and strangers take no more room
// than there is.
func TestProgressIsBounded(t *testing.T) {
	env := protocol.NewEnv[smr.Message](nil, 1, nil)
	p := NewProgress(NewTransfers(nil, nil))
	for id := range protocol.ID(200) {
		p.Heard(id+1, 0, 1)
	}
	if n := len(p.Peers(1)); n != maxProgress-1 {
		t.Errorf("%d peers are known, want %d", n, maxProgress-1)
	}
	for range forgetAfter + 1 {
		p.Beat(env)
		p.Heard(2, 0, 1)
	}
	if peers := p.Peers(1, 9); len(peers) != 2 || peers[0] != 2 || peers[1] != 9 {
		t.Errorf("known are %v", peers)
	}
}
