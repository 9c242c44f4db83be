package engine

import (
	"context"
	"testing"

	"github.com/foresay/foresay/control"
	"github.com/foresay/foresay/report"
)

// TestTasksAreNamedAfterRequests: a task without a name of its own has its request's in reports.
func TestTasksAreNamedAfterRequests(t *testing.T) {
	ctl, err := control.New(control.Config{RecentEvery: -1})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	f := func(context.Context) (int, error) { return 0, nil }
	for _, opts := range [][]Option{nil, {WithName("mine")}} {
		ctx, r := ctl.Begin(t.Context(), "GET /page", "")
		if _, err := Do(ctx, f, append(opts, WithReport(func(r *report.Report) {
			names = append(names, r.Task)
		}))...); err != nil {
			t.Fatal(err)
		}
		r.End(nil)
	}
	if _, err := Do(ctl.Context(t.Context()), f, WithReport(func(r *report.Report) {
		names = append(names, r.Task)
	})); err != nil {
		t.Fatal(err)
	}
	if len(names) != 3 || names[0] != "GET /page" || names[1] != "mine" || names[2] != "" {
		t.Errorf("the tasks are called %q", names)
	}
}
