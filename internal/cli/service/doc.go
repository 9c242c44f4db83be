// Package service runs the foresay command's replicated key-value service: replicas of it, its clients, and whole clusters for development.
//
// A [Replica] is one replica with its host, disk and certificates; [WithClient] is what its clients are made with. Beside the node of the protocol each host
// has a small node, in a group of its own, that hands out the replica's status: it shares the protocol's streams and certificates, so that there is one port to open.
package service
