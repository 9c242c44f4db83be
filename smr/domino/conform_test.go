package domino_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/domino"
	"github.com/foresay/foresay/smr/smrtest"
)

// probe is how often the clients of these tests measure. Links that do not change need no more, and
// it is quicker to simulate.
const probe = 50 * time.Millisecond

// TestConformance plays the family's suite with the variant that goes beyond the thesis.
func TestConformance(t *testing.T) {
	o := domino.Options{Probe: probe, Direct: true, AllLearn: true, Arrival: true, Slack: time.Millisecond}
	smrtest.Suite(t, domino.New("domino-direct", "", o), smrtest.Seeds{Played: 130, Repeated: 10})
}

// TestMembersOutliveRestarts: members find their group again after restarts, though all that it
// began with are gone.
func TestMembersOutliveRestarts(t *testing.T) {
	smrtest.Script(t, domino.New("domino", "", domino.Options{Probe: probe}), "restarts among new members")
}

// TestMembersFindTheirSuccessors: a member that was away while all whom it knew were replaced comes
// back.
func TestMembersFindTheirSuccessors(t *testing.T) {
	smrtest.Script(t, domino.New("domino", "", domino.Options{Probe: probe}),
		"a member that was away while all others were replaced")
}

// TestConformanceOfThesis plays seeds with the thesis' variants: with TestConformance's these are
// 200.
func TestConformanceOfThesis(t *testing.T) {
	for i, o := range []domino.Options{{Probe: probe}, {Probe: probe, Path: domino.OnlyDFP, Slack: 2 * time.Millisecond}} {
		p := domino.New("domino", "", o)
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			t.Parallel()
			playSeeds(t, p, uint64(1000+i), 35)
		})
	}
}

func playSeeds(t *testing.T, p smr.Protocol, first uint64, count int) {
	for i := range count {
		if r, err := smrtest.Play(smrtest.Swarm(p, first+2*uint64(i))); err != nil {
			t.Fatalf("%v\n%v", r, err)
		}
	}
}

// TestSlowerThanConfigured: where all takes ten times the round trip that replicas and clients are
// told, a group that keeps to the thesis serves all the same.
func TestSlowerThanConfigured(t *testing.T) {
	smrtest.Script(t, domino.Protocol(), "slower than configured")
}
