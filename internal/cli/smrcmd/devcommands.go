package smrcmd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/foresay/foresay/internal/cli/command"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kv"
	"github.com/foresay/foresay/smr/service"
)

// dev is a cluster that somebody plays with.
type dev struct {
	p       *program
	f       devFlags
	cluster *service.Cluster
	client  *service.Client
	writers []*writer
}

const (
	devTableEvery   = 2 * time.Second
	devStatusWithin = time.Second
)

// begin waits until the cluster works.
func (d *dev) begin(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, command.DevPatience)
	defer cancel()
	if _, err := d.client.Put(ctx, "dev/begin", nil); err != nil {
		return fmt.Errorf("the cluster does not begin: %w", err)
	}
	return nil
}

// verbs are what can be done with the cluster.
func (d *dev) verbs() []command.Verb {
	call := func(name, args string) command.Verb {
		return command.Verb{Name: name, Args: args, Do: within(func(ctx context.Context, args []string) error {
			return d.call(ctx, name, args)
		})}
	}
	nodes := command.Nodes{
		Noun: "replica", Arg: "ID",
		Stop:  byID(d.cluster.Stop),
		Start: byID(d.cluster.Start),
		Lose:  byID(d.cluster.Lose),
		Cut: func(name string, cut bool) error {
			return byID(func(id protocol.ID) error { return d.cluster.Cut(id, cut) })(name)
		},
		Runs: d.runs,
		Wait: d.wait, WaitHelp: "wait until all members have executed what is committed now",
	}
	return slices.Concat([]command.Verb{
		call("put", "KEY VALUE"), call("get", "KEY"), call("delete", "KEY"),
		{Name: "scan", Args: "[FROM [TO]]", Help: "calls of one client", Do: within(d.scan)},
		{Name: "status", Help: "how each replica is, and how the writing clients fare",
			Do: func(ctx context.Context, _ []string) error { return d.status(ctx) }},
	}, nodes.Verbs(), []command.Verb{
		{Name: "join", Help: "start one more replica, with an empty disk, and add it to the group", Do: within(d.join)},
		{Name: "remove", Args: "ID", Help: "remove a replica from the group",
			Do: within(func(ctx context.Context, args []string) error {
				return byID(func(id protocol.ID) error { return d.client.Change(ctx, smr.Change{Remove: id}) })(args[0])
			})},
	})
}

// within bounds the time that a command takes.
func within(do func(context.Context, []string) error) func(context.Context, []string) error {
	return func(ctx context.Context, args []string) error {
		ctx, cancel := context.WithTimeout(ctx, command.DevPatience)
		defer cancel()
		return do(ctx, args)
	}
}

// byID takes a replica's name.
func byID(do func(protocol.ID) error) func(string) error {
	return func(name string) error {
		id, err := parseID(name)
		if err != nil {
			return err
		}
		return do(id)
	}
}

func (d *dev) call(ctx context.Context, name string, args []string) error {
	key, start := args[0], time.Now()
	var item kv.Item
	found := true
	var err error
	switch name {
	case "put":
		item.Version, err = d.client.Put(ctx, key, []byte(args[1]))
	case "get":
		item, found, err = d.client.Get(ctx, key)
	default:
		item.Version, found, err = d.client.Delete(ctx, key)
	}
	if err != nil {
		return err
	}
	took := time.Since(start).Round(100 * time.Microsecond)
	switch {
	case !found:
		_, err = fmt.Fprintf(d.p.Out, "%s is not there (%v)\n", key, took)
	case name == "get":
		_, err = fmt.Fprintf(d.p.Out, "%s (version %d, %v)\n", command.Printable(string(item.Value)), item.Version, took)
	default:
		_, err = fmt.Fprintf(d.p.Out, "version %d (%v)\n", item.Version, took)
	}
	return err
}

func (d *dev) scan(ctx context.Context, args []string) error {
	args = append(args, "", "")
	items, more, err := d.client.Scan(ctx, args[0], args[1], 100)
	if err != nil {
		return err
	}
	return d.p.writeScan(items, more, false)
}

func (d *dev) runs(name string) bool {
	return slices.ContainsFunc(d.cluster.Places(), func(p service.Place) bool {
		return fmt.Sprint(p.ID) == name && p.Running
	})
}

func (d *dev) join(ctx context.Context, _ []string) error {
	m, err := d.cluster.Join()
	if err != nil {
		return err
	}
	if _, err := d.client.AwaitLearner(ctx, m.ID, nil); err != nil && !errors.Is(err, service.ErrNoLearners) {
		return err
	}
	if err := d.client.Change(ctx, smr.Change{Add: smr.Member{ID: m.ID, Address: m.Address}}); err != nil {
		return err
	}
	_, err = fmt.Fprintf(d.p.Out, "replica %d at %s is a member\n", m.ID, m.Address)
	return err
}

