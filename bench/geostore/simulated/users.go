package simulated

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/foresay/foresay/bench/table"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/plan"
	"github.com/foresay/foresay/wan"
	"github.com/foresay/foresay/workload"
)

// A job is what a user does next.
type job struct {
	keying   time.Duration // before the transaction begins
	thinking time.Duration // after it has ended
	code     func(context.Context, workload.Tx) error
	static   bool   // there is no transaction
	ended    func() // is called when the user goes on after it; nil: nothing
}

// lasts is how long a job takes beside the transaction.
func (j job) lasts() time.Duration { return j.keying + j.thinking }

// tally is what came of the transactions that ended while time was taken.
type tally struct {
	calls     int // of servers
	committed int
	aborted   map[store.Reason]int // attempts
	wrong     int                  // of these, what others or the user had taken for committed
	other     int                  // attempts that neither committed nor were aborted
	final     []time.Duration      // from the first attempt's begin to the last one's end
	perceived []time.Duration      // from the first attempt's begin to what the user was told first, and was so
	sample    []asked              // of those that committed, for the model
	busiest   float64              // the largest share of the time that a server is at work
	mean      float64              // the mean of all
	lasting   time.Duration
}

// A load is what users do, and for how long they are watched.
type load struct {
	cells         []table.Cell // that say which load it is
	script        func(*users) script
	warm, lasting time.Duration
}

// A script is a load of certain users.
type script struct {
	jobs func(*user) func() job // the jobs of a user
	// check looks at what the store holds in the end of the keys that were written; nil: nobody looks.
	check func(workload.Snapshot) error
}

// measure returns the row of a load.
func (n nine) measure(l load) ([]table.Row, error) {
	u, err := n.settle()
	if err != nil {
		return nil, err
	}
	defer u.close()
	s := l.script(u)
	if s.check != nil {
		u.wrote = map[string]bool{}
	}
	u.start(s.jobs)
	if err := u.pass(l.warm, l.lasting); err != nil {
		return nil, err
	}
	if s.check != nil {
		held, err := u.readBack()
		if err != nil {
			return nil, err
		}
		if err := s.check(held); err != nil {
			return nil, err
		}
	}
	return []table.Row{u.row(l.cells...)}, nil
}

// sampled is how many transactions the model is asked about.
const sampled = 300

// longestJob is what jobs that last longer count as.
const longestJob = time.Minute

// start has all users begin, each with jobs of its own: somewhere in a job, as if they had done
// jobs for long. So they are in the midst of one that lasts longer more often.
func (u *users) start(jobs func(*user) func() job) {
	for _, x := range u.all {
		x.next = jobs(x)
		j := x.next()
		for j.lasts() > 0 && j.lasts() < time.Duration(x.random.Int64N(int64(longestJob))) {
			j = x.next()
		}
		lasts := j.lasts()
		if lasts == 0 {
			u.After(time.Duration(x.random.Int64N(int64(startSpread))), func() { u.act(x) })
			continue
		}
		if at := time.Duration(x.random.Int64N(int64(lasts))); at < j.keying {
			j.keying -= at
			u.do(x, j)
		} else {
			u.After(lasts-at, func() { u.act(x) })
		}
	}
}

// sampleOf keeps which partitions a transaction has read and written.
func (u *users) sampleOf(x *user, r result) {
	if len(u.sample) >= sampled {
		return
	}
	a := asked{client: slices.Index(wan.EC2().Sites(), x.site)}
	for key := range r.read {
		a.txn.Reads = append(a.txn.Reads, u.Layout.ShardOf(key))
	}
	for _, w := range r.writes {
		a.txn.Writes = append(a.txn.Writes, u.Layout.ShardOf(w.Key))
	}
	slices.Sort(a.txn.Reads)
	u.sample = append(u.sample, a)
}

