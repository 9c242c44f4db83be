package bftcmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/foresay/foresay/bft/service"
	"github.com/foresay/foresay/internal/cli/command"
	"github.com/foresay/foresay/internal/cli/planning"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/wan"
)

type devFlags struct {
	command.DevFlags
	groupFlags
	wan     string
	at      string
	clients int
	every   time.Duration
}

func (p *program) devCommand() *cobra.Command {
	var f devFlags
	c := &cobra.Command{
		Use:   "dev",
		Short: "Run a whole group in this process, with clients and traitors, over a wide-area network",
		Long: `Run a group in this process: replicas with real hosts, disks and keys, and clients that make calls
all the time. With --wan, connections have the round-trip times of a deployment of the papers, or of
a file.

On a terminal it asks for commands: those of the service, such as add and get, status, traitor,
kill, restart, cut, lose, and so on; 'help' explains them. A call shows when the first reply came,
which is a guess, and when the group had confirmed the result. With --script it takes them from a
file, one a line, and ends. Else it shows a table, until interrupted.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return p.runDev(c.Context(), f) },
	}
	f.groupFlags.add(c)
	flags := c.Flags()
	flags.StringVar(&f.wan, "wan", "", "the network: "+command.Joined(command.Presets())+
		", or a `file` of one (default: this machine's own)")
	flags.StringVar(&f.at, "at", "", "with --wan: the `site` of the prompt's client (default: the first replica's)")
	flags.IntVar(&f.clients, "clients", -1,
		"how many clients make calls, spread over the replicas' sites (default: one for each replica)")
	flags.DurationVar(&f.every, "every", 500*time.Millisecond, "the pause between two calls of a client")
	f.DevFlags.Add(flags)
	return c
}

// options returns the group that the flags ask for.
func (f *devFlags) options() (service.ClusterOptions, error) {
	o := service.ClusterOptions{Protocol: f.protocol, Service: f.service, Replicas: f.replicas}
	if err := f.check("bft dev"); err != nil {
		return o, err
	}
	switch {
	case f.clients < -1 || f.clients >= maxClients:
		return o, command.Usagef("bft dev: --clients is %d; want 0 to %d", f.clients, maxClients-1)
	case f.every <= 0:
		return o, command.Usagef("bft dev: --every is %v; want more than 0", f.every)
	}
	if f.clients < 0 {
		f.clients = f.replicas
	}
	o.Clients = f.clients + 1 // and the prompt's
	if f.wan == "" {
		if f.at != "" {
			return o, command.Usagef("bft dev: --at is for --wan")
		}
		f.at = string(service.Elsewhere)
		return o, nil
	}
	d, err := planning.Network("bft dev", f.wan)
	if err != nil {
		return o, err
	}
	o.WAN, o.Sites = d.Matrix, slices.Clone(d.Replicas)
	for _, s := range d.Matrix.Sites() {
		if !slices.Contains(o.Sites, s) {
			o.Sites = append(o.Sites, s)
		}
	}
	if f.replicas > len(o.Sites) {
		return o, command.Usagef("bft dev: --replicas is %d, and --wan has %s", f.replicas,
			command.Counted(len(o.Sites), "site"))
	}
	if f.at == "" {
		f.at = string(o.Sites[0])
	}
	_, err = planning.Sites("bft dev", "--at", []string{f.at}, o.WAN)
	return o, err
}

func (p *program) runDev(ctx context.Context, f devFlags) error {
	o, err := f.options()
	if err != nil {
		return err
	}
	return p.RunDev(ctx, "bft dev", f.DevFlags, func(run command.DevRun) (command.DevCluster, error) {
		o.Dir, o.Logger = run.Dir, run.Logger
		cluster, err := service.OpenCluster(o)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(p.Out, "%s, %s, %d replicas, %s; files in %s\n", o.Protocol, o.Service, o.Replicas,
			cmp.Or(f.wan, "this machine's network"), run.Where)
		return &dev{p: p, f: f, cluster: cluster, served: services()[o.Service]}, nil
	})
}

// dev is a group that somebody plays with.
type dev struct {
	p       *program
	f       devFlags
	served  served
	cluster *service.Cluster
	client  *service.Client
	workers []*worker
}

const (
	devTableEvery   = 2 * time.Second
	devStatusWithin = time.Second
)

// Use implements command.DevCluster: it runs the clients, and commands or the table.
func (d *dev) Use(ctx context.Context, run command.DevRun) error {
	places := d.cluster.Places()
	own, err := d.cluster.Client(0)
	if err != nil {
		return err
	}
	at := d.cluster.At(wan.Site(d.f.at))
	return service.WithClient(ctx, own, at, func(ctx context.Context, c *service.Client) error {
		d.client = c
		if err := d.wait(ctx); err != nil {
			return fmt.Errorf("the group does not begin: %w", err)
		}
		ctx, stop := context.WithCancel(ctx)
		defer stop()
		group, ctx := errgroup.WithContext(ctx)
		for i := range d.f.clients {
			cfg, err := d.cluster.Client(i + 1)
			if err != nil {
				return err
			}
			w := &worker{name: fmt.Sprint(cfg.ID), place: places[i%len(places)], every: d.f.every,
				call: d.served.randomly(uint64(i))}
			d.workers = append(d.workers, w)
			group.Go(func() error { return w.run(ctx, d.cluster, cfg) })
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

// verbs are what can be done with the group.
func (d *dev) verbs() []command.Verb {
	nodes := command.Nodes{
		Noun: "replica", Arg: "ID",
		Stop:  byID(d.cluster.Stop),
		Start: byID(d.cluster.Start),
		Lose:  byID(d.cluster.Lose),
		Cut: func(name string, cut bool) error {
			return byID(func(id protocol.ID) error { return d.cluster.Cut(id, cut) })(name)
		},
		Runs: d.runs,
		Wait: d.wait, WaitHelp: "wait until all members have committed what is committed now",
	}
	return slices.Concat(d.served.verbs(d), []command.Verb{
		{Name: "status", Help: "how each replica says that it is, and how the other clients fare",
			Do: func(ctx context.Context, _ []string) error { return d.status(ctx) }},
		{Name: "traitor", Args: "ID STRATEGY", Help: "start a replica again as a traitor: " +
			command.Joined(d.cluster.Strategies()), Do: func(_ context.Context, args []string) error {
			return byID(func(id protocol.ID) error { return d.cluster.Betray(id, args[1]) })(args[0])
		}},
		{Name: "honest", Args: "ID", Help: "start a traitor again as an honest replica",
			Do: func(_ context.Context, args []string) error {
				return byID(func(id protocol.ID) error { return d.cluster.Betray(id, "") })(args[0])
			}},
	}, nodes.Verbs())
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

func (d *dev) runs(name string) bool {
	return slices.ContainsFunc(d.cluster.Places(), func(p service.Place) bool {
		return fmt.Sprint(p.ID) == name && p.Running
	})
}

func (d *dev) wait(ctx context.Context) error {
	var catchup service.Catchup
	return command.AwaitDev(ctx, func(ctx context.Context) (missing, err error) {
		s, err := d.client.Status(ctx)
		if err != nil {
			return nil, err
		}
		if lacks := catchup.Missing(s); lacks != "" {
			missing = fmt.Errorf("not all members came to have committed what was committed in time: %s", lacks)
		}
		return missing, nil
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
	var b strings.Builder
	t := tabwriter.NewWriter(&b, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "replica\tsite\t"+statusColumns)
	for i, p := range d.cluster.Places() {
		s := statuses[i]
		if !p.Running {
			s = service.Status{}
		}
		fmt.Fprintf(t, "%d\t%s\t%s\n", p.ID, p.Site, statusCells(s, roleOf(p, s)))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if len(d.workers) > 0 {
		fmt.Fprintln(t, "client\tsite\t"+figureColumns)
	}
	for _, w := range d.workers {
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

// roleOf is a replica's role with what has been done to it, for a cell.
func roleOf(p service.Place, s service.Status) string {
	role := s.Role
	switch {
	case errors.As(p.Err, new(*service.RefusedError)):
		role = "refused"
	case p.Err != nil:
		role = "failed"
	case !p.Running:
		role = "killed"
	case p.Cut:
		role += ", cut off"
	}
	if p.Traitor != "" {
		role += ", traitor: " + p.Traitor
	}
	return role
}
