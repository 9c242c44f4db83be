package bench

import (
	"example.com/tidy"
	"example.com/tidy/smr/raft"
)
