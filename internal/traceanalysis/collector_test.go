package traceanalysis_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/foresay/foresay/internal/otlp"
	"github.com/foresay/foresay/internal/traceanalysis"
)

// Traces that are not as they should be: what is counted, and what is left of the calls per request
// and of the time that the server takes.
func TestPartialTraces(t *testing.T) {
	entry := func() *otlp.Span { return spanOf(1, 1, 0, otlp.Server, "a", "a.A/Do", 0, 100) }
	get := func() *otlp.Span { return spanOf(1, 2, 1, otlp.Client, "a", "b.B/Get", 10, 50) }
	for _, row := range []struct {
		name    string
		spans   []*otlp.Span
		want    traceanalysis.LeftOut
		calls   float64 // per request of a.A/Do; 0: there is no such entry
		saved   float64 // of 100 ms, if all is right
		servers float64 // ms
	}{
		{"whole", []*otlp.Span{entry(), get()}, traceanalysis.LeftOut{}, 1, 0.40, 0},
		{"a span twice", []*otlp.Span{entry(), get(), get(), entry()}, traceanalysis.LeftOut{Twice: 2}, 1, 0.40, 0},
		{"a caller elsewhere", []*otlp.Span{spanOf(1, 1, 9, otlp.Server, "a", "a.A/Do", 0, 100), get()},
			traceanalysis.LeftOut{CallerMissing: 1}, 1, 0.40, 0},
		{"a root that is no server", []*otlp.Span{spanOf(1, 1, 0, otlp.Internal, "a", "a.A/Do", 0, 100), get()},
			traceanalysis.LeftOut{}, 1, 0.40, 0},
		{"a consumer", []*otlp.Span{spanOf(1, 1, 9, otlp.Consumer, "a", "a.A/Do", 0, 100), get()},
			traceanalysis.LeftOut{CallerMissing: 1}, 1, 0.40, 0},
		{"the request is missing", []*otlp.Span{get()}, traceanalysis.LeftOut{ParentMissing: 1}, 0, 0, 0},
		{
			"a span between is missing",
			[]*otlp.Span{entry(), get(), spanOf(1, 3, 9, otlp.Client, "a", "c.C/Get", 60, 70),
				spanOf(1, 4, 8, otlp.Internal, "a", "x", 60, 70), spanOf(1, 5, 4, otlp.Client, "a", "c.C/Get", 60, 70)},
			traceanalysis.LeftOut{ParentMissing: 2}, 1, 0.40, 0,
		},
		{"a call of nobody", []*otlp.Span{entry(), get(), spanOf(1, 3, 0, otlp.Client, "x", "c.C/Get", 60, 70)},
			traceanalysis.LeftOut{Outside: 1}, 1, 0.40, 0},
		{"calls within a call", []*otlp.Span{entry(), get(), spanOf(1, 3, 2, otlp.Client, "a", "dns", 10, 12),
			spanOf(1, 4, 2, otlp.Internal, "a", "x", 13, 14), spanOf(1, 5, 4, otlp.Client, "a", "y", 13, 14)},
			traceanalysis.LeftOut{}, 1, 0.40, 0},
		{"a call that ends before it begins", []*otlp.Span{entry(), get(), spanOf(1, 3, 1, otlp.Client, "a", "c.C/Get", 70,
			60)}, traceanalysis.LeftOut{EndBeforeStart: 1}, 0, 0, 0},
		{"a request that does", []*otlp.Span{spanOf(1, 1, 0, otlp.Server, "a", "a.A/Do", 100, 0), get()},
			traceanalysis.LeftOut{EndBeforeStart: 1}, 0, 0, 0},
		{"a circle", []*otlp.Span{entry(), get(), spanOf(1, 3, 4, otlp.Internal, "a", "x", 1, 2),
			spanOf(1, 4, 3, otlp.Internal, "a", "y", 1, 2), spanOf(1, 5, 3, otlp.Client, "a", "z", 1, 2)},
			traceanalysis.LeftOut{Circles: 3}, 1, 0.40, 0},
		{"its own parent", []*otlp.Span{entry(), get(), spanOf(1, 3, 3, otlp.Internal, "a", "x", 1, 2)},
			traceanalysis.LeftOut{Circles: 1}, 1, 0.40, 0},
		{"a call before its request", []*otlp.Span{entry(), spanOf(1, 2, 1, otlp.Client, "a", "b.B/Get", -5, 50)},
			traceanalysis.LeftOut{Early: 1}, 1, 0.50, 0},
		{"a call that outlives it", []*otlp.Span{entry(), get(), spanOf(1, 3, 1, otlp.Client, "a", "c.C/Log", 60, 400)},
			traceanalysis.LeftOut{}, 2, 0.40, 0},
		{"a server", []*otlp.Span{entry(), get(), spanOf(1, 3, 2, otlp.Server, "b", "b.B/Get", 20, 40)},
			traceanalysis.LeftOut{}, 1, 0.40, 20},
		{"a server's clock", []*otlp.Span{entry(), get(), spanOf(1, 3, 2, otlp.Server, "b", "b.B/Get", 520, 540)},
			traceanalysis.LeftOut{Skewed: 1}, 1, 0.40, 20},
		{"a server that takes longer", []*otlp.Span{entry(), get(), spanOf(1, 3, 2, otlp.Server, "b", "b.B/Get", 0, 60)},
			traceanalysis.LeftOut{Skewed: 1, Longer: 1}, 1, 0.40, 40},
		{"two tries", []*otlp.Span{entry(), get(), spanOf(1, 3, 2, otlp.Server, "b", "b.B/Get", 11, 15),
			spanOf(1, 4, 2, otlp.Server, "b", "b.B/Get", 20, 45)}, traceanalysis.LeftOut{}, 1, 0.40, 25},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := analyze(t, traceanalysis.Options{}, row.spans...)
			if diff := cmp.Diff(row.want, r.LeftOut); diff != "" {
				t.Error(diff)
			}
			if row.calls == 0 {
				if len(r.Entries) != 0 {
					t.Errorf("got %+v", r.Entries[0])
				}
				return
			}
			if len(r.Entries) != 1 {
				t.Fatalf("%d entries", len(r.Entries))
			}
			e := r.Entries[0]
			if e.Method != "a.A/Do" || e.CallsPerRequest != row.calls || !cmp.Equal(e.Rates[6].Saved, row.saved, roughly()) {
				t.Errorf("%s makes %v calls, saves %v; want %v and %v", e.Method, e.CallsPerRequest, e.Rates[6].Saved, row.calls,
					row.saved)
			}
			servers := 0.0
			if s := e.Calls[0].ServerMS; s != nil {
				servers = *s
			}
			if servers != row.servers {
				t.Errorf("servers take %v ms, want %v", servers, row.servers)
			}
		})
	}
}

