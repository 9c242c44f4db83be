package client

import (
	"example.com/tidy/smr"
	"example.com/tidy/smr/raft"
)
