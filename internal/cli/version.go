package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/foresay/foresay/internal/cli/command"
)

func versionCommand(p *command.Program) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Tell which build of foresay this is",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintln(p.Out, buildLine())
			return err
		},
	}
}

// buildLine is what version says.
func buildLine() string {
	return fmt.Sprintf("foresay %s %s %s/%s", version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// version returns the module's version, with the commit where it is a build from a work tree.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "(unknown)"
	}
	v := info.Main.Version
	if v == "" {
		v = "(devel)"
	}
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	if commit := settings["vcs.revision"]; v == "(devel)" && commit != "" {
		v += " " + commit[:min(len(commit), 12)]
		if settings["vcs.modified"] == "true" {
			v += " (modified)"
		}
	}
	return v
}
