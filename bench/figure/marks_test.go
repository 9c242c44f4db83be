package figure

import (
	"strings"
	"testing"

	"github.com/foresay/foresay/bench/table"
)

// TestMarksOfAPaper: a paper's numbers are drawn beside the series that they belong to, with a name
// and a note, and only then.
func TestMarksOfAPaper(t *testing.T) {
	rows := []table.Row{
		{table.Is("system", "spec"), table.Is("site", "all"), table.Is("ops", 5), table.Is("ms", 10.0),
			table.Is("share", 0.5)},
		{table.Is("system", "spec"), table.Is("site", "all"), table.Is("ops", 50), table.Is("ms", 20.0)},
		{table.Is("system", "spec"), table.Is("site", "nothing to show")},
	}
	lines := Spec{
		Title: "Lines", X: "ops", XLabel: "operations", Y: "ms", YLabel: "ms", Series: []string{"system"},
		Marks: []Mark{{Line: "spec", X: 50, Y: 23}, {Line: "spec", X: Nowhere(), Y: 95, Bound: "over"},
			{Line: "other", X: 50, Y: 1}},
	}
	across := Spec{
		Title: "Bars", Y: "share", YLabel: "share", Across: []string{"site"}, Series: []string{"system"},
		Marks: []Mark{{Line: "spec", Category: "all", Y: 0.42}, {Line: "spec", Category: "elsewhere", Y: 0.42}},
	}
	others := across
	others.Marks = []Mark{
		{Line: "spec", Category: "all", Y: 0.42, Source: "another one"}, {Line: "spec", Category: "all", Y: 0.43,
			Source: "another one"}, {Line: "spec", Category: "all", Y: 0.44},
	}
	plain := lines
	plain.Marks = nil
	for _, c := range []struct {
		f        Spec
		has, not []string
	}{
		{lines, []string{"spec, paper<", "spec, paper (over)<", "triangles, dotted lines" + marksNote},
			[]string{"other, paper"}},
		{across, []string{">paper<", "triangles, each on its bar" + marksNote}, []string{"nothing to show", othersNote,
			"spec, paper"}},
		{others, []string{">another one<", ">paper<", marksNote, othersNote}, nil},
		{plain, nil, []string{"paper", marksNote}},
	} {
		svg, err := c.f.draw("virtual", rows)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range c.has {
			if n := strings.Count(string(svg), s); n != 1 {
				t.Errorf("%s: %q is there %d times", c.f.Title, s, n)
			}
		}
		for _, s := range c.not {
			if strings.Contains(string(svg), s) {
				t.Errorf("%s: %q is there", c.f.Title, s)
			}
		}
	}
}

// TestFloorOfAFigure: the floor is a line of its own, with one point at each place, in order.
func TestFloorOfAFigure(t *testing.T) {
	f := Spec{X: "x", Y: "y", Series: []string{"system"}, Floor: "least", Scattered: true}
	lines, _ := f.lines([]table.Row{
		{table.Is("system", "a"), table.Is("x", 2), table.Is("y", 5), table.Is("least", 3)},
		{table.Is("system", "a"), table.Is("x", 1), table.Is("y", 4), table.Is("least", 2)},
		{table.Is("system", "b"), table.Is("x", 2), table.Is("y", 6), table.Is("least", 3)},
		{table.Is("system", "b"), table.Is("x", 3), table.Is("y", 6)},
	})
	if len(lines) != 3 || lines[2].name != "floor" {
		t.Fatalf("%d lines, %v", len(lines), lines)
	}
	if got := lines[2].points; len(got) != 2 || got[0].X != 1 || got[0].Y != 2 || got[1].X != 2 || got[1].Y != 3 {
		t.Errorf("the floor is %v", got)
	}
}