// readBack waits until all users have done what they are at, and returns what the store holds of
// the keys that were written, by the names that the workload has for them.
func (u *users) readBack() (workload.Snapshot, error) {
	u.stopped = true
	if err := u.Await(readBackWithin, func() bool { return u.idle == len(u.all) }); err != nil {
		return nil, err
	}
	all := workload.Snapshot{}
	for names := range slices.Chunk(slices.Sorted(maps.Keys(u.wrote)), readBackKeys) {
		done := false
		var read func()
		read = func() {
			var held workload.Snapshot
			u.all[0].free[0].runs(program{code: func(ctx context.Context, tx workload.Tx) (err error) {
				held, err = workload.Take(ctx, tx, names)
				return err
			}}, func(r result) {
				if done = r.verdict == store.Committed; !done {
					u.After(0, read)
				}
				for name, value := range held {
					all[name[:strings.LastIndexByte(name, '#')]] = value
				}
			})
		}
		read()
		if err := u.Await(readBackWithin, func() bool { return done }); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// What users have done in the end is read so many keys at a time. Each time takes no longer than
// that, and neither do transactions that are under way.
const (
	readBackKeys   = 100
	readBackWithin = 10 * time.Minute
)

// pass lets time pass, and takes it for the latter part.
func (u *users) pass(warm, lasting time.Duration) error {
	if err := u.Pass(warm); err != nil {
		return err
	}
	before := make([]time.Duration, len(u.all))
	for i, x := range u.all {
		before[i] = u.work(x.server)
	}
	u.on, u.lasting = true, lasting
	if err := u.Pass(lasting); err != nil {
		return err
	}
	u.on = false
	for i, x := range u.all {
		share := (u.work(x.server) - before[i]).Seconds() / lasting.Seconds()
		u.busiest, u.mean = max(u.busiest, share), u.mean+share/float64(len(u.all))
	}
	slices.Sort(u.final)
	slices.Sort(u.perceived)
	return nil
}

// attempts returns how many there were, and how many of them were aborted; and how many of these
// because they had read what others had committed locally, and that was aborted or committed later
// than it had seemed to, or after they had themselves been told to be committed locally. Those that
// were aborted while they read were told no reason.
func (t *tally) attempts() (all, aborted, misspeculated int) {
	for _, n := range t.aborted {
		aborted += n
	}
	return t.committed + aborted + t.other, aborted, t.wrong
}

// row returns what came of it.
func (u *users) row(what ...table.Cell) table.Row {
	row := table.Row{table.Is("system", u.system.name)}
	row = append(row, what...)
	row = append(row, table.Is("clients", u.users), table.Is("servers", u.servers*len(ringOfNine())),
		table.Is("sl", u.system.ahead), table.Is("cpu", u.cpu.name))
	all, aborted, wrong := u.attempts()
	perS := float64(u.committed) / u.lasting.Seconds()
	row = append(row, table.Measure("commits_per_s", perS),
		table.Measure("commits_per_s_of_27", perS*paperServers/float64(u.servers)))
	for _, c := range []struct {
		name string
		took []time.Duration
	}{{"final", u.final}, {"perceived", u.perceived}} {
		if len(c.took) > 0 {
			row = append(row, table.Measure(c.name+"_mean_ms", table.Ms(table.Mean(c.took))),
				table.Measure(c.name+"_p50_ms", table.Ms(table.Quantile(c.took, 0.5))),
				table.Measure(c.name+"_p95_ms", table.Ms(table.Quantile(c.took, 0.95))))
		}
	}
	percent := func(n int) float64 { return 100 * float64(n) / float64(max(all, 1)) }
	row = append(row, table.Measure("abort_percent", percent(aborted)),
		table.Measure("misspeculated_percent", percent(wrong)), table.Measure("unknown_percent", percent(u.other)))
	for _, s := range []struct {
		name   string
		system plan.System
	}{{"model_ms", plan.STR}, {"floor_ms", plan.Floor}} {
		row = append(row, table.Measure(s.name, table.Ms(u.modelOf(s.system))))
	}
	return append(row, table.Measure("us_per_call", float64(u.cpu.call)/float64(time.Microsecond)),
		table.Measure("calls_per_commit", float64(u.calls)/float64(max(u.committed, 1))),
		table.Measure("busy_percent", 100*u.mean), table.Measure("busiest_server_percent", 100*u.busiest))
}

// modelOf returns what the model has for the transactions of the sample, in the mean.
func (u *users) modelOf(system plan.System) time.Duration {
	sites := wan.EC2()
	s := plan.Setting{WAN: sites, Clients: plan.Everywhere(sites), Placement: u.placement, Readers: u.readers}
	var all []time.Duration
	for _, a := range u.sample {
		if d, ends := plan.Latency(s, system, a.client, a.txn); ends {
			all = append(all, d)
		}
	}
	return meanOf(all)
}
