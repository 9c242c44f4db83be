package otlp

import (
	"bytes"
	"errors"
	"io"
)

// lineReader knows in which line the decoder is, which reads ahead, and lets it not read ahead too
// far.
type lineReader struct {
	in     io.Reader
	done   func() int64 // how far the decoder is
	read   int64        // bytes given to it
	before int64        // bytes that it was not given
	passed int64        // lines that it has left behind
	begins int64        // where the line begins that it is in
	ahead  []int64      // where the line ends lie that it may not have left behind
}

// readError is a failure to read, as against one of what is read.
type readError struct{ error }

func (e *readError) Unwrap() error { return e.error }

func (l *lineReader) Read(b []byte) (int, error) {
	done := l.done()
	if l.read-done > maxValue {
		return 0, &readError{errTooLong}
	}
	l.pass(done)
	n, err := l.in.Read(b)
	for at := 0; ; {
		i := bytes.IndexByte(b[at:n], '\n')
		if i < 0 {
			break
		}
		at += i + 1
		l.ahead = append(l.ahead, l.read+int64(at))
	}
	l.read += int64(n)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		err = &readError{err}
	}
	return n, err
}

// pass forgets the line ends up to an offset.
func (l *lineReader) pass(offset int64) {
	n := 0
	for n < len(l.ahead) && l.ahead[n] <= offset {
		n++
	}
	if n == 0 {
		return
	}
	l.passed += int64(n)
	l.begins = l.ahead[n-1]
	l.ahead = append(l.ahead[:0], l.ahead[n:]...)
}

// line returns the line, from 1, that an offset lies in. Offsets must not fall.
func (l *lineReader) line(offset int64) int64 {
	l.pass(offset)
	return l.passed + 1
}

// rereader reads again what was read too far.
type rereader struct {
	again []byte
	in    io.Reader
}

func (r *rereader) Read(b []byte) (int, error) {
	if len(r.again) == 0 {
		return r.in.Read(b)
	}
	n := copy(b, r.again)
	r.again = r.again[n:]
	return n, nil
}

// unread gives back what is left of a buffer.
func (r *rereader) unread(rest io.Reader) {
	b, _ := io.ReadAll(rest) // memory, which does not fail
	r.again = append(b, r.again...)
}

func (r *rereader) begins(c byte) bool { return len(r.again) > 0 && r.again[0] == c }

// skipTo reads up to the last byte of the next occurrence of sign, which is then the next to be
// read. It returns how many bytes and lines it read, and whether there is one.
func (r *rereader) skipTo(sign string) (skipped, lines int64, ok bool) {
	leave := func(n int) {
		skipped += int64(n)
		lines += int64(bytes.Count(r.again[:n], []byte("\n")))
		r.again = r.again[n:]
	}
	for {
		if at := bytes.Index(r.again, []byte(sign)); at >= 0 {
			leave(at + len(sign) - 1)
			return skipped, lines, true
		}
		leave(max(0, len(r.again)-len(sign)+1)) // it may have begun
		more := make([]byte, 64<<10)
		n, err := r.in.Read(more)
		r.again = append(r.again[:len(r.again):len(r.again)], more[:n]...)
		if err != nil && n == 0 {
			return skipped, lines, false
		}
	}
}
