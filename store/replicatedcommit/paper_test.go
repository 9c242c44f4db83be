package replicatedcommit

import (
	"testing"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/storedeploy"
	"github.com/foresay/foresay/store/storetest"
	"github.com/foresay/foresay/wan"
)

// newPaperScript is a script on the paper's sites [SpecRPC Table 1], whose clients 200 to 202 are
// in Oregon, Ireland and Seoul.
func newPaperScript(t *testing.T) *script {
	t.Helper()
	s := &script{t: t, answers: map[protocol.ID][]message{}}
	s.world = &world{World: &storetest.World{
		Subject: subject(0), Layout: layout(3, 3), Refused: map[protocol.ID]string{},
	}}
	var err error
	s.Sim, err = storedeploy.New(storedeploy.Config{Protocol: Protocol(), Layout: layout(3, 3), Clients: paperSites(),
		Sim: sim.Config[message]{WAN: wan.SpecRPC()}, Hear: s.hear,
		Node: func(c *store.Config) { c.RoundTrip, c.Retain = roundTrip, 3*time.Second }})
	if err != nil {
		t.Fatal(err)
	}
	s.run(time.Second)
	return s
}

func paperSites() []wan.Site { return []wan.Site{"oregon", "ireland", "seoul"} }

// TestLatencyIsOneRoundTrip: a quorum read takes a round trip to the nearest other site, and so
// does a commit, with 2PC at each site and consensus among them in one [SpecRPC §4.1], on the
// paper's sites [Table 1].
func TestLatencyIsOneRoundTrip(t *testing.T) {
	s := newPaperScript(t)
	for i, ms := range []int{122, 140, 122} {
		client, want := protocol.ID(200+i), time.Duration(ms)*time.Millisecond
		if g, took := s.read(client, "a"); !g.OK || took != want {
			t.Errorf("a read from %s takes %v, want %v (%+v)", paperSites()[i], took, want, g)
		}
		d, took := s.done(client, s.submit(client, "x", "a", "b", "c", "d", "e"))
		if d.Outcome.Verdict != 1 || took != want {
			t.Errorf("a commit from %s takes %v, want %v (%+v)", paperSites()[i], took, want, d.Outcome)
		}
		s.run(time.Second) // until the decision is applied
	}
}
