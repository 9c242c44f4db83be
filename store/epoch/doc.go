// Package epoch is the agreement of a store's machines on what its next epoch is: single-decree
// Paxos, with an instance for each epoch, whose acceptors are the machines of the epoch before. It
// is pure: whoever runs it makes states durable and carries messages.
package epoch
