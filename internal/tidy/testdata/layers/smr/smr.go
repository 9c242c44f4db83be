package smr

import (
	"example.com/tidy/quorum"
	"example.com/tidy/smr/raft"
)
