// Package service runs the replicas and clients of a group whose replicas may lie, as "foresay bft"
// does, and whole groups for development.
//
// All files of a group begin with the [Group] file, the same everywhere: who is a member and who a
// client, and the Ed25519 key of each. A host is whoever proves the key that stands there, in TLS
// as in what is signed, so there is no authority. A program that uses the service reads its own
// file with [ReadClientConfig], connects with [Dial], and makes calls. A [Replica] is one replica
// with its host and disk. [OpenCluster] starts a group in this process, to try things with.
package service
