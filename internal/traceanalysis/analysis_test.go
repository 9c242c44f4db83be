package traceanalysis_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/foresay/foresay/internal/otlp"
	"github.com/foresay/foresay/internal/traceanalysis"
)

// spanOf makes a span of trace, with ids that are numbers (0 is none) and times in milliseconds.
func spanOf(trace, id, parent byte, kind otlp.Kind, service, name string, from, to int) *otlp.Span {
	const origin = 1000 * time.Second
	return &otlp.Span{
		Trace: otlp.TraceID{trace}, ID: otlp.SpanID{id}, Parent: otlp.SpanID{parent}, Kind: kind, Name: name,
		Resource: &otlp.Resource{Service: service},
		Start:    origin + time.Duration(from)*time.Millisecond, End: origin + time.Duration(to)*time.Millisecond,
	}
}

// bff is users -> permissions -> pricing beside stock: 2, 1, 1 and 3 ms of its own.
func bff(trace byte) []*otlp.Span {
	return []*otlp.Span{
		spanOf(trace, 1, 0, otlp.Server, "bff", "shop.Shop/Product", 0, 76),
		spanOf(trace, 2, 1, otlp.Client, "bff", "users.Users/Get", 2, 22),
		spanOf(trace, 3, 1, otlp.Client, "bff", "permissions.Permissions/Check", 23, 33),
		spanOf(trace, 4, 1, otlp.Internal, "bff", "assemble", 33, 74),
		spanOf(trace, 5, 4, otlp.Client, "bff", "pricing.Pricing/GetQuote", 34, 73),
		spanOf(trace, 6, 4, otlp.Client, "bff", "stock.Stock/List", 34, 64),
		spanOf(trace, 7, 5, otlp.Server, "pricing", "pricing.Pricing/GetQuote", 40, 60),
	}
}

func analyze(t *testing.T, o traceanalysis.Options, spans ...*otlp.Span) *traceanalysis.Report {
	t.Helper()
	c, err := traceanalysis.New(o)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range spans {
		c.Add(s)
	}
	return c.Report(0)
}

func roughly() cmp.Option { return cmpopts.EquateApprox(0, 1e-6) }

// stages reads a stage from each argument; one in brackets is repeated.
func stages(texts ...string) []traceanalysis.Stage {
	var out []traceanalysis.Stage
	for _, text := range texts {
		out = append(out, traceanalysis.Stage{
			Methods: strings.Split(strings.Trim(text, "()"), " ∥ "), Repeated: strings.HasPrefix(text, "("),
		})
	}
	return out
}

func pointer(x float64) *float64 { return &x }

