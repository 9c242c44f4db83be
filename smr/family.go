package smr

import "github.com/foresay/foresay/protocol"

// A Protocol makes the nodes of one way to replicate. It is a value that package internal/catalog
// has under its name.
type Protocol struct {
	Name string // as on a command line
	Doc  string // one sentence
	// NewReplica and NewClient validate their configurations; an error names the field.
	NewReplica func(ReplicaConfig) (protocol.Node[Message], error)
	NewClient  func(ClientConfig) (protocol.Node[Message], error)
	Codec      protocol.Codec[Message]
	// Salvage is what kit.SalvageDisk calls; nil if the disks of the protocol's replicas do not tell
	// what these had executed.
	Salvage func(cfg ReplicaConfig, env *protocol.Env[Message], log []protocol.Record[Message]) (Salvaged, error)
	// Leaderless protocols have commands decided by each replica; there is no Status.Leader.
	Leaderless bool
	// HandsOver says that a leader takes a HandOver.
	HandsOver bool
	// Learns says that a replica with Join gets the state and what is decided before it is a
	// member, and that one is added only when it is up to date. Else it counts from the change that
	// adds it on, and gets them then.
	Learns bool
	// Timed says that slots are times, so a replica's clock is to be the time of day, also when that
	// is set. Other protocols do as well with a clock that never jumps.
	Timed bool
}
