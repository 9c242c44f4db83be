package domino_test

import (
	"testing"
	"time"

	"github.com/foresay/foresay/smr/domino"
	"github.com/foresay/foresay/smr/smrtest"
)

// TestConformance plays 200 seeds, of both variants together.
func TestConformance(t *testing.T) {
	const probe = 50 * time.Millisecond // few are enough for links that are always the same, and quicker to simulate
	t.Run("domino", func(t *testing.T) {
		smrtest.Suite(t, domino.New("domino", "", domino.Options{Probe: probe}), smrtest.Seeds{Played: 80, Repeated: 5})
	})
	t.Run("direct", func(t *testing.T) {
		o := domino.Options{Probe: probe, Direct: true, AllLearn: true, Arrival: true, Slack: time.Millisecond}
		smrtest.Suite(t, domino.New("domino-direct", "", o), smrtest.Seeds{Played: 120, Repeated: 10})
	})
}
