// Package carousel commits transactions over partitions that live at some of the sites each, while
// they still read [Carousel §3]. Each partition is a Raft group; two-phase commit and the groups'
// replication run side by side instead of one after the other.
//
// A server is a member of its partition's group. Where it leads, it is the group's participant in
// the transactions that touch the partition, and the coordinator of those that were given to the
// group: see participant.go and coordinator.go. An agent, one at each machine, is the thesis'
// client-side library: it prepares at the partitions and hands the writes to the coordinator. A
// client is an application's node, which has the agent of a site near it do that.
//
// Transactions are strictly serializable. DESIGN.md says why.
package carousel
