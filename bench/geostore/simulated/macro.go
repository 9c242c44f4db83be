package simulated

import (
	"context"
	"time"

	"github.com/foresay/foresay/bench"
	"github.com/foresay/foresay/bench/table"
	"github.com/foresay/foresay/workload"
	"github.com/foresay/foresay/workload/rubis"
	"github.com/foresay/foresay/workload/tpcc"
)

func strTPCC() bench.Experiment {
	e := bench.Experiment{
		Name: "str-tpcc",
		Summary: "TPC-C, payments, orders and their status in three mixes, with key and think times, on nine sites, up to " +
			"1600 clients for each server: commits, latency, aborts (STR figure 5)",
		Modes: []bench.Mode{bench.Virtual}, Full: true, Intervals: nineIntervals(),
		Measure: bench.PointsAtOnce(tpccPoints),
	}
	for _, mix := range strMixes() {
		e.Figures = append(e.Figures, nineFigures(mix, "TPC-C "+mix+": ", table.Is("figure", mix))...)
	}
	return e
}

func strRUBiS() bench.Experiment {
	return bench.Experiment{
		Name: "str-rubis",
		Summary: "RUBiS, an auction site, its users looking at pages for 2 to 10 s, on nine sites, 50 to 4000 users for " +
			"each server: commits, latency, aborts (STR figure 6)",
		Modes: []bench.Mode{bench.Virtual}, Full: true, Intervals: nineIntervals(),
		Measure: bench.PointsAtOnce(rubisPoints),
		Figures: nineFigures("", "RUBiS: ", table.Is("figure", "rubis")),
	}
}

// strMixes are those of Figure 5.
func strMixes() []string { return []string{"A", "B", "C"} }

// remotely is how many of a hundred lines of orders and buyers, and of RUBiS's searches, are of
// other partitions with a copy at the site: as many as its authors have of TPC-C's. They do not say
// it of RUBiS.
const remotely = 20

// tpccPoints have mixes with few clients, and with as many as in the paper. TPC-C's conditions are
// looked at in the end where tables are small: at full size that takes longer than all else.
func tpccPoints(o bench.Options) (points []bench.Point) {
	if o.Full {
		return sweep{load: tpccLoad(o, "B", tpcc.Scale{}), cpu: paperCPU()}.bothSizes(o, 200)
	}
	clients := bench.Pick(o, map[string][]int{"A": {10, 1200}},
		map[string][]int{"A": {10, 300, 1200}, "B": {20, 800, 1600}, "C": {20, 600, 1200}})
	for _, mix := range strMixes() {
		s := sweep{load: tpccLoad(o, mix, tpcc.Scale{}), cpu: paperCPU(), servers: 1, figure: mix}
		points = append(points, s.of(clients[mix], clockSIRep(), strInternal()).points(o)...)
		points = append(points, s.of(clients[mix][:min(1, len(clients[mix]))], planet(), strExternal(1)).points(o)...)
	}
	s := sweep{load: tpccLoad(o, "B", smallTPCC()), cpu: paperCPU(), servers: 1}
	return append(points, s.of([]int{40}, nineSystems()...).points(o)...)
}

// nineSystems are all, with chains of one transaction.
func nineSystems() []nineSystem {
	return []nineSystem{clockSIRep(), planet(), strInternal(), strExternal(1)}
}

// smallTPCC is a scale of tables that can be looked at as a whole.
func smallTPCC() tpcc.Scale { return tpcc.Scale{Customers: 30, Items: 100} }

// tpccLoad is a mix of Figure 5. Users whose transactions are refused add up, so it takes about two
// of their cycles, of 15 s each, and in mix B of 21 s, until as many are in each other's way as
// there will be.
func tpccLoad(o bench.Options, name string, scale tpcc.Scale) load {
	warm := 30 * time.Second
	if name == "B" {
		warm = 45 * time.Second // more new orders, for which users take 30 s
	}
	l := load{cells: []table.Cell{table.Is("workload", "tpcc"), table.Is("mix", name)},
		warm: bench.Pick(o, 12*time.Second, warm), lasting: bench.Pick(o, 2*time.Second, 5*time.Second)}
	if scale == smallTPCC() {
		l.cells = append(l.cells, table.Is("tables", "small"))
	}
	l.script = func(u *users) script {
		at, tables := warehouses(len(u.placement), scale)
		home := func(key string) int {
			w, _ := tpcc.Home(key)
			server, _ := at.Server(w)
			return server
		}
		terminal := terminals(u, at, tables, name)
		s := script{jobs: func(x *user) func() job {
			own := terminal(x)
			return func() job {
				txn := own.Next(x.random, time.Unix(0, 0).Add(u.Now()))
				return job{keying: txn.Keying, thinking: txn.Thinking, code: func(ctx context.Context, tx workload.Tx) error {
					return txn.Run(ctx, workload.Unloaded{Tx: homed{tx, len(u.placement), home}, Tables: tables})
				}}
			}
		}}
		if scale == smallTPCC() {
			s.check = func(held workload.Snapshot) error {
				return tables.Check(context.Background(), workload.Unloaded{Tx: held, Tables: tables})
			}
		}
		return s
	}
	return l
}

