// Package pbft is Practical Byzantine Fault Tolerance with client speculation (PBFT-CS): of 3f+1
// replicas f may lie, and clients get the primary's early reply as a guess long before the group
// has confirmed it. See bft/DESIGN.md.
package pbft
