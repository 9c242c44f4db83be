package dash_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/foresay/foresay/control"
	"github.com/foresay/foresay/dash"
)

// BenchmarkThousand ends a thousand tasks a second, in real time, before three
// pages, and tells how late they saw them: TestThousand checks it without other
// programs in the way. An operation is a second.
func BenchmarkThousand(b *testing.B) {
	s := newShop(b, control.Config{RecentEvery: -1})
	web := serve(b, dash.Handler(dash.Config{Control: s.control}))
	ctx, cancel := context.WithCancel(b.Context())
	var logs [3]log
	var ended []<-chan error
	for i := range logs {
		ended = append(ended, web.listen(b, ctx, logs[i].take))
	}
	start, n := time.Now(), 0
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	var all sync.WaitGroup
	first := inUse()
	for b.Loop() {
		for end := n + 1000; n < end; {
			<-ticker.C
			for ; n < end && time.Duration(n)*time.Millisecond < time.Since(start); n++ {
				all.Go(func() { s.task(b, ctx, fmt.Sprint("task ", n), n%4 > 0, 5*time.Millisecond) })
			}
		}
	}
	rate := float64(n) / time.Since(start).Seconds()
	all.Wait()
	last := inUse()
	cancel()
	var late []time.Duration
	for i := range logs {
		<-ended[i]
		tasks, at := of[dash.Task](b, &logs[i], "task")
		for j, task := range tasks {
			late = append(late, at[j].Sub(task.Start.Add(task.Duration)))
		}
	}
	slices.Sort(late)
	if len(late) == 0 {
		b.Fatal("no page saw a task")
	}
	b.ReportMetric(rate, "tasks/s")
	b.ReportMetric(float64(len(late))/3/time.Since(start).Seconds(), "shown/s")
	b.ReportMetric(float64(late[len(late)/2])/1e6, "p50-late-ms")
	b.ReportMetric(float64(late[len(late)*99/100])/1e6, "p99-late-ms")
	b.ReportMetric(float64(late[len(late)-1])/1e6, "max-late-ms")
	b.ReportMetric((float64(last)-float64(first))/(1<<20), "MB-grown")
}
