package a

import (
	_ "embed"
	"errors"
	"fmt"
	re "regexp"

	"example.com/tidy/internal/wirefmt"
)

const limit = 3

var errLost = errors.New("lost")

var (
	errGone = fmt.Errorf("gone: %w", errLost)
	pattern = re.MustCompile("a+")
)

var layout = wirefmt.NewLayout("a", fields)

var _ fmt.Stringer = (*t)(nil)

// count counts.
var count int

var (
	cache = map[string]int{}
	x, y  = 1, 2
)

var ErrLost = other.ErrLost

var ErrOther = other.ErrLost

var errLike = other.New("not an error")

var version string //tidy:ok to show that a waiver works

//go:embed a.go
var source string

var (
	//go:embed a.go
	again string
)

type t struct {
	other interface{ New(string) error }
}

func (*t) String() string {
	var local int
	return fmt.Sprint(local)
}
