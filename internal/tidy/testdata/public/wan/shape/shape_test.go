package shape

type t struct{}

func (t) Example() {}
