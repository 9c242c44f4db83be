package bench

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/foresay/foresay/bench/figure"
	"github.com/foresay/foresay/bench/table"
	"github.com/foresay/foresay/internal/catalog"
)

// A Mode says what time an experiment runs in.
type Mode string

const (
	// Virtual is the time of a testing/synctest bubble: exact, and not spent.
	Virtual Mode = "virtual"
	// Real is the wall clock.
	Real Mode = "real"
)

// Options say how an experiment is run.
type Options struct {
	// Mode is one of the experiment's modes. Empty: its first.
	Mode Mode
	// Quick asks for a result within seconds: fewer points, fewer requests.
	Quick bool
	// Seed fixes which predictions are right and in what order systems take turns.
	Seed uint64
	// Seeds is how many seeds it is run with, from Seed on: see Experiment.Intervals. 0 is 1.
	Seeds int
	// Bubble runs f in a testing/synctest bubble and returns when it has ended.
	// Virtual mode needs it; a package that is no test has no bubbles of its own.
	Bubble func(f func())
	// Program is the path of the foresay program, for experiments with servers that are processes.
	Program string
	// Protocol, if not empty, is the only replication protocol that is measured. See
	// Experiment.PerProtocol.
	Protocol string
	// Away, if not 0, is for how long a machine is away, and Alone leaves out the run beside it in
	// which none is. See Experiment.Away.
	Away  time.Duration
	Alone bool
	// Full asks for the size that the paper has, in place of all points at a smaller one. See
	// Experiment.Full.
	Full bool
	// Progress, if not nil, is told before each step.
	Progress func(Progress)
}

// Progress tells how far an experiment is.
type Progress struct {
	Experiment  string
	Done, Total int
	// Doing says what is measured next.
	Doing string
}

// An Experiment is a question that can be put to all systems.
type Experiment struct {
	Name string
	// Summary is one line that tells what is run.
	Summary string
	// Modes are the modes that it can run in, its default first.
	Modes []Mode
	// PerProtocol reports whether each replication protocol is measured by itself, so that
	// Options.Protocol can choose one.
	PerProtocol bool
	// Away reports whether a machine is away for a time, so that Options.Away and Options.Alone mean
	// something.
	Away bool
	// Full reports whether the experiment is a smaller model of its paper's, so that Options.Full
	// means something: one point is measured at both sizes, and is to come out the same.
	Full bool

	// Intervals, if not empty, says that the experiment may be run with several seeds, and what
	// columns get an interval of confidence then: see table.Means.
	Intervals []string

	// Bubbles reports whether virtual mode needs Options.Bubble.
	Bubbles bool
	// Measure runs the experiment.
	Measure func(context.Context, Run) ([]table.Row, error)
	// Figures are the pictures of its result.
	Figures []figure.Spec
}

// NeedsBubble reports whether the experiment needs Options.Bubble in a mode.
func (e Experiment) NeedsBubble(m Mode) bool { return m == Virtual && e.Bubbles }

// A Run is one run of an experiment, in the mode that its options name.
type Run struct {
	Options
	Experiment string
}

// Step tells what is measured next, if anybody wants to know.
func (r Run) Step(done, total int, doing string) {
	if r.Progress != nil {
		r.Progress(Progress{Experiment: r.Experiment, Done: done, Total: total, Doing: doing})
	}
}

// A Point is a part of an experiment that gives some of its rows.
type Point struct {
	Doing string
	Run   func(context.Context) ([]table.Row, error)
}

// Points measures points one after the other. They need no bubbles.
func Points(of func(Options) []Point) func(context.Context, Run) ([]table.Row, error) {
	return func(ctx context.Context, r Run) (rows []table.Row, err error) {
		points := of(r.Options)
		for i, p := range points {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			r.Step(i, len(points), p.Doing)
			more, err := p.Run(ctx)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", p.Doing, err)
			}
			rows = append(rows, more...)
		}
		return rows, nil
	}
}

// PointsAtOnce is Points of as many at a time as there are processors: they take no notice of the
// wall clock, nor of each other.
func PointsAtOnce(of func(Options) []Point) func(context.Context, Run) ([]table.Row, error) {
	return func(ctx context.Context, r Run) ([]table.Row, error) {
		points := of(r.Options)
		parts := make([][]table.Row, len(points))
		g, ctx := errgroup.WithContext(ctx)
		g.SetLimit(runtime.GOMAXPROCS(0))
		var mu sync.Mutex // of begun, and for Step
		begun := 0
		for i, p := range points {
			g.Go(func() error {
				if err := ctx.Err(); err != nil {
					return err
				}
				mu.Lock()
				r.Step(begun, len(points), p.Doing)
				begun++
				mu.Unlock()
				var err error
				if parts[i], err = p.Run(ctx); err != nil {
					return fmt.Errorf("%s: %w", p.Doing, err)
				}
				return nil
			})
		}
		err := g.Wait()
		return slices.Concat(parts...), err
	}
}

// Pick returns the first value for a quick run, else the second.
func Pick[T any](o Options, quick, full T) T {
	if o.Quick {
		return quick
	}
	return full
}

