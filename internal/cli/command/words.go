package command

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"github.com/foresay/foresay/protocol"
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

// ReplicaID returns the ID of a replica.
func ReplicaID(text string) (protocol.ID, error) {
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil || n == 0 {
		return 0, fmt.Errorf("%q is no replica's ID", text)
	}
	return protocol.ID(n), nil
}

// DefaultCluster is the name of a cluster that was given none.
const DefaultCluster = "foresay"

// SplitWords splits a line at spaces. Words between double quotes are as in Go; what follows a # is
// a comment.
func SplitWords(line string) ([]string, error) {
	var words []string
	for {
		line = strings.TrimLeftFunc(line, unicode.IsSpace)
		switch {
		case line == "" || line[0] == '#':
			return words, nil
		case line[0] == '"':
			quoted, err := strconv.QuotedPrefix(line)
			if err != nil {
				return nil, errors.New("a word that begins with a double quote does not end with one")
			}
			word, err := strconv.Unquote(quoted)
			if err != nil {
				return nil, err
			}
			line = line[len(quoted):]
			if line != "" && !unicode.IsSpace(rune(line[0])) {
				return nil, fmt.Errorf("no space after the word %s", quoted)
			}
			words = append(words, word)
		default:
			end := strings.IndexFunc(line, unicode.IsSpace)
			if end < 0 {
				end = len(line)
			}
			words = append(words, line[:end])
			line = line[end:]
		}
	}
}
