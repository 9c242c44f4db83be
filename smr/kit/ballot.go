package kit

import (
	"fmt"

	"github.com/foresay/foresay/protocol"
)

// A Ballot is the number of an attempt to have slots decided. Each belongs to one replica, whose ID
// is the lower half, so no two replicas ever propose in the same ballot. 0 is below all ballots:
// what it stands for, if anything, is the protocol's affair.
type Ballot uint64

// NewBallot returns a replica's lowest ballot above another one.
func NewBallot(above Ballot, id protocol.ID) Ballot { return (above>>32+1)<<32 | Ballot(id) }

// Owner returns the replica whose ballot it is.
func (b Ballot) Owner() protocol.ID { return protocol.ID(uint32(b)) }

func (b Ballot) String() string { return fmt.Sprintf("%d.%d", uint64(b)>>32, uint32(b)) }
