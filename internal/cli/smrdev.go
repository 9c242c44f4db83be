package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/foresay/foresay/internal/catalog"
	"github.com/foresay/foresay/smr/service"
	"github.com/foresay/foresay/wan"
)

type devFlags struct {
	protocol string
	wan      string
	replicas int
	dir      string
	clients  int
	every    time.Duration
	duration time.Duration
	script   string
	routing  routingFlags
}

func (p *program) smrDevCommand() *cobra.Command {
	var f devFlags
	c := &cobra.Command{
		Use:   "dev",
		Short: "Run a whole cluster in this process, with clients, over a wide-area network",
		Long: "Run a cluster in this process: replicas with real hosts, disks and certificates, and clients that write all the time.\n" +
			"With --wan, connections have the round-trip times of a deployment of the papers. Other processes can use the\n" +
			"cluster by the clients' file that is told at the start; they are taken to be at the site of the replica they talk to.\n\n" +
			"On a terminal it asks for commands: put, get, status, kill, restart, cut, join, and so on; 'help' explains them.\n" +
			"With --script it takes them from a file, one a line, and ends. Else it shows a table, until interrupted.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return p.runDev(c.Context(), f) },
	}
	flags := c.Flags()
	flags.StringVar(&f.protocol, "protocol", "raft", "the protocol; 'foresay sim list' names them")
	flags.StringVar(&f.wan, "wan", "", "the network: "+joined(presets())+" (default: this machine's own)")
	flags.IntVar(&f.replicas, "replicas", 0, "how many replicas (default: as many as the network's paper has, or 3)")
	flags.StringVar(&f.dir, "dir", "", "an empty `directory` for files, disks and the log (default: one that is removed at the end)")
	flags.IntVar(&f.clients, "clients", -1, "how many clients write, spread over the sites (default: one for each replica)")
	flags.DurationVar(&f.every, "every", 500*time.Millisecond, "the pause between two writes of a client")
	flags.DurationVar(&f.duration, "for", 0, "end after this time (default: when interrupted)")
	f.routing.add(flags, "")
	flags.StringVar(&f.script, "script", "", "take commands from this `file`, - for standard input")
	return c
}

// options returns the cluster that the flags ask for.
func (f *devFlags) options() (service.ClusterOptions, error) {
	o := service.ClusterOptions{Dir: f.dir, Protocol: f.protocol, Replicas: f.replicas}
	if _, err := catalog.Protocol(f.protocol); err != nil {
		return o, usagef("smr dev: --protocol: %w", err)
	}
	var err error
	if o.Routing, err = f.routing.routing("smr dev"); err != nil {
		return o, err
	}
	sites := maxReplicas
	if f.wan != "" {
		d, err := wan.Preset(f.wan)
		if err != nil {
			return o, usagef("smr dev: --wan: %w", err)
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
		return o, usagef("smr dev: --replicas is %d; want 1 to %d", f.replicas, sites)
	case f.clients < -1 || f.clients > 1000:
		return o, usagef("smr dev: --clients is %d; want 0 to 1000", f.clients)
	case f.every <= 0:
		return o, usagef("smr dev: --every is %v; want more than 0", f.every)
	case f.duration < 0:
		return o, usagef("smr dev: --for is %v; want 0 or more", f.duration)
	}
	return o, nil
}

func (p *program) runDev(ctx context.Context, f devFlags) (err error) {
	o, err := f.options()
	if err != nil {
		return err
	}
	commands, closeCommands, err := p.devCommands(f.script)
	if err != nil {
		return err
	}
	defer closeCommands()
	removed := ""
	if o.Dir == "" {
		if o.Dir, err = os.MkdirTemp("", "foresay-dev-"); err != nil {
			return fmt.Errorf("smr dev: %w", err)
		}
		removed = " (removed at the end)"
		defer os.RemoveAll(o.Dir)
	} else if err := os.MkdirAll(o.Dir, 0o755); err != nil {
		return fmt.Errorf("smr dev: %w", err)
	}
	logFile, err := os.Create(filepath.Join(o.Dir, "log.txt"))
	if err != nil {
		return fmt.Errorf("smr dev: %w", err)
	}
	defer logFile.Close()
	o.Logger = slog.New(slog.NewTextHandler(logFile, nil))
	if f.duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, f.duration)
		defer cancel()
	}
	cluster, err := service.OpenCluster(o)
	if err != nil {
		return fmt.Errorf("smr dev: %w", err)
	}
	defer func() {
		if e := cluster.Close(); e != nil && err == nil {
			err = fmt.Errorf("smr dev: %w", e)
		}
	}()
	network := f.wan
	if network == "" {
		network = "this machine's network"
	}
	fmt.Fprintf(p.Out, "%s, %d replicas, %s; files in %s%s\n", o.Protocol, o.Replicas, network, o.Dir, removed)
	fmt.Fprintf(p.Out, "elsewhere: foresay smr status --config %s\n", filepath.Join(o.Dir, service.ClientFile))
	return p.useCluster(ctx, f, cluster, commands)
}

