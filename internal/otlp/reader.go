package otlp

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
)

// Error is what is wrong with the input, and where.
type Error struct {
	File string
	// Line is where the span or value is that could not be read, or that before it. Offset is in
	// bytes, after decompression. Both are 0 if the whole input is meant.
	Line, Offset int64
	// Span says that only one span is wrong, and reading goes on behind it.
	Span bool
	// Skipped says that what is here is not JSON, or not of OTLP's form, and reading goes on at the
	// next line that begins with an object.
	Skipped bool
	// Truncated says that the input ends in the middle of a value. What is before it was read.
	Truncated bool
	Err       error
}

func (e *Error) Error() string {
	where := e.File
	if e.Line > 0 {
		where = fmt.Sprintf("%s:%d (byte %d)", e.File, e.Line, e.Offset)
	}
	switch {
	case e.Truncated:
		return fmt.Sprintf("%s: the input ends in the middle of what begins here", where)
	case e.Span:
		return fmt.Sprintf("%s: a span: %v", where, e.Err)
	}
	return fmt.Sprintf("%s: %v", where, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// maxValue bounds a span, in bytes: no more of the input is held.
const maxValue = 64 << 20

// Spans yields the spans of an input, in its order, as they are read. Errors are of type *Error;
// reading goes on after those whose Span or Skipped is true, others are the last that is yielded.
// The file's name is for errors. Anything that the reader returns as an error besides io.EOF ends
// it too.
func Spans(file string, r io.Reader) iter.Seq2[Span, error] {
	return func(yield func(Span, error) bool) {
		p := &parser{file: file, yield: yield}
		err := p.open(r)
		if err == nil {
			err = p.documents()
		}
		for err != nil && !errors.Is(err, errStopped) {
			fault := p.located(err)
			fault.Skipped = p.mayGoOn(err) && p.nextLine()
			if !yield(Span{}, fault) || !fault.Skipped {
				return
			}
			err = p.documents()
		}
	}
}

var (
	errStopped = errors.New("the reader wants no more")
	errTooLong = fmt.Errorf("a span or value is longer than %d MiB", maxValue>>20)
)

// parser walks through the input token by token, and decodes whole only what is small.
type parser struct {
	file    string
	yield   func(Span, error) bool
	in      *rereader
	decoder *json.Decoder
	lines   *lineReader
	begun   bool     // a document
	found   bool     // resourceSpans
	others  []string // the first of the other keys of documents
}

// open finds out how the input is written.
func (p *parser) open(r io.Reader) error {
	in := bufio.NewReaderSize(r, 64<<10)
	head, _ := in.Peek(8) // what fails here fails when it is read
	zstd := []byte{0x28, 0xb5, 0x2f, 0xfd}
	switch {
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		unzipped, err := gzip.NewReader(in)
		if err != nil {
			return fmt.Errorf("gzip: %w", err)
		}
		in = bufio.NewReaderSize(unzipped, 64<<10)
	case bytes.HasPrefix(head, zstd), len(head) == 8 && bytes.Equal(head[4:], zstd):
		return errors.New("it is compressed by zstd, which is not read: decompress it, or let the exporter write without " +
			"compression")
	}
	if head, _ := in.Peek(3); string(head) == "\ufeff" {
		_, _ = in.Discard(len(head))
	}
	space, lines := int64(0), int64(0)
	for {
		c, err := in.ReadByte()
		if err != nil {
			break // the decoder will find the same
		}
		if strings.IndexByte(" \t\r\n", c) >= 0 {
			space++
			if c == '\n' {
				lines++
			}
			continue
		}
		_ = in.UnreadByte()
		if c != '{' && c != '[' {
			return fmt.Errorf("it is not OTLP JSON: it begins with %q (the file exporter writes JSON with format: json)", c)
		}
		break
	}
	p.in = &rereader{in: in}
	p.start(space, lines)
	return nil
}

// start makes a decoder for what is left of the input, behind some bytes and lines.
func (p *parser) start(before, passed int64) {
	p.lines = &lineReader{in: p.in, before: before, passed: passed}
	p.decoder = json.NewDecoder(p.lines)
	p.lines.done = p.decoder.InputOffset
}

// mayGoOn reports whether the input can be read on after an error: only what was read was wrong.
func (p *parser) mayGoOn(err error) bool {
	whole := (*Error)(nil)
	return p.decoder != nil && !isReadError(err) && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.As(err, &whole)
}

// nextLine goes to the next line that begins with an object. It returns false if there is none.
func (p *parser) nextLine() bool {
	offset := p.decoder.InputOffset()
	before, line := p.lines.before+offset, p.lines.line(offset)
	p.in.unread(p.decoder.Buffered())
	if line > 1 && p.lines.begins == offset && p.in.begins('{') { // what is wrong was before it
		p.start(before, line-1)
		return true
	}
	skipped, lines, ok := p.in.skipTo("\n{")
	p.start(before+skipped, line-1+lines)
	return ok
}

// documents reads all values of the input.
func (p *parser) documents() error {
	for ; ; p.begun = true {
		token, err := p.decoder.Token()
		switch {
		case errors.Is(err, io.EOF) && p.begun && !p.found:
			return &Error{File: p.file, Err: p.nothing()}
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case token == json.Delim('{'):
			err = p.fields(p.documentField)
		case token == json.Delim('['):
			err = p.elements(func() error { return p.object(p.documentField) })
		default:
			err = fmt.Errorf("%.40q where an object is expected", fmt.Sprint(token))
		}
		if err != nil {
			return inside(err)
		}
	}
}

func (p *parser) nothing() error {
	if len(p.others) == 0 {
		return errors.New(`it is not OTLP JSON: no object has "resourceSpans"`)
	}
	return fmt.Errorf(`it holds no traces in OTLP JSON or Jaeger's: no object has "resourceSpans", or "data" with spans as Jaeger writes it; they have %q`, p.others)
}

// inside makes an end of the input one that was not to be there.
func inside(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

func (p *parser) documentField(key string) error {
	if key == "resourcespans" {
		p.found = true
		return p.array(func() error {
			resource := new(Resource)
			return p.object(func(key string) error { return p.resourceField(key, resource) })
		})
	}
	if key == "data" {
		if err := p.array(p.jaegerTrace); err != nil || p.found {
			return err
		}
	} else if err := p.skip(); err != nil {
		return err
	}
	if len(p.others) < 5 {
		p.others = append(p.others, key)
	}
	return nil
}

func (p *parser) resourceField(key string, resource *Resource) error {
	switch key {
	case "resource":
		var j jsonResource
		if err := p.decode(&j); err != nil {
			return err
		}
		resource.Service = j.service()
		return nil
	case "scopespans", "instrumentationlibraryspans":
		return p.array(func() error {
			return p.object(func(key string) error {
				if key != "spans" {
					return p.skip()
				}
				return p.array(func() error { return p.span(resource) })
			})
		})
	}
	return p.skip()
}

func (p *parser) span(resource *Resource) error {
	line, offset := p.position()
	span, err := decodeSpan(p.decoder, resource)
	if err != nil {
		if err := fatal(err); err != nil {
			return err
		}
		err = &Error{File: p.file, Line: line, Offset: offset, Span: true, Err: err}
	}
	if !p.yield(span, err) {
		return errStopped
	}
	return nil
}

// decode reads a value that is small. One of the wrong type is as if it were not there.
func (p *parser) decode(v any) error { return fatal(p.decoder.Decode(v)) }

// fatal returns err if the decoder cannot go on after it.
func fatal(err error) error {
	syntax := (*json.SyntaxError)(nil)
	switch {
	case errors.As(err, &syntax), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), isReadError(err):
		return err
	}
	return nil
}

func isReadError(err error) bool {
	read := (*readError)(nil)
	return errors.As(err, &read)
}

// object reads an object, or null.
func (p *parser) object(field func(key string) error) error {
	return p.enter('{', func() error { return p.fields(field) })
}

// array reads an array, or null.
func (p *parser) array(element func() error) error {
	return p.enter('[', func() error { return p.elements(element) })
}

func (p *parser) enter(delim json.Delim, body func() error) error {
	token, err := p.decoder.Token()
	switch {
	case err != nil:
		return err
	case token == nil:
		return nil
	case token != delim:
		return fmt.Errorf("%.40q where %v is expected", fmt.Sprint(token), delim)
	}
	return body()
}

// fields reads an object whose brace has been read. Keys are given in lower case without
// underscores.
func (p *parser) fields(field func(key string) error) error {
	for p.decoder.More() {
		token, err := p.decoder.Token()
		if err != nil {
			return err
		}
		key, _ := token.(string) // the decoder allows nothing else
		if err := field(strings.ToLower(strings.ReplaceAll(key, "_", ""))); err != nil {
			return err
		}
	}
	_, err := p.decoder.Token()
	return err
}

func (p *parser) elements(element func() error) error {
	for p.decoder.More() {
		if err := element(); err != nil {
			return err
		}
	}
	_, err := p.decoder.Token()
	return err
}

// skip reads a value of any size and depth.
func (p *parser) skip() error {
	for depth := 0; ; {
		token, err := p.decoder.Token()
		if err != nil {
			return err
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		if depth == 0 {
			return nil
		}
	}
}

// located says where an error is.
func (p *parser) located(err error) *Error {
	if e := (*Error)(nil); errors.As(err, &e) {
		return e
	}
	line, offset := p.position()
	return &Error{File: p.file, Line: line, Offset: offset, Truncated: errors.Is(err, io.ErrUnexpectedEOF), Err: err}
}

// position returns where the decoder is.
func (p *parser) position() (line, offset int64) {
	if p.decoder == nil {
		return 0, 0
	}
	offset = p.decoder.InputOffset()
	return p.lines.line(offset), offset + p.lines.before
}
