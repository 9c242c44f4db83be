package speccmd

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/foresay/foresay/bench"
	"github.com/foresay/foresay/internal/cli/command"
	"github.com/foresay/foresay/internal/otlp"
	"github.com/foresay/foresay/internal/traceanalysis"
)

type analyzeFlags struct {
	options  traceanalysis.Options
	hitRate  float64
	loadCost float64
	top      int
	json     bool
	svg      string
}

func (p *program) analyzeCommand() *cobra.Command {
	var f analyzeFlags
	c := &cobra.Command{
		Use:   "analyze FILE...",
		Short: "Find in OpenTelemetry traces what speculation would save",
		Long: `Read traces that have been collected, in OTLP JSON or that of Jaeger, and show for each kind of
request the calls that wait for each other, and what predicting their answers would save, by how
often predictions are right. Files are those of the collector's file exporter with format json, or
whole documents, compressed by gzip or not; - is standard input. Traces may lie in several files,
a service each. Nothing is held of a file but what is being worked on.

docs/analyze.md says how to collect traces and how to read the tables.`,
		Args: cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error { return p.analyze(c.Context(), f, args) },
	}
	flags := c.Flags()
	flags.StringVar(&f.options.Entry, "method", "",
		"only requests whose method fits this `pattern`: * is anything; without *, a part of the name")
	flags.StringArrayVar(&f.options.Pure, "pure", nil,
		"methods that fit this `pattern` only read, whatever their names are; may be given again")
	flags.StringArrayVar(&f.options.Effects, "effects", nil,
		"methods that fit this `pattern` have effects: they are never sent on a guess; may be given again")
	flags.Float64Var(&f.hitRate, "hit-rate", 90, "for the best methods: how many `percent` of predictions are right")
	flags.Float64Var(&f.loadCost, "load-cost", 1,
		"how many `milliseconds` must be saved for a millisecond of calls made in vain")
	flags.IntVar(&f.top, "top", 5, "how many kinds of request to show, 0 for all")
	flags.IntVar(&f.options.Sample, "sample", 1000, "how many requests of a kind to work out, drawn by chance")
	flags.IntVar(&f.options.MaxSpans, "max-spans", 500_000, "how many spans to hold of traces that may not be whole yet")
	flags.Uint64Var(&f.options.Seed, "seed", 1, "fixes what chance decides")
	flags.BoolVar(&f.json, "json", false, "write the report as JSON")
	flags.StringVar(&f.svg, "svg", "", "write the timeline of a typical request of the first kind to this `file`")
	return c
}

func (f *analyzeFlags) check(files []string) error {
	switch {
	case len(files) == 0:
		return command.Usagef("analyze: say which files to read, or - for standard input")
	case !(f.hitRate > 0 && f.hitRate <= 100):
		return command.Usagef("analyze: --hit-rate is %g; want more than 0 and at most 100", f.hitRate)
	case !(f.loadCost >= 0 && f.loadCost <= 1e6):
		return command.Usagef("analyze: --load-cost is %g; want 0 to 1e6", f.loadCost)
	case f.top < 0:
		return command.Usagef("analyze: --top is %d; want 0 or more", f.top)
	case f.options.Sample < 1:
		return command.Usagef("analyze: --sample is %d; want at least 1", f.options.Sample)
	case f.options.MaxSpans < 1:
		return command.Usagef("analyze: --max-spans is %d; want at least 1", f.options.MaxSpans)
	case slices.Contains(f.options.Pure, ""):
		return command.Usagef("analyze: --pure is empty; want a pattern, * for all methods")
	case slices.Contains(f.options.Effects, ""):
		return command.Usagef("analyze: --effects is empty; want a pattern, * for all methods")
	}
	for i, file := range files {
		if slices.Contains(files[:i], file) {
			return command.Usagef("analyze: %s is given twice", file)
		}
	}
	f.options.HitRate, f.options.LoadCost = f.hitRate/100, &f.loadCost
	return nil
}

func (p *program) analyze(ctx context.Context, f analyzeFlags, files []string) error {
	if err := f.check(files); err != nil {
		return err
	}
	if f.hitRate <= 1 {
		fmt.Fprintf(p.Err, "analyze: --hit-rate is in per cent, and %g is little; for %.4[2]g %% say --hit-rate %.4[2]g\n",
			f.hitRate, 100*f.hitRate)
	}
	collector, err := traceanalysis.New(f.options)
	if err != nil {
		return err
	}
	inputs, err := p.openInputs(files)
	if err != nil {
		return err
	}
	defer inputs.close()
	var svg *os.File
	if f.svg != "" {
		if svg, err = os.Create(f.svg); err != nil { // before the work, not after it
			return fmt.Errorf("analyze: --svg: %w", err)
		}
		defer svg.Close()
	}
	err = inputs.collect(ctx, collector)
	inputs.bar.Clear()
	if err != nil {
		return fmt.Errorf("analyze: %w", err)
	}
	report := collector.Report(f.top)
	if err := nothingFound(report, f.options.Entry); err != nil {
		return err
	}
	if svg != nil {
		if err := cmp.Or(report.Entries[0].WriteSVG(svg), svg.Close()); err != nil {
			return fmt.Errorf("analyze: --svg %s: %w", f.svg, err)
		}
	}
	w := bufio.NewWriter(p.Out)
	if f.json {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		if err := e.Encode(report); err != nil {
			return fmt.Errorf("analyze: --json: %w", err)
		}
		return w.Flush()
	}
	if err := report.WriteText(w); err != nil {
		return err
	}
	return w.Flush()
}

