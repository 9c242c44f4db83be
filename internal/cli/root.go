package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
)

// Main runs the command line, which is without the program's own name, and returns the exit code.
func Main(ctx context.Context, args []string, s Streams) int {
	p := &program{Streams: s}
	root := p.root()
	root.SetArgs(args)
	command, err := root.ExecuteContextC(ctx)
	if err == nil {
		return 0
	}
	if !p.began && command.CommandPath() == "foresay store txn" && slices.Contains(args, "--json") {
		err = errors.Join(err, p.writeJSONLine(newStoreOutcome(nil, err))) // a flag before it may have ended the parsing
	}
	fmt.Fprintln(s.Err, "foresay:", complaint(command, err))
	if usage := (usageError{}); p.began && !errors.As(err, &usage) {
		if exit := (exitError{}); errors.As(err, &exit) {
			return exit.code
		}
		return 1
	}
	fmt.Fprintf(s.Err, "Run '%s --help' for usage.\n", command.CommandPath())
	return 2
}

func (p *program) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "foresay",
		Short: "Act on an answer before it arrives",
		Long: "Foresay lets a distributed program act on an answer before it arrives,\n" +
			"and take the act back if the answer was another one.",
		SilenceErrors:    true,
		SilenceUsage:     true,
		PersistentPreRun: func(*cobra.Command, []string) { p.began = true },
		Version:          buildLine(),
	}
	root.SetVersionTemplate("{{.Version}}\n")
	root.Flags().Bool("version", false, "tell which build of foresay this is")
	group(root)
	root.SetIn(p.In)
	root.SetOut(p.Out)
	root.SetErr(p.Err)
	root.AddCommand(p.demoCommand(), p.dashCommand(), p.analyzeCommand(), p.reportCommand(), p.benchCommand(), p.simCommand(), p.smrCommand(), p.storeCommand(), p.versionCommand())
	root.InitDefaultCompletionCmd()
	if completion, _, err := root.Find([]string{"completion"}); err == nil {
		group(completion)
	}
	complete(root)
	oneStyle(root)
	narrow(root)
	return root
}
