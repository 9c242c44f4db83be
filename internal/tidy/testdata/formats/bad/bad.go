package bad

import "example.com/tidy/kit"

func f() { kit.NewFormat("bad", 1) }

func g() { kit.NewFormat("bad", 2) } //tidy:ok to show that a waiver works
