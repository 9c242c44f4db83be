// Package randtest checks Foresay on random programs: it generates a program
// and a world of servers from a seed, runs the program once sequentially over
// plain gRPC and once speculatively, and compares what came of it: results,
// effects at the servers, hooks. Both runs are real gRPC in bubbles of virtual
// time.
//
// What a program decides, it decides by a hash of the seed and of the place in
// the program, so that both runs of a seed, and all runs of a task, decide alike.
package randtest
