// Package domino is Domino [Thesis §4.3]: replicas agree on commands across a wide-area network in
// one round trip, by the clock.
//
// A slot of the log is a time, to the nanosecond. A client that uses Domino's Fast Paxos (DFP)
// predicts when its command will have arrived at a supermajority of the replicas, asks all replicas
// to accept it in the slot of that time, and counts their votes. A client that uses Domino's
// Mencius (DM) has one replica propose it in that replica's own slots, for a majority to accept.
// Clients measure delays and choose what is faster. Slots that nobody uses are no-ops as soon as
// clocks have passed them; what was decided is executed in the order of the slots, DFP's and DM's
// together.
//
// One replica is the coordinator: it decides, by Paxos with ballots, slots of which votes differ or
// are missing, slots of replicas that have failed, and changes of the members. Any replica can take
// its place.
//
// See DESIGN.md for the decisions, the argument for safety, and the traps.
package domino
