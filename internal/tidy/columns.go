package tidy

import (
	"go/ast"
	"go/token"
	"io/fs"
	"strings"
	"unicode/utf8"
)

// How many columns a line has at most. A tab is one.
const (
	maxComment = 100 // and a page's prose
	maxCode    = 120 // with a comment behind it or without
)

// checkColumns reports lines that are too wide.
func checkColumns(tree *tree, report *report) {
	for _, f := range tree.files {
		lines := strings.Split(string(f.src), "\n")
		checkComments(tree.fset, f, lines, report)
		checkCode(tree.fset, f, lines, report)
	}
	checkPages(tree.fsys, report)
}

// checkPages reports lines of Markdown that are too wide. Those of tables, pictures and what stands
// between fences are as wide as they are.
func checkPages(fsys fs.FS, report *report) {
	err := walk(fsys, ".md", func(name string) error {
		page, err := fs.ReadFile(fsys, name)
		if err != nil {
			return err
		}
		fenced := false
		for i, line := range strings.Split(string(page), "\n") {
			text := strings.TrimSpace(line)
			switch n := utf8.RuneCountInString(line); {
			case strings.HasPrefix(text, "```"):
				fenced = !fenced
			case n > maxComment && !fenced && !strings.HasPrefix(text, "|") && !strings.HasPrefix(text, "!["):
				report.add(name, i+1, "the line ends in column %d, beyond %d", n, maxComment)
			}
		}
		return nil
	})
	if err != nil {
		report.add(".", 0, "%v", err)
	}
}

// checkComments reports comments that are too wide. What an example prints, what a comment sets
// apart by a tab, a directive and an address are as wide as they are.
func checkComments(fset *token.FileSet, f *file, lines []string, report *report) {
	for _, group := range f.ast.Comments {
		if f.test && printed(group) {
			continue
		}
		for _, c := range group.List {
			line, limit := lines[fset.Position(c.Pos()).Line-1], maxComment
			if !strings.HasPrefix(strings.TrimSpace(line), "//") {
				limit = maxCode
			}
			if n := utf8.RuneCountInString(line); n > limit && strings.HasPrefix(c.Text, "// ") &&
				strings.Count(c.Text, " ") > 1 {
				report.at(f, c.Pos(), "the comment ends in column %d, beyond %d", n, limit)
			}
		}
	}
}

// checkCode reports lines of code that are too wide. Raw strings and the tags of fields are as wide
// as they are, and so is a word of a string.
func checkCode(fset *token.FileSet, f *file, lines []string, report *report) {
	start := fset.File(f.ast.Pos())
	skip := make(map[int]bool)
	ast.Inspect(f.ast, func(node ast.Node) bool {
		if lit, ok := node.(*ast.BasicLit); ok && lit.Kind == token.STRING && unbroken(lit.Value) {
			for n := fset.Position(lit.Pos()).Line; n <= fset.Position(lit.End()).Line; n++ {
				skip[n] = true
			}
		}
		return true
	})
	for _, group := range f.ast.Comments {
		for _, c := range group.List {
			for n := fset.Position(c.Pos()).Line; n <= fset.Position(c.End()).Line; n++ {
				skip[n] = true
			}
		}
	}
	for i, line := range lines {
		if n := utf8.RuneCountInString(line); n > maxCode && !skip[i+1] {
			report.at(f, start.LineStart(i+1), "the line ends in column %d, beyond %d", n, maxCode)
		}
	}
}

// unbroken reports whether a string's literal cannot be parted: it is raw, or one word.
func unbroken(literal string) bool {
	return strings.HasPrefix(literal, "`") || len(literal) > maxCode/2 && !strings.Contains(literal, " ")
}

// printed reports whether a comment is what an example prints.
func printed(group *ast.CommentGroup) bool {
	text := strings.ToLower(group.Text())
	return strings.HasPrefix(text, "output:") || strings.HasPrefix(text, "unordered output:")
}
