package geostore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/foresay/foresay/bench"
	"github.com/foresay/foresay/bench/table"
	"github.com/foresay/foresay/store/client"
	"github.com/foresay/foresay/wan"
	"github.com/foresay/foresay/workload"
)

// The store of the experiments is SpecRPC's [SpecRPC §5.2.1]: three sites, three shards at each,
// sixteen clients at each. It has 10 million keys; the paper does not tell how long values are.
const (
	siteShards  = 3
	siteClients = 16
	fullKeys    = 10_000_000
	quickKeys   = 300_000
	valueSize   = 64
)

// systemModes are the modes of the store's clients that are compared: the paper's three, and what
// goes beyond it. The first one is what others are measured against.
func systemModes() []client.Mode {
	return []client.Mode{client.GRPC, client.Off, client.Spec, client.Predicated, client.Auto}
}

// studyPoint is a workload that all systems are put under.
type studyPoint struct {
	params   []table.Cell
	workload workload.Workload
	// txns is how many transactions are measured in virtual time, and how long they are measured in
	// real time.
	txns    int
	lasting time.Duration
	clients int           // at each site; 0: as in the paper
	warm    time.Duration // before anything is measured; 0: warmUpTime
}

// latencyStudy is an experiment on latencies of the geo-replicated store.
type latencyStudy struct {
	points func(bench.Options) ([]studyPoint, error)
	rows   func(outcome) []table.Row // nil: latencyRows
	growth bool                      // with a column of how means grow from the first point on
	// distribution adds rows with quantiles.
	distribution bool
}

// run puts each system under each point. All play the same transactions: those of a client depend
// on its number and the seed.
func (st latencyStudy) run(ctx context.Context, w bench.Run) ([]table.Row, error) {
	points, err := st.points(w.Options)
	if err != nil {
		return nil, err
	}
	total := len(points) * len(systemModes())
	var rows, quantiles []table.Row
	measure := func(i int, mode client.Mode, play func(studyPoint, client.Mode) (Played, error)) error {
		p := points[i]
		w.Step(i*len(systemModes())+slices.Index(systemModes(), mode), total, fmt.Sprint(mode, cellsText(p.params)))
		played, err := play(p, mode)
		if err != nil {
			return fmt.Errorf("%v%s: %w", mode, cellsText(p.params), err)
		}
		m := outcome{system: mode.String(), params: p.params, matrix: wan.SpecRPC(), played: played}
		if w.Mode == bench.Virtual {
			m.params = append(slices.Clone(p.params), table.Is("sync_ms", int(bench.SyncTime/time.Millisecond)))
		}
		if st.rows != nil {
			rows = append(rows, st.rows(m)...)
		} else {
			rows = append(rows, latencyRows(m)...)
		}
		if st.distribution {
			quantiles = append(quantiles, distributionRows(m)...)
		}
		return nil
	}
	if w.Mode == bench.Virtual {
		err = st.virtual(ctx, w, len(points), measure)
	} else {
		err = st.real(ctx, w, len(points), measure)
	}
	if err != nil {
		return nil, err
	}
	addRatios(rows, systemModes()[0].String(), "attempt", "end_to_end", "abort")
	addRatios(rows, client.Spec.String(), "end_to_end")
	addBest(rows, client.Auto.String())
	if st.growth {
		addGrowth(rows)
	}
	return append(rows, quantiles...), nil
}

func cellsText(cells []table.Cell) string {
	s := ""
	for _, c := range cells {
		s += fmt.Sprintf(" %s=%s", c.Name, table.Text(c.Value, -1))
	}
	return s
}

// measuring measures a system at a point with what plays it.
type measuring func(i int, mode client.Mode, play func(studyPoint, client.Mode) (Played, error)) error

