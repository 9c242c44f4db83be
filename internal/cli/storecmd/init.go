package storecmd

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/foresay/foresay/internal/catalog"
	"github.com/foresay/foresay/internal/cli/command"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/storeconfig"
)

func (p *program) initCommand() *cobra.Command {
	o := storeconfig.InitOptions{}
	var sites []string
	var where placement
	var machines, port int
	var host string
	c := &cobra.Command{
		Use:   "init",
		Short: "Make the files of a store",
		Long: `Make the files of a store: one that says what it consists of, one for each machine, one for
clients, and certificates for all of them, of an authority made for it, whose key stays in the
directory.

A site is NAME=PEERS/CLIENT[,PEERS/CLIENT...]: for each of its machines the address at which other
machines find it, and that for clients; of the latter a port is enough. A NAME alone is a site on
this computer. Without --site there are three: a, b and c.

  foresay store init --dir shop --site oregon=10.1.0.1:7400/:7401 \
    --site ireland=10.2.0.1:7400/:7401 --site seoul=10.3.0.1:7400/:7401`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			switch {
			case o.Dir == "":
				return command.Usagef("store init: --dir is missing")
			case machines < 1 || machines > 64:
				return command.Usagef("store init: --machines is %d; want 1 to 64", machines)
			case o.Shards < 1 || o.Shards > 1024:
				return command.Usagef("store init: --shards is %d; want 1 to 1024", o.Shards)
			case port < 0 || port > 60000:
				return command.Usagef("store init: --port is %d, no port", port)
			}
			if err := where.initSites(&o, sites); err != nil {
				return err
			}
			if err := storeconfig.Place(o.Sites, machines, host, port); err != nil {
				return fmt.Errorf("store init: %w", err)
			}
			cfg, err := storeconfig.Init(o)
			if err != nil {
				return fmt.Errorf("store init: %w", err)
			}
			return p.writeInit(o.Dir, cfg.Store)
		},
	}
	flags := c.Flags()
	addProtocol(flags, &o.Protocol, &o.Mode, &o.Order, &o.Speculate, &o.Readers)
	flags.StringVar(&o.Dir, "dir", "", "the `directory`")
	flags.StringArrayVar(&sites, "site", nil, "a `site`, once for each")
	addShards(flags, &o.Shards, "; it cannot be changed later")
	where.add(flags)
	flags.IntVar(&machines, "machines", 1, "how many machines sites on this computer have")
	flags.StringVar(&o.Cluster, "cluster", command.DefaultCluster, "the store's name")
	flags.StringVar(&host, "host", "127.0.0.1", "where machines of sites on this computer listen")
	flags.IntVar(&port, "port", 0, "of the first of them, the others follow (default: free ones)")
	flags.StringVar(&o.RoundTrip, "round-trip", "250ms",
		"about the round-trip time between the sites that are farthest from each other")
	return c
}

// placement is at which sites the shards are, as flags say it.
type placement struct {
	replicas int
	leaders  []string
}

func (p *placement) add(flags *pflag.FlagSet) {
	flags.IntVar(&p.replicas, "replicas", 0, "how many sites have each shard: its first leader's and those that follow\n"+
		"in the order of the sites (default: all have all)")
	flags.StringSliceVar(&p.leaders, "leaders", nil, "the `sites` that lead the shards first, dealt to them in turn\n"+
		"(default: all of them)")
}

// of returns the placement of shards at sites; nil: all sites have all.
func (p *placement) of(verb, protocol string, sites []string, shards int) ([][]string, error) {
	if p.replicas == 0 && len(p.leaders) == 0 {
		return nil, nil
	}
	proto, err := catalog.Store(protocol)
	if err != nil {
		return nil, command.Usagef("%s: --protocol: %w", verb, err)
	}
	if !proto.Partial {
		return nil, command.Usagef("%s: --replicas and --leaders: with %s all sites have all shards, and none leads them",
			verb, proto.Name)
	}
	replicas := p.replicas
	if replicas == 0 {
		replicas = len(sites)
	}
	out, err := store.Ring(sites, shards, replicas, p.leaders)
	if err != nil {
		return nil, command.Usagef("%s: --replicas, --leaders: %w", verb, err)
	}
	return out, nil
}

