package cli

import (
	"io"
	"os"

	"github.com/spf13/pflag"

	"github.com/foresay/foresay/bench/replicated"
)

// endWithParent has the process end when its standard input does: with its parent, however that ends.
func (p *program) endWithParent() {
	go func() {
		io.Copy(io.Discard, p.In)
		os.Exit(1)
	}()
}

// leashFlag adds the flag by which a parent has a server end with it.
func leashFlag(flags *pflag.FlagSet, leashed *bool) {
	flags.BoolVar(leashed, replicated.LeashFlag, false, "end at once when standard input does")
	flags.Lookup(replicated.LeashFlag).Hidden = true
}
