package smr

// A Family is no protocol: it may export what it likes.
type (
	Protocol struct{}
	Family   struct{}
)
