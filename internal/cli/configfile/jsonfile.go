// Package configfile reads and writes the files that commands are configured by: JSON with
// comments, whose errors name the file, the line and the field, and the certificates that they
// name. What the fields of a command's file are, its own package says.
package configfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/foresay/foresay/internal/nearest"
)

// A FileError says what is wrong in a configuration file, and where.
type FileError struct {
	File  string
	Line  int    // 0: no single line
	Field string // such as members[1].address; "" if it is none
	Err   error
}

func (e *FileError) Error() string {
	s := e.File
	if e.Line > 0 {
		s += fmt.Sprintf(":%d", e.Line)
	}
	if e.Field != "" {
		s += ": " + e.Field
	}
	return s + ": " + e.Err.Error()
}

// Unwrap returns Err.
func (e *FileError) Unwrap() error { return e.Err }

// fieldError is what is wrong with a field, before it is known in which file.
type fieldError struct {
	field string
	err   error
}

func (e *fieldError) Error() string { return e.field + ": " + e.err.Error() }

func (e *fieldError) Unwrap() error { return e.err }

// Field is for functions that check what was read: it says what is wrong with a field, such as
// members[1].address.
func Field(field string, err error) error { return &fieldError{field, err} }

// Fieldf is Field with a text.
func Fieldf(field, format string, args ...any) error {
	return Field(field, fmt.Errorf(format, args...))
}

// Read reads a file of JSON into v and has it checked. Lines that begin with // are comments. A
// field that v does not have is an error, as is one that is there twice.
func Read(name string, v any, check func() error) error {
	data, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	return Parse(name, data, v, check)
}

// Parse is Read for what a file of that name holds.
func Parse(name string, data []byte, v any, check func() error) error {
	data = withoutComments(data)
	lines, err := fieldLines(data)
	if err == nil {
		d := json.NewDecoder(bytes.NewReader(data))
		d.DisallowUnknownFields()
		err = d.Decode(v)
	}
	if err != nil {
		return locate(name, data, lines, err)
	}
	err = check()
	if f := (*fieldError)(nil); errors.As(err, &f) {
		return &FileError{File: name, Line: lineOf(lines, f.field), Field: f.field, Err: f.err}
	}
	if err != nil {
		return &FileError{File: name, Err: err}
	}
	return nil
}

// lineOf returns the line of a field, or of the innermost one around it that is there.
func lineOf(lines map[string]int, field string) int {
	for field != "" {
		if n, ok := lines[field]; ok {
			return n
		}
		field = field[:max(0, strings.LastIndexAny(field, ".["))]
	}
	return 0
}

// withoutComments blanks the lines that are comments, so that all others keep their places.
func withoutComments(data []byte) []byte {
	lines := bytes.Split(bytes.Clone(data), []byte("\n"))
	for _, line := range lines {
		if bytes.HasPrefix(bytes.TrimSpace(line), []byte("//")) {
			for i := range line {
				line[i] = ' '
			}
		}
	}
	return bytes.Join(lines, []byte("\n"))
}

// locate makes an error of the decoder's say where it is.
func locate(name string, data []byte, lines map[string]int, err error) error {
	e := &FileError{File: name, Err: err}
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	var field *fieldError
	var more *trailing
	switch {
	case errors.As(err, &field):
		e.Field, e.Line, e.Err = field.field, lineOf(lines, field.field), field.err
		if at := (*places)(nil); errors.As(field.err, &at) {
			e.Line = at.line
		}
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		e.Line, e.Err = lineAt(data, int64(len(data))), errors.New("the file ends too early")
	case errors.As(err, &syntax):
		e.Line = lineAt(data, syntax.Offset)
	case errors.As(err, &more):
		e.Line = lineAt(data, more.offset)
	case errors.As(err, &kind):
		e.Line, e.Field = lineAt(data, kind.Offset), kind.Field
		e.Err = errors.New(nearest.Type(kind))
	default:
		unknown := regexp.MustCompile(`^json: unknown field "(.*)"$`).FindStringSubmatch(err.Error())
		if unknown == nil {
			break
		}
		e.Err = errors.New("there is no such field")
		e.Field = unknown[1]
		for path, line := range lines {
			last := path[strings.LastIndexByte(path, '.')+1:]
			if last == unknown[1] && (e.Line == 0 || line < e.Line) {
				e.Field, e.Line = path, line
			}
		}
	}
	return e
}

func lineAt(data []byte, offset int64) int {
	return 1 + bytes.Count(data[:min(max(offset-1, 0), int64(len(data)))], []byte("\n"))
}

// places is the error of a field that is there twice.
type places struct{ line, first int }

func (p *places) Error() string { return fmt.Sprintf("it is there already, in line %d", p.first) }

// trailing is the error of a file that goes on behind its value, from an offset on.
type trailing struct {
	offset int64
	text   string
}

func (t *trailing) Error() string {
	return fmt.Sprintf("the object has ended before %.40q, and nothing may be behind it", t.text)
}

// fieldLines returns the line of each field of a document by its path.
func fieldLines(data []byte) (map[string]int, error) {
	w := &walker{data: data, d: json.NewDecoder(bytes.NewReader(data)), lines: map[string]int{}}
	if err := w.value(""); err != nil {
		return w.lines, err
	}
	const space = " \t\r\n"
	if text := bytes.TrimLeft(data[w.d.InputOffset():], space); len(text) > 0 {
		first, _, _ := bytes.Cut(text, []byte("\n"))
		return w.lines, &trailing{int64(len(data) - len(text) + 1), string(bytes.TrimRight(first, space))}
	}
	return w.lines, nil
}

type walker struct {
	data  []byte
	d     *json.Decoder
	lines map[string]int
}

func (w *walker) value(path string) error {
	token, err := w.d.Token()
	if err != nil {
		return err
	}
	switch token {
	case json.Delim('{'):
		for w.d.More() {
			key, err := w.d.Token()
			if err != nil {
				return err
			}
			field := strings.TrimPrefix(fmt.Sprintf("%s.%s", path, key), ".")
			line := lineAt(w.data, w.d.InputOffset())
			if first, ok := w.lines[field]; ok {
				return &fieldError{field, &places{line, first}}
			}
			w.lines[field] = line
			if err := w.value(field); err != nil {
				return err
			}
		}
	case json.Delim('['):
		for i := 0; w.d.More(); i++ {
			element := fmt.Sprintf("%s[%d]", path, i)
			w.lines[element] = lineAt(w.data, w.d.InputOffset()+1)
			if err := w.value(element); err != nil {
				return err
			}
		}
	default:
		return nil
	}
	_, err = w.d.Token() // the closing bracket
	return err
}

// Write writes a value as Read reads it.
func Write(name string, v any) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(name, append(b, '\n'), 0o644)
}

// Beside makes a file's name that stands in another file relative to the directory of that one.
func Beside(file, name string) string {
	if name == "" || filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(filepath.Dir(file), name)
}
