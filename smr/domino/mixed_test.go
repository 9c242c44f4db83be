package domino

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/smrtest"
)

// mixed is Domino of which each node has options of its own, and others after each restart.
func mixed(seed uint64) smr.Protocol {
	random := rand.New(rand.NewPCG(seed, 4))
	some := func() Options {
		coin := func() bool { return random.IntN(2) == 0 }
		return Options{
			Slack: time.Duration(random.IntN(20)) * time.Millisecond, AdaptSlack: coin(),
			Percentile: 0.05 + 0.95*random.Float64(),
			Window:     time.Duration(1+random.IntN(3000)) * time.Millisecond,
			Probe:      time.Duration(20+random.IntN(100)) * time.Millisecond,
			Path:       Path(random.IntN(3)), Direct: coin(), AllLearn: coin(), Arrival: coin(),
		}
	}
	p := Protocol()
	p.NewReplica = func(c smr.ReplicaConfig) (protocol.Node[smr.Message], error) { return newReplica(c, some()) }
	p.NewClient = func(c smr.ClientConfig) (protocol.Node[smr.Message], error) { return newClient(c, some()) }
	return p
}

// TestMixedOptions: no promise of the family depends on that nodes have the same options, in spite
// of all faults.
func TestMixedOptions(t *testing.T) {
	const shards, each = 4, 15
	for shard := range uint64(shards) {
		t.Run(fmt.Sprint(shard), func(t *testing.T) {
			t.Parallel()
			for seed := 1 + shard*each; seed <= (shard+1)*each; seed++ {
				sc := smrtest.Swarm(mixed(seed), seed)
				sc.Replay = fmt.Sprintf("go test ./smr/domino -run TestMixedOptions/%d", shard)
				if r, err := smrtest.Play(sc); err != nil {
					t.Fatalf("%v\n%v", r, err)
				}
			}
		})
	}
}

// TestWorstMixes: what unequal options cost is time. With a coordinator that takes the others to
// count votes, which they do not, these catch up by what it has executed; and with an owner that
// takes acceptors to answer, which they do not, its clients hear of their commands when they are
// executed.
func TestWorstMixes(t *testing.T) {
	for _, tc := range []struct {
		name string
		mix  func(coordinates bool, o *Options)
		path Path
		ack  smr.Ack
		// of any call; with equal options it is 113 ms without AllLearn, 79 with it, 90 without
		// Direct, 75 with it
		limit time.Duration
	}{
		{"only the coordinator learns", func(coordinates bool, o *Options) {
			o.AllLearn = coordinates
		}, OnlyDFP, smr.AckExecuted, 400 * time.Millisecond},
		{"all but the coordinator learn", func(coordinates bool, o *Options) {
			o.AllLearn = !coordinates
		}, OnlyDFP, smr.AckExecuted, 120 * time.Millisecond},
		{"only one owner is direct", func(coordinates bool, o *Options) {
			o.Direct = coordinates
		}, OnlyDM, smr.AckDurable, 130 * time.Millisecond},
		{"all but one owner are direct", func(coordinates bool, o *Options) {
			o.Direct = !coordinates
		}, OnlyDM, smr.AckDurable, 100 * time.Millisecond},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t, setup{preset: "na3", opt: Options{Path: tc.path}})
			for _, m := range w.Members {
				r := w.replica(m.ID)
				tc.mix(r.coord.phase == leading, &r.opt)
			}
			call := smr.Call{Kind: smr.Propose, Ack: tc.ack}
			answers := w.load(call, 20, 3*time.Second)
			longest := time.Duration(0)
			for _, a := range answers {
				longest = max(longest, a.Took)
			}
			t.Logf("p50 %v, longest %v", percentile(answers, 0.5), longest)
			if longest > tc.limit {
				t.Errorf("a call took %v, more than %v", longest, tc.limit)
			}
		})
	}
}
