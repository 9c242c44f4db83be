package storecmd

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/foresay/foresay/internal/cli/command"
	"github.com/foresay/foresay/store/client"
	"github.com/foresay/foresay/store/storeconfig"
	"github.com/foresay/foresay/store/storeservice"
	"github.com/foresay/foresay/wan"
)

type storeDevFlags struct {
	command.DevFlags
	wan    string
	shards int
	site   string
}

func (p *program) devCommand() *cobra.Command {
	var f storeDevFlags
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
		RunE: func(c *cobra.Command, _ []string) error { return p.runStoreDev(c.Context(), f) },
	}
	flags := c.Flags()
	flags.StringVar(&f.wan, "wan", "", "the network: "+command.Joined(command.Presets())+
		", or a `file` (default: this machine's own, three sites)")
	flags.IntVar(&f.shards, "shards", 3, "how many parts each site's copy has")
	flags.StringVar(&f.site, "site", "", "the `site` at which commands are given (default: the first one)")
	f.DevFlags.Add(flags)
	return c
}

// options returns the store that the flags ask for, and the network's name.
func (f *storeDevFlags) options() (o storeservice.ClusterOptions, network string, err error) {
	o = storeservice.ClusterOptions{Shards: f.shards}
	if f.shards < 1 || f.shards > 64 {
		return o, "", command.Usagef("store dev: --shards is %d; want 1 to 64", f.shards)
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
	if f.site != "" && !o.WAN.Has(wan.Site(f.site)) {
		return o, "", command.Usagef("store dev: --site: there is no site %q; the sites are %q", f.site, o.WAN.Sites())
	}
	return o, network, nil
}

func (p *program) runStoreDev(ctx context.Context, f storeDevFlags) error {
	o, network, err := f.options()
	if err != nil {
		return err
	}
	return p.RunDev(ctx, "store dev", f.DevFlags, func(ctx context.Context, run command.DevRun) (err error) {
		o.Dir, o.Logger = run.Dir, run.Logger
		cluster, err := storeservice.OpenCluster(o)
		if err != nil {
			return err
		}
		defer func() { err = cmp.Or(err, cluster.Close()) }()
		fmt.Fprintf(p.Out, "%s; a store at %s, %d shards; files in %s\n", network, command.Joined(command.SiteNames(o.Sites)),
			o.Shards, run.Where)
		file := filepath.Join(o.Dir, storeconfig.ClientFile)
		fmt.Fprintf(p.Out, "elsewhere: foresay store txn put greeting hello --explain --client %s\n", file)
		fmt.Fprintf(p.Out, "           foresay store txn get greeting --explain --site %s --client %s\n",
			o.Sites[len(o.Sites)-1], file)
		return p.useDevStore(ctx, cluster, o, cmp.Or(wan.Site(f.site), o.Sites[0]), run)
	})
}

// useDevStore carries out commands, or waits until ctx ends.
func (p *program) useDevStore(
	ctx context.Context, cluster *storeservice.Cluster, o storeservice.ClusterOptions, at wan.Site, run command.DevRun,
) error {
	d := &storeDev{cluster: cluster, sites: slices.Clone(o.WAN.Sites()), at: at}
	d.storePrompt = &storePrompt{storeTxns: &storeTxns{p: p,
		flags: &storeFlags{client: filepath.Join(o.Dir, storeconfig.ClientFile), timeout: command.DevPatience}}, more: d.more,
		moreHelp: storeDevHelp}
	defer d.close()
	if err := d.goTo(at); err != nil {
		return err
	}
	if err := d.wait(ctx); err != nil {
		if ctx.Err() != nil {
			return nil // the way it is ended
		}
		return fmt.Errorf("the store does not begin: %w", err)
	}
	if run.Commands == nil {
		<-ctx.Done()
		return nil
	}
	if err := d.commands(ctx, run.Commands, run.Person); err != nil && ctx.Err() == nil {
		return err
	}
	return nil
}

// storeDev is a store that somebody plays with.
type storeDev struct {
	*storePrompt
	cluster *storeservice.Cluster
	sites   []wan.Site
	at      wan.Site // where commands are given
}

const storeDevHelp = `site SITE         give commands at this site
kill MACHINE      stop a machine; its disk stays
restart MACHINE   start it again, with its disk
lose MACHINE      stop a machine and take its disk away: it is refused when it is restarted
cut MACHINE       cut a machine's site off from all others
heal MACHINE      end that
fence SITE        go on without a site; if its machine runs and is not cut off, it leaves when nothing rests on its votes any more
replace SITE NEW  the same, with a new site in its place, which copies what the others have
machines          which machines run
sleep TIME        wait, such as 500ms
wait              wait until all machines take part`

func (d *storeDev) close() {
	if d.conn != nil {
		d.conn.Close()
	}
}

// goTo gives commands at a site from now on.
func (d *storeDev) goTo(site wan.Site) error {
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
func (d *storeDev) wait(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, command.DevPatience)
	defer cancel()
	for {
		look, cancel := context.WithTimeout(ctx, storeStatusWithin)
		statuses := d.conn.Status(look)
		cancel()
		statuses = slices.DeleteFunc(statuses, func(s storeservice.Status) bool { return !d.runs(s.Machine) })
		if storeservice.Ready(statuses) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not all machines came to take part in time: %s", storeservice.Complaints(statuses))
		case <-time.After(command.StatusPause):
		}
	}
}

func (d *storeDev) runs(machine string) bool {
	return slices.ContainsFunc(d.cluster.Places(), func(p storeservice.Place) bool {
		return p.Machine == machine && p.Running
	})
}

// more carries out the commands that are about the cluster.
func (d *storeDev) more(ctx context.Context, words []string) (known bool, err error) {
	need := map[string]int{
		"site": 1, "kill": 1, "restart": 1, "lose": 1, "cut": 1, "heal": 1, "fence": 1, "replace": 2, "machines": 0,
		"sleep": 1, "wait": 0,
	}
	if n, ok := need[words[0]]; !ok || n != len(words)-1 {
		return false, nil
	}
	arg := ""
	if len(words) > 1 {
		arg = words[1]
	}
	switch words[0] {
	case "site":
		err = d.goTo(wan.Site(arg))
	case "kill":
		err = d.cluster.Stop(arg)
	case "restart":
		if err = d.cluster.Stop(arg); err == nil {
			err = d.cluster.Start(arg)
		}
	case "lose":
		if err = d.cluster.Stop(arg); err == nil {
			err = d.cluster.Lose(arg)
		}
	case "cut", "heal":
		err = d.cluster.Cut(arg, words[0] == "cut")
	case "fence":
		err = d.change(ctx, func(ctx context.Context) error { return d.cluster.Fence(ctx, arg) })
	case "replace":
		err = d.change(ctx, func(ctx context.Context) error { return d.cluster.Replace(ctx, arg, words[2]) })
	case "machines":
		d.writePlaces()
	case "sleep":
		err = command.Sleep(ctx, arg)
	case "wait":
		err = d.wait(ctx)
	}
	return true, err
}

// change has the store go on with other sites, and gives commands to those.
func (d *storeDev) change(ctx context.Context, change func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, command.DevPatience)
	defer cancel()
	if err := change(ctx); err != nil {
		return err
	}
	return d.goTo(d.at)
}

// writePlaces shows which machines run.
func (d *storeDev) writePlaces() {
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