// All figures are computed by hand from the model's definition.
func TestByHand(t *testing.T) {
	r := analyze(t, traceanalysis.Options{}, bff(1)...)
	read := func(word string) traceanalysis.Effect {
		return traceanalysis.Effect{Pure: true, Why: "its name says " + word}
	}
	one := func(ms float64) traceanalysis.Duration {
		return traceanalysis.Duration{MeanMS: ms, P50MS: ms, P95MS: ms}
	}
	want := &traceanalysis.Entry{
		Service: "bff", Method: "shop.Shop/Product", Requests: 1, Sampled: 1, Modelled: 1, Took: one(76),
		WaitMS: 69, OwnMS: 7, CallsPerRequest: 4, Waits: 3,
		Chains: []traceanalysis.Chain{{
			Stages: stages("users.Users/Get", "permissions.Permissions/Check", "pricing.Pricing/GetQuote ∥ stock.Stock/List"),
			Share:  1, MeanMS: 76,
		}},
		Calls: []traceanalysis.Call{
			{
				Method: "pricing.Pricing/GetQuote", Effect: read("get"), PerRequest: 1, Took: one(39), ServerMS: pointer(20),
				WaitMS: 39, WaitShare: 39. / 76,
				Alone: &traceanalysis.Alone{SavedMS: 3, BreakEven: pointer(0)}, // the 3 ms at the end
			},
			{
				Method: "users.Users/Get", Effect: read("get"), PerRequest: 1, Took: one(20), WaitMS: 20, WaitShare: 20. / 76,
				Alone: &traceanalysis.Alone{SavedMS: 20, VainCalls: 3, VainMS: 79, BreakEven: pointer(79. / 99)},
			},
			{
				Method: "permissions.Permissions/Check", Effect: read("check"), PerRequest: 1, Took: one(10), WaitMS: 10,
				WaitShare: 10. / 76,
				Alone:     &traceanalysis.Alone{SavedMS: 10, VainCalls: 2, VainMS: 69, BreakEven: pointer(69. / 79)},
			},
			{
				Method: "stock.Stock/List", Effect: read("list"), PerRequest: 1, Took: one(30), Alone: &traceanalysis.Alone{},
			},
		},
		Timeline: &traceanalysis.Timeline{BeforeMS: 76, AfterMS: 43, Bars: []traceanalysis.Bar{
			{Method: "users.Users/Get", Predicted: true, Critical: true, From: 2, To: 22, AfterFrom: 2, AfterTo: 22},
			{Method: "permissions.Permissions/Check", Predicted: true, Critical: true, From: 23, To: 33, AfterFrom: 3,
				AfterTo: 13},
			{Method: "stock.Stock/List", Predicted: true, From: 34, To: 64, AfterFrom: 4, AfterTo: 34},
			{Method: "pricing.Pricing/GetQuote", Predicted: true, Critical: true, From: 34, To: 73, AfterFrom: 4, AfterTo: 43},
		}},
	}
	// A right users saves 20, a right permissions 10, a right pricing the last 3, each whatever the
	// others are. A wrong users wastes 3 calls, 79 ms, a wrong permissions 2, 69 ms.
	mean := func(p float64) float64 { return 76 - p*33 }
	for _, p := range []float64{0, .5, .8, .9, .95, .99, 1} {
		want.Rates = append(want.Rates, traceanalysis.Rate{
			HitRate: p, Took: traceanalysis.Duration{MeanMS: mean(p)}, Saved: 1 - mean(p)/76, Extra: (1 - p) * 5 / 4,
		})
	}
	want.Single = &traceanalysis.Choice{Methods: []string{"users.Users/Get"}, MeanMS: 58, Saved: 18. / 76,
		Extra: .1 * 3 / 4}
	want.Together = &traceanalysis.Choice{
		Methods: []string{"pricing.Pricing/GetQuote", "users.Users/Get", "permissions.Permissions/Check"}, MeanMS: mean(.9),
		Saved: 1 - mean(.9)/76, Extra: .1 * 5 / 4,
	}
	if len(r.Entries) != 1 || r.Requests != 2 || r.WithoutCalls != 1 || r.Spans != 7 || r.Traces != 1 ||
		r.LeftOut != (traceanalysis.LeftOut{}) {
		t.Fatalf("got %+v", r)
	}
	got := r.Entries[0]
	noQuantiles := cmp.FilterPath(func(p cmp.Path) bool {
		return strings.Contains(p.GoString(), ".Rates") && strings.HasPrefix(p.Last().String(), ".P")
	}, cmp.Ignore())
	if diff := cmp.Diff(want, got, roughly(), noQuantiles); diff != "" {
		t.Error(diff)
	}
	// At 50 %, 4 combinations of users and permissions and 2 of pricing: 43 or 46, 53 or 56, 63 or
	// 66, 73 or 76.
	if d := got.Rates[1].Took; math.Abs(d.P50MS-56) > 1e-6 || math.Abs(d.P95MS-76) > 1e-6 {
		t.Errorf("at half right: %+v, want p50 56 and p95 76", d)
	}
}

// Loops of any length are one chain, beside calls of any number.
func TestLoops(t *testing.T) {
	for _, row := range []struct {
		calls string // a letter each, one after the other; those in one word beside each other
		want  []traceanalysis.Stage
		text  string
	}{
		{"a a", stages("a", "a"), "a → a"},
		{"a a a", stages("(a)"), "(a → ...)"},
		{"u a a a a a a a a c", stages("u", "(a)", "c"), "u → (a → ...) → c"},
		{"u a b a b a b a", stages("u", "(a)", "(b)", "a"), "u → (a → b → ...) → a"},
		{"u ab ab ab", stages("u", "(a ∥ b)"), "u → (a ∥ b → ...)"},
		{"a b a b", stages("a", "b", "a", "b"), "a → b → a → b"},
		{"aa bbb cccc dddddd", stages("a ×2", "b ×3", "c ×many", "d ×many"), "a ×2 → b ×3 → c ×many → d ×many"},
		{"", []traceanalysis.Stage{}, "(no calls)"},
	} {
		spans := []*otlp.Span{spanOf(1, 1, 0, otlp.Server, "s", "do", 0, 1000)}
		for i, stage := range strings.Fields(row.calls) {
			for _, c := range stage {
				spans = append(spans, spanOf(1, byte(len(spans)+1), 1, otlp.Client, "s", string(c), 10*i, 10*i+10))
			}
		}
		if row.calls == "" { // one that nobody waits for, for there to be an entry
			spans = append(spans, spanOf(1, 2, 1, otlp.Client, "s", "log", 10, 2000))
		}
		r := analyze(t, traceanalysis.Options{}, spans...)
		if diff := cmp.Diff(row.want, r.Entries[0].Chains[0].Stages); diff != "" {
			t.Errorf("%s: %s", row.calls, diff)
		}
		var b bytes.Buffer
		if err := r.WriteText(&b); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(b.String(), " ms  "+row.text+"\n") {
			t.Errorf("%s: want %s in\n%s", row.calls, row.text, &b)
		}
	}
}

