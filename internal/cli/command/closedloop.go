package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"text/tabwriter"
	"time"

	hdrhistogram "github.com/HdrHistogram/hdrhistogram-go"
	"github.com/spf13/pflag"

	"github.com/foresay/foresay/bench"
)

// ClosedLoop measures a service: each of its clients makes one call after the other.
type ClosedLoop struct {
	Name     string   // the command's
	Kinds    []string // of calls
	clients  int
	duration time.Duration
	every    time.Duration // of intervals that are shown apart; 0 for none
	Timeout  time.Duration // of a call

	// Of the calls, for Call to heed; their values are the flags' defaults.
	ValueBytes int
	Keys       int
	Reads      int // percent

	// Call makes one call for a client. It returns the call's kind, when it began and how it
	// failed.
	Call func(ctx context.Context, client int, random *rand.Rand) (kind int, began time.Time, err error)

	meter *meter // of the loop that runs
}

// Observe notes for Call, while the loop runs, that something else of a kind took so long, or came
// to nothing. It is no call of its own in the intervals.
func (l *ClosedLoop) Observe(kind int, took time.Duration, err error) {
	m := l.meter
	m.mu.Lock()
	defer m.mu.Unlock()
	m.record(kind, took, err)
}

// Add adds the flags. reads says what --reads counts.
func (l *ClosedLoop) Add(flags *pflag.FlagSet, reads string) {
	flags.IntVar(&l.ValueBytes, "value-bytes", l.ValueBytes, "the size of values")
	flags.IntVar(&l.Keys, "keys", l.Keys, "how many keys")
	flags.IntVar(&l.Reads, "reads", l.Reads, reads)
	flags.IntVar(&l.clients, "clients", 64, "how many clients")
	flags.DurationVar(&l.duration, "for", 5*time.Second, "how long to measure")
	flags.DurationVar(&l.every, "every", 0,
		"also show each interval of this length, such as 1s; one that is not whole has no rate")
}

// Validate returns what is wrong with the flags, but for the size of values.
func (l *ClosedLoop) Validate() error {
	switch {
	case l.Keys < 1:
		return Usagef("%s: --keys is %d; want 1 or more", l.Name, l.Keys)
	case l.Reads < 0 || l.Reads > 100:
		return Usagef("%s: --reads is %d; want 0 to 100", l.Name, l.Reads)
	case l.clients < 1 || l.clients > 50_000:
		return Usagef("%s: --clients is %d; want 1 to 50000", l.Name, l.clients)
	case l.duration <= 0:
		return Usagef("%s: --for is %v; want more than 0", l.Name, l.duration)
	case l.every < 0 || l.every > l.duration:
		return Usagef("%s: --every is %v; want at most --for, which is %v", l.Name, l.every, l.duration)
	case l.every > 0 && l.duration/l.every > maxIntervals:
		return Usagef("%s: --every is %v, which is %d intervals of %v; want at most %d", l.Name, l.every, l.duration/l.every,
			l.duration, maxIntervals)
	}
	return nil
}

// ValidateValues returns what is wrong with the size of values, of which most is the limit.
func (l *ClosedLoop) ValidateValues(most int) error {
	if l.ValueBytes < 0 || l.ValueBytes > most {
		return Usagef("%s: --value-bytes is %d; want 0 to %d", l.Name, l.ValueBytes, most)
	}
	return nil
}

// maxIntervals is a bound: a day of seconds.
const maxIntervals = 86_400

// loadResult is what a closed loop measured.
type loadResult struct {
	Clients   int            `json:"clients"`
	Seconds   float64        `json:"seconds"`
	Calls     []loadRow      `json:"calls"`
	Intervals []loadInterval `json:"intervals,omitempty"`
	Errors    []loadError    `json:"errors,omitempty"`
}

