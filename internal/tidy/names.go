package tidy

import (
	"strings"
)

// checkNames reports packages named after nothing.
func checkNames(tree *tree, report *report) {
	dirs, files := byDir(tree.files)
	for _, dir := range dirs {
		f := files[dir][0]
		switch name := strings.TrimSuffix(f.ast.Name.Name, "_test"); name {
		case "util", "utils", "common", "types", "helper", "helpers", "base":
			report.at(f, f.ast.Package, "the package name %s is not a noun that says what belongs in it", name)
		}
	}
}
