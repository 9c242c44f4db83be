package report_test

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
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/foresay/foresay/internal/seed"
	"github.com/foresay/foresay/report"
)

// renderings are the ways to write a report, by the ending of their file.
func renderings() map[string]func(*report.Report, io.Writer) error {
	return map[string]func(*report.Report, io.Writer) error{
		"txt":          (*report.Report).WriteText,
		"dot":          (*report.Report).WriteDOT,
		"svg":          (*report.Report).WriteSVG,
		"timeline.txt": func(r *report.Report, w io.Writer) error { return r.WriteTimeline(w, 100) },
		"ascii.txt": func(r *report.Report, w io.Writer) error {
			return report.Timeline{Width: 80, ASCII: true}.Write(w, r)
		},
		"json": func(r *report.Report, w io.Writer) error {
			e := json.NewEncoder(w)
			e.SetIndent("", " ")
			return e.Encode(r)
		},
	}
}

func render(t testing.TB, r *report.Report, as string) string {
	var b bytes.Buffer
	if err := renderings()[as](r, &b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// reports are those of real tasks, and some that no task would make.
func reports(t *testing.T) map[string]*report.Report {
	return map[string]*report.Report{
		"right": record(t, "right", right), "purchase": record(t, "purchase", purchase),
		"siblings": record(t, "siblings", siblings), "failing": record(t, "failing", failing),
		"empty": {}, "hostile": hostile(),
	}
}

// hostile has names that mean something to what reads the renderings, times in
// no order, and references to nothing.
func hostile() *report.Report {
	name := "\"]; evil [label=\"<b>&lt;&amp;\\N\\\n</text><script>alert(1)</script>\x1b[2J\xff\x00" +
		strings.Repeat("很长", 40)
	return &report.Report{
		Task: name, Outcome: name, Duration: -5,
		Runs: []report.Run{
			{ID: 1, Started: -1, Returned: 7 * millisecond, Ended: 2 * millisecond, State: name, RefutedBy: 99,
				Steps: []report.Step{
					{Call: 1, Lane: name, At: 3 * millisecond, Resumed: 1 * millisecond, Prediction: 17},
					{Call: 99, Prediction: -2}, {Call: -1, At: -1, Resumed: -1, Prediction: -1000, Adopted: true},
				}},
			{ID: 1, Ended: -1, Returned: -1, State: "open", ReplayOf: 8, Cause: 9}, {},
		},
		Calls: []report.Call{
			{
				ID: 1, CallSite: name, Lane: name, Effect: name, Made: 5 * millisecond, Answered: 4 * millisecond, Match: 12,
				Error:     name,
				Held:      []report.Hold{{At: -1, Reason: name}},
				Sent:      []report.Send{{At: -1}, {At: 9 * millisecond, Speculative: true}},
				Predicted: []time.Duration{-1, 12 * millisecond}, Confirmed: -1, Abandoned: -1,
			},
			{ID: 1, Answered: -1, Confirmed: 3 * millisecond, Abandoned: 2 * millisecond}, {},
		},
	}
}

// TestReportGolden compares with testdata. FORESAY_UPDATE=1 go test -run
// Golden writes what it should compare with; look at the difference.
func TestReportGolden(t *testing.T) {
	for name, r := range reports(t) {
		for ending := range renderings() {
			t.Run(name+"."+ending, func(t *testing.T) {
				got, path := render(t, r, ending), filepath.Join("testdata", name+"."+ending)
				if os.Getenv("FORESAY_UPDATE") != "" {
					if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
						t.Fatal(err)
					}
					if err := os.WriteFile(path, []byte(got), 0o666); err != nil {
						t.Fatal(err)
					}
				}
				want, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(string(want), got); diff != "" {
					t.Error(diff)
				}
			})
		}
	}
}

// TestReportJSON checks that a report survives JSON.
func TestReportJSON(t *testing.T) {
	want := record(t, "purchase", purchase)
	var got report.Report
	if err := json.Unmarshal([]byte(render(t, want, "json")), &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, &got); diff != "" {
		t.Error(diff)
	}
}

// checkRenderings checks what must hold for the renderings of any report.
func checkRenderings(t testing.TB, r *report.Report) {
	for _, ending := range []string{"txt", "timeline.txt", "ascii.txt"} {
		text := render(t, r, ending)
		if !utf8.ValidString(text) || strings.ContainsAny(text, "\x00\x1b\r\t") {
			t.Errorf("%s: control characters or invalid UTF-8 in %q", ending, text)
		}
		for line := range strings.Lines(text) {
			n := utf8.RuneCountInString(line) - 1
			if ending == "timeline.txt" && n > 100 || ending == "ascii.txt" && (n > 80 || n != len(line)-1) {
				t.Errorf("%s: the line is too wide or not ASCII: %q", ending, line)
			}
		}
	}
	if err := checkDOT(render(t, r, "dot")); err != nil {
		t.Error(err)
	}
	if err := checkSVG(render(t, r, "svg")); err != nil {
		t.Error(err)
	}
}

func TestReportRenderings(t *testing.T) {
	for name, r := range reports(t) {
		t.Run(name, func(t *testing.T) { checkRenderings(t, r) })
	}
	many := &report.Report{Outcome: "confirmed", Duration: time.Second}
	for i := range 1000 {
		many.Calls = append(many.Calls, report.Call{ID: i + 1, Answered: time.Duration(i), Confirmed: -1, Abandoned: -1})
	}
	checkRenderings(t, many)
	if got := strings.Count(render(t, many, "timeline.txt"), "\n"); got > 210 {
		t.Errorf("the timeline has %d lines", got)
	}
}

// TestRandomReports writes reports of random numbers.
func TestRandomReports(t *testing.T) {
	first := seed.First(t, 1)
	for i := range seed.Count(t, 1000) {
		rnd := rand.New(rand.NewPCG(first, uint64(i)))
		r := randomReport(rnd)
		checkRenderings(t, r)
		if t.Failed() {
			t.Fatalf("replay: FORESAY_SEED=%d, report %d: %+v", first, i, r)
		}
	}
}

func randomReport(rnd *rand.Rand) *report.Report {
	extremes := []time.Duration{math.MinInt64, -1, 0, 1, 999, math.MaxInt64, math.MaxInt64 - 1}
	at := func() time.Duration {
		if rnd.IntN(20) == 0 {
			return extremes[rnd.IntN(len(extremes))]
		}
		return time.Duration(rnd.IntN(50)-1) * millisecond
	}
	names := []string{"", "confirmed", "discarded", "/p.S/M", "/", "a/b", "\"\\", "\n", "&<>'", "\xf0", "é", "很"}
	name := func() string { return names[rnd.IntN(len(names))] }
	id := func() int { return rnd.IntN(7) - 1 }
	r := &report.Report{Task: name(), Outcome: name(), Duration: at()}
	for range rnd.IntN(5) {
		run := report.Run{
			ID: id(), Started: at(), Returned: at(), Ended: at(), State: name(), RefutedBy: id(), Cause: id(), ReplayOf: id(),
		}
		for range rnd.IntN(5) {
			run.Steps = append(run.Steps, report.Step{
				Call: id(), Lane: name(), At: at(), Resumed: at(), Prediction: rnd.IntN(6) - 3, Adopted: rnd.IntN(2) == 0,
			})
		}
		r.Runs = append(r.Runs, run)
	}
	for range rnd.IntN(5) {
		call := report.Call{
			ID: id(), CallSite: name(), Lane: name(), Effect: name(), Made: at(), Answered: at(), Match: rnd.IntN(5) - 2,
			Error: name(), Confirmed: at(), Abandoned: at(),
		}
		for range rnd.IntN(3) {
			call.Held = append(call.Held, report.Hold{At: at(), Reason: name()})
			call.Sent = append(call.Sent, report.Send{At: at(), Speculative: rnd.IntN(2) == 0})
			call.Predicted = append(call.Predicted, at())
		}
		r.Calls = append(r.Calls, call)
	}
	return r
}

// FuzzReport writes reports that come as JSON.
func FuzzReport(f *testing.F) {
	paths, err := filepath.Glob(filepath.Join("testdata", "*.json"))
	if err != nil || len(paths) == 0 {
		f.Fatal("no reports to start from: ", err)
	}
	for _, path := range paths {
		b, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var r report.Report
		if json.Unmarshal(b, &r) == nil {
			checkRenderings(t, &r)
		}
	})
}

