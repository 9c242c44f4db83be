package command

import (
	"io"
	"os"

	"github.com/spf13/pflag"

	"github.com/foresay/foresay/bench/replicated"
)

// EndWithParent has the process end when its standard input does: with its parent, however that
// ends.
func (p *Program) EndWithParent() {
	go func() {
		io.Copy(io.Discard, p.In)
		os.Exit(1)
	}()
}

// LeashFlag adds the flag by which a parent has a server end with it.
func LeashFlag(flags *pflag.FlagSet, leashed *bool) {
	flags.BoolVar(leashed, replicated.LeashFlag, false, "end at once when standard input does")
	flags.Lookup(replicated.LeashFlag).Hidden = true
}