// What has effects is not sent early, and with a higher cost of load fewer methods are worth it.
func TestOptionsMatter(t *testing.T) {
	held := analyze(t, traceanalysis.Options{Effects: []string{"pricing.*", "stock"}}, bff(1)...).Entries[0]
	if got := held.Timeline.AfterMS; math.Abs(got-64) > 1e-6 { // pricing from 22, when users has ended, to 61
		t.Errorf("with effects the request ends at %v, want at 64", got)
	}
	if c := held.Calls[0]; c.Alone != nil || c.Effect != (traceanalysis.Effect{Why: "as told"}) {
		t.Errorf("pricing: %+v", c)
	}
	dear := 10.0
	e := analyze(t, traceanalysis.Options{LoadCost: &dear}, bff(1)...).Entries[0]
	if e.Together == nil || len(e.Together.Methods) != 1 || e.Together.Methods[0] != "pricing.Pricing/GetQuote" {
		t.Errorf("if load is dear: %+v", e.Together)
	}
	if got := *e.Calls[1].Alone.BreakEven; math.Abs(got-790./810) > 1e-6 {
		t.Errorf("if load is dear, users is worth it from %v, want 790/810", got)
	}
	var unclear []*otlp.Span
	for _, s := range bff(1) {
		s.Name = strings.NewReplacer("Get", "Do", "Check", "Do", "List", "Do").Replace(s.Name)
		unclear = append(unclear, s)
	}
	if e := analyze(t, traceanalysis.Options{}, unclear...).Entries[0]; e.Rates[6].Saved != 0 || e.Single != nil ||
		e.Together != nil {
		t.Errorf("of methods that may have effects: %+v", e)
	}
	if e := analyze(t, traceanalysis.Options{Pure: []string{"*/Do*"}}, unclear...).Entries[0]; math.Abs(
		e.Rates[6].Took.MeanMS-43) > 1e-6 {
		t.Errorf("of methods that only read, as told: %+v", e.Rates[6])
	}
	if r := analyze(t, traceanalysis.Options{Entry: "nothing"}, bff(1)...); len(r.Entries) != 0 {
		t.Errorf("a pattern that fits nothing leaves %d entries", len(r.Entries))
	}
	for _, pattern := range []string{"product", "bff: shop*", "SHOP.*/P*T"} {
		if r := analyze(t, traceanalysis.Options{Entry: pattern}, bff(1)...); len(r.Entries) != 1 {
			t.Errorf("%s fits %d entries, want 1", pattern, len(r.Entries))
		}
	}
}

func TestNewRefuses(t *testing.T) {
	less := -1.0
	for _, o := range []traceanalysis.Options{{HitRate: 1.1}, {HitRate: math.NaN()}, {LoadCost: &less}, {MaxSpans: -1},
		{Sample: -1}} {
		if _, err := traceanalysis.New(o); err == nil {
			t.Errorf("%+v is accepted", o)
		}
	}
}

// readShop reads the committed file.
func readShop(t *testing.T) []*otlp.Span {
	t.Helper()
	f, err := os.Open(shopFile)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var spans []*otlp.Span
	for s, err := range otlp.Spans(shopFile, f) {
		if err != nil {
			t.Fatal(err)
		}
		spans = append(spans, &s)
	}
	return spans
}

// The order of spans does not matter.
func TestOrder(t *testing.T) {
	spans := readShop(t)
	want := asJSON(t, analyze(t, traceanalysis.Options{}, spans...))
	for seed := range uint64(3) {
		chance := rand.New(rand.NewPCG(seed, 3))
		chance.Shuffle(len(spans), func(i, j int) { spans[i], spans[j] = spans[j], spans[i] })
		var got, shuffled map[string]any
		if err := errors.Join(json.Unmarshal(want, &got),
			json.Unmarshal(asJSON(t, analyze(t, traceanalysis.Options{}, spans...)), &shuffled)); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(got, shuffled, roughly()); diff != "" {
			t.Fatalf("seed %d: %s", seed, diff)
		}
	}
}

