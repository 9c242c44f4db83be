// Package kv is a key-value store as a replicated state machine: put, delete, compare-and-set, get,
// and scans of a range of keys.
//
// A [Store] is what replicas run. Programs make commands and queries with [Put], [Delete],
// [CompareAndSet], [Get] and [Scan], hand them to a client, and read what comes back with
// [DecodeResult]. Each change of a key gives it a version, higher than all versions of the store
// before.
//
// A [Service] executes the same commands on a key space, for replicas that must be able to undo
// what they executed, and to compare what they have by its digest.
package kv