// What could not be read is counted with the others.
func TestUnreadable(t *testing.T) {
	c, err := traceanalysis.New(traceanalysis.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c.Unreadable()
	c.Broken()
	if got := c.Report(0).LeftOut; got != (traceanalysis.LeftOut{Unreadable: 1, Broken: 1}) {
		t.Errorf("got %+v", got)
	}
}

// No more spans are held than allowed: traces untouched for long are taken apart, and what comes
// after is told.
func TestBound(t *testing.T) {
	a, b, c := bff(1), bff(2), bff(3)
	inOrder := append(append(append([]*otlp.Span{}, a...), b...), c...)
	r := analyze(t, traceanalysis.Options{MaxSpans: 8}, inOrder...)
	if want := (traceanalysis.LeftOut{Evicted: 2}); r.LeftOut != want || r.Entries[0].Requests != 3 ||
		r.Entries[0].CallsPerRequest != 4 {
		t.Errorf("one after the other: %+v, %+v", r.LeftOut, r.Entries[0])
	}
	var many []*otlp.Span
	for trace := range byte(50) {
		many = append(many, bff(trace+1)...)
	}
	if r := analyze(t, traceanalysis.Options{MaxSpans: 8}, many...); r.LeftOut != (traceanalysis.LeftOut{Evicted: 49}) {
		t.Errorf("of 50 traces: %+v", r.LeftOut)
	}
	var side []*otlp.Span
	for i := range a {
		side = append(side, a[i], b[i], c[i])
	}
	r = analyze(t, traceanalysis.Options{MaxSpans: 16}, side...)
	// At the 17th span trace 3 is the one untouched for longest. Its last two come too late;
	// nothing else is too many.
	if want := (traceanalysis.LeftOut{Evicted: 1, Late: 2}); r.LeftOut != want || r.Traces != 3 {
		t.Errorf("side by side: %+v, %d traces", r.LeftOut, r.Traces)
	}
	if got := analyze(t, traceanalysis.Options{MaxSpans: 1}, a...); got.LeftOut.Late != len(a)-2 || got.Traces != 1 {
		t.Errorf("one trace larger than the bound: %+v, %d traces", got.LeftOut, got.Traces)
	}
}

// Names that hold ids do not fill memory.
func TestTooManyNames(t *testing.T) {
	c, err := traceanalysis.New(traceanalysis.Options{})
	if err != nil {
		t.Fatal(err)
	}
	const n = 25_000
	for i := range n {
		id := otlp.TraceID{1, byte(i), byte(i >> 8), byte(i >> 16)}
		root := spanOf(0, 1, 0, otlp.Server, "s", fmt.Sprintf("/user/%d", i), 0, 10)
		call := spanOf(0, 2, 1, otlp.Client, "s", "t.T/Get", 0, 5)
		root.Trace, call.Trace = id, id
		c.Add(root)
		c.Add(call)
	}
	r := c.Report(3)
	if o := r.LeftOut; o.Names < 5000 || o.Names > 5010 || o.Entries < 24_000-5010 || o.Entries > 24_000 {
		t.Errorf("of %d names: %+v", n, o)
	}
	if len(r.Entries) != 3 || r.Others != 997 || r.Requests != n {
		t.Errorf("%d entries and %d others of %d requests", len(r.Entries), r.Others, r.Requests)
	}
}

// Times of any year fit.
func TestTimesFarApart(t *testing.T) {
	spans := bff(1)
	for _, s := range spans {
		s.Start += 250 * 365 * 24 * time.Hour
		s.End += 250 * 365 * 24 * time.Hour
	}
	if e := analyze(t, traceanalysis.Options{}, spans...).Entries[0]; e.Took.MeanMS != 76 {
		t.Errorf("took %v", e.Took)
	}
}
