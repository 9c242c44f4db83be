package replicatedcommit

import (
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/kit"
)

// Protocol returns Replicated Commit as a protocol of the family.
func Protocol() store.Protocol {
	return store.Protocol{
		Name:           "replicatedcommit",
		Doc:            "Replicated Commit: every site votes, and a majority of the sites commits.",
		NewServer:      kit.NodeOf(newServer),
		NewCoordinator: kit.NodeOf(newCoordinator),
		NewClient:      kit.ClientOf(newClient),
		Codec:          codec(),
		Absent:         true,
		Preload:        &store.Preload{Prefix: valuePrefix, Encode: store.EncodeValue},
	}
}
