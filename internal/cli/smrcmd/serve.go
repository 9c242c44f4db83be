package smrcmd

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/foresay/foresay/internal/catalog"
	"github.com/foresay/foresay/internal/cli/command"
	"github.com/foresay/foresay/internal/heap"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr/service"
	"github.com/foresay/foresay/wal"
)

func (p *program) serveCommand() *cobra.Command {
	return p.ServeCommand(command.Server{
		Short: "Run one replica of a key-value service",
		Long: `Run one replica of a key-value service, as its file says; 'foresay smr config' shows one. The log
goes to standard error.

SIGTERM or an interrupt ends it when what it wrote is on disk, and another replica leads if it
did; a second one ends it at once, which loses nothing that was acknowledged. It ends with status
1 if it must not take part: if its disk was lost, if another disk is known under its ID.`,
		File: "the replica's `file`",
		Missing: "smr serve: --config is missing; 'foresay smr init' makes files, 'foresay smr config' " +
			"shows one",
		Run: p.serve,
	})
}

// serveGarbage is how much garbage a replica's process has at most, about.
const serveGarbage = 32 << 20

func (p *program) serve(ctx context.Context, file string) error {
	defer heap.BoundGarbage(serveGarbage)()
	cfg, err := service.ReadConfig(file)
	if err != nil {
		return fmt.Errorf("smr serve: %w", err)
	}
	r, err := service.OpenReplica(cfg, service.ReplicaOptions{Logger: cfg.Log.New(p.Err)})
	if err != nil {
		return fmt.Errorf("smr serve: %w", replaceReplica(err, cfg.ID))
	}
	err = r.Run(ctx)
	if refused, ok := errors.AsType[*service.RefusedError](err); ok {
		return fmt.Errorf("smr serve: refused: %w", refused)
	}
	if err != nil {
		return fmt.Errorf("smr serve: %w", replaceReplica(err, cfg.ID))
	}
	return nil
}

// replaceReplica adds to an error how to go on without the disk, if that is damaged.
func replaceReplica(err error, id protocol.ID) error {
	if _, damaged := errors.AsType[*wal.DamageError](err); !damaged {
		return err
	}
	return fmt.Errorf("%w: 'foresay smr add' one with another ID, then 'foresay smr remove %d', while a majority of "+
		"the others is up", err, id)
}

func (p *program) configCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "config",
		Short: "Show a replica's file, with comments",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprint(p.Out, service.Example())
			return err
		},
	}
}

func (p *program) initCommand() *cobra.Command {
	var o service.InitOptions
	var join uint32
	var joinAt string
	var routing routingFlags
	c := &cobra.Command{
		Use:   "init",
		Short: "Make the files of a cluster on this machine",
		Long: `Make the files of a cluster on this machine: one for each replica, one for clients, and
certificates for all of them, of an authority made for it, whose key stays in the directory: that
is for development. With --groups, each process has a replica of each group, and the groups share
the keys: by hash, or by the ranges of --split. With --join, make those of one more replica, which
is to be added to the cluster in the directory.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if o.Dir == "" {
				return command.Usagef("smr init: --dir is missing")
			}
			if c.Flags().Changed("join") {
				return p.initJoin(o.Dir, join, joinAt)
			}
			if o.Replicas < 1 || o.Replicas > command.MaxReplicas {
				return command.Usagef("smr init: --replicas is %d; want 1 to %d", o.Replicas, command.MaxReplicas)
			}
			if o.Port < 0 || o.Port > 65535-o.Replicas {
				return command.Usagef("smr init: --port is %d, no port", o.Port)
			}
			if d, err := time.ParseDuration(o.RoundTrip); err != nil || d <= 0 {
				return command.Usagef("smr init: --round-trip is %q; want a duration such as 100ms", o.RoundTrip)
			}
			if _, err := catalog.Protocol(o.Protocol); err != nil {
				return command.Usagef("smr init: --protocol: %w", err)
			}
			var err error
			if o.Routing, err = routing.routing("smr init"); err != nil {
				return err
			}
			cfg, err := service.Init(o)
			if err != nil {
				return fmt.Errorf("smr init: %w", err)
			}
			for _, m := range cfg.Members {
				fmt.Fprintf(p.Out, "foresay smr serve --config %s    # %s\n", filepath.Join(o.Dir, service.ConfigFile(m.ID)),
					m.Address)
			}
			_, err = fmt.Fprintf(p.Out, "foresay smr status --config %s\n", filepath.Join(o.Dir, service.ClientFile))
			return err
		},
	}
	flags := c.Flags()
	flags.StringVar(&o.Dir, "dir", "", "the `directory`")
	flags.IntVar(&o.Replicas, "replicas", 3, "how many replicas")
	flags.StringVar(&o.Protocol, "protocol", "raft", "the protocol; 'foresay sim list' names them")
	flags.StringVar(&o.Cluster, "cluster", command.DefaultCluster, "the cluster's name")
	flags.StringVar(&o.Host, "host", "127.0.0.1", "where replicas listen")
	flags.IntVar(&o.Port, "port", 0, "of the first replica, the others follow (default: free ones)")
	flags.StringVar(&o.RoundTrip, "round-trip", "50ms", "about the longest round-trip time between two replicas")
	routing.add(flags, "")
	flags.Uint32Var(&join, "join", 0, "make the files of one more replica, of this `ID`")
	flags.StringVar(&joinAt, "at", "", "with --join: its `address` (default: a free port of the others' host)")
	return c
}

func (p *program) initJoin(dir string, id uint32, address string) error {
	n, err := command.ReplicaID(fmt.Sprint(id))
	if err != nil {
		return command.Usagef("smr init: --join: %w", err)
	}
	cfg, err := service.InitJoin(dir, n, address)
	if err != nil {
		return fmt.Errorf("smr init: %w", err)
	}
	fmt.Fprintf(p.Out, "foresay smr serve --config %s\n", filepath.Join(dir, service.ConfigFile(cfg.ID)))
	_, err = fmt.Fprintf(p.Out, "foresay smr add %d %s --config %s\n", cfg.ID, cfg.Listen,
		filepath.Join(dir, service.ClientFile))
	return err
}
