package simulated

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/foresay/foresay/bench"
	"github.com/foresay/foresay/bench/table"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/workload"
	"github.com/foresay/foresay/workload/synthetic"
)

func settled(t *testing.T, n nine) *users {
	t.Helper()
	u, err := n.settle()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(u.close)
	return u
}

// TestServers: each server has the master of a partition, and users whose transactions begin there.
func TestServers(t *testing.T) {
	for _, servers := range []int{1, paperServers} {
		u := settled(t, nine{system: strInternal(), servers: servers, users: 2, cpu: cpu{"test", time.Millisecond}, seed: 1})
		partitions := len(ringOfNine()) * servers
		home := func(number int) func(string) int { return func(string) int { return number } }
		at := map[int]int{}
		for i, x := range u.all {
			at[x.number]++
			led := u.Layout.Sites[u.Layout.FirstOf(x.number)]
			if led.Name != string(x.site) || len(u.Layout.SitesOf(x.number)) != paperCopies {
				t.Errorf("a user at %s is of partition %d, which is led at %s", x.site, x.number, led.Name)
			}
			if len(x.others) != 5*servers || slices.Contains(x.others, x.number) {
				t.Errorf("a user of partition %d has %v beside it", x.number, x.others)
			}
			if i%2 > 0 {
				continue
			}
			was, done := u.Busy(x.server.id), false
			x.free[0].runs(program{code: func(ctx context.Context, tx workload.Tx) error {
				tx = homed{tx, partitions, home(x.number)}
				_, _, err := tx.Get(ctx, "key")
				return errors.Join(err, tx.Put("key", nil))
			}}, func(r result) {
				done = r.verdict == store.Committed && u.Layout.ShardOf(r.writes[0].Key) == x.number
			})
			if err := u.Await(time.Minute, func() bool { return done }); err != nil {
				t.Fatal(err)
			}
			if u.Busy(x.server.id) <= was || u.work(x.server) < u.Busy(x.server.id)+2*time.Millisecond {
				t.Errorf("a transaction at %d is not made there: %v, %v before, all %v", x.number, u.Busy(x.server.id), was,
					u.work(x.server))
			}
		}
		if len(at) != partitions {
			t.Errorf("users are at %d of %d servers: %v", len(at), partitions, at)
		}
	}
}

// TestMachinesAreShared: a server that is asked for more than it can do is always at work, and not
// for longer, whatever its nodes are.
func TestMachinesAreShared(t *testing.T) {
	u := settled(t, nine{system: clockSIRep(), servers: 1, users: 4, cpu: cpu{"test", time.Millisecond}, seed: 1})
	l := syntheticLoad(bench.Options{Quick: true}, "low-low")
	u.start(l.script(u).jobs)
	if err := u.pass(time.Second, 2*time.Second); err != nil {
		t.Fatal(err)
	}
	if u.busiest < 0.99 || u.busiest > 1.01 || u.mean < 0.9 || u.mean > 1.01 {
		t.Errorf("the busiest server is at work for %v of the time, all for %v", u.busiest, u.mean)
	}
	calls := float64(len(ringOfNine())) * u.mean * 2000
	if got := float64(u.calls); got < 0.98*calls || got > 1.02*calls {
		t.Errorf("%d calls of a millisecond each take %v of the time", u.calls, u.mean)
	}
}

// TestSynthetic: what keys hold in the end says how many transactions have committed, for all
// systems, with users that meet often.
func TestSynthetic(t *testing.T) {
	for _, s := range nineSystems() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			l := syntheticLoad(bench.Options{Quick: true}, "high-high")
			c := synthetic.Paper(synthetic.High, synthetic.High)
			c.LocalHot, c.RemoteHot = 100, 50
			committed := 0
			l.script = func(u *users) script {
				return script{jobs: func(x *user) func() job {
					next := u.synthetic(x, c)
					return func() job {
						j := next()
						j.ended = func() { committed++ }
						return j
					}
				}, check: func(held workload.Snapshot) error {
					return synthetic.Check(t.Context(), held, slices.Collect(maps.Keys(held)), uint64(committed*c.Keys))
				}}
			}
			rows, err := nine{system: s, servers: 1, users: 4, cpu: paperCPU(), seed: 1}.measure(l)
			if err != nil {
				t.Fatal(err)
			}
			if aborted, _ := rows[0].Number("abort_percent"); aborted < 5 || committed < 50 {
				t.Errorf("%d are committed, %v %% of attempts aborted", committed, aborted)
			}
			model, _ := rows[0].Number("model_ms")
			floor, _ := rows[0].Number("floor_ms")
			if final, _ := rows[0].Number("final_p50_ms"); final < floor || final > 2*model || model < floor {
				t.Errorf("final latency %v, of the model %v, at least %v ms", final, model, floor)
			}
			wrong, _ := rows[0].Number("misspeculated_percent")
			if got := wrong > 0; got != (s.name != clockSIRep().name) {
				t.Errorf("%v %% of attempts stood on what was not so", wrong)
			}
			committed = 0
			again, err := nine{system: s, servers: 1, users: 4, cpu: paperCPU(), seed: 1}.measure(l)
			if diff := cmp.Diff(rows, again); err != nil || diff != "" {
				t.Errorf("the same once more: error %v, rows (-one +two):\n%s", err, diff)
			}
		})
	}
}

