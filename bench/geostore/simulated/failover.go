package simulated

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/foresay/foresay/bench"
	"github.com/foresay/foresay/bench/figure"
	"github.com/foresay/foresay/bench/table"
	"github.com/foresay/foresay/internal/storesim"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/plan"
	"github.com/foresay/foresay/wan"
	"github.com/foresay/foresay/workload"
)

func carouselFailover() bench.Experiment {
	where := table.Is("figure", "victims")
	return bench.Experiment{
		Name: "carousel-failover",
		Summary: "a partition's leader, a coordinator or a whole site of Carousel's five is killed while clients make " +
			"Retwis transactions, by protocol: how long clients elsewhere wait, what is lost, and how it goes on",
		Modes: []bench.Mode{bench.Virtual},
		Intervals: []string{"gap_ms", "client_gap_ms", "attempt_mean_ms", "gone_mean_ms", "gone_ratio_to_all",
			"fast_path_percent", "gone_fast_path_percent"},
		Measure: bench.PointsAtOnce(failoverPoints),
		Figures: []figure.Spec{
			{
				Suffix: "gap", Title: "Longest time without a commit after the kill, of the client that waits longest",
				Y: "client_gap_ms", YLabel: "gap (ms)", Across: []string{"victim"}, Series: []string{"system"}, Where: where,
			},
			{
				Suffix: "after", Title: "Mean latency when something is gone, against that with all", Y: "gone_ratio_to_all",
				YLabel: "times the mean latency with all", Ratio: true, Across: []string{"victim"},
				Series: []string{"system"}, Where: where,
			},
		},
	}
}

// victims are those that a system has. Of carousel-basic and carousel-fast the leader coordinates
// the transactions of its site, too.
func victims(s plan.System) []victim {
	p, _ := storesim.ProtocolOf(s)
	var all []victim
	if p.Leads {
		all = append(all, leader)
	}
	if p.Coordinating {
		all = append(all, coordinator)
	}
	return append(all, wholeSite)
}

func failoverPoints(o bench.Options) (points []bench.Point) {
	for _, s := range plan.Systems() {
		if _, ok := storesim.ProtocolOf(s); !ok {
			continue
		}
		for _, v := range victims(s) {
			points = append(points, failoverOf(o, s, v, fiveSites()))
		}
	}
	return points
}

func failoverOf(o bench.Options, s plan.System, v victim, in arena) bench.Point {
	f := failover{system: s, victim: v, in: in, seed: o.Seed, alpha: zipfAlpha, warm: 3 * time.Second,
		turn: bench.Pick(o, 10*time.Second, 15*time.Second), lasting: bench.Pick(o, 5*time.Second, 20*time.Second),
		clients: bench.Pick(o, 6, 20)}
	return bench.Point{Doing: fmt.Sprintf("%s, %s is killed", s, v), Run: func(context.Context) ([]table.Row, error) {
		m, err := f.run()
		if err != nil {
			return nil, err
		}
		return []table.Row{m.row()}, nil
	}}
}

// An arena is where a store is: a network, and the sites that have copies of its partitions.
type arena struct {
	name      string // in rows
	wan       wan.Matrix
	placement [][]wan.Site
}

// fiveSites are Carousel's.
func fiveSites() arena {
	sites := wan.Carousel()
	placement, err := placementOf(sites)
	if err != nil {
		panic(err) // there are more sites than copies
	}
	return arena{"carousel", sites, placement}
}

// A victim is what is killed, for good if it does not say more: of the first site, or of the
// partition that is led there.
type victim string

const (
	leader      victim = "leader"      // of the partition
	coordinator victim = "coordinator" // the leader of the site's group without keys
	wholeSite   victim = "site"        // with its clients; nobody is told that connections have broken
	returning   victim = "site, back"  // the same, and its processes come back, with their disks
)

// ofSite reports whether it is all that a site has.
func (v victim) ofSite() bool { return v == wholeSite || v == returning }

