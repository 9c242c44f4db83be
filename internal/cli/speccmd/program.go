// Package speccmd has the commands about speculative calls: demo, dash, analyze and report.
package speccmd

import (
	"github.com/spf13/cobra"

	"github.com/foresay/foresay/internal/cli/command"
)

// A program is one run of the command line, with the commands of this package.
type program struct{ *command.Program }

// Commands returns the commands.
func Commands(p *command.Program) []*cobra.Command {
	q := &program{p}
	return []*cobra.Command{q.demoCommand(), q.dashCommand(), q.analyzeCommand(), q.reportCommand()}
}
