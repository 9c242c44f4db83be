// Package quorum says how many votes suffice, and counts them.
//
// Protocols rest on quorums that share a member: what one quorum has accepted, another one hears
// of. [Intersect] is the condition, for as many quorums as must meet in one member; [Majority] and
// [Fast] are the smallest sizes that fulfil the usual ones. Where members may lie, quorums must
// share one that does not: [Byzantine].
package quorum
