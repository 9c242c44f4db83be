// Package smrcmd is the command foresay smr.
package smrcmd

import (
	"github.com/spf13/cobra"

	"github.com/foresay/foresay/internal/cli/command"
)

// A program is one run of the command line, with the commands of this package.
type program struct{ *command.Program }

// Command returns the command smr.
func Command(p *command.Program) *cobra.Command { return (&program{p}).command() }
