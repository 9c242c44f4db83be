package command

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/foresay/foresay/wan"
)

// Counted is a number of things, such as "2 arguments".
func Counted(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprint(n, " ", noun)
}

// Printable returns text for a cell of a table.
func Printable(s string) string {
	const limit = 60
	for _, r := range s {
		if !strconv.IsPrint(r) {
			s = strconv.Quote(s)
			break
		}
	}
	if r := []rune(s); len(r) > limit {
		s = string(r[:limit-1]) + "…"
	}
	return s
}

// Joined has commas between names.
func Joined(names []string) string { return strings.Join(names, ", ") }

// SiteNames are the names of sites as text.
func SiteNames(sites []wan.Site) []string {
	var out []string
	for _, s := range sites {
		out = append(out, string(s))
	}
	return out
}

// DefaultCluster is the name of a cluster that was given none.
const DefaultCluster = "foresay"
