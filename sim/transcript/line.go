package transcript

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A pattern is messages from somebody, to somebody, of a kind; empty or * is any.
type pattern struct {
	from, to string
	kind     kind
}

// A kind is a message's, of those that have a field or lack one, if it is not empty.
type kind struct{ name, has, lacks string }

func parseKind(word string) (k kind) {
	word, k.lacks, _ = strings.Cut(word, "-without-")
	k.name, k.has, _ = strings.Cut(word, "-with-")
	return k
}

func (k kind) fits(text string) bool {
	all := parts(text)
	has := func(field string) bool {
		return slices.ContainsFunc(all, func(p string) bool { return fieldOf(p) == field })
	}
	return (k.name == "" || k.name == "*" || k.name == all[0]) && (k.has == "" || has(k.has)) &&
		(k.lacks == "" || !has(k.lacks))
}

// A rule is what becomes of messages as they come.
type rule struct {
	pattern
	lose bool // else they are held
}

// fieldOf returns the name of a part of a message.
func fieldOf(part string) string {
	name, _, _ := strings.Cut(part, "=")
	return name
}

// without returns a message without the fields of some names, its own and those of its parts.
func without(text string, names []string) string {
	var b strings.Builder
	for i := 0; i < len(text); {
		begins := i == 0 || text[i-1] == '{' || text[i-1] == ' ' && text[i-2] != ',' // not an element of a list
		if n := fieldLen(text[i:]); begins && n > 0 && slices.Contains(names, fieldOf(text[i:i+n])) {
			i += n
			if i < len(text) && text[i] == ' ' {
				i++
			}
			continue
		}
		b.WriteByte(text[i])
		i++
	}
	return strings.TrimSpace(strings.ReplaceAll(b.String(), " }", "}"))
}

// fieldLen returns the length of the word, or the name and its value, that a text begins with.
func fieldLen(text string) int {
	depth := 0
	for i, r := range text {
		switch r {
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		if depth < 0 || depth == 0 && (r == ' ' || r == ',') {
			return i
		}
	}
	return len(text)
}

// parts returns the kind of a message and each of its fields.
func parts(text string) []string {
	depth, quoted := 0, false
	return strings.FieldsFunc(text, func(r rune) bool {
		switch {
		case r == '"':
			quoted = !quoted
		case quoted:
		case r == '{' || r == '[':
			depth++
		case r == '}' || r == ']':
			depth--
		}
		return r == ' ' && depth == 0 && !quoted
	})
}

func (s *Script[M]) pattern(words []string) (p pattern, err error) {
	for _, w := range words {
		from, to, link := strings.Cut(w, "->")
		if !link {
			p.kind = parseKind(w)
			continue
		}
		for _, name := range []string{from, to} {
			if name != "" && name != "*" {
				if _, err := s.ID(name); err != nil {
					return p, err
				}
			}
		}
		p.from, p.to = from, to
	}
	return p, nil
}

func (p pattern) fits(from, to, text string) bool {
	is := func(want, got string) bool { return want == "" || want == "*" || want == got }
	return is(p.from, from) && is(p.to, to) && p.kind.fits(text)
}

// A line is a message, or what happens to a node if it goes to nobody.
type line struct {
	at       time.Duration
	from, to []string
	text     string
}

// told returns what was written down since it was last told. Messages of one moment that say the
// same are one line: from one to several, or from several to one.
func (s *Script[M]) told() string {
	var all []line
	for _, l := range s.lines {
		if n := len(all) - 1; n >= 0 && all[n].at == l.at && all[n].text == l.text && len(l.to) > 0 {
			last := &all[n]
			switch {
			case slices.Equal(last.from, l.from) && !slices.Contains(last.to, l.to[0]):
				last.to = append(last.to, l.to[0])
				continue
			case slices.Equal(last.to, l.to) && !slices.Contains(last.from, l.from[0]):
				last.from = append(last.from, l.from[0])
				continue
			}
		}
		all = append(all, l)
	}
	s.lines = nil
	var b strings.Builder
	for _, l := range all {
		who := strings.Join(l.from, ",")
		if len(l.to) > 0 {
			who += " -> " + strings.Join(l.to, ",")
		}
		fmt.Fprintf(&b, "%10s  %-10s %s\n", milliseconds(l.at), who, l.text)
	}
	return b.String()
}

// milliseconds returns a time as it is read most easily beside others.
func milliseconds(d time.Duration) string {
	return strconv.FormatFloat(float64(d.Round(10*time.Microsecond))/float64(time.Millisecond), 'f', -1, 64) + "ms"
}
