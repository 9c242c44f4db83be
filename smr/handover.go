package smr

import "github.com/foresay/foresay/protocol"

// HandOver goes from an application to its replica, if Protocol.HandsOver: it leads, and is to have
// another member lead, or whoever is up to date if To is 0. It is answered at once with a
// HandingOver, and done when the Status says so.
type HandOver struct {
	ID CallID
	To protocol.ID
}

// HandingOver answers a HandOver: who is to lead, or why nobody is.
type HandingOver struct {
	ID     CallID
	To     protocol.ID
	Reason string // "" if it was begun
}