// counting is a workload whose transactions read what they write.
type counting struct{ workload.Workload }

// Next implements workload.Workload.
func (w counting) Next(r *rand.Rand) workload.Txn {
	t := w.Workload.Next(r)
	for i := range t.Ops {
		t.Ops[i].Read = true
	}
	return t
}

// count returns the number that a key holds, of how many transactions have written it.
func count(value []byte) uint64 {
	if len(value) < 8 {
		return 0
	}
	return binary.BigEndian.Uint64(value)
}

// counted returns the value that counts one more.
func counted(was []byte) []byte {
	return binary.BigEndian.AppendUint64(make([]byte, 0, valueBytes), count(was)+1)[:valueBytes]
}

// failover is a system of which something is killed while clients make one transaction after the
// other.
type failover struct {
	system plan.System
	victim victim
	in     arena
	seed   uint64
	alpha  float64
	// warm passes before anything counts, and lasting is for how long transactions are measured:
	// before the kill, and again when turn has passed since, and since the victim is back.
	warm, turn, lasting time.Duration
	clients             int // at each site
}

// A window is what was measured of clients that survive, in one of the two times.
type window struct {
	took      []time.Duration // of transactions that committed
	txns      []asked         // the same ones
	aborted   int
	hit, rest fastShare // transactions that write, a partition with a copy that is killed, or none
}

// asked is a transaction as the model sees it.
type asked struct {
	client int // the place of its site in the network
	txn    plan.Txn
}

// fastShare is how many transactions were committed, and how many by the fast path.
type fastShare struct{ committed, fast int }

func (s *fastShare) add(fast bool) {
	if s.committed++; fast {
		s.fast++
	}
}

// fell is what came of a failover.
type fell struct {
	failover
	up, gone, back window
	// none is the longest time after the kill in which no surviving client had a transaction
	// committed, one that in which some client had none, from its last one on.
	none, one time.Duration
	// acknowledged are writes of keys, lost those that are not there, unknown transactions of which
	// nobody can tell whether they took effect, and blocked those that wait for the dead.
	acknowledged, lost, unknown, blocked int
	// locked is how many keys cannot be read in the end: what writes them waits for the dead.
	locked int
}

// run measures it.
func (f failover) run() (*fell, error) {
	sites := f.in.wan
	keys, err := workload.Zipfian(keyCount, f.alpha)
	if err != nil {
		return nil, err
	}
	all, err := populate(setting{system: f.system, wan: sites, placement: f.in.placement,
		clients: atEach(sites, f.clients), roundTrip: sites.MaxRTT(sites.Sites()), seed: max(f.seed, 1),
		disk: sim.Disk{Latency: bench.SyncTime}})
	if err != nil {
		return nil, err
	}
	k := &killing{population: all, fell: &fell{failover: f}, dead: map[*caller]bool{}, last: map[*caller]time.Duration{},
		told: map[uint64]int{}, doubt: map[uint64]int{}}
	defer all.close()
	k.choose()
	all.value, all.ended = counted, k.ended
	all.begin(counting{workload.Retwis{Keys: keys}}, 0, func() bool { return !k.stopped })
	type phase struct {
		lasting time.Duration
		to      *window
		then    func()
	}
	none := func() {}
	phases := []phase{{f.warm, nil, none}, {f.lasting, &k.up, none},
		{time.Duration(rand.New(rand.NewPCG(f.seed, 1)).Int64N(int64(time.Second))), nil, k.kill},
		{f.turn, nil, none}, {f.lasting, &k.gone, none}}
	if f.victim == returning {
		phases = append(phases, phase{0, nil, k.bringBack}, phase{f.turn, nil, none}, phase{f.lasting, &k.back, none})
	}
	for _, p := range phases {
		k.to = p.to
		if err := all.Pass(p.lasting); err != nil {
			return nil, err
		}
		p.then()
	}
	k.to = nil
	k.stop()
	return k.fell, k.finish()
}

