// Package machine runs a machine of a store in a process: the servers of its shards, its
// coordinator and its gate in one host, and the service for clients. The store's protocol is a
// value of its configuration.
package machine
