package domino

import (
	"example.com/tidy/smr"
	"example.com/tidy/smr/fastpaxos"
)
