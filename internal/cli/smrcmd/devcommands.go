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
	cluster *service.Cluster
	client  *service.Client
	writers []*writer
}

const (
	devTableEvery   = 2 * time.Second
	devStatusWithin = time.Second
)

const devHelp = `put KEY VALUE, get KEY, delete KEY, scan [FROM [TO]]
status         how each replica is, and how the writing clients fare
kill ID        stop a replica; its disk stays
restart ID     start it again, with its disk
lose ID        stop a replica and take its disk away: it is refused when it is restarted
cut ID         cut a replica's site off from all others
heal ID        end that
join           start one more replica, with an empty disk, and add it to the group
remove ID      remove a replica from the group
sleep TIME     wait, such as 500ms
wait           wait until all members have executed what is committed now
quit`

// begin waits until the cluster works.
func (d *dev) begin(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, command.DevPatience)
	defer cancel()
	if _, err := d.client.Put(ctx, "dev/begin", nil); err != nil {
		return fmt.Errorf("the cluster does not begin: %w", err)
	}
	return nil
}

// command carries out one command, and tells whether there can be more.
func (d *dev) command(ctx context.Context, line string) (more bool, err error) {
	words := strings.Fields(line)
	if len(words) == 0 || strings.HasPrefix(words[0], "#") {
		return true, nil
	}
	ctx, cancel := context.WithTimeout(ctx, command.DevPatience)
	defer cancel()
	name, args := words[0], words[1:]
	need := map[string]int{
		"put": 2, "get": 1, "delete": 1, "kill": 1, "restart": 1, "lose": 1, "cut": 1, "heal": 1, "join": 0, "remove": 1,
		"sleep": 1, "status": 0,
		"wait": 0, "help": 0, "quit": 0, "exit": 0,
	}
	n, known := need[name]
	switch {
	case name == "scan" && len(args) <= 2:
		return true, d.scan(ctx, append(args, "", ""))
	case !known:
		return true, fmt.Errorf("there is no command %q; 'help' shows all", name)
	case len(args) != n:
		return true, fmt.Errorf("%s takes %d arguments; 'help' shows all", name, n)
	}
	switch name {
	case "help":
		_, err = fmt.Fprintln(d.p.Out, devHelp)
	case "quit", "exit":
		return false, nil
	case "status":
		err = d.status(ctx)
	case "wait":
		err = d.wait(ctx)
	case "sleep":
		err = command.Sleep(ctx, args[0])
	case "join":
		err = d.join(ctx)
	case "put", "get", "delete":
		err = d.call(ctx, name, args)
	default:
		err = d.replica(ctx, name, args[0])
	}
	return true, err
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
	items, more, err := d.client.Scan(ctx, args[0], args[1], 100)
	if err != nil {
		return err
	}
	return d.p.writeScan(items, more, false)
}

// replica does something to one replica.
func (d *dev) replica(ctx context.Context, name, arg string) error {
	id, err := parseID(arg)
	if err != nil {
		return err
	}
	switch name {
	case "kill":
		return d.cluster.Stop(id)
	case "restart":
		if d.runs(id) {
			if err := d.cluster.Stop(id); err != nil {
				return err
			}
		}
		return d.cluster.Start(id)
	case "lose":
		if d.runs(id) {
			if err := d.cluster.Stop(id); err != nil {
				return err
			}
		}
		return d.cluster.Lose(id)
	case "cut", "heal":
		return d.cluster.Cut(id, name == "cut")
	}
	return d.client.Change(ctx, smr.Change{Remove: id})
}

func (d *dev) runs(id protocol.ID) bool {
	return slices.ContainsFunc(d.cluster.Places(), func(p service.Place) bool { return p.ID == id && p.Running })
}

func (d *dev) join(ctx context.Context) error {
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
	for {
		s, err := d.client.Status(ctx)
		if err != nil {
			return err
		}
		if catchup.Over(s) {
			return nil
		}
		if ctx.Err() != nil {
			return errNotEqual
		}
		if err := command.Sleep(ctx, "100ms"); err != nil {
			return errNotEqual
		}
	}
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
