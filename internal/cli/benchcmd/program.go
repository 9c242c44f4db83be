// Package benchcmd is the command foresay bench.
package benchcmd

import (
	"github.com/spf13/cobra"

	"github.com/foresay/foresay/internal/cli/command"
)

// A program is one run of the command line, with the commands of this package.
type program struct{ *command.Program }

// Command returns the command bench.
func Command(p *command.Program) *cobra.Command { return (&program{p}).command() }
