package domino

import (
	"cmp"
	"math"
	"os"
	"testing"
	"time"

	"github.com/foresay/foresay/bench"
	"github.com/foresay/foresay/bench/figure"
	"github.com/foresay/foresay/bench/replicated"
	"github.com/foresay/foresay/bench/table"
	"github.com/foresay/foresay/internal/heap"
	"github.com/foresay/foresay/smr"
	smrdomino "github.com/foresay/foresay/smr/domino"
	"github.com/foresay/foresay/smr/mencius"
	"github.com/foresay/foresay/wan"
)

// quickRows runs an experiment on its quick scale.
func quickRows(t *testing.T, e bench.Experiment) []table.Row {
	t.Helper()
	r, err := e.Run(t.Context(), bench.Options{Quick: true, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Draw(r); err != nil {
		t.Error(err)
	}
	return r.Rows
}

func numberOf(t *testing.T, r table.Row, name string) float64 {
	t.Helper()
	n, ok := r.Number(name)
	if !ok {
		t.Fatalf("no %s in %v", name, r)
	}
	return n
}

// TestCommitsAreTheModels: on the tables' delays each site of each system has the model's median,
// and with jitter and losses on top all sites together are near it. Nothing is below the floor, and
// the thesis' numbers for Domino hold.
func TestCommitsAreTheModels(t *testing.T) {
	sites, floors, few := 0, 0, map[string]float64{}
	for _, r := range quickRows(t, commit()) {
		system, site, noisy := r.Text("system"), r.Text("site"), r.Text("jitter") != "none"
		if site == "distribution" {
			if system == "floor" {
				floors++
			}
			continue
		}
		p50, p95 := numberOf(t, r, "p50_ms"), numberOf(t, r, "p95_ms")
		// of two clients the median is one's
		if p50 < numberOf(t, r, "floor_p50_ms")-0.001 && r.Text("clients") == "all" {
			t.Errorf("%v is below the floor", r)
		}
		if numberOf(t, r, "calls") < 150 {
			t.Errorf("few calls: %v", r)
		}
		if r.Text("figure") == "few-clients" {
			few[system+" "+r.Text("clients")] = numberOf(t, r, "mean_ms")
			continue
		}
		if system == "domino" && site == "all" && numberOf(t, r, "slack_ms") == 0 {
			if p50 > 49 || p95 > 71 {
				t.Errorf("p50 %v and p95 %v, want at most 49 and 71 ms: %v", p50, p95, r)
			}
			// five sites of nine, and now and then another one
			if dfp := numberOf(t, r, "dfp_pct"); dfp < 54 || dfp > 60 {
				t.Errorf("%v %% of the commands tried DFP", dfp)
			}
			if fast := numberOf(t, r, "fast_path_pct"); fast < 80 || fast > 100 {
				t.Errorf("%v %% of them took the fast path", fast)
			}
		}
		if system == "domino-direct" && site == "all" && (p50 > 46 || p95 > 69) {
			t.Errorf("p50 %v and p95 %v, want at most 46 and 69 ms: %v", p50, p95, r)
		}
		model, ok := r.Number("model_p50_ms")
		switch {
		case !ok:
			if system != "fastpaxos" {
				t.Errorf("no model: %v", r)
			}
		case site == "all" || !noisy:
			within := 0.03
			if noisy {
				within = 0.05
			}
			sites++
			if math.Abs(p50/model-1) > within {
				t.Errorf("p50 %v, model %v: %v", p50, model, r)
			}
		}
	}
	if want := 6 * (1 + 9 + 1); sites != want || floors == 0 {
		t.Errorf("%d rows were compared with the model, want %d; the floor has %d", sites, want, floors)
	}
	one, two, paxos := few["fastpaxos IA"], few["fastpaxos IA and WA"], few["multipaxos IA and WA"]
	if one < 36 || one > 38 || two < 0.97*paxos {
		t.Errorf("on average Fast Paxos takes %v ms with one client and %v ms with two, Multi-Paxos %v ms", one, two, paxos)
	}
}

// TestExecutionRows: with all replicas learning and 2 ms added, a write is executed sooner than the
// thesis' Domino can, and with arrivals for timestamps within 75 ms.
func TestExecutionRows(t *testing.T) {
	most := map[string]float64{"all learn": 100, "all learn, arrival": 75}
	for _, r := range quickRows(t, execution()) {
		if r.Text("site") != "all" {
			continue
		}
		limit, ok := most[r.Text("options")]
		if !ok || r.Text("ack") != "executed" || numberOf(t, r, "slack_ms") != 2 {
			t.Errorf("another row: %v", r)
		}
		if p50 := numberOf(t, r, "p50_ms"); p50 > limit || p50 < numberOf(t, r, "floor_p50_ms") {
			t.Errorf("p50 %v: %v", p50, r)
		}
		delete(most, r.Text("options"))
	}
	if len(most) > 0 {
		t.Errorf("no row of %v", most)
	}
}

// TestPercentileRows: more time before a slot makes the fast path likelier, and the tail shorter.
func TestPercentileRows(t *testing.T) {
	fast, tail := map[float64]float64{}, map[float64]float64{}
	for _, r := range quickRows(t, percentile()) {
		if r.Text("site") == "all" {
			slack := numberOf(t, r, "slack_ms")
			fast[slack], tail[slack] = numberOf(t, r, "fast_path_pct"), numberOf(t, r, "p99_ms")
		}
	}
	if len(fast) != 2 || fast[8] < fast[0] || fast[8] < 99 || tail[8] > tail[0] {
		t.Errorf("fast path %v, p99 %v by slack", fast, tail)
	}
}

// TestAdaptation: in each era a client of Domino takes what the model says for the delays of that
// time, once it has seen them; a client of Mencius goes on asking its replica.
func TestAdaptation(t *testing.T) {
	for _, c := range []struct {
		part     string
		protocol smr.Protocol
		want     []float64
	}{
		{adaptClient, smrdomino.Protocol(), []float64{30, 50, 60}},
		{adaptClient, mencius.Protocol(), []float64{60, 80, 100}},
		{adaptReplicas, smrdomino.Protocol(), []float64{60, 60, 70}},
		{adaptReplicas, mencius.Protocol(), []float64{60, 90, 90}},
	} {
		rows, err := adaptRows(bench.Options{Seed: 1}, c.part, c.protocol)
		if err != nil {
			t.Fatal(err)
		}
		if len(rows) < 40 {
			t.Errorf("%s %s: %d writes", c.part, c.protocol.Name, len(rows))
		}
		late := 0
		for _, name := range []string{"wan", "system", "site", "ack", "slack_ms", "jitter", "options", "clients"} {
			if rows[0].Value(name) == nil {
				t.Errorf("%s: rows have no %s", c.protocol.Name, name)
			}
		}
		for _, r := range rows {
			at, took := numberOf(t, r, "at_s"), numberOf(t, r, "latency_ms")
			era := int(at / adaptEra.Seconds())
			if model, ok := r.Number("model_ms"); ok && model != c.want[era] {
				t.Errorf("%s %s at %v s: the model says %v ms, want %v", c.part, c.protocol.Name, at, model, c.want[era])
			}
			if since := at - float64(era)*adaptEra.Seconds(); era > 0 && since < 1.5 {
				continue // the window of delays is a second
			}
			if took < c.want[era]-0.001 {
				t.Errorf("%s %s at %v s: %v ms, less than %v", c.part, c.protocol.Name, at, took, c.want[era])
			}
			if took > c.want[era]+5 {
				late++
			}
		}
		if late > 3 { // that are late, or take the slow path
			t.Errorf("%s %s: %d of %d writes took much longer than %v ms", c.part, c.protocol.Name, late, len(rows), c.want)
		}
	}
}

// TestDominoRows: what is told of a point whose measurements are known.
func TestDominoRows(t *testing.T) {
	d, err := wan.Preset("na3")
	if err != nil {
		t.Fatal(err)
	}
	samples := func(ms ...int) (out []replicated.Sample) {
		for _, m := range ms {
			out = append(out, replicated.Sample{Took: time.Duration(m) * time.Millisecond})
		}
		return out
	}
	measured := []replicated.SiteLatency{
		{Site: "IA", Calls: samples(36, 40, 38), Answered: 3, Tried: 3, Taken: 2},
		{Site: "WA", Calls: samples(67), Answered: 1},
	}
	p := point{network: "na3", clients: []wan.Site{"IA", "WA"}, ack: smr.AckDurable, noise: wan.InterDatacentre(),
		curve: "curve", figure: "all", sites: "each"}
	for _, c := range []struct {
		point point
		want  []map[string]any
	}{
		{p.with(smrdomino.Options{Slack: 2500 * time.Microsecond, AllLearn: true, Percentile: 0.9}), []map[string]any{
			{
				"system": "domino", "site": "all", "figure": "all", "ack": "durable", "slack_ms": 2.5, "options": "all learn",
				"percentile": 90.0, "clients": "IA and WA",
				"jitter": "tail 1.05ms, loss 2e-05, rto 1.5 rtt + 10ms", "p50_ms": 38.0, "p95_ms": 67.0, "model_p50_ms": 51.5,
				"model_p95_ms": 67.0, "floor_p50_ms": 49.5, "floor_p95_ms": 67.0,
				"calls": 4, "dfp_pct": 75.0, "fast_path_pct": 66.666667,
			},
			{"site": "IA", "figure": "each", "p50_ms": 38.0, "model_p95_ms": 36.0, "floor_p50_ms": 32.0, "calls": 3,
				"dfp_pct": 100.0},
			{"site": "WA", "p50_ms": 67.0, "floor_p95_ms": 67.0, "dfp_pct": 0.0, "fast_path_pct": nil},
			{"site": "distribution", "figure": "curve", "percent_of_calls": 2, "latency_ms": 36.0},
		}},
		{p.of(mencius.Protocol()), []map[string]any{
			{"system": "mencius", "options": "default", "slack_ms": "", "percentile": nil, "dfp_pct": nil, "fast_path_pct": nil,
				"model_p50_ms": 68.0},
		}},
		{p.of(smrdomino.Direct()), []map[string]any{{"system": "domino-direct",
			"options": "direct, all learn, arrival, slack adapts"}}},
	} {
		b, err := c.point.bounds(d)
		if err != nil {
			t.Fatal(err)
		}
		rows := c.point.rows(measured, b)
		for i, want := range c.want {
			for name, v := range want {
				if got := rows[i].Value(name); got != v {
					t.Errorf("row %d: %s is %v, want %v", i, name, got, v)
				}
			}
		}
	}
}

// TestModelsOfOptions: options of which the model knows nothing have none.
func TestModelsOfOptions(t *testing.T) {
	for _, c := range []struct {
		options  smrdomino.Options
		ack      smr.Ack
		want     string
		modelled bool
	}{
		{smrdomino.Options{}, smr.AckExecuted, "domino", true},
		{smrdomino.Options{AllLearn: true}, smr.AckDurable, "domino", true},
		{smrdomino.Options{AllLearn: true}, smr.AckExecuted, "domino", false},
		{smrdomino.Options{Direct: true}, smr.AckDurable, "domino-direct", true},
		{smrdomino.Options{Direct: true}, smr.AckExecuted, "domino", false},
		{smrdomino.Options{Direct: true, AllLearn: true, Arrival: true}, smr.AckExecuted, "domino-direct", true},
	} {
		p := point{ack: c.ack}.with(c.options)
		if got, ok := p.modelled(); ok != c.modelled || ok && string(got) != c.want {
			t.Errorf("%+v %v: %s, %v", c.options, c.ack, got, ok)
		}
	}
}

// TestMarksHaveLines: each mark of Domino's figures belongs to a line that the full experiment
// draws; one that does not is not drawn.
func TestMarksHaveLines(t *testing.T) {
	drawn := func(f figure.Spec, points []point) map[string]bool {
		names := map[string]bool{}
		for _, p := range points {
			names[f.Label(p.base("all", ""), f.Series)] = true
		}
		return names
	}
	var all []point
	for _, p := range catalogOf() {
		all = append(all, point{network: "na3"}.of(p))
	}
	marks := 0
	for _, c := range []struct {
		e      bench.Experiment
		points []point
	}{{commit(), all}, {execution(), executionSystemsOf(point{network: "na3"})}, {adapt(), all}} {
		for _, f := range c.e.Figures {
			names := drawn(f, c.points)
			for _, m := range f.Marks {
				if marks++; !names[m.Line] {
					t.Errorf("%s %s: no line %q, there are %v", c.e.Name, f.Suffix, m.Line, names)
				}
			}
		}
	}
	if marks < 30 {
		t.Errorf("%d marks", marks)
	}
}

// TestVariantCells: rows say in the columns of the other experiments with replicated protocols, and
// in the same words, what a variant is.
func TestVariantCells(t *testing.T) {
	want := map[string]string{
		"domino": "0 thesis", "domino-direct": "0 direct, all learn, arrival, slack adapts",
	}
	for _, p := range catalogOf() {
		base := point{}.of(p).base("all", "")
		if got := base.Text("slack_ms") + " " + base.Text("options"); got != cmp.Or(want[p.Name], " default") {
			t.Errorf("%s: %q, want %q", p.Name, got, want[p.Name])
		}
	}
}

func TestMain(m *testing.M) { os.Exit(heap.RunTests(m)) }
