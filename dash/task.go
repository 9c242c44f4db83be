package dash

import (
	"time"

	"github.com/foresay/foresay/report"
)

// What is shown of one task at most.
const (
	maxRuns  = 100
	maxCalls = 200
	maxSteps = 200 // of each run
)

// Task is the report of a task, with what it comes to.
type Task struct {
	*report.Report
	// Number counts the tasks whose reports were kept, from 1.
	Number uint64 `json:"number"`
	// Saved is what the task would have taken longer without speculation, by how
	// long its calls took: less than nothing if it cost time.
	Saved time.Duration `json:"saved_ns"`
	// Wasted is how many calls were wasted.
	Wasted int `json:"wasted"`
	// Cut is how many runs and calls are left out, because they are too many.
	Cut int `json:"cut,omitempty"`
}

func newTask(r *report.Report, number uint64) Task {
	t := Task{Report: r, Number: number, Saved: saved(r)}
	for i := range r.Calls {
		if c := &r.Calls[i]; c.Abandoned >= 0 && len(c.Sent) > 0 {
			t.Wasted++
		}
	}
	t.Cut = max(0, len(r.Runs)-maxRuns) + max(0, len(r.Calls)-maxCalls)
	long := false
	for i := range r.Runs {
		long = long || len(r.Runs[i].Steps) > maxSteps
	}
	if t.Cut == 0 && !long {
		return t
	}
	short := *r
	short.Calls = r.Calls[:min(len(r.Calls), maxCalls)]
	short.Runs = append([]report.Run(nil), r.Runs[:min(len(r.Runs), maxRuns)]...)
	for i := range short.Runs {
		run := &short.Runs[i]
		run.Steps = run.Steps[:min(len(run.Steps), maxSteps)]
	}
	t.Report = &short
	return t
}

// saved compares the task with its confirmed run as it would have been without
// speculation: its code, and one after the other the calls that each of its lanes
// made. Of lanes side by side, the one that would have taken longest counts.
func saved(r *report.Report) time.Duration {
	for i := range r.Runs {
		run := &r.Runs[i]
		if run.State != "confirmed" || run.Returned < 0 || r.Outcome != "confirmed" {
			continue
		}
		lanes := make(map[string]time.Duration)
		for _, s := range run.Steps {
			lanes[s.Lane] += spared(r, s)
		}
		longest := time.Duration(0)
		for lane, d := range lanes {
			if lane != "" {
				longest = max(longest, d)
			}
		}
		return run.Returned - run.Started + lanes[""] + longest - r.Duration
	}
	return 0
}

// spared returns how much longer a step would have waited for its call.
func spared(r *report.Report, s report.Step) time.Duration {
	if s.Call < 1 || s.Call > len(r.Calls) || s.Resumed < 0 {
		return 0
	}
	c := &r.Calls[s.Call-1]
	if len(c.Sent) == 0 || c.Answered < 0 {
		return 0
	}
	return c.Answered - c.Sent[len(c.Sent)-1].At - (s.Resumed - s.At)
}
