package dump

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/foresay/foresay/clock"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/mvcc"
)

// Source is a store whose snapshot is written: see front.Conn.Page.
type Source interface {
	Page(ctx context.Context, shard int, at clock.Stamp, from mvcc.Cursor) (store.PageReply, error)
}

// A Progress is how far it is.
type Progress struct {
	Shard, Shards, Keys int
	// Resumed says that Keys is what an earlier run has written, and nothing is new yet.
	Resumed bool
}

// ErrComplete is what Write returns for a file that needs nothing more.
var ErrComplete = errors.New("the export is complete")

// Write writes the snapshot of a timestamp to a file, or of the present if that is 0. If the file
// has the beginning of one, of the same store, Write goes on with that one, whatever the present
// is. The header's At is not used. It returns how many keys the file has, and of when it is. tell
// may be nil.
func Write(
	ctx context.Context, f *os.File, src Source, h Header, at clock.Stamp, tell func(Progress),
) (keys int, of clock.Stamp, err error) {
	w, err := resume(f, h, at)
	if err != nil {
		return 0, 0, err
	}
	if tell != nil && w.begun {
		tell(Progress{w.shard, h.Shards, w.keys, true})
	}
	for w.shard < h.Shards {
		page, err := src.Page(ctx, w.shard, w.at, w.next)
		if err != nil {
			return w.keys, w.at, err
		}
		if err := w.write(h, page); err != nil {
			return w.keys, w.at, err
		}
		if tell != nil {
			tell(Progress{w.shard, h.Shards, w.keys, false})
		}
	}
	if _, err := f.Write(appendLine(nil, line{End: true, Keys: &w.keys})); err != nil {
		return w.keys, w.at, err
	}
	return w.keys, w.at, f.Sync()
}

// writing is a file that is being written.
type writing struct {
	file  *os.File
	begun bool // it has a header
	at    clock.Stamp
	shard int
	next  mvcc.Cursor
	keys  int
}

// write writes a page with its end, at once.
func (w *writing) write(h Header, page store.PageReply) error {
	var b []byte
	if !w.begun {
		w.begun, w.at = true, clock.Stamp(page.At)
		h.Format, h.At = format, FormatTime(w.at)
		b = appendLine(b, h)
	}
	for _, i := range page.Items {
		b = appendLine(b, itemLine(i))
	}
	w.keys += len(page.Items)
	b = appendLine(b, line{Shard: &w.shard, Next: page.Next, Keys: &w.keys})
	if _, err := w.file.Write(b); err != nil {
		return err
	}
	if w.next = page.Next; len(page.Next) == 0 {
		w.shard, w.next = w.shard+1, nil
	}
	return nil
}

// resume finds where the last whole page of a file ends, and cuts off what is behind that.
func resume(f *os.File, h Header, at clock.Stamp) (*writing, error) {
	w := &writing{file: f, at: at}
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() == 0 || !info.Mode().IsRegular() {
		return w, nil
	}
	r, err := NewReader(f.Name(), f)
	if errors.Is(err, errTorn) { // nothing was written but a part of the header
		return w, cut(f, 0)
	}
	if err != nil {
		return nil, err
	}
	switch o := r.Header; {
	case o.Store != h.Store:
		return nil, r.fail(fmt.Errorf("store: the file has an export of %q, and the store is %q", o.Store, h.Store))
	case o.StoreID == "" && h.StoreID != "":
		return nil, r.fail(fmt.Errorf("store_id: it is missing: an earlier version began the export, maybe at another "+
			"store; remove %s to begin anew", f.Name()))
	case o.StoreID != h.StoreID:
		return nil, r.fail(fmt.Errorf("store_id: the export was begun at another store that is named %q; remove %s to "+
			"begin anew", o.Store, f.Name()))
	case o.Shards != h.Shards:
		return nil, r.fail(fmt.Errorf("shards: the file has %d, and the store %d", o.Shards, h.Shards))
	case at != 0 && at != r.At:
		return nil, r.fail(fmt.Errorf("at: the file has the snapshot of %s, and that of %s is asked for", o.At,
			FormatTime(at)))
	}
	w.begun, w.at = true, r.At
	end := int64(0)
	for {
		_, isItem, err := r.step()
		switch {
		case r.done:
			return nil, fmt.Errorf("%s: %w", f.Name(), ErrComplete)
		case err != nil && (errors.Is(err, errTorn) || r.atEnd()):
			if end == 0 {
				w.begun = false
			}
			return w, cut(f, end)
		case err != nil:
			return nil, err
		case !isItem:
			end, w.shard, w.next, w.keys = r.offset, r.shard, r.next, r.Keys
		}
	}
}

// atEnd reports whether there is nothing more to read.
func (r *Reader) atEnd() bool {
	_, err := r.in.Peek(1)
	return err == io.EOF
}

// cut leaves so much of a file, and goes on behind it.
func cut(f *os.File, size int64) error {
	if err := f.Truncate(size); err != nil {
		return err
	}
	_, err := f.Seek(size, io.SeekStart)
	return err
}