// devCommands returns where commands come from, nil for nowhere.
func (p *program) devCommands(script string) (io.Reader, func() error, error) {
	nothing := func() error { return nil }
	switch {
	case script == "-":
		return p.In, nothing, nil
	case script != "":
		file, err := os.Open(script)
		if err != nil {
			return nil, nil, fmt.Errorf("smr dev: --script: %w", err)
		}
		return file, file.Close, nil
	}
	if file, ok := p.In.(*os.File); ok && isTerminal(file) && isTerminal(p.Out) {
		return p.In, nothing, nil
	}
	return nil, nothing, nil
}

// useCluster runs the clients, and commands or the table, until ctx ends or there are no more commands.
func (p *program) useCluster(ctx context.Context, f devFlags, cluster *service.Cluster, commands io.Reader) error {
	places := cluster.Places()
	err := service.WithClient(ctx, cluster.Client(), cluster.At(places[0].Site), func(ctx context.Context, c *service.Client) error {
		d := &dev{p: p, cluster: cluster, client: c}
		if err := d.begin(ctx); err != nil {
			return err
		}
		n := f.clients
		if n < 0 {
			n = len(places)
		}
		ctx, stop := context.WithCancel(ctx)
		defer stop()
		group, ctx := errgroup.WithContext(ctx)
		for i := range n {
			w := &writer{name: fmt.Sprintf("dev/%d", i+1), place: places[i%len(places)], every: f.every}
			d.writers = append(d.writers, w)
			group.Go(func() error { return w.run(ctx, cluster) })
		}
		group.Go(func() error {
			defer stop()
			if commands == nil {
				return d.watch(ctx)
			}
			return d.commands(ctx, commands, f.script == "")
		})
		return group.Wait()
	})
	if ctx.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)) {
		return nil // the way it is ended
	}
	return err
}

// commands carries out commands, one a line.
func (d *dev) commands(ctx context.Context, in io.Reader, prompt bool) error {
	lines := make(chan string)
	ended := make(chan error, 1)
	go func() { // which may stay in a read until the process ends
		s := bufio.NewScanner(in)
		for s.Scan() {
			select {
			case lines <- s.Text():
			case <-ctx.Done():
				return
			}
		}
		ended <- s.Err()
	}()
	for n := 1; ; n++ {
		if prompt {
			fmt.Fprint(d.p.Out, "> ")
		}
		select {
		case <-ctx.Done():
			return nil
		case err := <-ended:
			return err
		case line := <-lines:
			if !prompt && strings.TrimSpace(line) != "" {
				fmt.Fprintln(d.p.Out, ">", line)
			}
			more, err := d.command(ctx, strings.Fields(line))
			if err != nil && !prompt {
				return fmt.Errorf("smr dev: line %d: %s: %w", n, line, err)
			}
			if err != nil {
				fmt.Fprintln(d.p.Out, err)
			}
			if !more {
				return nil
			}
		}
	}
}
