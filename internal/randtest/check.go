package randtest

import (
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
)

// Result is what a check of one scenario found.
type Result struct {
	Wrong []string // empty if all is well
	// Detail describes the program and what happened.
	Detail string
	Stats  Stats
}

// Stats counts what happened in speculative executions, so that a test can see
// that it tests something.
type Stats struct {
	Runs, Discarded, Calls, Adopted, Speculative, Held, Errors int
}

func (s *Stats) add(o *outcome) {
	for _, r := range o.reports {
		s.Runs += len(r.Runs)
		for _, run := range r.Runs {
			if run.State == "discarded" {
				s.Discarded++
			}
			for _, step := range run.Steps {
				if step.Adopted {
					s.Adopted++
				}
			}
		}
		s.Calls += len(r.Calls)
		for _, c := range r.Calls {
			if len(c.Held) > 0 {
				s.Held++
			}
			for _, sent := range c.Sent {
				if sent.Speculative {
					s.Speculative++
				}
			}
		}
	}
	for _, err := range o.errs {
		if err != nil {
			s.Errors++
		}
	}
}

// Add sums up.
func (s *Stats) Add(o Stats) {
	s.Runs += o.Runs
	s.Discarded += o.Discarded
	s.Calls += o.Calls
	s.Adopted += o.Adopted
	s.Speculative += o.Speculative
	s.Held += o.Held
	s.Errors += o.Errors
}

// Check executes a scenario sequentially and speculatively, with a rule removed
// unless m is zero, and compares.
func (sc *Scenario) Check(t *testing.T, m Mutation, verbose bool) (res Result) {
	t.Helper()
	var log strings.Builder
	var logger *slog.Logger
	if verbose {
		logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	defer func() {
		if p := recover(); p != nil {
			res.Wrong = append(res.Wrong, fmt.Sprintf("the bubble: %v", p))
			res.Detail = sc.String() + stacks() + log.String()
		}
	}()
	o := newOracle()
	var want, got *outcome
	var err error
	synctest.Test(t, func(*testing.T) { want, err = sc.execute(true, o, Mutation{}, nil) })
	if err == nil {
		err = firstError(want)
	}
	if err != nil {
		return Result{Wrong: []string{"the sequential execution: " + err.Error()}, Detail: sc.String()}
	}
	synctest.Test(t, func(*testing.T) { got, err = sc.execute(false, o, m, logger) })
	if err != nil {
		return Result{Wrong: []string{"the world: " + err.Error()}, Detail: sc.String()}
	}
	res.Wrong = sc.judge(o, want, got)
	res.Stats.add(got)
	if len(res.Wrong) > 0 {
		res.Detail = sc.describeFailure(want, got) + log.String()
	}
	return res
}

// stacks returns the goroutines that are left in bubbles.
func stacks() string {
	buf := make([]byte, 1<<20)
	var out []string
	for _, g := range strings.Split(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
		if strings.Contains(strings.SplitN(g, "\n", 2)[0], "synctest bubble") {
			out = append(out, g)
		}
	}
	return strings.Join(out, "\n\n")
}

func firstError(o *outcome) error {
	for _, err := range o.errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func (sc *Scenario) describeFailure(want, got *outcome) string {
	var b strings.Builder
	b.WriteString(sc.String())
	for _, f := range got.journal.faults {
		fmt.Fprintf(&b, "struck: %s\n", f)
	}
	fmt.Fprintf(&b, "sequential, %v:\n  %s\n", want.took, strings.Join(want.journal.traces, "\n  "))
	fmt.Fprintf(&b, "speculative, %v, errors %v:\n  %s\n", got.took, got.errs, strings.Join(got.journal.traces, "\n  "))
	for i := range want.effects {
		fmt.Fprintf(&b, "effects at %s:\n  want %v\n  got  %v\n", serverName(i), want.effects[i], got.effects[i])
	}
	for _, r := range got.reports {
		fmt.Fprintln(&b)
		if err := r.WriteText(&b); err != nil {
			fmt.Fprintln(&b, err)
		}
	}
	return b.String()
}
