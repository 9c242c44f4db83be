package dash_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foresay/foresay/control"
	"github.com/foresay/foresay/dash"
	"github.com/foresay/foresay/observe"
	"github.com/foresay/foresay/report"
)

type point struct {
	T         int64
	S         float64
	Right     int64
	Saved     float64 `json:"saved_ms"`
	CallSites []struct {
		N    string
		R, W int64
	} `json:"sites"`
}

func TestEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		collector, err := observe.NewCollector(observe.Config{})
		if err != nil {
			t.Fatal(err)
		}
		s := newShop(t, control.Config{OnRequest: []func(*control.RequestRecord){collector.Record}})
		web := serve(t, dash.Handler(dash.Config{Control: s.control, Collector: collector, Name: "shop", Authorize: mayAll}))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var got log
		ended := web.listen(t, ctx, got.take)
		for i := range 101 {
			s.task(t, ctx, fmt.Sprint("task", i), true, 10*time.Millisecond)
			time.Sleep(90 * time.Millisecond)
		}
		synctest.Wait()
		services, _ := of[[]map[string]any](t, &got, "services")
		if len(services) != 1 || services[0][0]["name"] != "shop" || services[0][0]["switch"] != true ||
			services[0][0]["report"] != true {
			t.Errorf("services: %v", services)
		}
		if status, _ := of[control.Status](t, &got, "status"); len(status) != 11 {
			t.Errorf("%d times status in 10 s", len(status))
		}
		if reports, _ := of[observe.Report](t, &got, "report"); len(reports) != 3 {
			t.Errorf("%d reports in 10 s", len(reports))
		}
		tasks, at := of[dash.Task](t, &got, "task")
		if len(tasks) != 101 {
			t.Errorf("%d of 101 tasks", len(tasks))
		}
		for i, task := range tasks {
			if late := at[i].Sub(task.Start.Add(task.Duration)); late < 0 || late > 50*time.Millisecond {
				t.Fatalf("task %d was %v late", i, late)
			}
		}
		points, _ := of[[]point](t, &got, "points")
		if len(points) != 5 || points[0][0].Right == 0 || points[0][0].Saved < 10 || points[0][0].S != 2 {
			t.Errorf("points: %+v", points)
		}
		cancel()
		<-ended
	})
}

// TestPast checks that a page that is opened late sees ten minutes, and no more.
func TestPast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShop(t, control.Config{RecentEvery: -1})
		web := serve(t, dash.Handler(dash.Config{Control: s.control}))
		for i := range 900 {
			s.task(t, t.Context(), fmt.Sprint("task", i), i%2 == 0, 10*time.Millisecond)
			time.Sleep(time.Second)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var got log
		ended := web.listen(t, ctx, got.take)
		time.Sleep(100 * time.Millisecond)
		cancel()
		<-ended
		points, _ := of[[]point](t, &got, "points")
		if len(points) != 1 || len(points[0]) != 300 {
			t.Fatalf("%d events of points, the first with %d", len(points), len(points[0]))
		}
		right, wrong, last := int64(0), int64(0), int64(0)
		for _, p := range points[0] {
			if last != 0 && p.T-last != 2000 {
				t.Fatalf("points %d ms apart", p.T-last)
			}
			last = p.T
			for _, at := range p.CallSites {
				right, wrong = right+at.R, wrong+at.W
			}
		}
		if right < 280 || right > 300 || wrong < 280 || wrong > 300 {
			t.Errorf("right %d, wrong %d in ten minutes", right, wrong)
		}
		if tasks, _ := of[dash.Task](t, &got, "task"); len(tasks) != 64 || tasks[63].Task != "task899" ||
			tasks[63].Number != 900 {
			t.Errorf("%d tasks", len(tasks))
		}
	})
}

