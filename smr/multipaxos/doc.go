// Package multipaxos is Multi-Paxos [Lamport, The Part-Time Parliament; Paxos Made Simple §3]: a
// leader that stays orders the commands, and a majority of the replicas accepts them, one round
// trip from the leader. It is the baseline that papers on other protocols compare themselves with.
//
// The leader's ballot covers all slots from the first one that is not known to be decided: phase 1
// is done once, when it comes to lead. Then each slot takes phase 2 only; many are under way at
// once, and what comes up together travels together. Replicas accept slots without gaps, so what
// one has accepted is told by one number.
//
// Read messages.go, replica.go and log.go first, then elect.go, which is phase 1, lead.go and
// follow.go, which are phase 2, and read.go. The rest is what any leader here does besides:
// snapshots (compact.go), members that are to be (learn.go), a successor by request (handover.go),
// groups that have nothing to do (rest.go), and what a disk holds when all others are lost
// (salvage.go). Sessions, disks, the state and its way to others, and clients are in package kit.
//
// See DESIGN.md in package smr for the decisions behind it.
package multipaxos
