package critpath_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/foresay/foresay/internal/critpath"
)

const ms = time.Millisecond

func call(method string, start, end time.Duration, pure bool) critpath.Call {
	return critpath.Call{Method: method, Start: start * ms, End: end * ms, Pure: pure}
}

func newPath(t *testing.T, end time.Duration, calls ...critpath.Call) *critpath.Path {
	t.Helper()
	p, err := critpath.New(critpath.Request{End: end * ms, Calls: calls})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// outcomes reads one letter per call: r for right, w for wrong, - for not predicted.
func outcomes(letters string) func(int) critpath.Outcome {
	return func(i int) critpath.Outcome {
		switch letters[i] {
		case 'r':
			return critpath.Right
		case 'w':
			return critpath.Wrong
		}
		return critpath.Unpredicted
	}
}

// bff is users -> permissions -> pricing beside stock, with 2, 1 and 3 ms of computing before,
// between and after.
func bff(t *testing.T, pure bool) *critpath.Path {
	return newPath(t, 76,
		call("users", 2, 22, true), call("permissions", 23, 33, true), call("pricing", 34, 73, pure),
		call("stock", 34, 64, pure))
}

func TestTriggers(t *testing.T) {
	p := bff(t, true)
	var got []string
	for i := range p.Request().Calls {
		got = append(got, fmt.Sprint(p.Trigger(i), p.Gap(i)))
	}
	if diff := cmp.Diff([]string{"-1 2ms", "0 1ms", "1 1ms", "1 1ms"}, got); diff != "" {
		t.Error(diff)
	}
	last, gap := p.Last()
	if last != 2 || gap != 3*ms {
		t.Errorf("the end waits for call %d and %v, want 2 and 3ms", last, gap)
	}
	if diff := cmp.Diff([]int{0, 1, 2}, p.Critical()); diff != "" {
		t.Error(diff)
	}
	if !p.StandsOn(2, 0) || p.StandsOn(2, 3) || p.StandsOn(0, 1) || !p.Awaited(3) {
		t.Error("pricing stands on users, not on stock; the request waits for stock")
	}
}

// Each row is computed by hand from the definition.
func TestReplay(t *testing.T) {
	for _, row := range []struct {
		name     string
		pure     bool
		outcomes string
		end      time.Duration
		extra    int
		time     time.Duration
	}{
		{"as it was", true, "----", 76, 0, 0},
		// permissions from 3, pricing from 14 to 53; the end 3 later.
		{"users right", true, "r---", 56, 0, 0},
		// pricing from 24 to 63.
		{"permissions right", true, "-r--", 66, 0, 0},
		// all at 2, 3, 4: pricing ends at 43.
		{"both right", true, "rr--", 46, 0, 0},
		// the end is guessed too, but pricing's answer is awaited at 43, less no computing.
		{"all right", true, "rrrr", 43, 0, 0},
		// stock alone is not what the end waits for.
		{"stock right", true, "---r", 76, 0, 0},
		// pricing predicted: the end waits for stock at 64, 3 more, but for pricing's answer at 73.
		{"pricing right", true, "--r-", 73, 0, 0},
		// permissions is sent at 3 in vain; pricing and stock are not: they wait for permissions,
		// 13, and are sent at 14.
		{"users wrong", true, "w---", 76, 3, 79 * ms},
		// all three were sent in vain, at 3 and 4.
		{"users wrong, permissions right", true, "wr--", 66, 3, 79 * ms},
		// For permissions: pricing and stock from 4 on, in vain. permissions from 3 to 13.
		{"users right, permissions wrong", true, "rw--", 56, 2, 69 * ms},
		// For users: permissions, pricing and stock; for permissions: pricing and stock.
		{"both wrong", true, "ww--", 76, 5, 148 * ms},
		// pricing and stock are held until users ended at 22 and permissions, from 3, at 13.
		{"effects, both right", false, "rr--", 64, 0, 0},
		// they begin at 14 by their triggers, and are held until 22.
		{"effects, users right", false, "r---", 64, 0, 0},
		{"effects, users wrong", false, "w---", 76, 1, 10 * ms},
		{"effects, both wrong", false, "ww--", 76, 1, 10 * ms},
	} {
		t.Run(row.name, func(t *testing.T) {
			got := bff(t, row.pure).Replay(outcomes(row.outcomes))
			if diff := cmp.Diff(critpath.Result{End: row.end * ms, Extra: row.extra, ExtraTime: row.time}, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A call that is over before the wrong answer's refutation is in vain only if it began before that.
func TestExtraEndsAtRefutation(t *testing.T) {
	p := newPath(t, 70, call("a", 0, 10, true), call("b", 10, 30, true), call("c", 30, 70, true))
	got := p.Replay(outcomes("w--")) // b from 0 to 20, so that c would begin at 20, after 10
	if diff := cmp.Diff(critpath.Result{End: 70 * ms, Extra: 1, ExtraTime: 20 * ms}, got); diff != "" {
		t.Error(diff)
	}
}

func TestSchedule(t *testing.T) {
	spans, result := bff(t, false).Schedule(outcomes("rr--"))
	want := []critpath.Span{{2 * ms, 22 * ms}, {3 * ms, 13 * ms}, {22 * ms, 61 * ms}, {22 * ms, 52 * ms}}
	if diff := cmp.Diff(want, spans); diff != "" || result.End != 64*ms {
		t.Errorf("ends at %v\n%s", result.End, diff)
	}
}

// Nobody waited for a call that outlived the request, whatever is predicted.
func TestOutliving(t *testing.T) {
	p := newPath(t, 20, call("a", 0, 10, true), call("audit", 10, 90, true))
	if p.Awaited(1) {
		t.Error("the request waited for what outlived it")
	}
	if got := p.Replay(outcomes("rr")); got.End != 10*ms {
		t.Errorf("ends at %v, want at 10ms with a's answer", got.End)
	}
}

// Calls that take no time at one moment do not wait for each other in a circle.
func TestNoTime(t *testing.T) {
	p := newPath(t, 5, call("c", 5, 5, true), call("a", 5, 5, true), call("long", 0, 5, true))
	if diff := cmp.Diff([]int{2, 0, 1}, p.Critical()); diff != "" {
		t.Error(diff)
	}
	if got := p.Replay(outcomes("rrr")); got.End != 5*ms {
		t.Errorf("ends at %v, want at 5ms", got.End)
	}
	empty := newPath(t, 5)
	if got := empty.Replay(outcomes("")); got.End != 5*ms || len(empty.Critical()) != 0 {
		t.Errorf("a request without calls ends at %v", got.End)
	}
}

// A barrier waits for the predicted calls of other strands too, so that a right prediction may
// cost: here c waits for a.
func TestBarrier(t *testing.T) {
	calls := []critpath.Call{call("a", 0, 50, true), call("barrier", 10, 10, false), call("c", 10, 30, true)}
	calls[1].Barrier = true
	p := newPath(t, 50, calls...)
	for outcome, end := range map[string]time.Duration{"---": 50, "r--": 70, "w--": 50} {
		if got := p.Replay(outcomes(outcome)); got.End != end*ms {
			t.Errorf("%s: ends at %v, want %v", outcome, got.End, end*ms)
		}
	}
	p.Replay(outcomes("r--"))
	if p.Held(1) != 40*ms || p.Held(2) != 0 {
		t.Errorf("the barrier is held for %v, c for %v", p.Held(1), p.Held(2))
	}
}

// What comes past a barrier is not predicted, what is staged waits for the word, and computing
// before a wrong prediction is done again, but for that of an earlier task.
func TestWhatIsKnown(t *testing.T) {
	firm := []critpath.Call{call("a", 0, 50, true), call("b", 50, 90, true)}
	firm[0].Firm = true
	staged := []critpath.Call{call("a", 0, 50, true), call("b", 50, 80, true)}
	staged[1].Staged = true
	fresh := []critpath.Call{call("end", 20, 20, false), call("a", 30, 50, true), call("b", 50, 90, true)}
	fresh[0].Fresh = true
	// The write is held until the first answer, at 23; by then the program computes again, since 18.
	beside := []critpath.Call{call("a", 7, 23, true), call("write", 23, 76, false), call("b", 23, 34, true)}
	// What follows a write that is guessed is sent once it is answered, and what is ordered waits for
	// what is ordered before it; b is there at once for what follows both.
	write := []critpath.Call{call("write", 0, 20, false), call("a", 20, 30, true), call("b", 30, 50, true)}
	write[0].Effects = true
	ordered := []critpath.Call{call("a", 0, 20, true), call("b", 20, 30, true), call("c", 30, 50, true)}
	ordered[0].Ordered, ordered[2].Ordered = true, true
	again := []critpath.Call{call("a", 0, 20, true), call("b", 20, 30, true), call("c", 30, 50, true)}
	again[1].Again = true
	late := []critpath.Call{call("a", 0, 20, true), call("b", 20, 60, true)}
	late[1].Again = true
	sooner := []critpath.Call{
		call("a", 0, 34, true), call("staged", 34, 54, true), call("b", 34, 80, true), call("c", 80, 123, true),
	}
	sooner[1].Staged, sooner[3].Again = true, true
	for _, row := range []struct {
		name     string
		calls    []critpath.Call
		outcomes string
		was, end time.Duration
	}{
		{"again, over when it is confirmed", again, "rw-", 50, 50},
		{"again, nothing open", again, "-w-", 50, 50},
		{"again, under way when it is confirmed", late, "r-", 60, 80},
		{"again, under way if what is staged is confirmed sooner", sooner, "r-r-", 123, 132},
		{"behind a write", write, "r--", 50, 50},
		{"behind a write, both at once", write, "rr-", 50, 40},
		{"ordered", ordered, "rr-", 50, 40},
		{"ordered, the first is not guessed", ordered, "-r-", 50, 40},
		{"ordered, nothing between", ordered, "r--", 50, 40},
		{"firm", firm, "r-", 90, 90},
		{"staged", staged, "r-", 80, 80},
		{"staged, nothing open", staged, "--", 80, 80},
		{"done again", []critpath.Call{call("a", 30, 50, true), call("b", 50, 90, true)}, "w-", 90, 120},
		{"done again since the last task", fresh, "-w-", 90, 100},
		{"done again in another strand", beside, "r-w", 76, 78},
	} {
		p, err := critpath.New(critpath.Request{End: row.was * ms, Calls: row.calls, Redo: true})
		if err != nil {
			t.Fatal(err)
		}
		if got := p.Replay(outcomes(row.outcomes)); got.End != row.end*ms {
			t.Errorf("%s: ends at %v, want %v", row.name, got.End, row.end*ms)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	for _, row := range []struct {
		r    critpath.Request
		want string
	}{
		{critpath.Request{Start: 2, End: 1}, "the request ends at 1ns, before its beginning at 2ns"},
		{critpath.Request{End: 9, Calls: []critpath.Call{{Method: "Get", Start: 3, End: 2}}},
			"call 0, Get, ends at 2ns, before its beginning at 3ns"},
		{critpath.Request{Start: 2, End: 9, Calls: []critpath.Call{{Method: "Get", Start: 1, End: 4}}},
			"call 0, Get, begins at 1ns, before its request at 2ns"},
	} {
		if _, err := critpath.New(row.r); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("got %v, want %s", err, row.want)
		}
	}
}

// A chain of n equal calls at hit rate p takes T (1 + (n-1)(1-p)) if the request's end does not
// wait for the last.
func TestExpectedChain(t *testing.T) {
	calls := []critpath.Call{call("a", 0, 10, true), call("b", 10, 20, true), call("c", 20, 30, true),
		call("d", 30, 40, true)}
	p := newPath(t, 40, calls...)
	for _, rate := range []float64{0, 0.5, 0.9, 1} {
		got := p.Expected([]float64{rate, rate, rate}) // d is not predicted: nothing follows it
		want := time.Duration(math.Round(float64(10*ms) * (1 + 3*(1-rate))))
		if got.End != want {
			t.Errorf("at %v: ends at %v, want %v", rate, got.End, want)
		}
		// a wrong: b, c and d in vain if b and c are taken for right too, b only if b is wrong, and
		// so on.
		x := 1 - rate
		a := x * (1 + rate*(1+rate))
		b := x * (1 + rate)
		if extra := a + b + x; math.Abs(got.Extra-extra) > 1e-9 {
			t.Errorf("at %v: %v wasted calls, want %v", rate, got.Extra, extra)
		}
	}
	if got := p.Expected([]float64{critpath.Never}); got.End != 40*ms || got.Extra != 0 {
		t.Errorf("without predictions: %+v", got)
	}
}

// More calls than are tried out exactly: drawn, the same each time, near the formula, no worse with
// a higher rate.
func TestExpectedDrawn(t *testing.T) {
	var calls []critpath.Call
	const n = 20
	for i := range time.Duration(n) {
		calls = append(calls, call("get", 10*i, 10*i+10, true))
	}
	p := newPath(t, 10*n, calls...)
	last := critpath.Expectation{End: math.MaxInt64}
	for _, rate := range []float64{0, 0.3, 0.5, 0.8, 0.99, 1} {
		right := slices.Repeat([]float64{rate}, n-1)
		got := p.Expected(right)
		want := 10 * (1 + (n-1)*(1-rate)) * float64(ms)
		if math.Abs(float64(got.End)-want) > 0.05*want {
			t.Errorf("at %v: ends at %v, want about %v", rate, got.End, time.Duration(want))
		}
		if got != p.Expected(right) {
			t.Errorf("at %v: two expectations differ", rate)
		}
		if got.End > last.End {
			t.Errorf("at %v: ends at %v, later than at a lower rate, %v", rate, got.End, last.End)
		}
		last = got
	}
}
