package geostore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/foresay/foresay/bench"
	"github.com/foresay/foresay/bench/table"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/client"
	"github.com/foresay/foresay/store/replicatedcommit"
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

// A system is what is compared: clients of a mode, of a store of a protocol.
type system struct {
	name string
	// protocol makes the store's when it is played: each command of the program has all experiments in
	// its help.
	protocol func() store.Protocol
	mode     client.Mode
	// again says that a transaction which is aborted is tried again until it commits: of a store whose
	// partitions have copies at some of the sites. There are fewer clients then, see fewClients.
	again     bool
	byArrival bool // as in store.Config
}

// order says in which order servers handle requests.
func (s system) order() string {
	if s.byArrival {
		return "arrival"
	}
	return "none"
}

func (s system) String() string {
	if s.byArrival {
		return s.name + " by " + s.order()
	}
	return s.name
}

// clientSystems are the modes of clients of Replicated Commit.
func clientSystems() (all []system) {
	for _, mode := range systemModes() {
		all = append(all, system{name: mode.String(), protocol: replicatedcommit.Protocol, mode: mode})
	}
	return all
}

// studyPoint is a workload that all systems are put under.
type studyPoint struct {
	params   []table.Cell
	workload workload.Workload
	// txns is how many transactions are measured in virtual time, and how long they are measured in
	// real time. 0: as long in virtual time.
	txns     int
	lasting  time.Duration
	clients  int           // at each site; 0: as in the paper
	sharing  int           // how many of them are goroutines of one program; 0: none
	warm     time.Duration // before anything is measured; 0: warmUpTime
	every    time.Duration // see Load.Every
	place    *spread       // nil: the store of the paper
	level    client.Level  // of transactions that only read; 0: the store's
	locality int           // how many transactions of a hundred use keys that are led at their site
	// move is as Load.Move.
	move func(*rand.Rand, wan.Site, workload.Txn) workload.Txn
}

