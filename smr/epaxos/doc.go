// Package epaxos is Egalitarian Paxos [Moraru, Andersen, Kaminsky, SOSP 2013], with the recovery of
// EPaxos* [Ryabinin, Gotsman, Sutra, OPODIS 2025] in place of the original one: no leader, each
// replica has commands decided that its clients bring, and replicas agree with each command on what
// it depends on.
//
// A command that conflicts with nothing under way is decided in one round trip to the nearest
// quorum, two of three replicas or three of five; another one in two. Replicas execute it when all
// that it depends on is decided too. Commands conflict if the state machine does not say otherwise:
// see [Interferer].
//
// A client asks the nearest replica, and another one if that is silent. A Propose with
// smr.AckDurable is done when the command is decided, with one of another kind when it was
// executed. After an AckDurable, the Slot of the Done is a token: a call with it as Call.After is
// ordered behind. A client's own calls have it without being told.
//
// DESIGN.md has the decisions, what the papers leave out, and the argument for safety.
package epaxos
