package cli

import (
	"encoding/json"
	"io"
	"os"
)

// Streams are what a command reads and writes.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// A program is one run of the command line.
type program struct {
	Streams
	// began says that the command line has been understood and a command is at work.
	began bool
}

// codeUnknown is the exit code of a change of which nobody could tell what became of it.
const codeUnknown = 3

// An exitError is a failure with an exit code of its own.
type exitError struct {
	code int
	error
}

func (e exitError) Unwrap() error { return e.error }

// isTerminal tells whether a person sees what is written to w.
func isTerminal(w io.Writer) bool {
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

// writeJSON writes a value as every --json does.
func (p *program) writeJSON(v any) error {
	e := json.NewEncoder(p.Out)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// writeJSONLine is writeJSON on one line, for what comes one by one.
func (p *program) writeJSONLine(v any) error {
	e := json.NewEncoder(p.Out)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}
