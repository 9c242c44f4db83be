package smrcmd

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/foresay/foresay/internal/catalog"
	"github.com/foresay/foresay/internal/cli/command"
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
