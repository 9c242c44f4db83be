package geostore

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/foresay/foresay/bench"
	"github.com/foresay/foresay/bench/figure"
	"github.com/foresay/foresay/bench/replicated"
	"github.com/foresay/foresay/bench/table"
)

func awayFull() bench.Experiment {
	return awayExperiment("rc-away", 1, "48 clients write to a store of three processes, one of which is killed and "+
		"comes back, and in another run is not: commits, errors, processor time and memory by second")
}

// awayHalf has room to spare, as a store that is operated well: what a site's absence and return
// take is not hidden by what the computer has left over, nor is it that.
func awayHalf() bench.Experiment {
	return awayExperiment("rc-away-half", 0.5,
		"the same with half of the load that the store can take, begun at even intervals, as by clients that do not wait "+
			"for one another")
}

func awayExperiment(name string, share float64, summary string) bench.Experiment {
	return bench.Experiment{
		Name:    name,
		Summary: summary,
		Modes:   []bench.Mode{bench.Real},
		Away:    true,
		Bubbles: true,
		Measure: func(ctx context.Context, w bench.Run) ([]table.Row, error) { return away(ctx, w, share) },
		Figures: []figure.Spec{
			{
				Suffix: "commits", Title: "A site leaves and comes back: commits", X: "second", XLabel: "seconds",
				Y: "commits_per_s", YLabel: "commits per second", Series: []string{"run", "phase"},
			},
			{
				Suffix: "memory", Title: "A site leaves and comes back: memory of the machines", X: "second", XLabel: "seconds",
				Y: "memory_mb", YLabel: "resident memory (MB)", Series: []string{"run", "phase"},
			},
		},
	}
}

// Sizes of the experiment. Machines remember transactions for less long than by default, so that
// they forget what the absent site lacks.
const (
	awayKeys      = 1_000_000
	awayQuickKeys = 100_000
	awayRoundTrip = 50 * time.Millisecond
	awayRetain    = 10 * time.Second
	// seconds: what all is compared with forgets as many transactions as it remembers, as from then
	// on
	awayWarm = 15
	awayGone = peersServers - 1 // the machine that is killed
	// seconds whose throughput is compared together, as that of one depends on what else the
	// computer does
	awayWindow = 5
)

// awayPhase is a part of the experiment. It lasts so many seconds at least, and until begin has
// returned.
type awayPhase struct {
	name    string
	seconds int
	begin   func() error
}

func away(ctx context.Context, w bench.Run, share float64) (rows []table.Row, err error) {
	if w.Program == "" {
		return nil, bench.ErrNoProgram
	}
	// A store grows, and its commits cost more, whether or not a machine is killed: the same run
	// without that tells what a site's absence and return take.
	var undisturbed []table.Row
	for _, kill := range []bool{false, true} {
		if w.Alone && !kill {
			continue
		}
		if rows, err = awayOnce(ctx, w, share, kill); err != nil {
			return nil, err
		}
		if !kill {
			undisturbed = rows
		}
	}
	awayCompare(rows, undisturbed)
	worst := append(awayWorst(undisturbed, nil), awayWorst(rows, undisturbed)...)
	return append(append(undisturbed, rows...), worst...), nil
}

// awayOnce runs a store from its beginning to its end, and kills a machine or does not. The load is
// a share of what the store takes at first.
func awayOnce(ctx context.Context, w bench.Run, share float64, kill bool) (rows []table.Row, err error) {
	nothing := func(*replicated.Processes) error { return nil }
	run, killed, restarted := "undisturbed", nothing, nothing
	if kill {
		run = "killed"
		killed, restarted = func(s *replicated.Processes) error {
			return s.Kill(awayGone)
		}, func(s *replicated.Processes) error { return s.Restart(awayGone) }
	}
	err = bench.WithTempDir(func(dir string) error {
		store, err := startRivalStore(ctx, w.Program, dir, rivalOptions{roundTrip: awayRoundTrip, retain: awayRetain})
		if err != nil {
			return err
		}
		defer store.close()
		w.Step(0, 1, "waiting for the store")
		if err := store.load(ctx, peersClients); err != nil {
			return err
		}
		m := &awayRun{name: run, store: store, Run: w, keys: bench.Pick(w.Options, awayQuickKeys, awayKeys)}
		gone := bench.Pick(w.Options, 25, 600)
		if w.Away > 0 {
			gone = max(int(w.Away/time.Second), 1)
		}
		rows, err = m.run(ctx, []awayPhase{
			{"warm", awayWarm, func() error { return nil }},
			{"up", bench.Pick(w.Options, 8, 20), func() error { m.pace(share); return nil }},
			{"away", gone, func() error { return killed(store.servers) }},
			{"back", bench.Pick(w.Options, 25, 120), func() error { return restarted(store.servers) }},
		})
		return err
	})
	return rows, err
}

