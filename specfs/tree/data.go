package tree

import (
	"encoding/binary"

	"github.com/foresay/foresay/specfs"
)

// file returns a file whose data the caller may use.
func (t *tree) file(id specfs.ID, want specfs.Access, opened bool) (*object, specfs.Errno) {
	o, errno := t.known(id)
	switch {
	case errno != specfs.OK:
		return nil, errno
	case o.Kind == specfs.Directory:
		return nil, specfs.EISDIR
	case o.Kind != specfs.File:
		return nil, specfs.EINVAL
	case !t.mayUse(o, want, opened):
		return nil, specfs.EACCES
	}
	return o, specfs.OK
}

func (t *tree) readAt(op specfs.ReadAt) specfs.Result {
	o, errno := t.file(op.ID, specfs.Read, op.Opened)
	switch {
	case errno != specfs.OK:
		return failed(errno)
	case op.Length < 0 || op.Length > specfs.MaxDataBytes:
		return failed(specfs.EINVAL)
	}
	t.saw(o, specfs.Data)
	if op.Offset >= o.Size {
		return specfs.Result{}
	}
	data := make([]byte, min(uint64(op.Length), o.Size-op.Offset))
	for done := 0; done < len(data); {
		at := op.Offset + uint64(done)
		number, within := at/blockBytes, int(at%blockBytes)
		n := min(len(data)-done, blockBytes-within)
		if block := t.block(o, number); within < len(block) {
			copy(data[done:done+n], block[within:])
		}
		done += n
	}
	return specfs.Result{Data: data, N: len(data)}
}

func (t *tree) writeAt(op specfs.WriteAt) specfs.Result {
	o, errno := t.file(op.ID, specfs.Write, op.Opened)
	if errno != specfs.OK {
		return failed(errno)
	}
	offset := op.Offset
	if op.Append {
		offset = o.Size
	}
	switch {
	case len(op.Data) > specfs.MaxDataBytes:
		return failed(specfs.EINVAL)
	case offset > specfs.MaxFileBytes || uint64(len(op.Data)) > specfs.MaxFileBytes-offset:
		return failed(specfs.EFBIG)
	case len(op.Data) == 0:
		return specfs.Result{}
	}
	t.fill(o, offset, op.Data)
	o.Size = max(o.Size, offset+uint64(len(op.Data)))
	t.changeContent(o, append(t.writtenBy(o), specfs.Data)...)
	return specfs.Result{N: len(op.Data)}
}

// writtenBy takes the privileges from a file that the caller writes, and returns what that changes
// beside the data.
func (t *tree) writtenBy(o *object) []specfs.Aspect {
	before := o.Mode
	if !t.Cred.Super() {
		o.Mode = t.unprivileged(o)
	}
	if o.Mode == before {
		return nil
	}
	return []specfs.Aspect{specfs.Meta}
}

// block returns a block of a file's data, which may be shorter than its place.
func (t *tree) block(o *object, number uint64) []byte {
	b, _ := t.space.Get(key(recordBlock, o.ID, o.Content, number))
	return b
}

// fill puts data into a file's blocks.
func (t *tree) fill(o *object, offset uint64, data []byte) {
	for len(data) > 0 {
		number, within := offset/blockBytes, int(offset%blockBytes)
		n := min(len(data), blockBytes-within)
		var old []byte
		if n < blockBytes && number*blockBytes < o.Size {
			old = t.block(o, number)
		}
		block := make([]byte, max(len(old), within+n))
		copy(block, old)
		copy(block[within:], data[:n])
		t.space.Put(key(recordBlock, o.ID, o.Content, number), block)
		offset, data = offset+uint64(n), data[n:]
	}
}

// resize makes a file so long. Its blocks never reach beyond its size, so that it can grow by
// nothing but its size.
func (t *tree) resize(o *object, size uint64) {
	switch {
	case size == 0 && o.Size > 0:
		t.space.Put(key(recordGarbage, o.ID, o.Content), nil)
		o.Content++
	case size < o.Size:
		t.clear(o, size, o.Size)
	}
	o.Size = size
}

// clear makes zeros of what a file has between two offsets. It costs what is there.
func (t *tree) clear(o *object, from, to uint64) {
	prefix := key(recordBlock, o.ID, o.Content)
	first := from / blockBytes
	var there []uint64
	for k := range t.space.Scan(key(recordBlock, o.ID, o.Content, first), end(prefix)) {
		number := binary.BigEndian.Uint64(k[len(prefix):])
		if number*blockBytes >= to {
			break
		}
		there = append(there, number)
	}
	for _, number := range there {
		at := key(recordBlock, o.ID, o.Content, number)
		block, begin := t.block(o, number), number*blockBytes
		lo, hi := max(from, begin)-begin, min(to-begin, uint64(len(block)))
		switch {
		case lo >= hi:
		case hi == uint64(len(block)) && lo == 0:
			t.space.Delete(at)
		case hi == uint64(len(block)):
			t.space.Put(at, append([]byte(nil), block[:lo]...))
		default:
			b := append([]byte(nil), block...)
			clear(b[lo:hi])
			t.space.Put(at, b)
		}
	}
}

func (t *tree) allocate(op specfs.Allocate) specfs.Result {
	o, errno := t.file(op.ID, specfs.Write, op.Opened)
	switch {
	case errno != specfs.OK:
		return failed(errno)
	case op.Length == 0 || op.Punch && !op.Keep:
		return failed(specfs.EINVAL)
	case op.Offset > specfs.MaxFileBytes || op.Length > specfs.MaxFileBytes-op.Offset:
		return failed(specfs.EFBIG)
	}
	to := op.Offset + op.Length
	switch {
	case op.Punch:
		t.clear(o, op.Offset, to)
	case !op.Keep:
		o.Size = max(o.Size, to)
	}
	t.changeContent(o, append(t.writtenBy(o), specfs.Data)...)
	return specfs.Result{}
}