// loadRow is what a kind of call came to.
type loadRow struct {
	Op           string  `json:"op"`
	Ops          int64   `json:"ops"`
	Failed       int64   `json:"failed"` // refused, or of unknown outcome
	OpsPerSecond float64 `json:"ops_per_s"`
	P50Ms        float64 `json:"p50_ms"`
	P95Ms        float64 `json:"p95_ms"`
	P99Ms        float64 `json:"p99_ms"`
	MaxMs        float64 `json:"max_ms"`
}

// loadInterval is what an interval came to, all kinds together. A call counts where it ends.
type loadInterval struct {
	FromS  float64 `json:"from_s"`
	Ops    int64   `json:"ops"`
	Failed int64   `json:"failed"`
	// OpsPerSecond is nil for the last interval if the measurement ended within it, and for what
	// ended after that: a few calls in a millisecond are no rate.
	OpsPerSecond *float64 `json:"ops_per_s,omitempty"`
	MaxMs        float64  `json:"max_ms"`
}

// loadError is an error that calls failed with.
type loadError struct {
	Text  string `json:"text"`
	Calls int64  `json:"calls"`
}

// maxErrors bounds how many errors are told apart: texts may name what each call was about.
const maxErrors = 16

// meter is what a loop measured so far.
type meter struct {
	start time.Time
	every time.Duration
	done  atomic.Int64

	mu        sync.Mutex
	latency   []*hdrhistogram.Histogram // of each kind
	failed    []int64
	intervals []loadInterval
	errors    []loadError
	others    int64 // failed with further errors
}

func newMeter(l *ClosedLoop) *meter {
	m := &meter{start: time.Now(), every: l.every, failed: make([]int64, len(l.Kinds))}
	for range l.Kinds {
		m.latency = append(m.latency, hdrhistogram.New(1, (time.Hour).Microseconds(), 3))
	}
	return m
}

func (m *meter) ended(kind int, began time.Time, err error) {
	now := time.Now()
	took := now.Sub(began)
	m.done.Add(1)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.every > 0 {
		at := int(now.Sub(m.start) / m.every)
		for len(m.intervals) <= at {
			m.intervals = append(m.intervals, loadInterval{FromS: (time.Duration(len(m.intervals)) * m.every).Seconds()})
		}
		in := &m.intervals[at]
		in.MaxMs = max(in.MaxMs, float64(took)/1e6)
		if err == nil {
			in.Ops++
		} else {
			in.Failed++
		}
	}
	m.record(kind, took, err)
}

// record notes what came of something. m.mu is held.
func (m *meter) record(kind int, took time.Duration, err error) {
	took = min(max(took, time.Microsecond), time.Hour) // the histogram's bounds
	if err == nil {
		_ = m.latency[kind].RecordValue(took.Microseconds())
		return
	}
	m.failed[kind]++
	m.note(err.Error())
}

func (m *meter) note(text string) {
	for i := range m.errors {
		if m.errors[i].Text == text {
			m.errors[i].Calls++
			return
		}
	}
	if len(m.errors) == maxErrors {
		m.others++
		return
	}
	m.errors = append(m.errors, loadError{Text: text, Calls: 1})
}

// run makes calls until the time is over.
func (l *ClosedLoop) run(ctx context.Context, p *Program) (loadResult, error) {
	m := newMeter(l)
	l.meter = m
	end := m.start.Add(l.duration)
	var clients sync.WaitGroup
	for i := range l.clients {
		clients.Go(func() {
			random := rand.New(rand.NewPCG(uint64(i), 1))
			for time.Now().Before(end) && ctx.Err() == nil {
				call, cancel := context.WithTimeout(ctx, l.Timeout)
				kind, began, err := l.Call(call, i, random)
				cancel()
				if ctx.Err() == nil {
					m.ended(kind, began, err)
				}
			}
		})
	}
	stop, shown := make(chan struct{}), make(chan struct{})
	go func() {
		p.showLoop(l, m, stop)
		close(shown)
	}()
	clients.Wait()
	elapsed := time.Since(m.start)
	close(stop)
	<-shown
	if ctx.Err() != nil {
		return loadResult{}, fmt.Errorf("%s: interrupted: %w", l.Name, context.Cause(ctx))
	}
	return m.result(l, elapsed), nil
}