// warehouses returns which server has which warehouses, and their tables.
func warehouses(servers int, scale tpcc.Scale) (tpcc.Layout, *tpcc.Tables) {
	const ofServer = 5 // warehouses
	at := tpcc.Layout{Servers: servers, PerServer: ofServer}
	scale.Warehouses = at.Warehouses()
	tables, err := tpcc.NewTables(scale)
	if err != nil {
		panic(err) // scales are those of this file
	}
	return at, tables
}

// terminals returns what gives users their terminals: those of a server are shared out among its
// warehouses.
func terminals(u *users, at tpcc.Layout, tables *tpcc.Tables, mix string) func(*user) tpcc.Terminal {
	shares, err := tpcc.MixOf(mix)
	if err != nil {
		panic(err) // it is one of strMixes
	}
	there := map[int]int{} // users of a server that have one
	return func(x *user) tpcc.Terminal {
		t := tpcc.Terminal{Tables: tables, Warehouse: at.First(x.number) + there[x.number]%at.PerServer, Mix: shares,
			RemoteItems: remotely, RemoteBuyers: remotely}
		there[x.number]++
		for _, other := range x.others {
			for w := range at.PerServer {
				t.Others = append(t.Others, at.First(other)+w)
			}
		}
		return t
	}
}

// rubisPoints have few users, and as many as in the paper. What a store may hold is looked at in
// the end where tables are small.
func rubisPoints(o bench.Options) (points []bench.Point) {
	if o.Full {
		return sweep{load: rubisLoad(o, rubis.Scale{}), cpu: paperCPU()}.bothSizes(o, 300)
	}
	s := sweep{load: rubisLoad(o, rubis.Scale{}), cpu: paperCPU(), servers: 1, figure: "rubis"}
	users := bench.Pick(o, []int{4000}, []int{50, 500, 1000, 2000, 3000, 4000})
	points = s.of(users, clockSIRep(), strInternal()).points(o)
	points = append(points, s.of(bench.Pick(o, []int{50}, []int{50, 4000}), planet(), strExternal(1)).points(o)...)
	s = sweep{load: rubisLoad(o, smallRUBiS()), cpu: paperCPU(), servers: 1}
	return append(points, s.of([]int{100}, nineSystems()...).points(o)...)
}

// smallRUBiS is a scale of tables that can be looked at as a whole.
func smallRUBiS() rubis.Scale {
	return rubis.Scale{ReduceFactor: 1, Users: 30, OldItems: 20, OpenItems: 60, Regions: 3, Categories: 2,
		DescriptionBytes: 100, CommentBytes: 100}
}

// rubisLoad is that of Figure 6.
func rubisLoad(o bench.Options, scale rubis.Scale) load {
	l := load{cells: []table.Cell{table.Is("workload", "rubis")},
		warm: bench.Pick(o, 8*time.Second, 20*time.Second), lasting: bench.Pick(o, 2*time.Second, 4*time.Second)}
	if scale == smallRUBiS() {
		l.cells = append(l.cells, table.Is("tables", "small"))
	}
	l.script = func(u *users) script {
		full := scale
		full.Shards = len(u.placement)
		tables, err := rubis.NewTables(full)
		if err != nil {
			panic(err) // scales are those of this file
		}
		s := script{jobs: func(x *user) func() job { return u.visitor(x, tables) }}
		if scale == smallRUBiS() {
			s.check = func(held workload.Snapshot) error {
				return tables.Check(context.Background(), workload.Unloaded{Tx: held, Tables: tables})
			}
		}
		return s
	}
	return l
}

// rubisSteps is in how many states a session has been at most when its user begins. It has 51 in
// the mean, and those that update are late in it.
const rubisSteps = 200

// visitor returns what a user of RUBiS does, page after page.
func (u *users) visitor(x *user, tables *rubis.Tables) func() job {
	home := func(key string) int {
		shard, _ := rubis.Shard(key)
		return shard
	}
	session := rubis.Client{Tables: tables, Shard: x.number, Others: x.others, RemotePercent: remotely}.Session()
	for range x.random.IntN(rubisSteps) { // which is long after it has begun
		session.Next(x.random, time.Unix(0, 0), rubis.Page{})
	}
	var seen rubis.Page
	return func() job {
		txn := session.Next(x.random, time.Unix(0, 0).Add(u.Now()), seen)
		var page rubis.Page
		seen = page
		return job{static: txn.Static, thinking: txn.Wait, ended: func() { seen = page },
			code: func(ctx context.Context, tx workload.Tx) (err error) {
				page, err = txn.Run(ctx, workload.Unloaded{Tx: homed{tx, len(u.placement), home}, Tables: tables})
				return err
			}}
	}
}
