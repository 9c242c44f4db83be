package bad

import (
	"example.com/tidy/internal/wirefmt"
	"example.com/tidy/kit"
)

func f() { kit.NewFormat("bad", 1) }

func g() { kit.NewFormat("bad", 2) } //tidy:ok to show that a waiver works

var layout = wirefmt.NewLayout("bad", fields)

func encode() {
	var w wirefmt.Writer
	w.Uint(1)
}

func decode(b []byte) uint64 { return wirefmt.NewReader(b).Uint() }
