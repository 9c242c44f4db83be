package spectree

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// TestScenarios has the tree told what happens, and say what to do: testdata/scenarios, which are
// there to be read.
func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/scenarios/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no scenarios: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			told := &told{calls: map[string]*Call{}, guessed: map[*Call]bool{}, runs: map[int]*Run{}}
			datadriven.RunTest(t, file, func(t *testing.T, d *datadriven.TestData) string {
				var out string
				first := d.Cmd
				for _, arg := range d.CmdArgs {
					first += " " + arg.String()
				}
				for line := range strings.Lines(first + "\n" + d.Input) {
					if err := told.do(strings.Fields(line)); err != nil {
						d.Fatalf(t, "%s: %v", line, err)
					}
					out += told.says(t)
				}
				return out
			})
		})
	}
}

// told is a tree in a scenario as text.
type told struct {
	*Tree
	calls   map[string]*Call // by operation
	guessed map[*Call]bool   // those that have a prediction
	runs    map[int]*Run
}

func (s *told) do(words []string) error {
	line := strings.Join(words, " ")
	switch {
	case len(words) == 0:
		return nil
	case words[0] == "begin":
		s.Tree = New(Config{Limits: ample, Replayable: true, CallerOpen: slices.Contains(words, "caller-open")})
		s.Start()
		return nil
	case s.Tree == nil:
		return fmt.Errorf("the first command is begin")
	case line == "caller is right":
		s.ConfirmCaller()
		return nil
	case line == "caller is wrong":
		s.RefuteCaller()
		return nil
	case words[0] == "run" && len(words) > 2:
		return s.run(words[1:])
	}
	c := s.calls[words[0]]
	if c == nil {
		return fmt.Errorf("nobody has called %s", words[0])
	}
	switch line = strings.Join(words[1:], " "); {
	case line == "is predicted":
		s.guessed[c] = true
		s.Predicted(c)
	case line == "is answered as predicted" && s.guessed[c]:
		s.Answered(c, 0)
	case line == "is answered otherwise" && s.guessed[c], line == "is answered" && !s.guessed[c]:
		s.Answered(c, Actual)
	case line == "is refused":
		s.Refused(c, "refused")
	default:
		return fmt.Errorf("a call is predicted, refused or answered; as predicted or otherwise if it was predicted")
	}
	return nil
}

// run has a run do something.
func (s *told) run(words []string) error {
	id, err := strconv.Atoi(words[0])
	if err != nil || s.runs[id] == nil {
		return fmt.Errorf("there is no run %s", words[0])
	}
	r := s.runs[id]
	if words[1] == "returns" {
		s.Exited(r)
		s.Returned(r)
		return nil
	}
	if len(words) < 3 {
		return fmt.Errorf("a run reads, writes or returns")
	}
	spec := &CallSpec{Op: words[2]}
	predicted := slices.Contains(words, "predicted")
	if predicted {
		spec.Predictions = 1
	}
	switch words[1] {
	case "reads":
	case "stages":
		spec.Effect = Staged
	case "does":
		spec.Effect = Immediate
	default:
		return fmt.Errorf("a run reads, stages, does or returns")
	}
	c := s.Call(r.Main(), spec).Call
	s.calls[words[2]] = c
	s.guessed[c] = s.guessed[c] || predicted
	return nil
}

// says returns what the tree says is to be done, and holds it to its invariants.
func (s *told) says(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	for _, a := range s.Take() {
		if a.Run != nil {
			s.runs[a.Run.ID] = a.Run
		}
		text := describe(&a)
		switch {
		case a.Kind == Resume && a.Use.Answer() == Actual:
			text = fmt.Sprintf("resume run %d with the answer of %s", a.Run.ID, a.Call.Op())
		case a.Kind == Resume:
			text = fmt.Sprintf("resume run %d with the prediction of %s", a.Run.ID, a.Call.Op())
		case a.Call != nil:
			text = strings.Replace(text, fmt.Sprintf("call %d", a.Call.ID), a.Call.Op(), 1)
		}
		fmt.Fprintf(&b, "  %s\n", text)
	}
	if err := s.check(); err != nil {
		t.Error(err)
	}
	return b.String()
}
