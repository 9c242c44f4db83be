package history

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// scanner reads the words of one line of text: words without blanks, and Go strings between
// quotation marks. After the first error, it returns nothing but zero values.
type scanner struct {
	rest string
	err  error
}

func (s *scanner) fail(format string, args ...any) {
	if s.err == nil {
		s.err = fmt.Errorf(format, args...)
	}
	s.rest = ""
}

// more reports whether there is another word.
func (s *scanner) more() bool {
	s.rest = strings.TrimLeft(s.rest, " \t")
	return s.rest != ""
}

// quoted reports whether the next word is a quoted string.
func (s *scanner) quoted() bool {
	return s.more() && s.rest[0] == '"'
}

func (s *scanner) word() string {
	if !s.more() {
		s.fail("the line ends too early")
		return ""
	}
	end := strings.IndexAny(s.rest, " \t")
	if end < 0 {
		end = len(s.rest)
	}
	word := s.rest[:end]
	s.rest = s.rest[end:]
	return word
}

func (s *scanner) expect(want string) {
	if got := s.word(); s.err == nil && got != want {
		s.fail("%q where %q should be", got, want)
	}
}

func (s *scanner) str() string {
	if !s.quoted() {
		s.fail("%q where a string between quotation marks should be", s.word())
		return ""
	}
	quoted, err := strconv.QuotedPrefix(s.rest)
	if err != nil {
		s.fail("%s is no string", s.rest)
		return ""
	}
	s.rest = s.rest[len(quoted):]
	if s.rest != "" && s.rest[0] != ' ' && s.rest[0] != '\t' {
		s.fail("%s after a string", s.rest)
		return ""
	}
	value, err := strconv.Unquote(quoted)
	if err != nil {
		s.fail("%s is no string", quoted)
	}
	return value
}

func (s *scanner) client() Client {
	word := s.word()
	n, err := strconv.Atoi(word)
	if s.err == nil && err != nil {
		s.fail("%q is no client's number", word)
	}
	return Client(n)
}

// span reads an interval such as 1ms..2ms; open is that it has no end.
func (s *scanner) span() (from, to time.Duration, open bool) {
	word := s.word()
	if s.err != nil {
		return 0, 0, false
	}
	first, last, ok := strings.Cut(word, "..")
	if !ok {
		s.fail("%q is no interval such as 1ms..2ms or 1ms..?", word)
		return 0, 0, false
	}
	from = s.duration(first)
	if last == "?" {
		return from, 0, true
	}
	return from, s.duration(last), false
}

func (s *scanner) duration(word string) time.Duration {
	d, err := time.ParseDuration(word)
	if err != nil {
		s.fail("%q is no time such as 1.5ms", word)
	}
	return d
}

func (s *scanner) end() {
	if s.more() {
		s.fail("%q after the end", s.rest)
	}
}

// errEmpty is a file without a history.
var errEmpty = errors.New("empty")

// parse reads a history of a kind, from text by line or from JSON into doc. file is its name in
// errors.
func parse(file, kind string, data []byte, line func(*scanner), doc any) (text bool, err error) {
	trimmed := bytes.TrimSpace(data)
	switch {
	case len(trimmed) == 0:
		return false, fmt.Errorf("history: %s: %w", file, errEmpty)
	case trimmed[0] != '{':
		return true, parseText(file, kind, string(data), line)
	}
	decoder := json.NewDecoder(bytes.NewReader(trimmed))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(doc); err != nil {
		return false, fmt.Errorf("history: %s: after byte %d: %w", file, decoder.InputOffset(), err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return false, fmt.Errorf("history: %s: more follows the history, after byte %d", file, decoder.InputOffset())
	}
	return false, nil
}

func parseText(file, kind, data string, line func(*scanner)) error {
	number, header := 0, false
	for text := range strings.Lines(data) {
		number++
		s := &scanner{rest: strings.TrimRight(text, "\r\n")}
		if !s.more() || s.rest[0] == '#' {
			continue
		}
		if header {
			line(s)
		} else {
			s.expect("history")
			s.expect(kind)
			header = true
		}
		s.end()
		if s.err != nil {
			return fmt.Errorf("history: %s:%d: %w", file, number, s.err)
		}
	}
	if !header {
		return fmt.Errorf("history: %s: %w", file, errEmpty)
	}
	return nil
}