// killing is a failover under way.
type killing struct {
	*population
	*fell
	victims []protocol.ID
	copies  []int            // partitions of which the victims have one
	dead    map[*caller]bool // or will be
	to      *window          // nil: nothing is measured
	killed  time.Duration    // when; 0: not yet
	stopped bool             // clients begin no more transactions
	any     time.Duration    // when a surviving client was last told of a commit
	last    map[*caller]time.Duration
	told    map[uint64]int // by key: how many writes were acknowledged
	doubt   map[uint64]int // the same: how many more may be there
}

// choose says who is to be killed.
func (k *killing) choose() {
	first := k.Layout.Sites[0]
	partitions := len(first.Shards) - k.Layout.Keyless
	switch k.victim {
	case leader:
		k.victims, k.copies = first.Shards[:1], []int{0}
	case coordinator:
		k.victims = first.Shards[partitions : partitions+1]
	case wholeSite, returning:
		for _, id := range k.IDs() {
			if string(k.Site(id)) == first.Name {
				k.victims = append(k.victims, id)
			}
		}
		for i := range partitions {
			if first.Has(i) {
				k.copies = append(k.copies, i)
			}
		}
		for _, c := range k.clients {
			k.dead[c] = string(c.site) == first.Name
		}
	}
}

// kill kills them. A site is cut off first, so that it is silent.
func (k *killing) kill() {
	k.killed = k.Now()
	if k.victim.ofSite() {
		k.Partition(k.victims, k.others())
	}
	for _, id := range k.victims {
		k.Crash(id, sim.KeepNone)
	}
}

// others returns the nodes that are not killed.
func (k *killing) others() []protocol.ID {
	return slices.DeleteFunc(k.IDs(), func(id protocol.ID) bool { return slices.Contains(k.victims, id) })
}

// bringBack restarts a site's processes. Its clients do not go on.
func (k *killing) bringBack() {
	k.Reunite(k.victims, k.others())
	for _, id := range k.victims {
		k.Restart(id)
	}
}

// stop has clients begin no more transactions. What has waited until now was a gap, too.
func (k *killing) stop() {
	k.stopped = true
	k.none = max(k.none, k.Now()-k.any)
	for _, c := range k.clients {
		if !k.dead[c] {
			k.one = max(k.one, k.Now()-k.last[c])
		}
	}
}

// ended notes what a transaction came to.
func (k *killing) ended(c *caller, r result) {
	if k.to != nil && !k.dead[c] {
		if r.verdict == store.Committed {
			k.to.txns = append(k.to.txns, k.asked(c, r.ops))
		}
		k.to.add(r, slices.ContainsFunc(r.ops, func(o workload.Op) bool {
			return slices.Contains(k.copies, k.Layout.ShardOf(store.Key(workload.Name(o.Key))))
		}))
	}
	switch r.verdict {
	case store.Committed:
		each(r.ops, k.told)
		if now := k.Now(); !k.dead[c] {
			if k.killed > 0 && !k.stopped {
				k.none, k.one = max(k.none, now-k.any), max(k.one, now-k.last[c])
			}
			k.any, k.last[c] = now, now
		}
	case store.Unknown:
		k.unknown++
		each(r.ops, k.doubt)
	case store.Blocked:
		k.blocked++
		each(r.ops, k.doubt)
	}
}

// asked returns a transaction with partitions in place of keys.
func (k *killing) asked(c *caller, ops []workload.Op) asked {
	a := asked{client: slices.IndexFunc(k.Layout.Sites, func(s store.Site) bool { return s.Name == string(c.site) })}
	for _, o := range ops {
		partition := k.Layout.ShardOf(store.Key(workload.Name(o.Key)))
		a.txn.Reads = append(a.txn.Reads, partition)
		if o.Write {
			a.txn.Writes = append(a.txn.Writes, partition)
		}
	}
	return a
}

