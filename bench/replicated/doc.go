// Package replicated holds the experiments on state machine replication, and what they run: the
// latency of each client's site in a simulated wide-area network, the gap when a leader is killed,
// and the throughput of real replicas on this machine.
package replicated
