// Package smrcmd is the command foresay smr.
package smrcmd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/foresay/foresay/internal/catalog"
	"github.com/foresay/foresay/internal/cli/command"
	"github.com/foresay/foresay/internal/cli/configfile"
	"github.com/foresay/foresay/internal/cli/smrcmd/plancmd"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/client"
	"github.com/foresay/foresay/smr/service"
)

// A program is one run of the command line, with the commands of this package.
type program struct{ *command.Program }

// Command returns the command smr.
func Command(p *command.Program) *cobra.Command { return (&program{p}).command() }

func (p *program) command() *cobra.Command {
	c := &cobra.Command{
		Use:   "smr",
		Short: "Run and use a replicated key-value service",
		Long: `Run and use a key-value service that is replicated by one of the protocols of 'foresay sim list'.

A first look:    foresay smr dev
Three processes: foresay smr init --dir DIR, then
                 foresay smr serve --config DIR/replica-1.json and so on, then
                 foresay smr put KEY VALUE --config DIR/client.json`,
	}
	command.Group(c)
	c.AddCommand(p.devCommand(), p.initCommand(), p.configCommand(), p.serveCommand(),
		p.putCommand(), p.getCommand(), p.deleteCommand(), p.casCommand(), p.scanCommand(), p.watchCommand(),
		p.leaseCommand(), p.lockCommand(), p.backupCommand(), p.restoreCommand(),
		p.quotaCommand(), p.recoverCommand(),
		p.statusCommand(), p.leadCommand(), p.addCommand(), p.promoteCommand(), p.removeCommand(), p.benchCommand(),
		plancmd.Command(p.Program))
	return c
}

// clientFlags say how a command reaches the service, and how long it waits for it.
type clientFlags struct {
	config    string
	addresses []string
	cluster   string
	protocol  string
	recovery  string
	ca        string
	cert      string
	key       string
	insecure  bool
	roundTrip time.Duration
	nearest   uint32
	timeout   time.Duration
	json      bool
	routing   routingFlags
}

// add adds the flags of a command that shows what it got.
func (f *clientFlags) add(flags *pflag.FlagSet) {
	f.connect(flags)
	flags.BoolVar(&f.json, "json", false, "write JSON")
}

// connect adds those that say where the service is, and how long to wait for it.
func (f *clientFlags) connect(flags *pflag.FlagSet) {
	flags.StringVar(&f.config, "config", "", "the clients' `file`, such as init and dev make it")
	flags.StringSliceVar(&f.addresses, "addr", nil,
		"instead of --config: where replicas are, as `ID=HOST:PORT` with commas between")
	flags.StringVar(&f.cluster, "cluster", command.DefaultCluster, "with --addr: the cluster's name")
	flags.StringVar(&f.protocol, "protocol", "raft", "with --addr: the cluster's protocol, one of "+
		strings.Join(catalog.Names(), ", "))
	flags.StringVar(&f.recovery, "recovery", "", "with --addr: the `recovery` of a group that 'smr recover' made")
	flags.StringVar(&f.ca, "ca", "", "with --addr: the `file` of the cluster's authority")
	flags.StringVar(&f.cert, "cert", "", "with --addr: the `file` of the client's certificate")
	flags.StringVar(&f.key, "key", "", "with --addr: the `file` of the certificate's key")
	flags.BoolVar(&f.insecure, "insecure", false, "with --addr: no TLS")
	flags.DurationVar(&f.roundTrip, "round-trip", 0,
		"with --addr: about the longest round-trip time to a replica (default 100ms)")
	f.routing.add(flags, "with --addr: ")
	flags.Uint32Var(&f.nearest, "nearest", 0, "the `ID` of the replica to ask first")
	flags.DurationVar(&f.timeout, "timeout", 10*time.Second, "how long to wait for the service")
}

// clientConfig returns the configuration that the flags ask for.
func (f *clientFlags) clientConfig() (*service.ClientConfig, error) {
	switch {
	case f.timeout <= 0:
		return nil, command.Usagef("smr: --timeout is %v; want more than 0", f.timeout)
	case f.config != "" && f.addresses != nil:
		return nil, command.Usagef("smr: --config and --addr exclude each other")
	case f.config != "":
		return service.ReadClientConfig(f.config)
	case f.addresses == nil:
		return nil, command.Usagef("smr: say where the service is, by --config or --addr; 'foresay smr dev' starts one")
	}
	routing, err := f.routing.routing("smr")
	if err != nil {
		return nil, err
	}
	c := &service.ClientConfig{Cluster: f.cluster, Protocol: f.protocol, Recovery: f.recovery, Routing: routing,
		Insecure: f.insecure}
	if f.roundTrip != 0 {
		c.RoundTrip = f.roundTrip.String()
	}
	for _, a := range f.addresses {
		m, err := parseMember(a)
		if err != nil {
			return nil, command.Usagef("smr: --addr: %w", err)
		}
		c.Members = append(c.Members, m)
	}
	if f.ca != "" || f.cert != "" || f.key != "" {
		c.TLS = &service.TLSFiles{CA: f.ca, Cert: f.cert, Key: f.key}
	} else if !f.insecure {
		return nil, command.Usagef("smr: --addr needs --ca, --cert and --key, or --insecure")
	}
	if err := c.Check(); err != nil {
		return nil, command.Usagef("smr: %w", err)
	}
	return c, nil
}

func parseMember(text string) (service.Member, error) {
	id, address, ok := strings.Cut(text, "=")
	if !ok {
		return service.Member{}, fmt.Errorf("%q is not ID=HOST:PORT", text)
	}
	n, err := command.ReplicaID(id)
	if err != nil {
		return service.Member{}, err
	}
	if err := configfile.CheckAddress("HOST:PORT", address, false); err != nil {
		return service.Member{}, err
	}
	return service.Member{ID: n, Address: address}, nil
}

// withClient runs f with a client, for as long as the flags allow.
func (p *program) withClient(
	ctx context.Context, f *clientFlags, do func(context.Context, *service.Client) error,
) error {
	return p.withLastingClient(ctx, f, func(ctx context.Context, c *service.Client) error {
		ctx, cancel := context.WithTimeout(ctx, f.timeout)
		defer cancel()
		return do(ctx, c)
	})
}

// withLastingClient is withClient without the limit.
func (p *program) withLastingClient(
	ctx context.Context, f *clientFlags, do func(context.Context, *service.Client) error,
) error {
	cfg, err := f.clientConfig()
	if err != nil {
		return err
	}
	nearest := protocol.ID(f.nearest)
	if nearest != 0 && !slices.ContainsFunc(cfg.Members, func(m service.Member) bool { return m.ID == nearest }) {
		return command.Usagef("smr: --nearest is %d, which is none of the replicas in the clients' file or --addr", nearest)
	}
	return service.WithClient(ctx, cfg, service.ClientOptions{Nearest: nearest},
		func(ctx context.Context, c *service.Client) error {
			return outcome(do(ctx, c), c)
		})
}

// outcome makes what became of a call an error of the command. How the members stand is told beside
// it.
func outcome(err error, c *service.Client) error {
	unknown, isUnknown := errors.AsType[*client.UnknownError](err)
	if _, unsent := errors.AsType[*client.RejectedError](err); !isUnknown && !unsent {
		return err
	}
	err = c.Explain(err)
	if !isUnknown || unknown.Kind == smr.Read {
		return err // nothing is in doubt but the answer
	}
	return command.ExitError{Code: command.CodeUnknown, Err: err}
}
