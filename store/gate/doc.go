// Package gate is the node by which clients that are no nodes reach a site of a store. A machine
// has one. It knows package store's requests, and no protocol.
package gate
