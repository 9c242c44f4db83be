package storecmd

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/foresay/foresay/internal/cli/command"
	"github.com/foresay/foresay/store/client"
	"github.com/foresay/foresay/store/storeconfig"
	"github.com/foresay/foresay/store/storeservice"
	"github.com/foresay/foresay/wan"
)

type devFlags struct {
	command.DevFlags
	wan      string
	protocol string
	mode     string
	order    string
	degree   string
	shards   int
	readers  int
	site     string
	placement
}

func (p *program) devCommand() *cobra.Command {
	var f devFlags
	c := &cobra.Command{
		Use:   "dev",
		Short: "Run a whole store in this process, over a wide-area network",
		Long: `Run a store in this process: machines with real hosts, disks and certificates, one at each of
three or more sites. With --wan, connections have the round-trip times of a deployment of the
papers, or of a file like those of 'foresay bench'. Other processes use the store by the clients'
file that is told at the start, from any site of the network: --site says from which.

On a terminal it asks for commands: put, get, begin, status, kill, restart, cut, fence, and so on;
'help' explains them. With --script it takes them from a file, one a line, and ends. Else it runs
until it is interrupted.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return p.runDev(c.Context(), f) },
	}
	flags := c.Flags()
	addProtocol(flags, &f.protocol, &f.mode, &f.order, &f.degree, &f.readers)
	flags.StringVar(&f.wan, "wan", "", "the network: "+command.Joined(command.Presets())+
		", or a `file` (default: this machine's own, three sites)")
	addShards(flags, &f.shards, "")
	f.placement.add(flags)
	flags.StringVar(&f.site, "site", "", "the `site` at which commands are given (default: the first one)")
	f.DevFlags.Add(flags)
	return c
}

// options returns the store that the flags ask for, and the network's name.
func (f *devFlags) options() (o storeservice.ClusterOptions, network string, err error) {
	o = storeservice.ClusterOptions{Shards: f.shards, Protocol: f.protocol, Mode: f.mode, Order: f.order,
		Speculate: f.degree, Readers: f.readers}
	if f.shards < 1 || f.shards > 64 {
		return o, "", command.Usagef("store dev: --shards is %d; want 1 to 64", f.shards)
	}
	if err := validProtocol(f.protocol, f.mode, f.order, f.degree); err != nil {
		return o, "", command.Usagef("store dev: %w", err)
	}
	switch d, err := wan.Preset(f.wan); {
	case f.wan == "":
		o.Sites, network = []wan.Site{"a", "b", "c"}, "this machine's network"
		o.WAN = wan.Uniform(0, o.Sites...)
	case err == nil:
		o.WAN, o.Sites, network = d.Matrix, d.Replicas, d.Name
	default:
		data, readErr := os.ReadFile(f.wan)
		if readErr != nil {
			return o, "", command.Usagef("store dev: --wan: %w; nor is it a file: %w", err, readErr)
		}
		if o.WAN, err = wan.Parse(f.wan, data); err != nil {
			return o, "", fmt.Errorf("store dev: --wan: %w", err)
		}
		o.Sites, network = o.WAN.Sites(), f.wan
	}
	if o.Placement, err = f.placement.of("store dev", f.protocol, command.SiteNames(o.Sites), f.shards); err != nil {
		return o, "", err
	}
	if err := validReaders(f.protocol, f.readers, o.Placement, len(o.Sites)); err != nil {
		return o, "", command.Usagef("store dev: %w", err)
	}
	if f.site != "" && !o.WAN.Has(wan.Site(f.site)) {
		return o, "", command.Usagef("store dev: --site: there is no site %q; the sites are %q", f.site, o.WAN.Sites())
	}
	return o, network, nil
}

func (p *program) runDev(ctx context.Context, f devFlags) error {
	o, network, err := f.options()
	if err != nil {
		return err
	}
	return p.RunDev(ctx, "store dev", f.DevFlags, func(run command.DevRun) (command.DevCluster, error) {
		o.Dir, o.Logger = run.Dir, run.Logger
		cluster, err := storeservice.OpenCluster(o)
		if err != nil {
			return nil, err
		}
		made, err := storeconfig.ReadStore(filepath.Join(o.Dir, storeconfig.StoreFile))
		if err != nil {
			cluster.Close()
			return nil, err
		}
		p.warnOfFragile("store dev", made)
		fmt.Fprintf(p.Out, "%s, a store at %s, %d shards, %s; files in %s\n", o.Protocol,
			command.Joined(command.SiteNames(o.Sites)), o.Shards, network, run.Where)
		file := filepath.Join(o.Dir, storeconfig.ClientFile)
		fmt.Fprintf(p.Out, "elsewhere: foresay store txn put greeting hello --explain --client %s\n", file)
		fmt.Fprintf(p.Out, "           foresay store txn get greeting --explain --site %s --client %s\n",
			o.Sites[len(o.Sites)-1], file)
		d := &dev{cluster: cluster, at: cmp.Or(wan.Site(f.site), o.Sites[0])}
		flags := &clientFlags{client: file, timeout: command.DevPatience}
		d.prompt = &prompt{txns: &txns{p: p, flags: flags}, more: d.verbs()}
		return d, nil
	})
}

// dev is a store that somebody plays with.
type dev struct {
	*prompt
	cluster *storeservice.Cluster
	at      wan.Site // where commands are given
}

// Use implements command.DevCluster: it carries out commands, if there are any.
func (d *dev) Use(ctx context.Context, run command.DevRun) error {
	if err := d.goTo(d.at); err != nil {
		return err
	}
	if err := d.wait(ctx); err != nil {
		return fmt.Errorf("the store does not begin: %w", err)
	}
	if run.Commands == nil {
		<-ctx.Done()
		return nil
	}
	if err := d.commands(ctx, run.Commands, run.Person); ctx.Err() == nil {
		return err
	}
	return nil
}

// Close implements command.DevCluster.
func (d *dev) Close() error {
	if d.conn != nil {
		d.conn.Close()
	}
	return d.cluster.Close()
}

// goTo gives commands at a site from now on.
func (d *dev) goTo(site wan.Site) error {
	c, err := d.cluster.Dial(site)
	if err != nil {
		return err
	}
	old := d.conn
	d.at = site
	if err := d.use(c, client.Spec); err != nil {
		return err
	}
	if old != nil {
		old.Close()
	}
	return nil
}

// wait waits until all machines that run take part.
func (d *dev) wait(ctx context.Context) error {
	return command.AwaitDev(ctx, func(ctx context.Context) (missing, err error) {
		look, cancel := context.WithTimeout(ctx, statusWithin)
		defer cancel()
		statuses := d.conn.Status(look)
		statuses = slices.DeleteFunc(statuses, func(s storeservice.Status) bool { return !d.runs(s.Machine) })
		if storeservice.Ready(statuses) {
			return nil, nil
		}
		return fmt.Errorf("not all machines came to take part in time: %s", storeservice.Complaints(statuses)), nil
	})
}

func (d *dev) runs(machine string) bool {
	return slices.ContainsFunc(d.cluster.Places(), func(p storeservice.Place) bool {
		return p.Machine == machine && p.Running
	})
}

// verbs are the commands that are about the cluster.
func (d *dev) verbs() []command.Verb {
	nodes := command.Nodes{
		Noun: "machine", Arg: "MACHINE",
		Stop: d.cluster.Stop, Start: d.cluster.Start, Lose: d.cluster.Lose, Cut: d.cluster.Cut, Runs: d.runs,
		Wait: d.wait, WaitHelp: "wait until all machines take part",
	}
	return slices.Concat([]command.Verb{
		{Name: "site", Args: "SITE", Help: "give commands at this site",
			Do: func(_ context.Context, args []string) error { return d.goTo(wan.Site(args[0])) }},
	}, nodes.Verbs(), []command.Verb{
		{Name: "fence", Args: "SITE", Help: "go on without a site; if its machine runs and is not cut off, it leaves when " +
			"nothing rests on its votes any more", Do: func(ctx context.Context, args []string) error {
			return d.change(ctx, func(ctx context.Context) error { return d.cluster.Fence(ctx, args[0]) })
		}},
		{Name: "replace", Args: "SITE NEW",
			Help: "the same, with a new site in its place, which copies what the others have",
			Do: func(ctx context.Context, args []string) error {
				return d.change(ctx, func(ctx context.Context) error { return d.cluster.Replace(ctx, args[0], args[1]) })
			}},
		{Name: "machines", Help: "which machines run", Do: func(context.Context, []string) error {
			d.writePlaces()
			return nil
		}},
	})
}

// change has the store go on with other sites, and gives commands to those.
func (d *dev) change(ctx context.Context, change func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, command.DevPatience)
	defer cancel()
	if err := change(ctx); err != nil {
		return err
	}
	return d.goTo(d.at)
}

// writePlaces shows which machines run.
func (d *dev) writePlaces() {
	for _, p := range d.cluster.Places() {
		state := "runs"
		switch {
		case p.Err != nil:
			state = p.Err.Error()
		case !p.Running:
			state = "does not run"
		case p.Cut:
			state = "runs, cut off"
		}
		fmt.Fprintf(d.p.Out, "%s, at %s: %s\n", p.Machine, p.Site, state)
	}
}
