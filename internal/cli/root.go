// Package cli holds the subcommands of the foresay command.
//
// Exit codes: 0 for success, 1 for a failure, 2 for a usage error, 3 for a change whose outcome is
// unknown.
package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/foresay/foresay/internal/cli/benchcmd"
	"github.com/foresay/foresay/internal/cli/bftcmd"
	"github.com/foresay/foresay/internal/cli/command"
	"github.com/foresay/foresay/internal/cli/simcmd"
	"github.com/foresay/foresay/internal/cli/smrcmd"
	"github.com/foresay/foresay/internal/cli/speccmd"
	"github.com/foresay/foresay/internal/cli/storecmd"
)

// Streams are what a command reads and writes.
type Streams = command.Streams

// Main runs the command line, which is without the program's own name, and returns the exit code.
func Main(ctx context.Context, args []string, s Streams) int {
	p := &command.Program{Streams: s, Args: args}
	root := root(p)
	root.SetArgs(args)
	c, err := root.ExecuteContextC(ctx)
	if err == nil {
		return 0
	}
	if !p.Began {
		err = p.Misused(c, err)
	}
	fmt.Fprintln(s.Err, "foresay:", command.Complaint(c, err))
	if usage := (command.UsageError{}); p.Began && !errors.As(err, &usage) {
		if exit := (command.ExitError{}); errors.As(err, &exit) {
			return exit.Code
		}
		return 1
	}
	fmt.Fprintf(s.Err, "Run '%s --help' for usage.\n", c.CommandPath())
	return 2
}

// root returns the command that has all others.
func root(p *command.Program) *cobra.Command {
	root := &cobra.Command{
		Use:   "foresay",
		Short: "Act on an answer before it arrives",
		Long: `Foresay lets a distributed program act on an answer before it arrives, and take the act back if
the answer was another one.`,
		SilenceErrors:    true,
		SilenceUsage:     true,
		PersistentPreRun: func(*cobra.Command, []string) { p.Began = true },
		Version:          buildLine(),
	}
	root.SetVersionTemplate("{{.Version}}\n")
	root.Flags().Bool("version", false, "tell which build of foresay this is")
	command.Group(root)
	root.SetIn(p.In)
	root.SetOut(p.Out)
	root.SetErr(p.Err)
	root.AddCommand(speccmd.Commands(p)...)
	root.AddCommand(benchcmd.Command(p), simcmd.Command(p), smrcmd.Command(p), storecmd.Command(p), bftcmd.Command(p),
		versionCommand(p))
	root.InitDefaultCompletionCmd()
	command.Helpful(root)
	if completion, _, err := root.Find([]string{"completion"}); err == nil {
		command.Group(completion)
	}
	command.Complete(root)
	command.OneStyle(root)
	command.Narrow(root)
	return root
}