// virtual gives each measurement a bubble and a new store.
func (st latencyStudy) virtual(ctx context.Context, w bench.Run, points int, measure measuring) error {
	for i := range points {
		for _, mode := range systemModes() {
			if err := ctx.Err(); err != nil {
				return err
			}
			err := measure(i, mode, func(p studyPoint, mode client.Mode) (played Played, err error) {
				w.Bubble(func() { played, err = playInBubble(ctx, w.Seed, p, mode) })
				return played, err
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// warmUpTime is what connections take to be made, and clients to get out of step, three times over.
const warmUpTime = 3 * time.Second

// linkJitter bounds how much longer than its delay a message takes, by chance: what begins at one
// instant does not go on in step. It depends on the size of what is sent, and so on what gRPC
// happens to send together: the less there is of it, the more alike are two runs with one seed.
const linkJitter = time.Microsecond

func playInBubble(outer context.Context, seed uint64, p studyPoint, mode client.Mode) (played Played, err error) {
	// The outer context's channel belongs to no bubble: waiting on it would stop virtual time.
	ctx := context.WithoutCancel(outer)
	store, err := Open(ctx, Config{
		Matrix: jittered(wan.SpecRPC(), linkJitter), Shards: siteShards, Keys: fullKeys, ValueBytes: valueSize,
		Sync: bench.SyncTime, Seed: seed,
	})
	if err != nil {
		return played, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	return p.play(ctx, store, mode, Load{Workload: p.workload, Seed: seed, Warm: cmp.Or(p.warm, warmUpTime), Txns: p.txns})
}

// jittered returns a matrix whose links between sites have jitter.
func jittered(m wan.Matrix, jitter time.Duration) wan.Matrix {
	for path, link := range m.Links() {
		if path.From != path.To {
			link.Jitter = jitter
			m = m.WithLink(path, link)
		}
	}
	return m
}

// play connects clients for one load.
func (p studyPoint) play(ctx context.Context, store *Store, mode client.Mode, l Load) (Played, error) {
	clients, err := store.Connect(mode, cmp.Or(p.clients, siteClients))
	if err != nil {
		return Played{}, err
	}
	defer clients.Close()
	return clients.Play(ctx, l)
}

// real loads a store once and puts the systems under the points one after the other.
func (st latencyStudy) real(ctx context.Context, w bench.Run, points int, measure measuring) error {
	return withRealStore(ctx, w, wan.SpecRPC(), func(store *Store) error {
		for i := range points {
			for _, mode := range systemModes() {
				err := measure(i, mode, func(p studyPoint, mode client.Mode) (Played, error) {
					return p.play(ctx, store, mode, Load{Workload: p.workload, Seed: w.Seed, Warm: cmp.Or(p.warm, warmUpTime),
						For: p.lasting})
				})
				if err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// withRealStore runs a store on disks in a temporary directory, with its keys loaded.
func withRealStore(ctx context.Context, w bench.Run, m wan.Matrix, f func(*Store) error) error {
	return bench.WithTempDir(func(dir string) error {
		store, err := Open(ctx, Config{
			Matrix: m, Shards: siteShards, Keys: keyCount(w.Options), ValueBytes: valueSize, Dir: dir, Loopback: true,
			Seed:    w.Seed,
			Loading: func(done, all uint64) { w.Step(int(done), int(all), "loading keys") },
		})
		if err != nil {
			return err
		}
		return errors.Join(f(store), store.Close())
	})
}

// keyCount is how many keys there are. In virtual mode they cost nothing.
func keyCount(o bench.Options) uint64 {
	if o.Mode == bench.Real && o.Quick {
		return quickKeys
	}
	return fullKeys
}

// Experiments returns the experiments on the geo-replicated store, in the order in which they
// are best read.
func Experiments() []bench.Experiment {
	return []bench.Experiment{
		ycsbOpsExperiment(), ycsbReadsExperiment(), retwisExperiment(), contentionExperiment(),
		floorsExperiment(), throughputExperiment(), hotExperiment(), awayFull(), awayHalf(), replaceExperiment(),
		largeExperiment(), peersExperiment(),
	}
}
