package oteltest

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
)

// dashboard is what the tests look at of Grafana's JSON.
type dashboard struct {
	UID           string  `json:"uid"`
	Title         string  `json:"title"`
	SchemaVersion int     `json:"schemaVersion"`
	Panels        []panel `json:"panels"`
	Templating    struct {
		List []struct {
			Name       string     `json:"name"`
			Type       string     `json:"type"`
			Definition string     `json:"definition"`
			Datasource *reference `json:"datasource"`
		} `json:"list"`
	} `json:"templating"`
	Annotations struct {
		List []struct {
			Datasource reference `json:"datasource"`
			Expr       string    `json:"expr"`
		} `json:"list"`
	} `json:"annotations"`
}

type reference struct {
	Type string `json:"type"`
	UID  string `json:"uid"`
}

type panel struct {
	ID         int        `json:"id"`
	Type       string     `json:"type"`
	Title      string     `json:"title"`
	Datasource *reference `json:"datasource"`
	GridPos    struct {
		X, Y, W, H int
	} `json:"gridPos"`
	Targets []struct {
		RefID        string     `json:"refId"`
		Expr         string     `json:"expr"`
		LegendFormat string     `json:"legendFormat"`
		Datasource   *reference `json:"datasource"`
	} `json:"targets"`
	FieldConfig struct {
		Overrides []struct {
			Matcher struct{ ID, Options string } `json:"matcher"`
		} `json:"overrides"`
	} `json:"fieldConfig"`
	Transformations []struct {
		ID      string `json:"id"`
		Options struct {
			ExcludeByName map[string]bool   `json:"excludeByName"`
			IndexByName   map[string]int    `json:"indexByName"`
			RenameByName  map[string]string `json:"renameByName"`
		} `json:"options"`
	} `json:"transformations"`
}

func readDashboard(t *testing.T) *dashboard {
	t.Helper()
	b, err := os.ReadFile("../../docs/grafana/foresay.json")
	if err != nil {
		t.Fatal(err)
	}
	d := new(dashboard)
	if err := json.Unmarshal(b, d); err != nil {
		t.Fatal(err)
	}
	return d
}

// exported returns the series that a service exports, with their labels.
func exported(t *testing.T) map[string][]string {
	t.Helper()
	out := make(map[string][]string)
	inWorld(t, func(w *world) {
		m := newMetrics(w.T)
		w.control = m.control
		m.request(chain(w.dial(w.serve("a", kv{})), "one", "one", "two"))
		w.settle()
		families, err := m.registry.Gather()
		if err != nil {
			t.Error(err)
		}
		for _, f := range families {
			labels := []string{"job", "instance"} // Prometheus adds these
			for _, v := range f.GetMetric() {
				for _, l := range v.GetLabel() {
					labels = append(labels, l.GetName())
				}
			}
			out[f.GetName()] = labels
			if f.GetType() == dto.MetricType_HISTOGRAM {
				out[f.GetName()+"_bucket"] = append(slices.Clip(labels), "le")
				out[f.GetName()+"_sum"], out[f.GetName()+"_count"] = labels, labels
			}
		}
	})
	return out
}

// expressions returns all of the dashboard's queries, by where they stand.
func (d *dashboard) expressions() map[string]string {
	out := make(map[string]string)
	for _, p := range d.Panels {
		for _, q := range p.Targets {
			out[p.Title+" "+q.RefID] = q.Expr
		}
	}
	for _, v := range d.Templating.List {
		if v.Definition != "" {
			out["variable "+v.Name] = v.Definition
		}
	}
	for _, a := range d.Annotations.List {
		if a.Expr != "" {
			out["annotations"] = a.Expr
		}
	}
	return out
}

// TestDashboardMetrics: every series and label that the dashboard names is
// exported, and every metric is on it.
func TestDashboardMetrics(t *testing.T) {
	series := exported(t)
	selector := regexp.MustCompile(`(foresay_\w+)(?:\{([^}]*)\})?`)
	by := regexp.MustCompile(`by \(([^)]*)\)`)
	matcher := regexp.MustCompile(`(\w+)=`)
	used := make(map[string]bool)
	for where, expr := range readDashboard(t).expressions() {
		var labels []string
		for _, m := range selector.FindAllStringSubmatch(expr, -1) {
			known, ok := series[m[1]]
			if !ok {
				t.Errorf("%s: %s is not exported", where, m[1])
			}
			used[m[1]] = true
			labels = append(labels, known...)
			for _, l := range matcher.FindAllStringSubmatch(m[2], -1) {
				if !slices.Contains(known, l[1]) {
					t.Errorf("%s: %s has no label %s", where, m[1], l[1])
				}
			}
		}
		for _, m := range by.FindAllStringSubmatch(expr, -1) {
			for l := range strings.SplitSeq(m[1], ", ") {
				if !slices.Contains(labels, l) {
					t.Errorf("%s: by %s, which is no label there", where, l)
				}
			}
		}
	}
	for name := range series {
		histogram := used[name+"_bucket"] || used[name+"_sum"]
		part := strings.HasSuffix(name, "_bucket") || strings.HasSuffix(name, "_sum") || strings.HasSuffix(name, "_count")
		if !used[name] && !histogram && !part {
			t.Errorf("%s is exported, and not on the dashboard", name)
		}
	}
}