// latencyStudy is an experiment on latencies of the geo-replicated store.
type latencyStudy struct {
	systems []system // nil: clientSystems
	points  func(bench.Options) ([]studyPoint, error)
	rows    func(outcome) []table.Row // nil: latencyRows
	compare func([]table.Row)         // adds columns; nil: compareModes
	growth  bool                      // with a column of how means grow from the first point on
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
	if st.systems == nil {
		st.systems = clientSystems()
	}
	var rows, quantiles []table.Row
	hops := hopCount{}
	measure := func(i, j int, play func(studyPoint, system) (Played, error)) error {
		p, s := points[i], st.systems[j]
		if err := ctx.Err(); err != nil {
			return err
		}
		w.Step(i*len(st.systems)+j, len(points)*len(st.systems), fmt.Sprint(s, cellsText(p.params)))
		played, err := play(p, s)
		if err != nil {
			return fmt.Errorf("%v%s: %w", s, cellsText(p.params), err)
		}
		counted, err := hops.of(w.Options, p, s)
		if err != nil {
			return fmt.Errorf("%v%s: %w", s, cellsText(p.params), err)
		}
		m := outcome{system: s.name, mode: s.mode, place: p.place, params: p.params, matrix: p.matrix(), played: played,
			hops: counted}
		if s.again {
			m.again = true
			m.params = append(slices.Clone(p.params), table.Is("clients", fewClients), table.Is("order", s.order()))
		}
		if w.Mode == bench.Virtual {
			m.params = append(slices.Clone(m.params), table.Is("sync_ms", int(bench.SyncTime/time.Millisecond)))
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
		err = st.real(ctx, w, points, measure)
	}
	if err != nil {
		return nil, err
	}
	if st.compare != nil {
		st.compare(rows)
	} else {
		compareModes(rows)
	}
	if st.growth {
		addGrowth(rows)
	}
	return append(rows, quantiles...), nil
}

// compareModes compares clients of Replicated Commit.
func compareModes(rows []table.Row) {
	addRatios(rows, systemModes()[0].String(), "attempt", "end_to_end", "abort")
	addRatios(rows, client.Spec.String(), "end_to_end")
	addBest(rows, client.Auto.String())
}

func cellsText(cells []table.Cell) string {
	s := ""
	for _, c := range cells {
		s += fmt.Sprintf(" %s=%s", c.Name, table.Text(c.Value, -1))
	}
	return s
}

// measuring measures a system at a point, by their numbers, with what plays it.
type measuring func(point, system int, play func(studyPoint, system) (Played, error)) error

// virtual gives each measurement a bubble and a new store.
func (st latencyStudy) virtual(ctx context.Context, w bench.Run, points int, measure measuring) error {
	for i := range points {
		for j := range st.systems {
			err := measure(i, j, func(p studyPoint, s system) (played Played, err error) {
				w.Bubble(func() { played, err = playInBubble(ctx, w.Seed, p, s) })
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

func playInBubble(outer context.Context, seed uint64, p studyPoint, s system) (played Played, err error) {
	// The outer context's channel belongs to no bubble: waiting on it would stop virtual time.
	ctx := context.WithoutCancel(outer)
	cfg := Config{Matrix: p.matrix(), Shards: siteShards, Keys: fullKeys, ValueBytes: valueSize, Seed: seed}
	if p.place != nil {
		cfg = p.place.config(s, seed)
		cfg.ReadLevel = p.level
	}
	cfg.Matrix, cfg.Sync = jittered(cfg.Matrix, linkJitter), bench.SyncTime
	if s.again {
		p.clients, p.sharing = fewClients, fewClients
	}
	store, err := Open(ctx, cfg)
	if err != nil {
		return played, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	l := Load{Workload: p.workload, Seed: seed, Warm: cmp.Or(p.warm, warmUpTime), Txns: p.txns, Every: p.every,
		Move: p.move}
	if p.txns == 0 {
		l.For = p.lasting
	}
	return p.play(ctx, store, s.mode, l)
}

// matrix returns where the sites are.
func (p studyPoint) matrix() wan.Matrix {
	if p.place != nil {
		return p.place.matrix
	}
	return wan.SpecRPC()
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
	clients, err := store.ConnectShared(mode, cmp.Or(p.clients, siteClients), max(p.sharing, 1))
	if err != nil {
		return Played{}, err
	}
	defer clients.Close()
	return clients.Play(ctx, l)
}

// real puts the systems under the points one after the other. The paper's store is loaded once;
// others are new each time.
func (st latencyStudy) real(ctx context.Context, w bench.Run, points []studyPoint, measure measuring) error {
	play := func(p studyPoint, s system, store *Store) (Played, error) {
		return p.play(ctx, store, s.mode, Load{Workload: p.workload, Seed: w.Seed, Warm: cmp.Or(p.warm, warmUpTime),
			For: p.lasting, Every: p.every})
	}
	all := func(store *Store) error {
		for i := range points {
			for j := range st.systems {
				if err := measure(i, j, func(p studyPoint, s system) (played Played, err error) {
					if store != nil {
						return play(p, s, store)
					}
					err = withStoreOnDisk(ctx, p.place.config(s, w.Seed), func(store *Store) error {
						played, err = play(p, s, store)
						return err
					})
					return played, err
				}); err != nil {
					return err
				}
			}
		}
		return nil
	}
	if len(points) > 0 && points[0].place != nil {
		return all(nil)
	}
	return withRealStore(ctx, w, wan.SpecRPC(), all)
}

// withRealStore runs a store on disks in a temporary directory, with its keys loaded.
func withRealStore(ctx context.Context, w bench.Run, m wan.Matrix, f func(*Store) error) error {
	return withStoreOnDisk(ctx, Config{
		Matrix: m, Shards: siteShards, Keys: keyCount(w.Options), ValueBytes: valueSize, Seed: w.Seed,
		Loading: func(done, all uint64) { w.Step(int(done), int(all), "loading keys") },
	}, f)
}

// withStoreOnDisk runs a store on the wall clock, with disks in a temporary directory.
func withStoreOnDisk(ctx context.Context, cfg Config, f func(*Store) error) error {
	return bench.WithTempDir(func(dir string) error {
		cfg.Dir, cfg.Loopback = dir, true
		store, err := Open(ctx, cfg)
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
