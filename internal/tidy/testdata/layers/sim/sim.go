package sim

import (
	"example.com/tidy/smr"
	"example.com/tidy/smr/raft"
)
