package smr

import "fmt"

// Ack is what a client waits for before a Propose is done. Protocols in which a command's position
// is fixed long before it can be executed distinguish them; in the others all are Executed.
type Ack uint8

const (
	// AckDefault is AckOrdered for Propose and AckExecuted for Execute.
	AckDefault Ack = iota
	// AckDurable says that the command's position is fixed, and that it will be executed there
	// unless its session is closed before. A call that begins later may still get an earlier
	// position, unless it says by Call.After that it must not.
	AckDurable
	// AckOrdered says as well that no call that begins later gets an earlier position.
	AckOrdered
	// AckExecuted says that the command was executed.
	AckExecuted
)

func (a Ack) String() string {
	switch a {
	case AckDefault:
		return "default"
	case AckDurable:
		return "durable"
	case AckOrdered:
		return "ordered"
	case AckExecuted:
		return "executed"
	}
	return fmt.Sprintf("ack %d", uint8(a))
}