// each counts one more for each key that a transaction writes.
func each(ops []workload.Op, in map[uint64]int) {
	for _, o := range ops {
		if o.Write {
			in[o.Key]++
		}
	}
}

// add adds a transaction, which may be about partitions that lose a copy.
func (w *window) add(r result, hit bool) {
	switch {
	case r.verdict == store.Aborted:
		w.aborted++
		return
	case r.verdict != store.Committed:
		return
	}
	w.took = append(w.took, r.took)
	switch {
	case !r.wrote():
	case hit:
		w.hit.add(r.fast)
	default:
		w.rest.add(r.fast)
	}
}

// patience is how long transactions have to end after the last one began, and how long nothing may
// be read of keys that are to be.
const patience = time.Minute

// finish waits until surviving clients have an answer, and looks what the keys hold that were
// written.
func (k *killing) finish() error {
	left := slices.DeleteFunc(slices.Clone(k.clients), func(c *caller) bool { return k.dead[c] })
	if err := k.wait(func() bool {
		return !slices.ContainsFunc(left, (*caller).busy)
	}); err != nil {
		return err
	}
	for _, c := range k.clients {
		if c.busy() {
			if each(c.program.ops, k.doubt); !k.dead[c] {
				k.blocked++
			}
		}
	}
	if left = slices.DeleteFunc(left, (*caller).busy); len(left) == 0 {
		return errors.New("no client has an answer")
	}
	return k.readBack(left)
}

// wait lets time pass until a condition holds, or patience has none for it any more.
func (k *killing) wait(cond func() bool) error {
	for until := k.Now() + patience; !cond() && k.Now() < until; {
		if err := k.Pass(time.Second / 4); err != nil {
			return err
		}
	}
	return nil
}

// batch is how many keys are read together.
const batch = 10

// readBack has clients read all keys that were written. Those of which nobody can tell what they
// hold stay locked.
func (k *killing) readBack(by []*caller) error {
	k.population.ended = func(*caller, result) {}
	keys := slices.Concat(slices.Collect(maps.Keys(k.told)), slices.Collect(maps.Keys(k.doubt)))
	slices.Sort(keys)
	left, err := k.read(slices.Compact(keys), batch, by)
	if err == nil && len(left) > 0 { // each for itself, as one that is locked keeps a whole batch waiting
		left, err = k.read(left, 1, slices.DeleteFunc(slices.Clone(by), (*caller).busy))
	}
	k.locked = len(left)
	return err
}

// read has clients read keys, so many together, and returns those that were not read when none was
// for a while.
func (k *killing) read(keys []uint64, together int, by []*caller) (left []uint64, err error) {
	parts := slices.Collect(slices.Chunk(keys, together))
	open := make(map[uint64][]uint64) // by their first key
	for _, p := range parts {
		open[p[0]] = p
	}
	var next func(c *caller)
	next = func(c *caller) {
		if len(parts) == 0 {
			return
		}
		part := parts[0]
		parts = parts[1:]
		var t workload.Txn
		for _, key := range part {
			t.Ops = append(t.Ops, workload.Op{Key: key, Read: true})
		}
		c.makes(t, func(r result) {
			if r.verdict == store.Committed {
				delete(open, part[0])
				k.judge(r, part)
			} else {
				parts = append(parts, part)
			}
			k.After(0, func() { next(c) })
		})
	}
	for _, c := range by {
		next(c)
	}
	for before := len(open) + 1; len(open) > 0 && len(open) < before; {
		before = len(open)
		if err := k.wait(func() bool { return len(open) == 0 }); err != nil {
			return nil, err
		}
	}
	return slices.Sorted(func(yield func(uint64) bool) {
		for _, part := range open {
			for _, key := range part {
				if !yield(key) {
					return
				}
			}
		}
	}), nil
}

