package server

import (
	"testing"

	"github.com/foresay/foresay/internal/wirefmt/wiretest"
	"github.com/foresay/foresay/specfs"
)

// TestLayouts tests what a server has under keys of its disk.
func TestLayouts(t *testing.T) {
	wiretest.Layouts(t,
		wiretest.Sample("server", metaLayout, meta{Serial: 300, Session: 2, Starts: 3, Lease: 10}),
		wiretest.Sample("session", sessionLayout, sessionRecord{ID: 1, Token: 1 << 60, Leases: true, Decided: 7}),
		wiretest.Sample("answer", answerLayout, specfs.Answer{
			Number: 1, Refused: specfs.WrongClock, Serial: 2, Moved: []specfs.Part{{ID: 3, Aspect: specfs.Stat}}, Now: 4,
		}))
}
