// Package replicated measures replicated services: the latency of each client's site in a simulated
// wide-area network, the gap when a leader is killed, and the throughput of real replicas on this
// machine. It returns plain figures; package bench makes rows and pictures of them.
package replicated
