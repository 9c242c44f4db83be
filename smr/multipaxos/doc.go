// Package multipaxos is Multi-Paxos [Lamport, The Part-Time Parliament; Paxos Made Simple §3]: a
// leader that stays orders the commands, and a majority of the replicas accepts them, one round
// trip from the leader. It is the baseline that papers on other protocols compare themselves with.
//
// The leader's ballot covers all slots from the first one that is not known to be decided: phase 1
// is done once, when it comes to lead. Then each slot takes phase 2 only; many are under way at
// once, and what comes up together travels together. Replicas accept slots without gaps, so one
// number says what a replica has accepted.
//
// Read messages.go, replica.go and log.go first, then elect.go, which is phase 1, lead.go and
// follow.go, which are phase 2, and read.go. The other files are what a leader does besides:
// snapshots (compact.go), replicas that are to be added (learn.go), handing the lead over
// (handover.go), and groups that have nothing to do (rest.go). Package kit has sessions, disks, the
// state and its transfers, and clients.
//
// DESIGN.md has the decisions and traps.
package multipaxos