// TestThousand ends a thousand tasks a second before three pages, of which none
// may see one late, and all see a sample.
func TestThousand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShop(t, control.Config{RecentEvery: -1})
		web := serve(t, dash.Handler(dash.Config{Control: s.control}))
		ctx, cancel := context.WithCancel(t.Context())
		var logs [3]log
		var ended []<-chan error
		for i := range logs {
			ended = append(ended, web.listen(t, ctx, logs[i].take))
			time.Sleep(13 * time.Millisecond)
		}
		const seconds = 5
		first := uint64(0) // bytes in use after the first second
		for i := range 1000 * seconds {
			if i == 1000 {
				first = inUse()
			}
			go s.task(t, ctx, fmt.Sprint("task", i), i%4 > 0, 10*time.Millisecond)
			time.Sleep(time.Millisecond)
		}
		time.Sleep(100 * time.Millisecond)
		// The test itself keeps the events, about 2 MB.
		if last := inUse(); last > first+6<<20 {
			t.Errorf("%d bytes in use after the first second, %d after %d seconds", first, last, seconds)
		}
		cancel()
		for _, c := range ended {
			<-c
		}
		for i := range logs {
			tasks, at := of[dash.Task](t, &logs[i], "task")
			if len(tasks) < 40*seconds || len(tasks) > 70*seconds {
				t.Errorf("page %d saw %d tasks in %d s", i, len(tasks), seconds)
			}
			for j, task := range tasks {
				if late := at[j].Sub(task.Start.Add(task.Duration)); late >= 200*time.Millisecond {
					t.Fatalf("page %d: task %d was %v late", i, j, late)
				}
			}
		}
	})
}

func inUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestSlow has a page not read for a while: it goes on with what is new then. A
// page that never reads again is given up.
func TestSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShop(t, control.Config{RecentEvery: -1})
		web := serve(t, dash.Handler(dash.Config{Control: s.control}))
		conn, err := web.pipes.dial(t.Context(), "", "")
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := fmt.Fprintf(conn, "GET %sevents HTTP/1.1\r\nHost: shop\r\n\r\n", dash.Path); err != nil {
			t.Fatal(err)
		}
		read := func() string {
			b := make([]byte, 1<<20)
			n := 0
			for {
				// It fails if the server hung up, and so does Read.
				_ = conn.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
				m, err := conn.Read(b[n:])
				if n += m; err != nil {
					return string(b[:n])
				}
			}
		}
		if first := read(); !strings.Contains(first, "event: status") {
			t.Fatalf("the beginning: %s", first)
		}
		for i := range 1000 {
			go s.task(t, t.Context(), fmt.Sprint("task", i), true, time.Millisecond)
			time.Sleep(10 * time.Millisecond)
		}
		after := read()
		if n := strings.Count(after, "event: status"); n > 3 {
			t.Errorf("after 10 s of silence: %d times status", n)
		}
		if n := strings.Count(after, "event: task"); n > 70 || !strings.Contains(after, "task999") {
			t.Errorf("after 10 s of silence: %d tasks", n)
		}
		time.Sleep(20 * time.Second)
		synctest.Wait()
		read()
		if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Errorf("after 20 s of silence the stream goes on: %v", err)
		}
	})
}

// TestShutdown checks that open streams do not keep a server.
func TestShutdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShop(t, control.Config{})
		web := serve(t, dash.Handler(dash.Config{Control: s.control}))
		ended := web.listen(t, t.Context(), func(event) {})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := web.server.Shutdown(ctx); err != nil {
			t.Errorf("shutdown: %v", err)
		}
		<-ended
	})
}

func TestTooManyPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShop(t, control.Config{})
		web := serve(t, dash.Handler(dash.Config{Control: s.control}))
		ctx, cancel := context.WithCancel(t.Context())
		var ended []<-chan error
		for range 64 {
			ended = append(ended, web.listen(t, ctx, func(event) {}))
		}
		if code, body := web.ask(t, http.MethodGet, "events", ""); code != http.StatusServiceUnavailable ||
			!strings.Contains(body, "64 pages") {
			t.Errorf("the 65th page: %d %s", code, body)
		}
		cancel()
		for _, c := range ended {
			<-c
		}
		time.Sleep(time.Second)
		ctx, cancel = context.WithCancel(t.Context())
		again := web.listen(t, ctx, func(event) {})
		cancel()
		<-again
	})
}

// TestContract checks that events are of the types that the documentation names.
func TestContract(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShop(t, control.Config{})
		web := serve(t, dash.Handler(dash.Config{Control: s.control}))
		ctx, cancel := context.WithCancel(t.Context())
		var got log
		ended := web.listen(t, ctx, got.take)
		s.task(t, ctx, "one", true, 10*time.Millisecond)
		time.Sleep(time.Second)
		cancel()
		<-ended
		reports, _ := s.control.Tasks(0)
		want, err := json.Marshal(reports[0])
		if err != nil {
			t.Fatal(err)
		}
		tasks, _ := of[report.Report](t, &got, "task")
		if len(tasks) != 1 {
			t.Fatalf("%d tasks", len(tasks))
		}
		if b, err := json.Marshal(tasks[0]); err != nil || string(b) != string(want) {
			t.Errorf("event task: %s, %v; want %s", b, err, want)
		}
	})
}
