package wirefmt

// A Coder takes the fields of a message one after another: it adds them to a message's bytes, or
// sets them from these. So one function describes a message in both directions:
//
//	func(c *wirefmt.Coder, m *Prepare) {
//		wirefmt.Uint(c, &m.From)
//		wirefmt.Uint(c, &m.Ballot)
//	}
//
// What such a function does must depend only on fields that it has taken already.
type Coder struct {
	// One of them is nil.
	w *Writer
	r *Reader
}

// Coder returns a Coder that adds fields to w.
func (w *Writer) Coder() *Coder { return &Coder{w: w} }

// Coder returns a Coder that sets fields from r.
func (r *Reader) Coder() *Coder { return &Coder{r: r} }

// Reading reports whether fields are set from bytes.
func (c *Coder) Reading() bool { return c.r != nil }

// Err returns the first error of what is read.
func (c *Coder) Err() error {
	if c.r == nil {
		return nil
	}
	return c.r.err
}

// Failf notes that what was read cannot be. It does nothing while fields are written.
func (c *Coder) Failf(format string, args ...any) {
	if c.r != nil {
		c.r.Failf(format, args...)
	}
}

// Uint takes an unsigned number.
func Uint[T ~uint64 | ~int64](c *Coder, v *T) {
	if c.r != nil {
		*v = T(c.r.Uint())
		return
	}
	c.w.Uint(uint64(*v))
}

// Uint32 takes an unsigned number of at most 32 bits.
func Uint32[T ~uint32](c *Coder, v *T) {
	if c.r != nil {
		*v = T(c.r.Uint32())
		return
	}
	c.w.Uint(uint64(*v))
}

// Count takes how many there are of something, at most 32 bits.
func Count(c *Coder, v *int) {
	if c.r != nil {
		*v = int(c.r.Uint32())
		return
	}
	c.w.Uint(uint64(*v))
}

// Int takes a signed number.
func Int[T ~int64](c *Coder, v *T) {
	if c.r != nil {
		*v = T(c.r.Int())
		return
	}
	c.w.Int(int64(*v))
}

// Enum takes one of a few values, from least to most; what names them in errors. They take a byte
// each.
func Enum[T ~uint8](c *Coder, v *T, least, most T, what string) {
	if c.r == nil {
		c.w.Buf = append(c.w.Buf, byte(*v))
		return
	}
	if *v = T(c.r.Byte()); (*v < least || *v > most) && c.r.err == nil {
		c.r.Failf("%d is no %s", uint8(*v), what)
	}
}

// Bool takes a truth value.
func Bool(c *Coder, v *bool) {
	if c.r != nil {
		*v = c.r.Bool()
		return
	}
	c.w.Bool(*v)
}

// Bytes takes a byte string. What is read has memory of its own; it is nil if it is empty.
func Bytes(c *Coder, v *[]byte) {
	if c.r != nil {
		*v = c.r.Bytes()
		return
	}
	c.w.Bytes(*v)
}

// Shared takes a byte string that nobody changes any more: see [Writer.Shared].
func Shared(c *Coder, v *[]byte) {
	if c.r != nil {
		*v = c.r.Bytes()
		return
	}
	c.w.Shared(*v)
}

// View is Shared, but what is read is a part of the bytes, and must neither be kept nor changed.
func View(c *Coder, v *[]byte) {
	if c.r != nil {
		*v = c.r.View()
		return
	}
	c.w.Shared(*v)
}

// String takes a string.
func String[T ~string](c *Coder, v *T) {
	if c.r != nil {
		*v = T(c.r.String())
		return
	}
	c.w.String(string(*v))
}

// firstElements bounds how many elements of a list get memory before their bytes are seen.
const firstElements = 64

// List takes a list whose elements take at least sizeBytes each: see [Reader.List]. What is read is
// nil if it is empty.
func List[S ~[]T, T any](c *Coder, list *S, sizeBytes int, fields func(*Coder, *T)) {
	if c.r == nil {
		c.w.List(len(*list))
		for i := range *list {
			fields(c, &(*list)[i])
		}
		return
	}
	n := c.r.List(sizeBytes)
	if *list = nil; n == 0 {
		return
	}
	s := make(S, 0, min(n, firstElements))
	for range n {
		var none T
		s = append(s, none)
		fields(c, &s[len(s)-1])
		if c.r.err != nil {
			return
		}
	}
	*list = s
}