// awayRun drives clients and counts by second.
type awayRun struct {
	bench.Run
	name  string
	store rival
	keys  int
	began time.Time
	last  awayUsed // up to now
	paced atomic.Pointer[awayPacing]

	commits, failed atomic.Int64
	longest         atomic.Int64 // of this second's commits
	mu              sync.Mutex
	failure         error // the last one
}

// put writes a key that hardly anybody else writes.
func (m *awayRun) put(ctx context.Context, client int, chance *rand.Rand) {
	began := time.Now()
	if p := m.paced.Load(); p != nil {
		began = p.next() // who is late goes at once, and what it was late by counts
		select {
		case <-time.After(time.Until(began)):
		case <-ctx.Done():
			return
		}
	}
	err := m.store.put(ctx, client, peersKey(chance.IntN(m.keys)))
	if err == nil {
		m.commits.Add(1)
		took := int64(time.Since(began))
		for old := m.longest.Load(); took > old && !m.longest.CompareAndSwap(old, took); old = m.longest.Load() {
		}
		return
	}
	if ctx.Err() != nil {
		return
	}
	m.failed.Add(1)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.failure = err
}

// awayPacing begins commits at even intervals.
type awayPacing struct {
	from     time.Time
	interval time.Duration
	begun    atomic.Int64
}

// next returns when the next commit is to begin.
func (p *awayPacing) next() time.Time { return p.from.Add(time.Duration(p.begun.Add(1)) * p.interval) }

// pace has clients begin a share of the commits a second that the store took until now.
func (m *awayRun) pace(share float64) {
	if n := m.commits.Load(); share < 1 && n > 0 {
		m.paced.Store(&awayPacing{from: time.Now(),
			interval: time.Duration(float64(time.Since(m.began)) / (share * float64(n)))})
	}
}

func (m *awayRun) run(ctx context.Context, phases []awayPhase) ([]table.Row, error) {
	ctx, stop := context.WithCancel(ctx)
	m.began, m.last = time.Now(), m.used(ctx)
	var driving sync.WaitGroup
	defer driving.Wait()
	defer stop()
	for client := range peersClients {
		driving.Go(func() {
			for chance := bench.Random(m.Seed, uint64(client)); ctx.Err() == nil; {
				m.put(ctx, client, chance)
			}
		})
	}
	var rows []table.Row
	var up awaySecond // of the second phase, all seconds together
	for i, p := range phases {
		m.Step(i, len(phases), p.name)
		begin := make(chan error, 1)
		go func() { begin <- p.begin() }() // while seconds are counted
		for n, done := 0, false; n < p.seconds || !done; n++ {
			s, err := m.second(ctx)
			if err != nil {
				return nil, errors.Join(err, context.Cause(m.store.servers.Context()))
			}
			if p.name == "up" {
				up.add(s)
			}
			rows = append(rows, append(table.Row{table.Is("run", m.name), table.Is("phase", p.name),
				table.Is("second", len(rows))}, s.cells(up, i > 1)...))
			if done {
				continue
			}
			select {
			case err := <-begin:
				if done = true; err != nil {
					return nil, fmt.Errorf("%s: %w", p.name, err)
				}
			default:
			}
		}
	}
	return rows, nil
}

// awaySecond is what happened in a second, about.
type awaySecond struct {
	lasting, longest time.Duration
	commits, failed  int64
	used             time.Duration // processor time of machines and clients
	known            bool          // used is
	parts            table.Row     // of it and of the disks, by machine
	memory           uint64
	failure          error
}

func (s *awaySecond) add(other awaySecond) {
	s.known = other.known && (s.known || s.lasting == 0)
	s.lasting += other.lasting
	s.commits += other.commits
	s.used += other.used
}

func (s awaySecond) rate() float64 { return float64(s.commits) / s.lasting.Seconds() }

// perProcessor is how many commits a second of processor time gives: a figure that other programs
// on this computer change less than the rate.
func (s awaySecond) perProcessor() float64 {
	return float64(s.commits) / max(s.used, time.Millisecond).Seconds()
}

