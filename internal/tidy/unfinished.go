package tidy

import (
	"regexp"
)

// The alternatives are split so that this file does not match itself.
var unfinished = regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|XX` + `X)\b`)

// checkUnfinished reports notes to self.
func checkUnfinished(tree *tree, report *report) {
	for _, f := range tree.files {
		start := tree.fset.File(f.ast.Package)
		for _, match := range unfinished.FindAllIndex(f.src, -1) {
			report.at(f, start.Pos(match[0]), "has the note %s: do it, or file an issue", f.src[match[0]:match[1]])
		}
	}
}
