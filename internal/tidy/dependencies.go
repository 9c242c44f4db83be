package tidy

import (
	"errors"
	"io/fs"
	"slices"
	"strings"
)

// dependenciesPath is the page that gives the reasons.
const dependenciesPath = "docs/dependencies.md"

// checkDependencies reports modules that a go.mod requires directly, and tools
// that it declares, without a reason on the page, and reasons for what no go.mod
// has. A reason is a row of a table: the module's path between backquotes, then
// cells of which none is empty.
func checkDependencies(tree *tree, report *report) {
	page, err := fs.ReadFile(tree.fsys, dependenciesPath)
	if err != nil {
		report.add(dependenciesPath, 0, "cannot be read: %v", err)
		return
	}
	reasons := make(map[string]int) // by module, the line
	for i, line := range strings.Split(string(page), "\n") {
		module, complete := parseReason(line)
		switch {
		case module == "":
		case !complete:
			report.add(dependenciesPath, i+1, "the reason for %s is not complete", module)
			reasons[module] = i + 1
		default:
			reasons[module] = i + 1
		}
	}
	known := make(map[string]bool)
	modules, err := fs.Glob(tree.fsys, "*/*/go.mod")
	if err != nil {
		report.add("go.mod", 0, "%v", err)
	}
	for _, name := range append([]string{"go.mod", "tools/go.mod"}, modules...) {
		mod, err := readModFile(tree.fsys, name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			report.add(name, 0, "%v", err)
			continue
		}
		for _, module := range slices.Concat(mod.direct, mod.indirect) {
			known[module] = true
		}
		for _, module := range slices.Concat(mod.direct, mod.toolModules()) {
			if reasons[module] == 0 && module != tree.module {
				report.add(name, 0, "requires %s, for which %s gives no reason", module, dependenciesPath)
			}
		}
	}
	for module, line := range reasons {
		if !known[module] {
			report.add(dependenciesPath, line, "gives a reason for %s, which no go.mod requires", module)
		}
	}
}

// parseReason returns the module that a row of the table is about, "" if the
// line is no such row, and whether all its cells are filled.
func parseReason(line string) (module string, complete bool) {
	row, ok := strings.CutPrefix(line, "| `")
	if !ok {
		return "", false
	}
	module, row, _ = strings.Cut(row, "`")
	cells := strings.Split(strings.Trim(strings.TrimSpace(row), "|"), "|")
	empty := slices.ContainsFunc(cells, func(cell string) bool { return strings.TrimSpace(cell) == "" })
	return module, !empty
}

// toolModules returns the modules that provide m's tools.
func (m *modFile) toolModules() []string {
	var modules []string
	for _, tool := range m.tools {
		best := ""
		for _, module := range slices.Concat(m.direct, m.indirect) {
			if (tool == module || strings.HasPrefix(tool, module+"/")) && len(module) > len(best) {
				best = module
			}
		}
		if best != "" {
			modules = append(modules, best)
		}
	}
	return modules
}
