package a

// A Thing is said to be one.
type Thing[T any] struct{}

type Bare struct{}

// Both of them are told of at once.
type (
	One struct{}
	Two struct{}
)

// NewThing returns one.
func NewThing() Thing[int] { return Thing[int]{} }

// newOther had this name before.
func NewOther() {}

func None() {}

// Says says something.
func (t *Thing[T]) Says() {}

func (t Thing[T]) Nothing() {}

// Names' first is that of a method.
func (t Thing[T]) Name() string { return "" }

func (t Thing[T]) String() string { return "" }

func (o own) Exported() {}

type own struct{}
