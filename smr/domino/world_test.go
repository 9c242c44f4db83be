package domino

import (
	"fmt"
	"testing"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kv"
	"github.com/foresay/foresay/smr/smrsim"
	"github.com/foresay/foresay/smr/smrtest"
	"github.com/foresay/foresay/wan"
)

// world is a deployment of a paper: a replica at each of its sites and a client at every site of
// its network.
type world struct{ *smrtest.Deployed }

// setup is what a world is made from.
type setup struct {
	preset string
	opt    Options
	cfg    sim.Config[smr.Message]
	jitter time.Duration // of all links
	clocks func(protocol.ID) sim.Clock
	adjust func(*smr.ReplicaConfig)
}

func newWorld(t testing.TB, s setup) *world {
	t.Helper()
	place, err := wan.Preset(s.preset)
	must(t, err)
	for p, l := range place.Matrix.Links() {
		if l.Delay > 0 {
			l.Jitter = s.jitter
		}
		place.Matrix = place.Matrix.WithLink(p, l)
	}
	return &world{smrtest.Deploy(t, s.preset, smrsim.Config{
		Protocol: New("", "", s.opt), Place: place, FirstClient: 100, RoundTrip: place.Matrix.MaxRTT(place.Replicas),
		Sim: s.cfg, Clock: s.clocks,
		Replica: func(c *smr.ReplicaConfig) {
			c.Machine, c.Leader = kv.New(), 1
			if s.adjust != nil {
				s.adjust(c)
			}
		},
		Client: func(c *smr.ClientConfig) { c.Nearest = 0 },
	})}
}

func (w *world) replica(id protocol.ID) *replica { return w.Get(id).(*replica) }

func (w *world) client(site wan.Site) *client { return w.Get(w.Client(site)).(*client) }

// load has every client write so many times a second, for a while, and returns what became of it.
func (w *world) load(call smr.Call, perSecond int, lasting time.Duration) []smrsim.Answer {
	n := 0
	return w.Load(perSecond, time.Second/time.Duration(perSecond), lasting, func() smr.Call {
		n++
		call.Command = kv.Put(fmt.Appendf(nil, "%08d", n*7919%1000), []byte("12345678"))
		return call
	})
}

// percentile returns how long a part of the calls took at most.
func percentile(answers []smrsim.Answer, p float64) time.Duration {
	return smrtest.Percentile(smrtest.Took(answers), p)
}

func ids(id ...protocol.ID) []protocol.ID { return id }

// noting is a state machine that notes what it executes.
type noting struct {
	smr.StateMachine
	log *[]string
}

func (n *noting) Apply(command []byte) []byte {
	*n.log = append(*n.log, string(command))
	return n.StateMachine.Apply(command)
}
