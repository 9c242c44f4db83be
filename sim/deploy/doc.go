// Package deploy builds simulated deployments: the nodes of a protocol at sites of a network, and
// the applications at some of them, which make calls and wait for what becomes of each.
//
// A [Deployment] is a [sim.Sim] with three things that every experiment needs. Nodes are made by
// constructors that may fail: [Deployment.Add] tries one, so a configuration that is wrong is an
// error where it is given, and not a panic in a step. Calls are numbered, and an answer that nobody
// waits for is an error ([Deployment.Call]). And whoever sees what must not happen says so once, by
// [Deployment.Fail], and the run ends with it. Sites, delays, disks, clocks and faults are those of
// package sim, whose methods a Deployment has.
package deploy
