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
// follow.go, which are phase 2, and read.go. Two things in these are Raft's: the paper leaves open
// who stands for leader and when. They are the pre-vote, which comes before phase 1 (elect.go), and
// a leader's check that it still reaches a majority (onQuorumCheck in lead.go). The other files are
// what a leader does besides: snapshots (compact.go), replicas that are to be added (learn.go),
// handing the lead over (handover.go), and groups that have nothing to do (rest.go). Package kit
// has sessions, disks, the state and its transfers, and clients.
//
// Words of package kit and package protocol that the files use without explanation:
//
//   - Send waits until what the node has appended to its log is on disk, SendAhead does not. An
//     answer that is a promise or a vote therefore goes by Send.
//   - Admission keeps out disks that have forgotten their votes: messages to members go through it,
//     in letters that name the disk of their sender.
//   - Desk has the clients' commands that a leader has taken, and answers them once.
//   - Times are in round trips: r.Times of the configured one, r.Tempo.Times of what answers take
//     at present.
//   - Now of an Env is the machine's own clock, which may be set back or forward. Safety does not
//     rest on it, and who compares times must not wait for ever if one is ahead of now.
//   - Flow says which slot a follower is sent next, and bounds what it has not acknowledged.
//     Transfers carry the state to followers that lag behind the log. Rounds confirm that a leader
//     still leads, for reads.
//   - Of a learner a leader knows which disk its progress is about (peer.disk, peer.stranger), and
//     for the Tempo it times one slot of each peer at a time (peer.timed, peer.since).
//
// Comments name messages by their types, as accept; scenarios print them capitalised, as Accept.
//
// DESIGN.md has the decisions and traps.
package multipaxos
