package smrcmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/foresay/foresay/internal/catalog"
	"github.com/foresay/foresay/internal/cli/command"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kv"
	"github.com/foresay/foresay/smr/service"
	"github.com/foresay/foresay/wan"
)

type devFlags struct {
	command.DevFlags
	protocol string
	wan      string
	replicas int
	clients  int
	every    time.Duration
	routing  routingFlags
}

func (p *program) devCommand() *cobra.Command {
	var f devFlags
	c := &cobra.Command{
		Use:   "dev",
		Short: "Run a whole cluster in this process, with clients, over a wide-area network",
		Long: `Run a cluster in this process: replicas with real hosts, disks and certificates, and clients that
write all the time. With --wan, connections have the round-trip times of a deployment of the
papers. Other processes can use the cluster by the clients' file that is told at the start; they
are taken to be at the site of the replica they talk to.

On a terminal it asks for commands: put, get, status, kill, restart, cut, join, and so on; 'help'
explains them. With --script it takes them from a file, one a line, and ends. Else it shows a
table, until interrupted.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return p.runDev(c.Context(), f) },
	}
	flags := c.Flags()
	flags.StringVar(&f.protocol, "protocol", "raft", "the protocol; 'foresay sim list' names them")
	flags.StringVar(&f.wan, "wan", "", "the network: "+command.Joined(command.Presets())+" (default: this machine's own)")
	flags.IntVar(&f.replicas, "replicas", 0, "how many replicas (default: as many as the network's paper has, or 3)")
	flags.IntVar(&f.clients, "clients", -1,
		"how many clients write, spread over the sites (default: one for each replica)")
	flags.DurationVar(&f.every, "every", 500*time.Millisecond, "the pause between two writes of a client")
	f.routing.add(flags, "")
	f.DevFlags.Add(flags)
	return c
}

// options returns the cluster that the flags ask for.
func (f *devFlags) options() (service.ClusterOptions, error) {
	o := service.ClusterOptions{Protocol: f.protocol, Replicas: f.replicas}
	if _, err := catalog.Protocol(f.protocol); err != nil {
		return o, command.Usagef("smr dev: --protocol: %w", err)
	}
	var err error
	if o.Routing, err = f.routing.routing("smr dev"); err != nil {
		return o, err
	}
	sites := command.MaxReplicas
	if f.wan != "" {
		d, err := wan.Preset(f.wan)
		if err != nil {
			return o, command.Usagef("smr dev: --wan: %w", err)
		}
		o.WAN, o.Sites = d.Matrix, slices.Clone(d.Replicas)
		if o.Replicas == 0 {
			o.Replicas = len(d.Replicas)
		}
		for _, s := range d.Matrix.Sites() {
			if !slices.Contains(o.Sites, s) {
				o.Sites = append(o.Sites, s)
			}
		}
		sites = len(o.Sites)
	}
	if o.Replicas == 0 {
		o.Replicas = 3
	}
	switch {
	case o.Replicas < 1 || o.Replicas > sites:
		return o, command.Usagef("smr dev: --replicas is %d; want 1 to %d", f.replicas, sites)
	case f.clients < -1 || f.clients > 1000:
		return o, command.Usagef("smr dev: --clients is %d; want 0 to 1000", f.clients)
	case f.every <= 0:
		return o, command.Usagef("smr dev: --every is %v; want more than 0", f.every)
	}
	return o, nil
}

func (p *program) runDev(ctx context.Context, f devFlags) error {
	o, err := f.options()
	if err != nil {
		return err
	}
	return p.RunDev(ctx, "smr dev", f.DevFlags, func(run command.DevRun) (command.DevCluster, error) {
		o.Dir, o.Logger = run.Dir, run.Logger
		cluster, err := service.OpenCluster(o)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(p.Out, "%s, %d replicas, %s; files in %s\n", o.Protocol, o.Replicas,
			cmp.Or(f.wan, "this machine's network"), run.Where)
		fmt.Fprintf(p.Out, "elsewhere: foresay smr status --config %s\n", filepath.Join(o.Dir, service.ClientFile))
		return &dev{p: p, f: f, cluster: cluster}, nil
	})
}

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

// Use implements command.DevCluster: it runs the clients, and commands or the table.
func (d *dev) Use(ctx context.Context, run command.DevRun) error {
	places := d.cluster.Places()
	return service.WithClient(ctx, d.cluster.Client(), d.cluster.At(places[0].Site),
		func(ctx context.Context, c *service.Client) error {
			d.client = c
			if err := d.begin(ctx); err != nil {
				return err
			}
			n := d.f.clients
			if n < 0 {
				n = len(places)
			}
			ctx, stop := context.WithCancel(ctx)
			defer stop()
			group, ctx := errgroup.WithContext(ctx)
			for i := range n {
				w := &writer{name: fmt.Sprintf("dev/%d", i+1), place: places[i%len(places)], every: d.f.every}
				d.writers = append(d.writers, w)
				group.Go(func() error { return w.run(ctx, d.cluster) })
			}
			group.Go(func() error {
				defer stop()
				if run.Commands == nil {
					return d.watch(ctx)
				}
				shell := &command.Shell{Out: d.p.Out, Sign: func() string { return "> " }, Verbs: d.verbs()}
				return shell.Run(ctx, run.Commands, run.Person)
			})
			return group.Wait()
		})
}

// Close implements command.DevCluster.
func (d *dev) Close() error { return d.cluster.Close() }

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
		id, err := command.ReplicaID(name)
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
	return d.p.WriteScan(items, more, false)
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
