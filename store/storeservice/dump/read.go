package dump

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"github.com/foresay/foresay/clock"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/mvcc"
)

// maxLineBytes is more than the longest line takes, every byte of which may be escaped.
const maxLineBytes = 6*(store.MaxKeyBytes+store.MaxValueBytes) + 1024

// A Reader goes through a file. Its errors name the file, the line and the field.
type Reader struct {
	name string
	in   *bufio.Reader
	// Header is the first line.
	Header Header
	At     clock.Stamp
	Line   int // the one that was read last, from 1 on
	Keys   int // before or in it

	offset int64 // behind it
	// pages is what the last end of a page says: a shard and where its next page begins.
	shard int
	next  mvcc.Cursor
	last  *store.Key // of the shard's keys; nil: there was none
	done  bool       // the end was read
}

// NewReader reads the first line. name is the file's, for errors.
func NewReader(name string, in io.Reader) (*Reader, error) {
	r := &Reader{name: name, in: bufio.NewReaderSize(in, 1<<16)}
	b, err := r.read()
	if err == io.EOF {
		return nil, fmt.Errorf("%s: it is empty", name)
	}
	if err != nil {
		return nil, err
	}
	if err := decode(b, &r.Header); err != nil {
		return nil, r.fail(err)
	}
	switch h := r.Header; {
	case h.Format != format:
		return nil, r.fail(fmt.Errorf("foresay_store_export: the format is %d; this program reads %d", h.Format, format))
	case h.Shards < 1:
		return nil, r.fail(fmt.Errorf("shards: it is %d", h.Shards))
	}
	if r.At, err = r.Header.time(); err != nil {
		return nil, r.fail(err)
	}
	return r, nil
}

func (r *Reader) fail(err error) error { return fmt.Errorf("%s:%d: %w", r.name, r.Line, err) }

// errTorn is what read returns for a last line that has no end.
var errTorn = errors.New("the line has no end")

// read returns the next line, or io.EOF.
func (r *Reader) read() ([]byte, error) {
	var b []byte
	for {
		part, err := r.in.ReadSlice('\n')
		if b = append(b, part...); len(b) > maxLineBytes {
			r.Line++
			return nil, r.fail(fmt.Errorf("the line has more than %d bytes", maxLineBytes))
		}
		switch {
		case err == nil:
			r.Line++
			r.offset += int64(len(b))
			return b, nil
		case errors.Is(err, bufio.ErrBufferFull):
		case err == io.EOF && len(b) == 0:
			return nil, io.EOF
		case err == io.EOF:
			r.Line++
			return nil, r.fail(errTorn)
		default:
			return nil, fmt.Errorf("%s: %w", r.name, err)
		}
	}
}

// Next returns the next item. The error is io.EOF when the file has been read and is whole.
func (r *Reader) Next() (store.Item, error) {
	for {
		item, isItem, err := r.step()
		if isItem && item.Key == "" { // Write goes on with what an earlier version put there
			err = r.fail(errors.New("key: it is empty, which no store takes"))
		}
		if err != nil || isItem {
			return item, err
		}
	}
}

// step takes one line.
func (r *Reader) step() (item store.Item, isItem bool, err error) {
	b, err := r.read()
	if err == io.EOF && !r.done {
		return item, false, fmt.Errorf("%s: the export is not complete: 'foresay store export' with this file goes on "+
			"with it", r.name)
	}
	if err != nil {
		return item, false, err
	}
	var l line
	if r.done {
		return item, false, r.fail(errors.New("there is a line behind the end"))
	}
	if err := decode(b, &l); err != nil {
		return item, false, r.fail(err)
	}
	kind, err := l.kind()
	if err != nil {
		return item, false, r.fail(err)
	}
	switch kind {
	case "item":
		if item, err = l.item(); err == nil {
			err = r.take(item)
		}
	case "page":
		err = r.endPage(l)
	case "end":
		err = r.end(l)
	}
	if err != nil {
		return item, false, r.fail(err)
	}
	return item, kind == "item", nil
}

// take notes an item.
func (r *Reader) take(i store.Item) error {
	switch {
	case r.shard == r.Header.Shards:
		return fmt.Errorf("key: all %d shards have ended", r.Header.Shards)
	case r.last != nil && *r.last == i.Key:
		return fmt.Errorf("key: %.40q is there twice", i.Key)
	case r.last != nil && *r.last > i.Key:
		return fmt.Errorf("key: %.40q comes after %.40q", i.Key, *r.last)
	}
	r.last = &i.Key
	r.Keys++
	return nil
}

func (r *Reader) endPage(l line) error {
	switch {
	case *l.Shard != r.shard:
		return fmt.Errorf("shard: it is %d, where shard %d is", *l.Shard, r.shard)
	case *l.Keys != r.Keys:
		return fmt.Errorf("keys: it says %d, and there are %d", *l.Keys, r.Keys)
	}
	if r.next = l.Next; len(l.Next) == 0 {
		r.shard, r.next, r.last = r.shard+1, nil, nil
	}
	return nil
}

func (r *Reader) end(l line) error {
	switch {
	case r.shard != r.Header.Shards:
		return fmt.Errorf("end: shard %d of %d has not ended", r.shard, r.Header.Shards)
	case *l.Keys != r.Keys:
		return fmt.Errorf("keys: it says %d, and there are %d", *l.Keys, r.Keys)
	}
	r.done = true
	return nil
}

// A Summary is what a whole file has.
type Summary struct {
	Store   string `json:"store"`
	StoreID string `json:"store_id,omitempty"`
	At      string `json:"at"`
	Keys    int    `json:"keys"`
}

// Check reads a whole file. The error names the file, the line and the field that is wrong.
func Check(name string, in io.Reader) (Summary, error) {
	r, err := NewReader(name, in)
	if err != nil {
		return Summary{}, err
	}
	for {
		if _, err := r.Next(); err == io.EOF {
			return Summary{r.Header.Store, r.Header.StoreID, r.Header.At, r.Keys}, nil
		} else if err != nil {
			return Summary{}, err
		}
	}
}
