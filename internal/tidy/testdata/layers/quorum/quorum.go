package quorum

import (
	"example.com/tidy/clock"
	"example.com/tidything/elsewhere"

	"example.com/tidy/bench" //tidy:ok to show that a waiver works
	"example.com/tidy/quorum/flex"
	"example.com/tidy/sim"
	"example.com/tidy/smr"
)
