// Package mencius is Mencius [Mao, Junqueira, Marzullo, Mencius, OSDI 2008]: the replicas take
// turns in the order of commands, so that each client asks the replica next to it, which needs no
// other to order a command.
//
// The slots of an epoch belong to its members in turn. The slots of one member are its track: a row
// of Paxos instances in which the member leads without having to ask, in ballot 0. A member that
// hears of a command above its own free slots skips those: it promises never to propose anything
// there, and who hears of that need not wait for a majority. A member that is silent, or in whose
// track the execution is stuck, is revoked: another one leads its track in a higher ballot, keeps
// what may have been decided and fills the rest with nothing, some way ahead. The member takes its
// track back when it returns.
//
// A command's position is fixed when a majority has accepted its slot ([smr.AckDurable]); it is
// executed, and ordered in the sense of [smr.AckOrdered], when all slots below are decided too.
//
// DESIGN.md has the decisions and traps.
package mencius
