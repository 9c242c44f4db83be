package demo

import (
	"context"
	"testing"
	"time"

	demov1 "github.com/foresay/foresay/api/foresay/demo/v1"
)

// TestLive has users buy until some predictions were right and some wrong, and
// ends them.
func TestLive(t *testing.T) {
	l, err := NewLive(LiveOptions{Users: 4, Think: 10 * time.Millisecond, Calm: 500 * time.Millisecond,
		Fickle: 500 * time.Millisecond, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ran := make(chan error)
	go func() { ran <- l.Run(ctx) }()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	var right, wrong int64
	for end := time.After(30 * time.Second); right < 5 || wrong < 5; {
		select {
		case <-ticker.C:
		case <-end:
			t.Fatalf("after 30 s %d predictions were right, %d wrong", right, wrong)
		}
		right, wrong = 0, 0
		for _, s := range l.Control.CallSites() {
			right, wrong = right+s.Stats().Right, wrong+s.Stats().Wrong
		}
	}
	cancel()
	if err := <-ran; err != nil {
		t.Errorf("Run: %v", err)
	}
	for u, h := range l.world.data.histories {
		if len(h) > kept {
			t.Errorf("the server keeps %d purchases of %s", len(h), u)
		}
	}
	report := l.Collector.Report(l.Control)
	// the users were interrupted
	if len(report.Requests) != 1 || len(report.Requests[0].Methods) != 3 || report.Requests[0].Failed > 4 {
		t.Errorf("the report: %+v", report.Requests)
	}
	for _, m := range report.Requests[0].Methods {
		if m.Name == demov1.AnalysisService_GetPI_FullMethodName && m.Guessed == 0 {
			t.Errorf("nothing was predicted: %+v", m)
		}
	}
}
