package geostore

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foresay/foresay/bench"
	"github.com/foresay/foresay/bench/table"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/client"
	"github.com/foresay/foresay/store/plan"
	"github.com/foresay/foresay/wan"
	"github.com/foresay/foresay/wan/shape"
	"github.com/foresay/foresay/workload"
)

// TestLocalise: as many transactions as asked for use keys that are led at their site, no key
// twice, and the others are as they were.
func TestLocalise(t *testing.T) {
	place, err := ringOf("carousel")
	if err != nil {
		t.Fatal(err)
	}
	keys, err := workload.Zipfian(1000, 0.9)
	if err != nil {
		t.Fatal(err)
	}
	rnd := rand.New(rand.NewPCG(1, 1))
	for _, percent := range []int{0, 50, 100} {
		local, foreign := 0, 0
		for range 400 {
			txn := workload.Retwis{Keys: keys}.Next(rnd)
			site := place.matrix.Sites()[rnd.IntN(5)]
			moved := localise{place, percent}.move(rnd, site, txn)
			all, seen := true, map[uint64]bool{}
			for i, o := range moved.Ops {
				led := place.placement[store.ShardOf(store.Key(workload.Name(o.Key)), 5)][0]
				all = all && led == string(site)
				if seen[o.Key] || o.Read != txn.Ops[i].Read || o.Write != txn.Ops[i].Write {
					t.Fatalf("%v becomes %v", txn.Ops, moved.Ops)
				}
				seen[o.Key] = true
			}
			if all {
				local++
			} else {
				foreign++
			}
		}
		if low, high := 4*percent-45, 4*percent+75; local < low || local > high {
			t.Errorf("of 400 transactions %d use keys that are led here, want %d %%", local, percent)
		}
	}
}

// TestReadsTakeWhatTheModelSays: transactions that only read, of keys that hardly anybody else
// uses, take what the model says, within 1 %: it is other transactions that make reads longer.
func TestReadsTakeWhatTheModelSays(t *testing.T) {
	study := latencyStudy{
		systems: protocolSystems(waiting(), plan.CarouselBasic), rows: protocolRows, compare: func([]table.Row) {},
		points: func(o bench.Options) ([]studyPoint, error) {
			p, err := varied(o, 0, nil)
			p.clients, p.sharing, p.every, p.lasting = 2, 2, 400*time.Millisecond, 3*time.Second
			return []studyPoint{p}, err
		},
	}
	rows, err := study.run(t.Context(), bench.Run{Options: bench.Options{Mode: bench.Virtual, Quick: true, Seed: 3,
		Bubble: bubbles(t)}})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		if r.Text("site") != "all" || r.Text("class") != string(plan.ReadOnly) {
			continue
		}
		mean, _ := r.Number("attempt_mean_ms")
		model, _ := r.Number("model_mean_ms")
		if n, _ := r.Number("txns"); n < 20 || mean < model || mean > 1.01*model {
			t.Errorf("%v transactions that only read take %v ms, the model says %v", n, mean, model)
		}
		return
	}
	t.Error("there is no row of transactions that only read")
}

// TestClocksAreApart: machines' clocks differ as asked for, and those that are off say so.
func TestClocksAreApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		carousel := protocolSystems([]client.Mode{client.GRPC}, plan.CarouselBasic)[0].protocol()
		for offset, off := range map[time.Duration]bool{0: false, 200 * time.Millisecond: true} {
			s, err := Open(t.Context(), Config{Protocol: carousel, Shards: 1, Offset: offset, Seed: 1,
				Matrix: wan.Uniform(20*time.Millisecond, "a", "b", "c")})
			if err != nil {
				t.Fatal(err)
			}
			if err := shape.Pause(t.Context(), 3*time.Second); err != nil {
				t.Error(err)
			}
			status, err := s.Status(t.Context(), "a")
			if err != nil || len(status) != 1 || status[0].Clock.Off != off {
				t.Errorf("with clocks %v apart: %+v, %v", offset, status, err)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
	})
}

// TestLeadersAreTold: of the servers of a shard that is led one says that it leads, all that they
// are in the same term; without groups there is no term.
func TestLeadersAreTold(t *testing.T) {
	for _, system := range protocolSystems(waiting(), plan.Layered, plan.CarouselDirect, plan.TAPIR) {
		protocol := system.protocol()
		synctest.Test(t, func(t *testing.T) {
			s, err := Open(t.Context(), Config{Protocol: protocol, Shards: 2, Seed: 1,
				Matrix: wan.Uniform(20*time.Millisecond, "a", "b", "c")})
			if err != nil {
				t.Fatal(err)
			}
			if err := shape.Pause(t.Context(), 3*time.Second); err != nil {
				t.Error(err)
			}
			leaders, terms := map[int]int{}, map[int]map[uint64]bool{}
			for _, site := range []wan.Site{"a", "b", "c"} {
				status, err := s.Status(t.Context(), site)
				if err != nil {
					t.Error(err)
				}
				for _, st := range status {
					if terms[st.Shard] == nil {
						terms[st.Shard] = map[uint64]bool{}
					}
					terms[st.Shard][st.Term] = true
					if st.Leads {
						leaders[st.Shard]++
					}
				}
			}
			for k, seen := range terms {
				if led := protocol.Leads; len(seen) != 1 || seen[0] == led || (leaders[k] == 1) != led {
					t.Errorf("%v: shard %d has %d leaders, and terms %v", system, k, leaders[k], seen)
				}
			}
			if len(terms) < 2 {
				t.Errorf("%v: statuses are of shards %v", system, terms)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestGeneralTakesWhatTheModelSays: transactions that declare nothing take what the model says, and
// as much of layered's time as is promised, whether nothing or all of what they read is predicted.
func TestGeneralTakesWhatTheModelSays(t *testing.T) {
	study := latencyStudy{
		systems: append(protocolSystems(waiting(), plan.Layered),
			protocolSystems([]client.Mode{client.Predicated}, plan.CarouselDirect)...),
		rows: protocolRows, compare: besideSequential,
		points: func(o bench.Options) ([]studyPoint, error) {
			return collect([]int{0, 100}, func(percent int) (studyPoint, error) {
				p, err := varied(o, 0, func(p *studyPoint) {
					p.params = append(p.params, table.Is("predicted_percent", percent))
					p.place.general, p.place.predicted = true, percent
				})
				p.clients, p.sharing, p.every, p.lasting = 2, 2, 1200*time.Millisecond, 12*time.Second
				return p, err
			})
		},
	}
	rows, err := study.run(t.Context(), bench.Run{Options: bench.Options{Mode: bench.Virtual, Quick: true, Seed: 3,
		Bubble: bubbles(t)}})
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, r := range rows {
		if r.Text("site") != "all" || r.Text("class") != string(readWrite) || r.Text("system") != "carousel-direct" {
			continue
		}
		found++
		mean, _ := r.Number("attempt_mean_ms")
		model, _ := r.Number("model_mean_ms")
		ratio, _ := r.Number("attempt_ratio_to_layered")
		percent, _ := r.Number("predicted_percent")
		most := map[float64]float64{0: 0.4, 100: 0.3}[percent]
		if n, _ := r.Number("txns"); n < 15 || mean > 1.05*model || mean < 0.9*model || ratio == 0 || ratio > most {
			t.Errorf("%v %% predicted: %v transactions take %v ms, the model says %v; that is %v of layered's, want %v at most",
				percent, n, mean, model, ratio, most)
		}
	}
	if found != 2 {
		t.Errorf("there are %d rows", found)
	}
}