// initSites gives a new store the sites that are asked for, or three, and its shards their places.
func (p *placement) initSites(o *storeconfig.InitOptions, sites []string) (err error) {
	if len(sites) == 0 {
		sites = []string{"a", "b", "c"}
	}
	if err := validProtocol(o.Protocol, o.Mode, o.Order, o.Speculate); err != nil {
		return command.Usagef("store init: %w", err)
	}
	var names []string
	for _, text := range sites {
		s, err := storeconfig.ParseSite(text)
		if err != nil {
			return command.Usagef("store init: --site: %w", err)
		}
		o.Sites, names = append(o.Sites, s), append(names, s.Name)
	}
	if o.Placement, err = p.of("store init", o.Protocol, names, o.Shards); err != nil {
		return err
	}
	if err := validReaders(o.Protocol, o.Readers, o.Placement, len(names)); err != nil {
		return command.Usagef("store init: %w", err)
	}
	return nil
}

// writeInit tells what to run.
func (p *program) writeInit(dir string, s *storeconfig.Store) error {
	for _, site := range s.Sites {
		for _, m := range site.Machines {
			fmt.Fprintf(p.Out, "foresay store serve --config %s    # at %s, for clients %s\n",
				filepath.Join(dir, storeconfig.MachineFile(m.Name)), site.Name, m.Client)
		}
	}
	p.warnOfFragile("store init", s)
	_, err := fmt.Fprintf(p.Out, "foresay store status --wait --client %s\n", filepath.Join(dir, storeconfig.ClientFile))
	return err
}

func (p *program) configCommand() *cobra.Command {
	examples := map[string]func() string{"store": storeconfig.Example, "machine": storeconfig.MachineExample,
		"client": storeconfig.ClientExample}
	return &cobra.Command{
		Use:   "config store|machine|client",
		Short: "Show a file, with comments",
		Args:  cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			example := examples[args[0]]
			if example == nil {
				return command.Usagef("store config: there is no file %q; want store, machine or client", args[0])
			}
			_, err := fmt.Fprint(p.Out, example())
			return err
		},
	}
}

// addShards adds the flag for the number of shards, which has two names.
func addShards(flags *pflag.FlagSet, to *int, more string) {
	flags.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == "partitions" {
			name = "shards"
		}
		return pflag.NormalizedName(name)
	})
	*to = 3
	flags.Var(&shardsFlag{to: to}, "shards", "or --partitions: the `number` of parts that the keys are dealt to"+more)
}

// shardsFlag is a number that has one value, however often and by whichever name it is given.
type shardsFlag struct {
	to    *int
	given bool
}

// Set implements pflag.Value.
func (f *shardsFlag) Set(text string) error {
	n, err := strconv.Atoi(text)
	switch {
	case err != nil:
		return errors.New("a whole number")
	case f.given && n != *f.to:
		return fmt.Errorf("%d, as it is given already; --partitions and --shards are the same", *f.to)
	}
	*f.to, f.given = n, true
	return nil
}

// String implements pflag.Value.
func (f *shardsFlag) String() string {
	if f.to == nil { // pflag asks what an empty one is
		return ""
	}
	return strconv.Itoa(*f.to)
}

// Type implements pflag.Value.
func (f *shardsFlag) Type() string { return "shards" }

// warnOfFragile tells what a store cannot do while one of its sites is away.
func (p *program) warnOfFragile(command string, s *storeconfig.Store) {
	if why := s.Fragile(); why != "" {
		fmt.Fprintf(p.Err, "foresay %s: too few replicas: %s\n", command, why)
	}
}
