package tidy

import (
	"cmp"
	"fmt"
	"go/token"
	"slices"
)

// Problem is one place that breaks one rule.
type Problem struct {
	Rule string
	Path string // slash-separated, relative to the tree's root
	Line int    // 0: the file or directory as a whole
	Text string
}

func (p Problem) String() string {
	if p.Line == 0 {
		return fmt.Sprintf("%s: %s", p.Path, p.Text)
	}
	return fmt.Sprintf("%s:%d: %s", p.Path, p.Line, p.Text)
}

// rule is one article of the law. Its check reports every place of a tree that
// breaks it, waived or not.
type rule struct {
	name  string
	check func(tree *tree, report *report)
}

// waiversRule is the name under which waivers themselves are reported.
const waiversRule = "waivers"

func rules() []rule {
	return []rule{
		{"layers", checkLayers},
		{"authors", checkAuthors},
		{"pure", checkPure},
		{"registration", checkRegistration},
		{"globals", checkGlobals},
		{"length", checkLength},
		{"columns", checkColumns},
		{"names", checkNames},
		{"words", checkWords},
		{"comments", checkDocumented},
		{"public", checkPublic},
		{"exports", checkExports},
		{"sleep", checkSleep},
		{"dependencies", checkDependencies},
		{"unfinished", checkUnfinished},
		{"formats", checkFormats},
	}
}

// check returns what breaks the rules in tree, less what is waived, and the
// waivers that are wrong themselves, in the order of paths and lines.
func check(tree *tree, rules []rule) []Problem {
	report := &report{tree: tree, waived: make(map[*waiver]bool)}
	for _, r := range rules {
		report.rule = r.name
		r.check(tree, report)
	}
	report.rule = waiversRule
	for _, f := range tree.files {
		for _, w := range f.waivers {
			switch {
			case w.reason == "":
				report.add(f.path, w.line, "%s gives no reason", w.kind)
			case !report.waived[w]:
				report.add(f.path, w.line, "%s waives nothing", w.kind)
			}
		}
	}
	slices.SortFunc(report.problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Text, b.Text))
	})
	return report.problems
}

// report collects problems.
type report struct {
	tree     *tree
	rule     string
	problems []Problem
	waived   map[*waiver]bool // waivers that waived something
}

// at reports a problem at a position of a file, unless its line is waived.
func (r *report) at(f *file, pos token.Pos, format string, args ...any) {
	line := r.tree.fset.Position(pos).Line
	if w := f.waiverOf(waiverKind(r.rule), line); w != nil {
		r.waived[w] = true
		return
	}
	r.add(f.path, line, format, args...)
}

// add reports a problem that cannot be waived.
func (r *report) add(path string, line int, format string, args ...any) {
	r.problems = append(r.problems, Problem{Rule: r.rule, Path: path, Line: line, Text: fmt.Sprintf(format, args...)})
}
