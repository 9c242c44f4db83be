// Package kit is the replica around a protocol's rules, and the client around its messages: what
// the protocols of package smr have alike, written once. Users of smr do not see it.
package kit
