package figure_test

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/foresay/foresay/bench"
	"github.com/foresay/foresay/bench/experiments"
	"github.com/foresay/foresay/bench/figure"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
)

// realResults are rows of each shape that the experiments' results have.
func realResults(t *testing.T) (results []bench.Result) {
	t.Helper()
	b, err := os.ReadFile("../table/testdata/tables.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &results); err != nil {
		t.Fatal(err)
	}
	return results
}

// TestLooks: in no figure two series look alike, and a system looks alike in all of them.
func TestLooks(t *testing.T) {
	of := make(map[string]string)
	seen := 0
	for _, r := range realResults(t) {
		e, _ := experiments.Lookup(r.Experiment)
		for _, f := range e.Figures {
			looks := figure.LooksOf(f, r.Rows)
			for i, l := range looks {
				if l.Glyph == "" && l.Name != "floor" {
					t.Errorf("%s %s: %s has no mark", e.Name, f.Suffix, l.Name)
				}
				for _, other := range looks[:i] {
					if l.Colour == other.Colour {
						t.Errorf("%s %s: %s and %s have one colour", e.Name, f.Suffix, other.Name, l.Name)
					}
					if l.Glyph == other.Glyph && l.Dashes == other.Dashes {
						t.Errorf("%s %s: without colours %s and %s look alike", e.Name, f.Suffix, other.Name, l.Name)
					}
				}
				if !l.Known {
					continue
				}
				seen++
				if was := of[l.Name]; was != "" && was != l.All {
					t.Errorf("%s %s: %s looks other than before: %s, %s", e.Name, f.Suffix, l.Name, l.All, was)
				}
				of[l.Name] = l.All
			}
		}
	}
	if seen < 50 || len(of) < 14 {
		t.Errorf("only %d lines of %d systems", seen, len(of))
	}
	// Two variants of a system share its colour, and differ in all else.
	two := figure.LooksOfNames("domino, all", "domino, learn", "some")
	if two[0].Colour != two[1].Colour || two[0].Dashes == two[1].Dashes || two[2].Colour == two[0].Colour {
		t.Errorf("variants look like %v", two)
	}
}

// box is where a text stands in a picture, in points, y growing downwards.
type box struct {
	text                     string
	left, top, right, bottom vg.Length
}

// texts returns where the texts of a figure stand that are not turned.
func texts(t *testing.T, svg []byte) (boxes []box) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(string(svg)))
	depth, turned := 0, 0
	var at *box
	var f font.Font
	for {
		token, err := d.Token()
		if err == io.EOF {
			return boxes
		}
		if err != nil {
			t.Fatal(err)
		}
		switch e := token.(type) {
		case xml.StartElement:
			attr := make(map[string]string)
			for _, a := range e.Attr {
				attr[a.Name.Local] = a.Value
			}
			switch {
			case e.Name.Local == "g":
				if depth++; turned == 0 && strings.Contains(attr["transform"], "rotate") {
					turned = depth
				}
			case e.Name.Local == "text" && turned == 0:
				at = &box{}
				var x, y, size float64
				fmt.Sscan(attr["x"], &x)
				fmt.Sscan(attr["y"], &y)
				_, rest, _ := strings.Cut(attr["style"], "font-size:")
				rest, _, _ = strings.Cut(rest, "px")
				if size, err = strconv.ParseFloat(rest, 64); err != nil {
					t.Fatalf("a text has the style %q", attr["style"])
				}
				f = font.Font{Typeface: "Liberation", Variant: "Sans", Size: vg.Length(size)}
				if strings.Contains(attr["style"], "font-weight:600") {
					f.Weight = 2
				}
				at.left, at.bottom = vg.Length(x), vg.Length(y)
			}
		case xml.CharData:
			if at != nil {
				at.text += string(e)
			}
		case xml.EndElement:
			switch {
			case e.Name.Local == "g":
				if depth == turned {
					turned = 0
				}
				depth--
			case e.Name.Local == "text" && at != nil:
				w, h, _ := plot.DefaultTextHandler.Box(at.text, f)
				at.right, at.top = at.left+w, at.bottom-h*0.8
				boxes, at = append(boxes, *at), nil
			}
		}
	}
}

// TestTextsDoNotOverlap: in no figure titles, labels, legends and notes run into each other or out
// of the picture.
func TestTextsDoNotOverlap(t *testing.T) {
	n := 0
	check := func(f figure.Picture) {
		all := texts(t, f.SVG)
		_, rest, _ := strings.Cut(string(f.SVG), `width="`)
		rest, _, _ = strings.Cut(rest, "pt")
		number, err := strconv.ParseFloat(rest, 64)
		if err != nil {
			t.Fatal(err)
		}
		width := vg.Length(number)
		for i, a := range all {
			n++
			if a.left < 0 || a.right > width {
				t.Errorf("%s: %q stands from %.0f to %.0f of %.0f", f.Name, a.text, a.left, a.right, width)
			}
			for _, b := range all[:i] {
				if a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom {
					t.Errorf("%s: %q runs into %q", f.Name, a.text, b.text)
				}
			}
		}
	}
	for _, r := range realResults(t) {
		e, ok := experiments.Lookup(r.Experiment)
		if !ok {
			t.Errorf("no experiment %s", r.Experiment)
			continue
		}
		figures, err := e.Draw(&r)
		if err != nil && !strings.Contains(err.Error(), "no row") {
			t.Error(err)
		}
		for _, f := range figures {
			check(f)
		}
	}
	for _, e := range experiments.All() {
		figures, err := e.Draw(plausible(e))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range figures {
			check(f)
		}
	}
	if n < 500 {
		t.Errorf("only %d texts", n)
	}
}
