package transport

import (
	"fmt"

	"github.com/foresay/foresay/protocol"
)

// A Group is one replicated service, or one partition of it, among those that share hosts.
type Group uint32

// An Addr says which node is meant.
type Addr struct {
	Group Group
	ID    protocol.ID
}

func (a Addr) String() string { return fmt.Sprintf("node %d of group %d", a.ID, a.Group) }
