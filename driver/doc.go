// Package driver is for the author of a transport, as database/sql/driver is for that of a database
// driver: what joins the engine to an RPC system. Package specgrpc is such a transport, for gRPC;
// adapters/etcd, in this repository, is a small one.
//
// A client's stub describes each call as an [Operation] and hands it to [Perform], if [InTask]
// says that its code is that of a task. The engine then makes attempts at the call, none, one or
// several: it calls the operation's [Transport], with an [Attempt] to which the transport gives
// predictions and the result. A call of plain code the stub makes itself; a [Watched] observes it.
//
// A server whose callers may stand on guesses makes a [Handler] of each call, and passes the
// caller's word on to it: Confirm or Abort.
//
// These are the engine's own types, which it makes and calls itself. In a copy of the source
// "go doc internal/engine.Attempt" shows their methods.
package driver
