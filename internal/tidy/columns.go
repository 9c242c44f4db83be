package tidy

import (
	"go/ast"
	"strings"
	"unicode/utf8"
)

// How many columns a line has at most. A tab is one.
const (
	maxComment = 100
	maxRemark  = 120 // of code with a comment behind it
)

// checkColumns reports comments that are too wide. What an example prints, what a comment sets
// apart by a tab, a directive and an address are as wide as they are.
func checkColumns(tree *tree, report *report) {
	for _, f := range tree.files {
		lines := strings.Split(string(f.src), "\n")
		for _, group := range f.ast.Comments {
			if f.test && printed(group) {
				continue
			}
			for _, c := range group.List {
				line, limit := lines[tree.fset.Position(c.Pos()).Line-1], maxComment
				if !strings.HasPrefix(strings.TrimSpace(line), "//") {
					limit = maxRemark
				}
				if n := utf8.RuneCountInString(line); n > limit && strings.HasPrefix(c.Text, "// ") &&
					strings.Count(c.Text, " ") > 1 {
					report.at(f, c.Pos(), "the comment ends in column %d, beyond %d", n, limit)
				}
			}
		}
	}
}

// printed tells whether a comment is what an example prints.
func printed(group *ast.CommentGroup) bool {
	text := strings.ToLower(group.Text())
	return strings.HasPrefix(text, "output:") || strings.HasPrefix(text, "unordered output:")
}