func asJSON(t *testing.T, r *traceanalysis.Report) []byte {
	t.Helper()
	b, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// A sample is drawn: its size, its figures near those of all, and the same each time.
func TestSample(t *testing.T) {
	var spans []*otlp.Span
	chance := rand.New(rand.NewPCG(1, 4))
	for i := range 5000 {
		took := 10 + i/100 + chance.IntN(100) // slower and slower: the first are not like all
		root := spanOf(0, 1, 0, otlp.Server, "s", "s.S/Do", 0, took+1)
		call := spanOf(0, 2, 1, otlp.Client, "s", "t.T/Get", 0, took)
		root.Trace, call.Trace = otlp.TraceID{1, byte(i), byte(i >> 8)}, otlp.TraceID{1, byte(i), byte(i >> 8)}
		spans = append(spans, root, call)
	}
	all := analyze(t, traceanalysis.Options{Sample: 5000}, spans...).Entries[0]
	some := analyze(t, traceanalysis.Options{Sample: 500, Seed: 7}, spans...)
	again := analyze(t, traceanalysis.Options{Sample: 500, Seed: 7}, spans...)
	e := some.Entries[0]
	if e.Requests != 5000 || e.Sampled != 500 || all.Sampled != 5000 {
		t.Errorf("sampled %d of %d, and %d", e.Sampled, e.Requests, all.Sampled)
	}
	if math.Abs(e.Took.MeanMS-all.Took.MeanMS) > 0.1*all.Took.MeanMS ||
		math.Abs(e.Took.P95MS-all.Took.P95MS) > 0.1*all.Took.P95MS {
		t.Errorf("of the sample %+v, of all %+v", e.Took, all.Took)
	}
	if !bytes.Equal(asJSON(t, some), asJSON(t, again)) {
		t.Error("two samples with one seed differ")
	}
}

// Of requests with many calls fewer are modelled, and those with more than 200 are left out.
func TestManyCalls(t *testing.T) {
	request := func(trace byte, calls int) []*otlp.Span {
		spans := []*otlp.Span{spanOf(trace, 1, 0, otlp.Server, "s", "s.S/Do", 0, 10*calls)}
		for i := range calls {
			s := spanOf(trace, 0, 1, otlp.Client, "s", fmt.Sprintf("t.T/Get%d", i%20), 10*i, 10*i+10)
			s.ID = otlp.SpanID{9, byte(i), byte(i >> 8)}
			spans = append(spans, s)
		}
		return spans
	}
	var spans []*otlp.Span
	for trace := range byte(60) {
		spans = append(spans, request(trace+1, 150)...)
	}
	r := analyze(t, traceanalysis.Options{}, append(spans, request(100, 201)...)...)
	if r.LeftOut.Large != 1 || len(r.Entries) != 1 || r.Entries[0].Requests != 60 || r.Entries[0].Modelled >= 60 {
		t.Fatalf("got %+v", r)
	}
	if e := r.Entries[0]; e.Rates[6].Took.MeanMS > 10.001 || e.Rates[3].Took.MeanMS > 300 || len(e.Together.Methods) < 5 {
		t.Errorf("at 100 %% %+v, at 90 %% %+v, together %+v", e.Rates[6], e.Rates[3], e.Together)
	}
}

// The pictures are XML, also of names that are not.
func TestSVG(t *testing.T) {
	spans := bff(1)
	spans[1].Name = "a<b>&\"\x01\xff/GetÜber" + strings.Repeat("x", 200)
	var b bytes.Buffer
	if err := analyze(t, traceanalysis.Options{}, spans...).Entries[0].WriteSVG(&b); err != nil {
		t.Fatal(err)
	}
	bars := 0
	for d := xml.NewDecoder(&b); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if start, ok := token.(xml.StartElement); ok && start.Name.Local == "title" {
			bars++
		}
	}
	if bars != 1+2*5 { // the picture, and twice the request and its calls
		t.Errorf("%d titles, want 11", bars)
	}
}

// What a trace says cannot harm a terminal, and nothing is NaN where all takes no time.
func TestText(t *testing.T) {
	spans := bff(1)
	for _, s := range spans {
		s.Start, s.End = s.Start-s.Start%time.Second, s.Start-s.Start%time.Second
	}
	spans[1].Name = "evil\x1b[2J\n/Get"
	var b bytes.Buffer
	if err := analyze(t, traceanalysis.Options{}, spans...).WriteText(&b); err != nil {
		t.Fatal(err)
	}
	if s := b.String(); strings.ContainsAny(s, "\x1b") || strings.Contains(s, "NaN") ||
		!strings.Contains(s, "evil?[2J?/Get") {
		t.Errorf("got %q", s)
	}
}