// TestReportGraphviz has the real thing read the graphs.
func TestReportGraphviz(t *testing.T) {
	dot, err := exec.LookPath("dot")
	if err != nil {
		t.Skip("Graphviz is not installed: ", err)
	}
	for name, r := range reports(t) {
		cmd := exec.Command(dot, "-Tsvg")
		cmd.Stdin = strings.NewReader(render(t, r, "dot"))
		if out, err := cmd.CombinedOutput(); err != nil || bytes.Contains(out, []byte("Warning")) {
			t.Errorf("%s: %v: %s", name, err, out)
		}
	}
}

// failingWriter fails after some bytes.
type failingWriter struct{}

var errFull = errors.New("full")

func (failingWriter) Write([]byte) (int, error) { return 0, errFull }

func TestReportWriteError(t *testing.T) {
	for ending, write := range renderings() {
		if err := write(hostile(), failingWriter{}); !errors.Is(err, errFull) {
			t.Errorf("%s: the error is %v", ending, err)
		}
	}
}

// checkSVG checks that a picture is well-formed XML, needs nothing from
// elsewhere, and keeps its text within its frame.
func checkSVG(s string) error {
	d := xml.NewDecoder(strings.NewReader(s))
	var attributes map[string]string
	var height float64
	for {
		token, err := d.Token()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		switch e := token.(type) {
		case xml.StartElement:
			attributes = map[string]string{"element": e.Name.Local}
			if e.Name.Local == "svg" {
				_, err := fmt.Sscan(e.Attr[slices.IndexFunc(e.Attr, func(a xml.Attr) bool {
					return a.Name.Local == "height"
				})].Value, &height)
				if err != nil {
					return err
				}
			}
			for _, a := range e.Attr {
				attributes[a.Name.Local] = a.Value
				if strings.Contains(a.Value, "NaN") || strings.Contains(a.Value, "Inf") || strings.HasPrefix(a.Value, "-") {
					return fmt.Errorf("svg: %s of %s is %q", a.Name.Local, e.Name.Local, a.Value)
				}
				if a.Name.Local == "href" || a.Name.Local == "src" || e.Name.Local == "script" || e.Name.Local == "image" {
					return fmt.Errorf("svg: %s refers to something", e.Name.Local)
				}
			}
		case xml.CharData:
			if attributes["element"] != "text" {
				continue
			}
			x, err1 := strconv.ParseFloat(attributes["x"], 64)
			y, err2 := strconv.ParseFloat(attributes["y"], 64)
			size, err3 := strconv.ParseFloat(attributes["font-size"], 64)
			if err := errors.Join(err1, err2, err3); err != nil {
				return err
			}
			width := 0.0
			for _, r := range string(e) {
				width += 0.61 * size
				if r >= 0x250 {
					width += 0.4 * size
				}
			}
			if attributes["text-anchor"] == "middle" {
				x -= width / 2
			}
			if x < 8 || x+width > 992 || y < size || y > height-10 {
				return fmt.Errorf("svg: the text %q goes from %v to %v at %v of %v", e, x, x+width, y, height)
			}
		case xml.EndElement:
			attributes = nil
		}
	}
}