// TestDashboardReferences: what the dashboard refers to, it has.
func TestDashboardReferences(t *testing.T) {
	d := readDashboard(t)
	if d.UID == "" || d.Title == "" || d.SchemaVersion < 36 {
		t.Errorf("uid %q, title %q, schemaVersion %d: want all three, and of a Grafana that is still kept", d.UID, d.Title,
			d.SchemaVersion)
	}
	variables := map[string]bool{"__rate_interval": true}
	for _, v := range d.Templating.List {
		variables[v.Name] = true
	}
	variable := regexp.MustCompile(`\$\{?(\w+)`)
	resolve := func(where, text string) {
		for _, m := range variable.FindAllStringSubmatch(text, -1) {
			if !variables[m[1]] {
				t.Errorf("%s refers to the variable %s, which there is not", where, m[1])
			}
		}
	}
	for where, expr := range d.expressions() {
		resolve(where, expr)
	}
	source := func(where string, r *reference) {
		if r == nil || r.Type != "prometheus" || r.UID != "${datasource}" {
			t.Errorf("%s: the data source is %v, want the variable's", where, r)
			return
		}
		resolve(where, r.UID)
	}
	for _, v := range d.Templating.List {
		if v.Type == "query" {
			source("variable "+v.Name, v.Datasource)
		}
	}
	ids := make(map[int]bool)
	for _, p := range d.Panels {
		if p.ID == 0 || ids[p.ID] {
			t.Errorf("panel %q: its id %d is not its own", p.Title, p.ID)
		}
		ids[p.ID] = true
		if p.Type == "row" {
			continue
		}
		source("panel "+p.Title, p.Datasource)
		for _, q := range p.Targets {
			source("panel "+p.Title+" "+q.RefID, q.Datasource)
		}
		p.check(t)
	}
}

// check looks at what a panel refers to within itself.
func (p *panel) check(t *testing.T) {
	label := regexp.MustCompile(`\{\{(\w+)\}\}`)
	fields := map[string]bool{"Time": true}
	for _, q := range p.Targets {
		if fields["Value #"+q.RefID] {
			t.Errorf("panel %q: two queries %s", p.Title, q.RefID)
		}
		fields["Value #"+q.RefID] = true
		by := ""
		if _, after, ok := strings.Cut(q.Expr, "by ("); ok {
			by, _, _ = strings.Cut(after, ")")
		}
		for l := range strings.SplitSeq(by, ", ") {
			fields[l] = true
		}
		for _, m := range label.FindAllStringSubmatch(q.LegendFormat, -1) {
			if !slices.Contains(strings.Split(by, ", "), m[1]) {
				t.Errorf("panel %q %s: the legend has %s, the query does not", p.Title, q.RefID, m[1])
			}
		}
	}
	shown := make(map[string]bool)
	for _, tr := range p.Transformations {
		for name := range tr.Options.ExcludeByName {
			if !fields[name] {
				t.Errorf("panel %q leaves out %q, which no query gives", p.Title, name)
			}
		}
		for name := range tr.Options.IndexByName {
			if !fields[name] {
				t.Errorf("panel %q orders %q, which no query gives", p.Title, name)
			}
		}
		for name, to := range tr.Options.RenameByName {
			if !fields[name] {
				t.Errorf("panel %q renames %q, which no query gives", p.Title, name)
			}
			shown[to] = true
		}
	}
	for _, o := range p.FieldConfig.Overrides {
		if o.Matcher.ID == "byName" && !shown[o.Matcher.Options] {
			t.Errorf("panel %q: an override is for %q, which is not shown", p.Title, o.Matcher.Options)
		}
	}
}

// TestDashboardLayout: panels lie within the grid, and not on each other.
func TestDashboardLayout(t *testing.T) {
	taken := make(map[[2]int]string)
	for _, p := range readDashboard(t).Panels {
		g := p.GridPos
		if g.W <= 0 || g.H <= 0 || g.X < 0 || g.X+g.W > 24 {
			t.Errorf("panel %q is at %+v, outside of 24 columns", p.Title, g)
		}
		for x := g.X; x < g.X+g.W; x++ {
			for y := g.Y; y < g.Y+g.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" {
					t.Fatalf("panel %q lies on %q", p.Title, other)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
	}
}