// judge compares what keys hold with what their writers were told.
func (k *killing) judge(r result, keys []uint64) {
	for _, key := range keys {
		holds, told := int(count(r.read[store.Key(workload.Name(key))].Bytes)), k.told[key]
		k.acknowledged += told
		k.lost += max(told-holds, 0)
		if most := told + k.doubt[key]; holds > most {
			k.Fail("key %d was written %d times, by %d transactions that may have committed", key, holds, most)
		}
	}
}

func (f *fell) row() table.Row {
	first := string(f.in.wan.Sites()[0])
	site := "all"
	if f.victim.ofSite() {
		site = "all but " + first
	}
	row := append(cells(f.system, f.in.name, site), table.Is("victim", string(f.victim)), table.Is("killed_at", first),
		table.Measure("gap_ms", table.Ms(f.none)), table.Measure("client_gap_ms", table.Ms(f.one)),
		table.Is("acknowledged", f.acknowledged), table.Is("lost", f.lost), table.Is("unknown", f.unknown),
		table.Is("blocked", f.blocked), table.Is("locked_keys", f.locked))
	up, gone := meanOf(f.up.took), meanOf(f.gone.took)
	row = append(row, table.Measure("attempt_mean_ms", table.Ms(up)), table.Measure("gone_mean_ms", table.Ms(gone)),
		table.Measure("abort_percent", f.up.abortPercent()), table.Measure("gone_abort_percent", f.gone.abortPercent()))
	if up > 0 {
		row = append(row, table.Measure("gone_ratio_to_all", float64(gone)/float64(up)))
	}
	if back := meanOf(f.back.took); back > 0 && up > 0 {
		row = append(row, table.Measure("back_mean_ms", table.Ms(back)),
			table.Measure("back_abort_percent", f.back.abortPercent()),
			table.Measure("back_ratio_to_all", float64(back)/float64(up)))
	}
	if f.victim.ofSite() {
		model, modelGone := f.model(f.up, ""), f.model(f.gone, wan.Site(first))
		floor, floorGone := f.of(plan.Floor).model(f.up, ""), f.of(plan.Floor).model(f.gone, wan.Site(first))
		row = append(row, table.Measure("model_mean_ms", table.Ms(model)),
			table.Measure("gone_model_mean_ms", table.Ms(modelGone)),
			table.Measure("floor_mean_ms", table.Ms(floor)), table.Measure("gone_floor_mean_ms", table.Ms(floorGone)))
	}
	for _, c := range []struct {
		name  string
		share fastShare
	}{
		{"fast_path_percent", sum(f.up.hit, f.up.rest)}, {"gone_fast_path_percent", sum(f.gone.hit, f.gone.rest)},
		{"gone_fast_path_of_hit_percent", f.gone.hit},
	} {
		if c.share.committed > 0 {
			row = append(row, table.Measure(c.name, 100*float64(c.share.fast)/float64(c.share.committed)))
		}
	}
	return append(row, table.Is("figure", "victims"))
}

func sum(a, b fastShare) fastShare { return fastShare{a.committed + b.committed, a.fast + b.fast} }

func (w window) abortPercent() float64 {
	return 100 * float64(w.aborted) / float64(max(w.aborted+len(w.took), 1))
}

// of returns the same of another system.
func (f *fell) of(s plan.System) *fell {
	other := *f
	other.system = s
	return &other
}

// model returns what the model has for the transactions of a window, in the mean.
func (f *fell) model(w window, lost wan.Site) time.Duration {
	s := plan.Setting{WAN: f.in.wan, Clients: plan.Everywhere(f.in.wan), Placement: f.in.placement, Lost: lost,
		Load: plan.Load{Declared: true}}
	var all []time.Duration
	for _, t := range w.txns {
		if d, ends := plan.Latency(s, f.system, t.client, t.txn); ends {
			all = append(all, d)
		}
	}
	return meanOf(all)
}

func meanOf(all []time.Duration) (sum time.Duration) {
	for _, d := range all {
		sum += d
	}
	return sum / time.Duration(max(len(all), 1))
}
