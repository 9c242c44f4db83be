// Package sessions executes the requests of clients, each operation once, whatever is repeated. It
// keeps what became of the operations in the key space itself, so that undo, digests and transfers
// hold for it as for the service's own keys: all of it is a function of the ordered requests.
//
// A client has up to [MaxOfClient] sessions; a new one takes the place of that client's oldest and
// of nobody else's. A session remembers the results of [Window] numbers above what the client has
// acknowledged. These are what conditions are compared with.
package sessions
