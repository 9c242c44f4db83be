// Package command is what all commands share: how they are run, what they say of wrong usage,
// progress, load and prompts.
package command

import (
	"encoding/json"
	"io"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/foresay/foresay/bench/replicated"
)

// Streams are what a command reads and writes.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// A Program is one run of the command line.
type Program struct {
	Streams
	// Args is the command line, without the program's own name.
	Args []string
	// Began says that the command line has been understood and a command is at work.
	Began bool

	misused map[*cobra.Command]func(error) error
}

// OnMisuse has f handle an error for which c does not begin, as its command line is wrong. The
// program ends with the error that f returns.
func (p *Program) OnMisuse(c *cobra.Command, f func(error) error) {
	if p.misused == nil {
		p.misused = map[*cobra.Command]func(error) error{}
	}
	p.misused[c] = f
}

// Misused returns the error with which the program ends that could not begin c.
func (p *Program) Misused(c *cobra.Command, err error) error {
	if f := p.misused[c]; f != nil {
		return f(err)
	}
	return err
}

// CodeUnknown is the exit code of a change of which nobody could tell what became of it.
const CodeUnknown = 3

// An ExitError is a failure with an exit code of its own.
type ExitError struct {
	Code int
	Err  error
}

func (e ExitError) Error() string { return e.Err.Error() }
func (e ExitError) Unwrap() error { return e.Err }

// IsTerminal reports whether a person sees what is written to w.
func IsTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	null, err := os.Stat(os.DevNull) // a device too, at which nobody looks
	return err != nil || !os.SameFile(info, null)
}

// WriteJSON writes a value as every --json does.
func (p *Program) WriteJSON(v any) error {
	e := json.NewEncoder(p.Out)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// WriteJSONLine is writeJSON on one line, for what comes one by one.
func (p *Program) WriteJSONLine(v any) error {
	e := json.NewEncoder(p.Out)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

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

// MaxReplicas bounds the replicas of groups that commands make, or think of.
const MaxReplicas = 9
