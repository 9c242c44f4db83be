package tidy

import (
	"bytes"
	"go/token"
	"strings"
)

const (
	tidyWaiver = "//tidy:ok"
	pureWaiver = "//pure:ok"
)

// waiver is a comment that allows what a rule forbids.
type waiver struct {
	kind   string // tidyWaiver or pureWaiver
	line   int
	alone  bool // nothing else is on its line: it waives the next line too
	reason string
}

// waiverKind returns the kind of waiver that a rule heeds.
func waiverKind(rule string) string {
	if rule == "pure" {
		return pureWaiver
	}
	return tidyWaiver
}

// waiverOf returns the waiver of a kind that covers a line of f, or nil.
func (f *file) waiverOf(kind string, line int) *waiver {
	for _, w := range f.waivers {
		if w.kind == kind && (w.line == line || w.alone && w.line == line-1) {
			return w
		}
	}
	return nil
}

func findWaivers(fset *token.FileSet, f *file) []*waiver {
	var found []*waiver
	for _, group := range f.ast.Comments {
		for _, comment := range group.List {
			kind, reason, _ := strings.Cut(comment.Text, " ")
			if kind != tidyWaiver && kind != pureWaiver {
				continue
			}
			position := fset.Position(comment.Pos())
			lineStart := position.Offset - (position.Column - 1)
			before := f.src[lineStart:position.Offset]
			found = append(found, &waiver{
				kind:   kind,
				line:   position.Line,
				alone:  len(bytes.TrimSpace(before)) == 0,
				reason: strings.TrimSpace(reason),
			})
		}
	}
	return found
}