// showLoop shows how far the measurement is, until stop is closed.
func (p *Program) showLoop(l *ClosedLoop, m *meter, stop <-chan struct{}) {
	bar := NewProgress(p.Err)
	defer bar.Clear()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return
		case <-tick.C:
			passed := min(time.Since(m.start), l.duration)
			bar.Report(bench.Progress{
				Experiment: l.Name + ", percent of " + l.duration.String(), Done: int(100 * passed / l.duration), Total: 100,
				Doing: fmt.Sprintf("%.0f calls per s", float64(m.done.Load())/max(passed.Seconds(), 0.001)),
			})
		}
	}
}

func (m *meter) result(l *ClosedLoop, elapsed time.Duration) loadResult {
	r := loadResult{Clients: l.clients, Seconds: elapsed.Seconds(), Calls: []loadRow{}, Errors: m.errors}
	for k, op := range l.Kinds {
		h := m.latency[k]
		if h.TotalCount() == 0 && m.failed[k] == 0 {
			continue
		}
		ms := func(q float64) float64 { return float64(h.ValueAtQuantile(q)) / 1000 }
		r.Calls = append(r.Calls, loadRow{
			Op: op, Ops: h.TotalCount(), Failed: m.failed[k], OpsPerSecond: float64(h.TotalCount()) / elapsed.Seconds(),
			P50Ms: ms(50), P95Ms: ms(95), P99Ms: ms(99), MaxMs: float64(h.Max()) / 1000,
		})
	}
	if m.others > 0 {
		r.Errors = append(r.Errors, loadError{Text: "others", Calls: m.others})
	}
	if l.every == 0 {
		return r
	}
	for from := time.Duration(0); from < l.duration; from += l.every {
		i := int(from / l.every)
		for len(m.intervals) <= i { // in which nothing ended
			m.intervals = append(m.intervals, loadInterval{FromS: from.Seconds()})
		}
	}
	for i := range m.intervals {
		if time.Duration(i+1)*l.every <= l.duration {
			rate := float64(m.intervals[i].Ops) / l.every.Seconds()
			m.intervals[i].OpsPerSecond = &rate
		}
	}
	r.Intervals = m.intervals
	return r
}

// write writes tables.
func (r loadResult) write(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "op\tops\tfailed\tops/s\tp50 ms\tp95 ms\tp99 ms\tmax ms\t")
	for _, c := range r.Calls {
		fmt.Fprintf(t, "%s\t%d\t%d\t%.0f\t%.2f\t%.2f\t%.2f\t%.2f\t\n", c.Op, c.Ops, c.Failed, c.OpsPerSecond, c.P50Ms,
			c.P95Ms, c.P99Ms, c.MaxMs)
	}
	err := t.Flush()
	if len(r.Intervals) > 0 {
		fmt.Fprintln(t, "\nfrom s\tops\tfailed\tops/s\tmax ms\t")
		for _, in := range r.Intervals {
			rate := "-"
			if in.OpsPerSecond != nil {
				rate = fmt.Sprintf("%.0f", *in.OpsPerSecond)
			}
			fmt.Fprintf(t, "%.4g\t%d\t%d\t%s\t%.2f\t\n", in.FromS, in.Ops, in.Failed, rate, in.MaxMs)
		}
		err = errors.Join(err, t.Flush())
	}
	for _, e := range r.Errors {
		fmt.Fprintf(w, "%d failed: %s\n", e.Calls, e.Text)
	}
	return err
}

// LoadTest runs a loop and writes what it measured.
func (p *Program) LoadTest(ctx context.Context, l *ClosedLoop, json bool) error {
	r, err := l.run(ctx, p)
	if err != nil {
		return err
	}
	if json {
		return p.WriteJSON(r)
	}
	return r.write(p.Out)
}

// BenchValue returns random letters.
func BenchValue(random *rand.Rand, n int) []byte {
	value := make([]byte, n)
	for i := range value {
		value[i] = 'a' + byte(random.Uint32N(26))
	}
	return value
}
