package smr

import "time"

// A Vouched is what a host knows of another one that says from time to time that it is there. A
// host that is there runs all its replicas: it ends with the first of them that fails.
type Vouched struct {
	Run uint64        // names the run of the host: its replicas have begun anew if it is another one
	At  time.Duration // when it was heard last, by the clock of this host's nodes
}

// within tells whether it was heard for less than so long. Nodes of a host run beside each other:
// the moment may be a little after the one at which a call of the node that asks began.
func (v Vouched) Within(now, patience time.Duration) bool {
	return now-v.At < patience && v.At-now < patience
}
