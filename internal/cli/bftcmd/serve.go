package bftcmd

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/foresay/foresay/bft/service"
	"github.com/foresay/foresay/internal/catalog"
	"github.com/foresay/foresay/internal/cli/command"
	"github.com/foresay/foresay/internal/heap"
)

func (p *program) serveCommand() *cobra.Command {
	return p.ServeCommand(command.Server{
		Short: "Run one replica of a group",
		Long: `Run one replica of a group, as its file says; 'foresay bft config' shows one. The log goes to
standard error.

SIGTERM or an interrupt ends it when what it wrote is on disk; a second one ends it at once, which
loses nothing that it has promised. It ends with status 1 if it must not take part: if its disk was
lost, or is another replica's.`,
		File:    "the replica's `file`",
		Missing: "bft serve: --config is missing; 'foresay bft init' makes files, 'foresay bft config' shows one",
		Run:     p.serve,
	})
}

// serveGarbage is how much garbage a replica's process has at most, about.
const serveGarbage = 32 << 20

func (p *program) serve(ctx context.Context, file string) error {
	defer heap.BoundGarbage(serveGarbage)()
	fail := func(err error) error {
		if refused, ok := errors.AsType[*service.RefusedError](err); ok {
			return fmt.Errorf("bft serve: refused: %w", refused)
		}
		return fmt.Errorf("bft serve: %w", err)
	}
	cfg, err := service.ReadConfig(file)
	if err != nil {
		return fail(err)
	}
	r, err := service.OpenReplica(cfg, service.ReplicaOptions{Logger: cfg.Log.New(p.Err)})
	if err != nil {
		return fail(err)
	}
	if err := r.Run(ctx); err != nil {
		return fail(err)
	}
	return nil
}

func (p *program) configCommand() *cobra.Command {
	var group bool
	c := &cobra.Command{
		Use:   "config",
		Short: "Show a replica's file, or the group's, with comments",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			text, groups := service.Example()
			if group {
				text = groups
			}
			_, err := fmt.Fprint(p.Out, text)
			return err
		},
	}
	c.Flags().BoolVar(&group, "group", false, "show the group's file")
	return c
}

// groupFlags are what all groups are made from that commands make.
type groupFlags struct {
	protocol, service string
	replicas          int
}

func (f *groupFlags) add(c *cobra.Command) {
	flags := c.Flags()
	flags.StringVar(&f.protocol, "protocol", "pbft", "the protocol: "+strings.Join(catalog.ByzantineNames(), ", "))
	flags.StringVar(&f.service, "service", "counter",
		"what is replicated: "+strings.Join(catalog.ServiceNames(), ", "))
	flags.IntVar(&f.replicas, "replicas", service.MinMembers,
		"how many replicas: 4 survive one that is faulty, 7 two")
}

// check says what is wrong with the flags of a command.
func (f *groupFlags) check(name string) error {
	if f.replicas < service.MinMembers || f.replicas > command.MaxReplicas {
		return command.Usagef("%s: --replicas is %d; want %d to %d", name, f.replicas, service.MinMembers,
			command.MaxReplicas)
	}
	if _, err := catalog.Byzantine(f.protocol); err != nil {
		return command.Usagef("%s: --protocol: %w", name, err)
	}
	if _, err := catalog.Service(f.service); err != nil {
		return command.Usagef("%s: --service: %w", name, err)
	}
	return nil
}

func (p *program) initCommand() *cobra.Command {
	var o service.InitOptions
	var g groupFlags
	var join, nextKey uint32
	var joinAt string
	c := &cobra.Command{
		Use:   "init",
		Short: "Make the keys and files of a group on this machine",
		Long: `Make the keys and files of a group on this machine: a directory with a key for each replica and
each client, and the group's file, with everybody's public key, which all of them read. On several
machines, give each its own directory and a copy of the group's file beside it. A client's
directory is for one process at a time. The first client is an administrator, who may change the
members. With --join, make the files of one more replica, for 'foresay bft add' or 'replace'; with
--next-key, the next key of a replica, for 'foresay bft rotate-keys'.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if o.Dir == "" {
				return command.Usagef("bft init: --dir is missing")
			}
			if c.Flags().Changed("join") {
				return p.initJoin(o.Dir, join, joinAt)
			}
			if c.Flags().Changed("next-key") {
				return p.initNextKey(o.Dir, nextKey)
			}
			if err := g.check("bft init"); err != nil {
				return err
			}
			if o.Clients < 1 || o.Clients > maxClients {
				return command.Usagef("bft init: --clients is %d; want 1 to %d", o.Clients, maxClients)
			}
			if o.Port < 0 || o.Port > 65535-g.replicas {
				return command.Usagef("bft init: --port is %d, no port", o.Port)
			}
			if d, err := time.ParseDuration(o.RoundTrip); err != nil || d <= 0 {
				return command.Usagef("bft init: --round-trip is %q; want a duration such as 100ms", o.RoundTrip)
			}
			o.Protocol, o.Service, o.Replicas = g.protocol, g.service, g.replicas
			group, err := service.Init(o)
			if err != nil {
				return fmt.Errorf("bft init: %w", err)
			}
			for _, m := range group.Members {
				fmt.Fprintf(p.Out, "foresay bft serve --config %s    # %s\n",
					filepath.Join(o.Dir, service.ConfigFile(m.ID)), m.Address)
			}
			_, err = fmt.Fprintf(p.Out, "foresay bft status --config %s\n", filepath.Join(o.Dir, service.ClientFile(0)))
			return err
		},
	}
	g.add(c)
	flags := c.Flags()
	flags.StringVar(&o.Dir, "dir", "", "the `directory`")
	flags.IntVar(&o.Clients, "clients", 4, "how many clients, each with a key of its own")
	flags.StringVar(&o.Cluster, "cluster", command.DefaultCluster, "the group's name")
	flags.StringVar(&o.Host, "host", "127.0.0.1", "where replicas listen")
	flags.IntVar(&o.Port, "port", 0, "of the first replica, the others follow (default: free ones)")
	flags.Uint32Var(&join, "join", 0, "make the files of one more replica, of this `ID`")
	flags.StringVar(&joinAt, "at", "", "with --join: its `address` (default: that of this ID, or a free port)")
	flags.Uint32Var(&nextKey, "next-key", 0, "make the next key of the replica of this `ID`")
	flags.StringVar(&o.RoundTrip, "round-trip", "50ms", "about the longest round-trip time between two replicas")
	return c
}

// maxClients bounds the clients of a group that init makes.
const maxClients = 1000