// cells returns the second beside what there was with all sites up.
func (s awaySecond) cells(up awaySecond, compare bool) table.Row {
	row := table.Row{
		table.Measure("commits_per_s", s.rate()), table.Is("errors", int(s.failed)),
		table.Measure("max_ms", table.Ms(s.longest)), table.Measure("memory_mb", float64(s.memory)/(1<<20)),
	}
	if s.known {
		row = append(row, table.Measure("processors", s.used.Seconds()/s.lasting.Seconds()),
			table.Measure("commits_per_processor_s", s.perProcessor()))
	} else {
		row = append(row, table.Is("processors", "unknown"))
	}
	if compare {
		row = append(row, table.Measure("of_up", s.rate()/up.rate()))
		if s.known && up.known {
			row = append(row, table.Measure("per_processor_of_up", s.perProcessor()/up.perProcessor()))
		}
	}
	if row = append(row, s.parts...); s.failure != nil {
		row = append(row, table.Is("last_error", s.failure.Error()))
	}
	return row
}

// second returns what happens in the next second.
func (m *awayRun) second(ctx context.Context) (awaySecond, error) {
	began, commits, failed, used := time.Now(), m.commits.Load(), m.failed.Load(), m.last
	m.longest.Store(0)
	select {
	case <-time.After(time.Second):
	case <-ctx.Done():
		return awaySecond{}, context.Cause(ctx)
	case <-m.store.servers.Context().Done():
		return awaySecond{}, context.Cause(m.store.servers.Context())
	}
	m.last = m.used(ctx)
	s := awaySecond{
		lasting: time.Since(began), longest: time.Duration(m.longest.Load()), commits: m.commits.Load() - commits,
		failed: m.failed.Load() - failed,
		memory: m.store.servers.Memory(), parts: m.last.cells(used),
	}
	s.used, s.known = m.last.own(used)
	m.mu.Lock()
	defer m.mu.Unlock()
	s.failure, m.failure = m.failure, nil
	return s, nil
}

// awayCompare adds to the seconds of a run what it has of the throughput of the same seconds of
// another one, in which nothing is killed, and of awayWindow seconds together.
func awayCompare(rows, undisturbed []table.Row) {
	rate := func(rows []table.Row, from, to int) (sum float64) {
		for _, r := range rows[max(from, 0):to] {
			n, _ := r.Number("commits_per_s")
			sum += n
		}
		return sum
	}
	for i := range min(len(rows), len(undisturbed)) {
		if base := rate(undisturbed, i, i+1); base > 0 {
			rows[i] = append(rows[i], table.Measure("of_undisturbed", rate(rows, i, i+1)/base))
		}
		if base := rate(undisturbed, i+1-awayWindow, i+1); base > 0 {
			rows[i] = append(rows[i], table.Measure("of_undisturbed_window", rate(rows, i+1-awayWindow, i+1)/base))
		}
		own, _ := rows[i].Number("commits_per_processor_s")
		if base, _ := undisturbed[i].Number("commits_per_processor_s"); base > 0 {
			rows[i] = append(rows[i], table.Measure("per_processor_of_undisturbed", own/base))
		}
	}
}

// awayLeast is what each second is to have of the throughput before.
const awayLeast = 0.7

// awayWorst returns a row for each phase after the second one of a run: the least that a second,
// and awayWindow seconds together, have of the throughput before, how many seconds have too little,
// and what a second of processor time gives in the mean, as far as that is known. Beside another
// run, in which nothing is killed: what the worst second has of the worst one there of the same
// age, as other programs and the store's own growth make bad seconds there as well.
func awayWorst(rows, undisturbed []table.Row) (worst []table.Row) {
	for from := 0; from < len(rows); {
		phase := rows[from].Text("phase")
		to := from
		for to < len(rows) && rows[to].Text("phase") == phase {
			to++
		}
		if _, compared := rows[from].Number("of_up"); compared {
			least, below := leastOf(rows[from:to], "of_up", 1), 0
			for _, of := range numbersOf(rows[from:to], "of_up") {
				if of < awayLeast {
					below++
				}
			}
			failed := 0.0
			for _, n := range numbersOf(rows[from:to], "errors") {
				failed += n
			}
			row := table.Row{
				table.Is("run", rows[0].Text("run")), table.Is("phase", phase+", worst second"), table.Is("errors", int(failed)),
				table.Measure("of_up", least), table.Is("seconds_below_0.7", below),
				table.Measure("of_up_window", leastOf(rows[from:to], "of_up", awayWindow)),
			}
			if all := numbersOf(rows[from:to], "per_processor_of_up"); len(all) > 0 {
				sum := 0.0
				for _, of := range all {
					sum += of
				}
				row = append(row, table.Measure("per_processor_of_up", sum/float64(len(all))))
			}
			if to <= len(undisturbed) {
				for _, c := range []struct {
					name    string
					seconds int
				}{{"of_worst_undisturbed", 1}, {"of_worst_undisturbed_window", awayWindow}} {
					if base := leastOf(undisturbed[from:to], "commits_per_s", c.seconds); base > 0 {
						row = append(row, table.Measure(c.name, leastOf(rows[from:to], "commits_per_s", c.seconds)/base))
					}
				}
			}
			worst = append(worst, row)
		}
		from = to
	}
	return worst
}

