package tidy

import (
	"example.com/tidy/api"
	"example.com/tidy/bench"
	"example.com/tidy/internal/spectree"
	"example.com/tidy/quorum"
	"example.com/tidy/sim"
	"example.com/tidy/smr"
)