// PickMode returns the first value for virtual time, else the second.
func PickMode[T any](o Options, virtual, real T) T {
	if o.Mode == Real {
		return real
	}
	return virtual
}

// ErrMode says that an experiment does not run in the mode asked for.
var ErrMode = errors.New("no such mode")

// CheckMode returns the mode that an option of m means: the default for the empty
// one, and an error wrapping ErrMode for one that the experiment does not offer.
func (e Experiment) CheckMode(m Mode) (Mode, error) {
	if m == "" {
		return e.Modes[0], nil
	}
	if slices.Contains(e.Modes, m) {
		return m, nil
	}
	var offered []string
	for _, o := range e.Modes {
		offered = append(offered, string(o))
	}
	return "", fmt.Errorf("bench %s: %w: %s (it runs in %s mode only)", e.Name, ErrMode, m, strings.Join(offered, " or "))
}

// Run runs the experiment. In virtual mode the same options give the same result, but
// for the bytes on the wire, of which some hundredths of a per cent are chance, and for
// transactions, where what happens at one instant has no order and a retry's pause is
// drawn anew: hundredths of a latency without contention, more with it. With
// GOMAXPROCS=1 there is an order, and without contention nothing differs. In real mode
// the same options give the same requests in the same order.
func (e Experiment) Run(ctx context.Context, o Options) (*Result, error) {
	mode, err := e.CheckMode(o.Mode)
	if err != nil {
		return nil, err
	}
	if err := e.CheckProtocol(o.Protocol); err != nil {
		return nil, err
	}
	if e.NeedsBubble(mode) && o.Bubble == nil {
		return nil, fmt.Errorf("bench %s: virtual mode needs Options.Bubble", e.Name)
	}
	if err := e.CheckSeeds(o.Seeds); err != nil {
		return nil, err
	}
	o.Mode = mode
	rows, err := e.repeat(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("bench %s: %w", e.Name, err)
	}
	return &Result{Experiment: e.Name, Mode: mode, Rows: rows}, nil
}

// CheckSeeds says why Options.Seeds cannot have a value.
func (e Experiment) CheckSeeds(n int) error {
	switch {
	case n < 0 || n > table.MaxRepeats:
		return fmt.Errorf("bench %s: %d seeds (want 1 to %d)", e.Name, n, table.MaxRepeats)
	case n > 1 && len(e.Intervals) == 0:
		return fmt.Errorf("bench %s: it runs with one seed only", e.Name)
	}
	return nil
}

// repeat measures with each seed.
func (e Experiment) repeat(ctx context.Context, o Options) ([]table.Row, error) {
	if o.Seeds <= 1 {
		return e.Measure(ctx, Run{o, e.Name})
	}
	var repeats [][]table.Row
	for i := range o.Seeds {
		one := o
		one.Seed += uint64(i)
		if o.Progress != nil {
			one.Progress = func(p Progress) {
				p.Done, p.Total = p.Done+i*p.Total, p.Total*o.Seeds
				p.Doing = fmt.Sprintf("%s seed=%d", p.Doing, one.Seed)
				o.Progress(p)
			}
		}
		rows, err := e.Measure(ctx, Run{one, e.Name})
		if err != nil {
			return nil, fmt.Errorf("seed %d: %w", one.Seed, err)
		}
		repeats = append(repeats, rows)
	}
	return table.Means(repeats, e.Intervals...)
}

// Draw draws the experiment's result. What a quick run leaves out has no figure.
func (e Experiment) Draw(r *Result) ([]figure.Picture, error) {
	pictures, err := figure.Draw(e.Name, string(r.Mode), e.Figures, r.Rows)
	if err != nil {
		return nil, fmt.Errorf("bench: %w", err)
	}
	return pictures, nil
}

// CheckProtocol says why Options.Protocol cannot have a value.
func (e Experiment) CheckProtocol(name string) error {
	if name == "" {
		return nil
	}
	if !e.PerProtocol {
		return fmt.Errorf("bench %s: it does not measure one protocol after the other, so none can be chosen", e.Name)
	}
	if _, err := catalog.Protocol(name); err != nil {
		return fmt.Errorf("bench %s: %w", e.Name, err)
	}
	return nil
}

// WithTempDir calls f with an empty directory, and removes that.
func WithTempDir(f func(dir string) error) error {
	dir, err := os.MkdirTemp("", "foresay-bench-")
	if err != nil {
		return err
	}
	return errors.Join(f(dir), os.RemoveAll(dir))
}

// ErrNoProgram says what an experiment with processes needs.
var ErrNoProgram = errors.New("Options.Program is empty: servers are processes of the foresay program")

// SyncTime is what a sync of a disk takes in virtual time, where it is modelled.
const SyncTime = time.Millisecond

// Random returns a generator that depends on the seed and on what it is for, so
// that no draw depends on how many others were made.
func Random(seed uint64, purpose ...uint64) *rand.Rand {
	h := fnv.New64a()
	for _, p := range purpose {
		h.Write(binary.LittleEndian.AppendUint64(nil, p))
	}
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}