// numbersOf returns a column, without the rows that have none.
func numbersOf(rows []table.Row, name string) (all []float64) {
	for _, r := range rows {
		if n, is := r.Number(name); is {
			all = append(all, n)
		}
	}
	return all
}

// leastOf returns the least mean of a column over so many rows in succession, or over all if they
// are fewer.
func leastOf(rows []table.Row, name string, window int) float64 {
	all := numbersOf(rows, name)
	window = min(window, len(all))
	least := math.Inf(1)
	for i := range len(all) - window + 1 {
		sum := 0.0
		for _, n := range all[i : i+window] {
			sum += n
		}
		least = min(least, sum/float64(window))
	}
	return least
}

// awayUsed is what has been used up to a moment.
type awayUsed struct {
	at           time.Time
	clients, all time.Duration   // processor time of this process, and of everything on this computer
	machines     []time.Duration // that of each; nil if it is not known, as one has just ended
	disks        []awayDisk      // of each
}

// awayDisk is what a machine says of its disk: how many commits have become durable, and how many
// seconds they took together. The zero value is that it said nothing.
type awayDisk struct {
	known            bool
	commits, seconds float64
}

// used returns what has been used so far.
func (m *awayRun) used(ctx context.Context) awayUsed {
	u := awayUsed{at: time.Now(), clients: bench.CPUTime(), all: replicated.MachineCPU(), machines: m.store.servers.CPUs(),
		disks: make([]awayDisk, len(m.store.files.pages))}
	ctx, cancel := context.WithTimeout(ctx, time.Second/2)
	defer cancel()
	var wg sync.WaitGroup
	for i, page := range m.store.files.pages {
		wg.Go(func() { u.disks[i] = readAwayDisk(ctx, page) })
	}
	wg.Wait()
	return u
}

// readAwayDisk reads a machine's page of metrics. It is all zero if the machine does not answer, as
// it is away or begins.
func readAwayDisk(ctx context.Context, page string) (d awayDisk) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, page, nil)
	if err != nil {
		return awayDisk{}
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return awayDisk{}
	}
	defer resp.Body.Close()
	const name = "foresay_store_disk_commit_duration_seconds_"
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		text, is := strings.CutPrefix(lines.Text(), name)
		what, value, _ := strings.Cut(text, " ")
		n, err := strconv.ParseFloat(value, 64)
		switch {
		case !is || err != nil:
		case what == "sum":
			d.seconds = n
		case what == "count":
			d.known, d.commits = true, n
		}
	}
	return d
}

// own is the processor time of machines and clients since another moment, if it is known.
func (u awayUsed) own(since awayUsed) (sum time.Duration, known bool) {
	if len(u.machines) == 0 || len(u.machines) != len(since.machines) {
		return 0, false
	}
	sum = u.clients - since.clients
	for i := range u.machines {
		sum += u.machines[i] - since.machines[i]
	}
	return max(sum, 0), true
}

// cells returns what was used since another moment, per second.
func (u awayUsed) cells(since awayUsed) (row table.Row) {
	lasting := u.at.Sub(since.at)
	share := func(used time.Duration) float64 { return max(used.Seconds(), 0) / lasting.Seconds() }
	own, known := u.own(since)
	if known && u.all > 0 {
		row = append(row, table.Measure("processors_elsewhere", share(u.all-since.all-own)))
	}
	row = append(row, table.Measure("processors_clients", share(u.clients-since.clients)))
	if known {
		for i := range u.machines {
			row = append(row, table.Measure(fmt.Sprintf("processors_%d", i+1), share(u.machines[i]-since.machines[i])))
		}
	}
	for i, d := range u.disks {
		// One that did not answer in time is not known for two seconds; one that has begun again
		// counts from its beginning.
		if i < len(since.disks) && d.known && since.disks[i].known && d.commits >= since.disks[i].commits {
			n := d.commits - since.disks[i].commits
			row = append(row, table.Measure(fmt.Sprintf("disk_commits_%d", i+1), n/lasting.Seconds()),
				table.Measure(fmt.Sprintf("disk_ms_%d", i+1), 1000*(d.seconds-since.disks[i].seconds)/max(n, 1)))
		}
	}
	return row
}
