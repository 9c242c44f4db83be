package kit

// Paged is a sequence that grows at its end and is forgotten from its beginning, in parts of one
// size: what is there is never copied. A log that is one slice took a tenth of a leader's time. Its
// zero value is empty.
type Paged[T any] struct {
	parts [][]T
	gone  int // at the beginning of the first part
	n     int
}

// pageSize is how many elements are in a part.
const pageSize = 128

// Len returns how many elements there are.
func (v *Paged[T]) Len() int { return v.n }

// At returns the place of an element, counted from the first that is not forgotten.
func (v *Paged[T]) At(i int) *T {
	i += v.gone
	return &v.parts[i/pageSize][i%pageSize]
}

// Add adds an element.
func (v *Paged[T]) Add(x T) {
	if v.gone+v.n == len(v.parts)*pageSize {
		v.parts = append(v.parts, make([]T, pageSize))
	}
	v.n++
	*v.At(v.n - 1) = x
}

// Forget drops the first n elements, and what they refer to.
func (v *Paged[T]) Forget(n int) {
	for i := range n {
		var none T
		*v.At(i) = none
	}
	v.gone, v.n = v.gone+n, v.n-n
	whole := v.gone / pageSize
	clear(v.parts[:whole])
	v.parts, v.gone = v.parts[whole:], v.gone%pageSize
}
