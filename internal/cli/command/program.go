package command

import (
	"encoding/json"
	"io"
	"os"

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
	// Began says that the command line has been understood and a command is at work.
	Began bool
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
