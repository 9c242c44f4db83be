// Package smr is the vocabulary of state machine replication: commands and what becomes of them,
// state machines, members, and what the protocols below this package share whichever way they
// agree.
//
// A [StateMachine] is what is replicated. A [Protocol] makes its nodes: replicas, which keep the
// log and the state machine, and clients, which take [Call] from their application and answer each
// with one [Done]. All nodes of the family exchange a [Message]; a runner (package sim or host)
// needs to know no more. Package smr/client is the blocking client for programs.
package smr
