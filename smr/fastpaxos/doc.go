// Package fastpaxos is Fast Paxos [Lamport, Fast Paxos, MSR-TR-2005-112]: clients send commands to
// all replicas, each of which accepts them in the order in which they arrive. If a fast quorum
// accepts the same command in the same slot, it is chosen after one round trip of the client. If
// they do not, the coordinator takes their votes for answers to its phase 1 and has one of the
// commands, or another that waits, accepted in a classic round.
//
// The coordinator of an era, a ballot for all slots, opens fast voting when it has taken over what
// earlier eras left. It may keep an era classic: then it gives out the slots itself, as Multi-Paxos
// does; changes of the members are made so.
//
// Clients count the votes of their commands, so that a position is known as fixed
// ([smr.AckDurable]) without the coordinator. Commands are executed, and ordered in the sense of
// [smr.AckOrdered], when all slots below are decided; the coordinator answers.
//
// DESIGN.md has the decisions and traps.
package fastpaxos
