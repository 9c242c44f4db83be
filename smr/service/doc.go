// Package service is the replicated key-value service that "foresay smr serve" runs: its clients,
// its replicas, and whole clusters for development.
//
// A program that uses the service reads the clients' file with [ReadClientConfig], connects with
// [Dial], and makes calls: [Client.Put], [Client.Get] and so on. A [Replica] is one replica with
// its host, disk and certificates, for a program that runs the service itself. [OpenCluster] starts
// a cluster in this process, to try things with.
//
// Beside the node of the protocol each host has a small node, in a group of its own, that hands out
// the replica's status. It shares the protocol's streams and certificates, so there is one port to
// open.
package service