// nothingFound says why there is nothing to show.
func nothingFound(r *traceanalysis.Report, pattern string) error {
	switch {
	case len(r.Entries) > 0:
		return nil
	case r.Spans == 0:
		return errors.New("analyze: the input holds no spans")
	case pattern != "":
		return fmt.Errorf("analyze: no request that makes calls has a method that fits --method %s", pattern)
	}
	why := ""
	for _, s := range r.LeftOut.Sentences() {
		why += "; " + s
	}
	return fmt.Errorf("analyze: no request makes a call in %d spans: there must be client spans under server spans, or "+
		"under root spans%s", r.Spans, why)
}

// inputs are the files being read.
type inputs struct {
	files []*input
	bar   *command.Progress
	errw  io.Writer
	total int64 // bytes, of those files whose size is known
	told  int   // faults
}

// input is one of them.
type input struct {
	name   string
	file   io.ReadCloser
	read   int64 // bytes, before decompression
	next   func() (otlp.Span, error, bool)
	stop   func()
	latest int64 // when the last span ended
}

func (i *input) Read(b []byte) (int, error) {
	n, err := i.file.Read(b)
	i.read += int64(n)
	return n, err
}

func (p *program) openInputs(names []string) (*inputs, error) {
	all := &inputs{bar: command.NewProgress(p.Err), errw: p.Err}
	for _, name := range names {
		in := &input{name: name, file: io.NopCloser(p.In)}
		if name == "-" {
			in.name = "standard input"
		} else {
			file, err := os.Open(name)
			if err != nil {
				all.close()
				return nil, fmt.Errorf("analyze: %w", err)
			}
			in.file = file
			info, err := file.Stat()
			if err == nil && info.IsDir() {
				file.Close()
				all.close()
				return nil, fmt.Errorf("analyze: %s is a directory", name)
			}
			if err == nil && info.Mode().IsRegular() {
				all.total += info.Size()
			}
		}
		in.next, in.stop = iter.Pull2(otlp.Spans(in.name, in))
		all.files = append(all.files, in)
	}
	return all, nil
}

func (a *inputs) close() {
	for _, in := range a.files {
		in.stop()
		_ = in.file.Close() // it was only read
	}
}

const (
	// reportEvery is how many spans are read between two looks at how far reading is, and at the
	// context.
	reportEvery = 4096
	// quiet is how many bytes are read without a word about how far.
	quiet = 64 << 20
	// maxTold is how many faults of spans are told one by one.
	maxTold = 5
)

// collect reads all files side by side, always from the one that is furthest behind by its spans'
// times: traces that lie in several files are whole early, and few are held.
func (a *inputs) collect(ctx context.Context, c *traceanalysis.Collector) error {
	open := slices.Clone(a.files)
	for n := 0; len(open) > 0; n++ {
		if n%reportEvery == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
			a.progress()
		}
		in := slices.MinFunc(open, func(a, b *input) int { return cmp.Compare(a.latest, b.latest) })
		span, err, ok := in.next()
		fault := (*otlp.Error)(nil)
		switch {
		case !ok:
			open = slices.DeleteFunc(open, func(i *input) bool { return i == in })
		case err == nil:
			in.latest = max(in.latest, int64(span.End))
			c.Add(&span)
		case errors.As(err, &fault) && fault.Span:
			a.warn(err, "left out")
			c.Unreadable()
		case errors.As(err, &fault) && fault.Skipped:
			a.warn(err, "left out up to the next line that begins an object")
			c.Broken()
		case errors.As(err, &fault) && fault.Truncated:
			a.warn(err, "what is before it counts")
		default:
			return err
		}
	}
	return nil
}

// warn tells the first faults. All are counted in the report.
func (a *inputs) warn(err error, done string) {
	a.told++
	if a.told <= maxTold {
		a.bar.Clear()
		fmt.Fprintf(a.errw, "analyze: %v: %s\n", err, done)
	}
	if a.told == maxTold {
		fmt.Fprintln(a.errw, "analyze: more of the kind are only counted")
	}
}

func (a *inputs) progress() {
	if a.total < quiet {
		return
	}
	var read int64
	for _, in := range a.files {
		read += in.read
	}
	const mib = 1 << 20
	a.bar.Report(bench.Progress{Experiment: "analyze", Doing: "MiB read", Done: int(min(read, a.total) / mib),
		Total: int(a.total / mib)})
}
