// Package bftcmd is the command foresay bft.
package bftcmd

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/foresay/foresay/bft/client"
	"github.com/foresay/foresay/bft/service"
	"github.com/foresay/foresay/internal/cli/command"
	"github.com/foresay/foresay/smr"
)

// A program is one run of the command line, with the commands of this package.
type program struct{ *command.Program }

// Command returns the command bft.
func Command(p *command.Program) *cobra.Command { return (&program{p}).command() }

func (p *program) command() *cobra.Command {
	c := &cobra.Command{
		Use:   "bft",
		Short: "Run and use a replicated service whose replicas may lie",
		Long: `Run and use a service whose replicas agree although some may do as they like: one of four, two of
seven. Clients have a first reply, a guess, before the group has confirmed it.

A first look:   foresay bft dev
Four processes: foresay bft init --dir DIR, then
                foresay bft serve --config DIR/replica-1/replica.json and so on, then
                foresay bft status --config DIR/client-70000/client.json`,
	}
	command.Group(c)
	c.AddCommand(p.devCommand(), p.initCommand(), p.configCommand(), p.serveCommand(), p.statusCommand(), p.countCommand(),
		p.benchCommand())
	c.AddCommand(p.keyCommands()...)
	c.AddCommand(p.memberCommands()...)
	return c
}

// clientFlags say how a command reaches the group, and how long it waits for it.
type clientFlags struct {
	config  string
	timeout time.Duration
	json    bool
}

// add adds the flags of a command that shows what it got.
func (f *clientFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.config, "config", "", "a client's `file`, such as init makes it")
	flags.DurationVar(&f.timeout, "timeout", 10*time.Second, "how long to wait for the group")
	flags.BoolVar(&f.json, "json", false, "write JSON")
}

// withClient runs a function with a client, for as long as the flags allow.
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
	switch {
	case f.timeout <= 0:
		return command.Usagef("bft: --timeout is %v; want more than 0", f.timeout)
	case f.config == "":
		return command.Usagef("bft: say who calls, by --config; 'foresay bft init' makes clients' files")
	}
	cfg, err := service.ReadClientConfig(f.config)
	if err != nil {
		return err
	}
	return service.WithClient(ctx, cfg, service.ClientOptions{}, func(ctx context.Context, c *service.Client) error {
		return outcome(do(ctx, c), c)
	})
}

// outcome makes what became of a call an error of the command. How the members stand is told beside
// it.
func outcome(err error, c *service.Client) error {
	unknown, isUnknown := errors.AsType[*client.UnknownError](err)
	if !isUnknown {
		return err
	}
	err = c.Explain(err)
	if unknown.Kind == smr.Read || !c.Reached() {
		return err // nothing is in doubt: it was a read, or nobody has heard of it
	}
	return command.ExitError{Code: command.CodeUnknown, Err: err}
}
