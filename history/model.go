package history

import (
	"hash/maphash"
)

// Model says how an object behaves when its operations happen one at a time: S is its state. Init
// and Step are required; all functions must be pure.
type Model[S, I, O any] struct {
	// Init returns the object's first state.
	Init func() S
	// Step returns the state after an operation, and whether the object could have answered output
	// to input. If output is nil, the answer is unknown and only the state matters; to refuse then
	// means that the operation cannot take effect.
	Step func(state S, input I, output *O) (S, bool)
	// Partition names the independent part of the object that an input concerns, such as a key: an
	// object is linearizable if each part is, and Init and Step then speak of one part. Without it
	// the object is one part.
	Partition func(input I) string
	// Equal compares states. Without it they are compared by ==, so S must be comparable.
	Equal func(a, b S) bool
	// Hash speeds up the search: equal states must have equal hashes.
	Hash func(state S) uint64
	// ReadOnly tells of inputs that never change the state. Reads with unknown outcome constrain
	// nothing, and reads can be left out of an explanation.
	ReadOnly func(input I) bool
	// Simplify returns operations of one part that are linearizable if and only if ops are, and
	// easier to search. It may keep the argument, and must not change it.
	Simplify func(ops []Op[I, O]) []Op[I, O]
	// Explains reports whether some operations of one part explain a violation by themselves: if all
	// is linearizable, some must be too. Without it, that is taken to hold if only reads are left
	// out.
	Explains func(some, all []Op[I, O]) bool
	// Describe returns an operation as text; DescribeState a state. Without them, they are
	// formatted with %v.
	Describe      func(op Op[I, O]) string
	DescribeState func(state S) string
}

// hashOf returns a hash function for comparable states.
func hashOf[S comparable]() func(S) uint64 {
	seed := maphash.MakeSeed()
	return func(state S) uint64 { return maphash.Comparable(seed, state) }
}