var errNotEqual = errors.New("not all members came to have executed what was committed in time")

func (d *dev) wait(ctx context.Context) error {
	var catchup service.Catchup
	return command.AwaitDev(ctx, func(ctx context.Context) (missing, err error) {
		s, err := d.client.Status(ctx)
		if err != nil || catchup.Over(s) {
			return nil, err
		}
		return errNotEqual, nil
	})
}

// watch shows the status time and again.
func (d *dev) watch(ctx context.Context) error {
	tick := time.NewTicker(devTableEvery)
	defer tick.Stop()
	for {
		if err := d.status(ctx); err != nil && ctx.Err() == nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// status shows a table of the replicas and one of the clients.
func (d *dev) status(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, devStatusWithin)
	defer cancel()
	statuses, err := d.client.Status(ctx)
	if err != nil {
		return err
	}
	byID := map[protocol.ID]service.Status{}
	for _, s := range service.ByGroup(statuses)[0] {
		byID[s.Replica] = s
	}
	var b strings.Builder
	if d.client.Groups() > 1 {
		if err := writeGroups(&b, statuses); err != nil {
			return err
		}
	}
	t := tabwriter.NewWriter(&b, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "replica\tsite\taddress\trole\tleader\tterm\tcommitted\tapplied\tlog\tsnapshot")
	for _, p := range d.cluster.Places() {
		s, ok := byID[p.ID]
		role := s.Role
		switch {
		case errors.As(p.Err, new(*service.RefusedError)):
			role = "refused"
		case p.Err != nil:
			role = "failed"
		case !p.Running:
			role = "killed"
		case p.Cut && (role == "" || role == service.Unreachable):
			role = "cut off"
		case p.Cut:
			role += ", cut off" // from others; the client is there too
		}
		if !p.Running || !ok || s.Role == service.Unreachable {
			fmt.Fprintf(t, "%d\t%s\t%s\t%s\t-\t-\t-\t-\t-\t-\n", p.ID, p.Site, p.Address, role)
			continue
		}
		fmt.Fprintf(t, "%d\t%s\t%s\t%s\t%s\t%s\t%d\t%d\t%d\t%d\n", p.ID, p.Site, p.Address, role, leaderName(s),
			termName(s.Term), s.Committed,
			s.Applied, s.Log, s.Snapshot)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if len(d.writers) > 0 {
		fmt.Fprintln(t, "client\tsite\twrites\tfailed\tp50 ms\tmax ms")
	}
	for _, w := range d.writers {
		fmt.Fprintf(t, "%s\t%s\t%s\n", w.name, w.place.Site, w.figures())
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, p := range d.cluster.Places() {
		if p.Err != nil {
			fmt.Fprintf(&b, "replica %d: %v\n", p.ID, p.Err)
		}
	}
	_, err = fmt.Fprint(d.p.Out, b.String())
	return err
}

// A writer is a client that writes all the time.
type writer struct {
	name  string
	place service.Place
	every time.Duration

	mu      sync.Mutex
	writes  int
	failed  int
	latency []time.Duration // of the last writes
}

// recentWrites is how many writes the figures are of.
const recentWrites = 50

func (w *writer) run(ctx context.Context, cluster *service.Cluster) error {
	return service.WithClient(ctx, cluster.Client(), cluster.At(w.place.Site),
		func(ctx context.Context, c *service.Client) error {
			tick := time.NewTicker(w.every)
			defer tick.Stop()
			for n := 1; ; n++ {
				w.write(ctx, c, n)
				select {
				case <-ctx.Done():
					return nil
				case <-tick.C:
				}
			}
		})
}

func (w *writer) write(ctx context.Context, c *service.Client, n int) {
	call, cancel := context.WithTimeout(ctx, command.DevPatience)
	defer cancel()
	start := time.Now()
	_, err := c.Put(call, w.name, []byte(strconv.Itoa(n)))
	if ctx.Err() != nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		w.failed++
		return
	}
	w.writes++
	w.latency = append(w.latency, time.Since(start))
	w.latency = w.latency[max(0, len(w.latency)-recentWrites):]
}

// figures returns cells: writes, failures, median and longest latency of the last writes.
func (w *writer) figures() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.latency) == 0 {
		return fmt.Sprintf("%d\t%d\t-\t-", w.writes, w.failed)
	}
	sorted := slices.Sorted(slices.Values(w.latency))
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	return fmt.Sprintf("%d\t%d\t%.1f\t%.1f", w.writes, w.failed, ms(sorted[len(sorted)/2]), ms(sorted[len(sorted)-1]))
}
