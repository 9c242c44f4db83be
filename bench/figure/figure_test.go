package figure_test

import (
	"encoding/xml"
	"io"
	"strings"
	"testing"

	"github.com/foresay/foresay/bench"
	"github.com/foresay/foresay/bench/experiments"
	"github.com/foresay/foresay/bench/figure"
	"github.com/foresay/foresay/bench/table"
)

// plausible makes a result of an experiment, without running it.
func plausible(e bench.Experiment) *bench.Result {
	return &bench.Result{Experiment: e.Name, Mode: e.Modes[0], Rows: samples(e)}
}

// samples makes rows that have something for each figure.
func samples(e bench.Experiment) []table.Row {
	var rows []table.Row
	for _, f := range e.Figures {
		for i, system := range []string{"raft", "multipaxos"} {
			row := table.Row{table.Is("system", system)}
			switch f.Where.Name {
			case "":
			case "system":
				row[0] = f.Where
			default:
				row = append(row, f.Where)
			}
			if f.X != "" {
				row = append(row, table.Is(f.X, 5.0))
			}
			for _, c := range f.Across {
				if row.Value(c) == nil {
					row = append(row, table.Is(c, "some"))
				}
			}
			rows = append(rows, append(row, table.Is(f.Y, 10.0*float64(i+1))))
		}
	}
	return rows
}

func TestEveryExperimentDrawsItsFigures(t *testing.T) {
	for _, e := range experiments.All() {
		t.Run(e.Name, func(t *testing.T) {
			figures, err := e.Draw(plausible(e))
			if err != nil {
				t.Fatal(err)
			}
			if len(figures) != len(e.Figures) || len(figures) == 0 {
				t.Fatalf("%d figures were drawn, want %d and at least one", len(figures), len(e.Figures))
			}
			for i, f := range figures {
				checkSVG(t, f, e.Figures[i])
			}
		})
	}
}

func checkSVG(t *testing.T, got figure.Picture, want figure.Spec) {
	t.Helper()
	var text strings.Builder
	d := xml.NewDecoder(strings.NewReader(string(got.SVG)))
	for {
		token, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatalf("%s is no XML: %v", got.Name, err)
		}
		if c, ok := token.(xml.CharData); ok {
			text.Write(c)
		}
	}
	for _, part := range []string{want.Title, want.XLabel, want.YLabel} {
		if !strings.Contains(text.String(), part) {
			t.Errorf("%s does not say %q", got.Name, part)
		}
	}
}

// TestFiguresOfAPart: a run that leaves out a network has no figure of it.
func TestFiguresOfAPart(t *testing.T) {
	r := &bench.Result{Experiment: "domino-commit", Mode: bench.Virtual, Rows: []table.Row{
		{table.Is("system", "domino"), table.Is("figure", "na5"), table.Is("percent_of_calls", 2),
			table.Is("latency_ms", 30.0)}, {table.Is("system", "domino"), table.Is("figure", "na5"),
			table.Is("percent_of_calls", 6), table.Is("latency_ms", 31.0)},
	}}
	figures, err := draw(t, r)
	if err != nil || len(figures) != 1 || figures[0].Name != "domino-commit-na5" {
		t.Errorf("%d figures, %v", len(figures), err)
	}
	r.Rows = r.Rows[:0]
	if _, err := draw(t, r); err == nil || !strings.Contains(err.Error(), "no row") {
		t.Errorf("got error %v, want one that says that there are no rows", err)
	}
}

func TestFigureWithoutRowsIsAnError(t *testing.T) {
	r := &bench.Result{Experiment: "chain", Mode: bench.Virtual}
	if _, err := draw(t, r); err == nil || !strings.Contains(err.Error(), "figure chain") {
		t.Errorf("got error %v, want one that names the figure", err)
	}
}

// draw draws a result of one of the experiments.
func draw(t *testing.T, r *bench.Result) ([]figure.Picture, error) {
	t.Helper()
	e, ok := experiments.Lookup(r.Experiment)
	if !ok {
		t.Fatalf("no experiment %q", r.Experiment)
	}
	return e.Draw(r)
}
