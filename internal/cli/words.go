package cli

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/foresay/foresay/wan"
)

func counted(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprint(n, " ", noun)
}

// printable returns text for a cell of a table.
func printable(s string) string {
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

func joined(names []string) string { return strings.Join(names, ", ") }

func siteNames(sites []wan.Site) []string {
	var out []string
	for _, s := range sites {
		out = append(out, string(s))
	}
	return out
}

const defaultCluster = "foresay"
