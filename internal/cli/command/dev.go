package command

import (
	"cmp"
	"context"
	"errors"
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

// A DevCluster is a cluster in this process.
type DevCluster interface {
	// Use waits until the cluster works, and has it used, until ctx ends or there are no more
	// commands. It may return why ctx ended.
	Use(ctx context.Context, run DevRun) error
	Close() error
}

// RunDev opens a cluster in this process, has it used, and closes it. What it runs with is made
// before and removed afterwards. The command's name stands before all errors.
func (p *Program) RunDev(ctx context.Context, name string, f DevFlags, open func(DevRun) (DevCluster, error)) error {
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
	cluster, err := open(d)
	if err != nil {
		return fail(err)
	}
	err = cluster.Use(ctx, d)
	if ctx.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)) {
		err = nil // the way it is ended
	}
	if err = cmp.Or(err, cluster.Close()); err != nil {
		return fail(err)
	}
	return nil
}

// AwaitDev looks at a cluster time and again until all of it takes part. It returns ctx's error if
// that ends first, or what look said last if it takes too long: what is missing, or an error.
func AwaitDev(ctx context.Context, look func(context.Context) (missing, err error)) error {
	within, cancel := context.WithTimeout(ctx, DevPatience)
	defer cancel()
	for {
		missing, err := look(within)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			return err
		case missing == nil:
			return nil
		}
		select {
		case <-within.Done():
			return cmp.Or(ctx.Err(), missing)
		case <-time.After(StatusPause):
		}
	}
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