// TestLostUpdatesAreSeen: a check that fails ends the run.
func TestLostUpdatesAreSeen(t *testing.T) {
	l := syntheticLoad(bench.Options{Quick: true}, "low-low")
	l.warm, l.lasting = 0, 100*time.Millisecond
	wrong := errors.New("wrong")
	begin := l.script
	l.script = func(u *users) script {
		s := begin(u)
		s.check = func(held workload.Snapshot) error {
			for key := range held {
				if strings.Contains(key, "#") {
					t.Errorf("%s is no key of the workload", key)
				}
			}
			return wrong
		}
		return s
	}
	n := nine{system: strInternal(), servers: 1, users: 1, cpu: paperCPU(), seed: 1}
	if _, err := n.measure(l); !errors.Is(err, wrong) {
		t.Errorf("error %v", err)
	}
}

// TestHomed: keys have names of their own, which belong to their partitions.
func TestHomed(t *testing.T) {
	client := synthetic.Client{Config: synthetic.Paper(synthetic.Low, synthetic.Low), Own: 7, Others: []int{1, 26}}
	r := rand.New(rand.NewPCG(1, 0))
	h, names := homed{partitions: 27, home: homeOfSynthetic}, map[string]string{}
	for range 200 {
		for _, key := range client.Next(r).Keys {
			name := h.name(key)
			if home, _ := synthetic.Home(key); store.ShardOf(store.Key(name), 27) != home {
				t.Errorf("%s is called %s", key, name)
			}
			if was, ok := names[name]; ok && was != key {
				t.Errorf("%s and %s are both called %s", key, was, name)
			}
			names[name] = key
		}
	}
}

// sampleRows has rows as the experiments on nine sites have them.
func sampleRows(figures []string, cells ...table.Cell) (rows []table.Row) {
	for _, f := range figures {
		for _, n := range []int{10, 80} {
			for _, s := range nineSystems() {
				u := &users{nine: nine{system: s, servers: 1, users: n, cpu: paperCPU()}}
				u.committed, u.lasting = n, time.Second
				u.final, u.perceived = []time.Duration{time.Second}, []time.Duration{time.Second}
				rows = append(rows, append(u.row(cells...), table.Is("figure", f)))
			}
		}
	}
	return rows
}

// TestMacros: what the store holds after TPC-C and RUBiS keeps their conditions, where users meet
// often.
func TestMacros(t *testing.T) {
	o := bench.Options{Quick: true}
	for name, l := range map[string]load{"tpcc": tpccLoad(o, "B", smallTPCC()), "rubis": rubisLoad(o, smallRUBiS())} {
		for _, s := range nineSystems() {
			t.Run(name+"/"+s.name, func(t *testing.T) {
				t.Parallel()
				l.warm = 3 * time.Second
				if l.lasting = 8 * time.Second; name == "tpcc" { // its transactions meet sooner, and take longer to simulate
					l.lasting = 4 * time.Second
				}
				checked := false
				begin := l.script
				l.script = func(u *users) script {
					s := begin(u)
					check := s.check
					s.check = func(held workload.Snapshot) error {
						checked = len(held) > 100
						return check(held)
					}
					return s
				}
				rows, err := nine{system: s, servers: 1, users: 100, cpu: paperCPU(), seed: 1}.measure(l)
				if err != nil {
					t.Fatal(err)
				}
				commits, _ := rows[0].Number("commits_per_s")
				aborted, _ := rows[0].Number("abort_percent")
				if commits < 10 || aborted == 0 && name == "rubis" || !checked {
					t.Errorf("%v transactions a second are committed, %v %% aborted; is that looked at: %v", commits, aborted,
						checked)
				}
			})
		}
	}
}
