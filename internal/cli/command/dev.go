package command

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/pflag"
)

// DevPatience is how long one call to a cluster in this process may take.
const DevPatience = 15 * time.Second

// DevFlags are what all clusters in this process are asked for.
type DevFlags struct {
	dir      string
	duration time.Duration
	script   string
}

// Add adds the flags.
func (f *DevFlags) Add(flags *pflag.FlagSet) {
	flags.StringVar(&f.dir, "dir", "", "an empty `directory` for files, disks and the log (default: one that is "+
		"removed at the end)")
	flags.DurationVar(&f.duration, "for", 0, "end after this time (default: when interrupted)")
	flags.StringVar(&f.script, "script", "", "take commands from this `file`, - for standard input")
}

// A DevRun is what a cluster in this process runs with.
type DevRun struct {
	Dir string
	// Where names dir, and says if it will be removed.
	Where  string
	Logger *slog.Logger // writes to a file in dir
	// Commands are what to carry out, nil if nobody gives any; person says that somebody types
	// them.
	Commands io.Reader
	Person   bool
}

// RunDev makes what a cluster in this process runs with, and removes it when run has returned. The
// command's name stands before all errors.
func (p *Program) RunDev(ctx context.Context, name string, f DevFlags, run func(context.Context, DevRun) error) error {
	fail := func(err error) error { return fmt.Errorf("%s: %w", name, err) }
	if f.duration < 0 {
		return Usagef("%s: --for is %v; want 0 or more", name, f.duration)
	}
	commands, closeCommands, err := p.devCommands(f.script)
	if err != nil {
		return fail(err)
	}
	defer closeCommands()
	d := DevRun{Dir: f.dir, Where: f.dir, Commands: commands, Person: f.script == ""}
	if d.Dir == "" {
		if d.Dir, err = os.MkdirTemp("", "foresay-dev-"); err != nil {
			return fail(err)
		}
		defer os.RemoveAll(d.Dir)
		d.Where = d.Dir + " (removed at the end)"
	} else if err := os.MkdirAll(d.Dir, 0o755); err != nil {
		return fail(err)
	}
	logFile, err := os.Create(filepath.Join(d.Dir, "log.txt"))
	if err != nil {
		return fail(err)
	}
	defer logFile.Close()
	d.Logger = slog.New(slog.NewTextHandler(logFile, nil))
	if f.duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, f.duration)
		defer cancel()
	}
	if err := run(ctx, d); err != nil {
		return fail(err)
	}
	return nil
}

// devCommands returns where commands come from, nil for nowhere.
func (p *Program) devCommands(script string) (io.Reader, func() error, error) {
	nothing := func() error { return nil }
	switch {
	case script == "-":
		return p.In, nothing, nil
	case script != "":
		file, err := os.Open(script)
		if err != nil {
			return nil, nil, fmt.Errorf("--script: %w", err)
		}
		return file, file.Close, nil
	}
	if file, ok := p.In.(*os.File); ok && IsTerminal(file) && IsTerminal(p.Out) {
		return p.In, nothing, nil
	}
	return nil, nothing, nil
}

// Sleep is the command of that name.
func Sleep(ctx context.Context, text string) error {
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 || d > time.Hour {
		return fmt.Errorf("%q is no time such as 500ms", text)
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
