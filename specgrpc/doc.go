// Package specgrpc makes the unary calls of generated gRPC stubs speculative,
// and serves them, without code generation.
//
// A client takes NewClient for grpc.NewClient and keeps its stubs. In a task of
// package foresay a call may return a predicted response at once, and what the
// code does next runs on that guess until the actual response confirms it.
// Outside of a task the connection is grpc's own, at its cost.
//
// A server takes NewServer for grpc.NewServer and keeps its handlers. It can then
// be called by code that is itself speculative, and answer early with
// foresay.Predict. Plain clients, in any
// language, notice nothing; a client of this package talks to any gRPC server,
// holding calls back where the server could not undo them.
//
// # What travels
//
// Most calls of a task are plain unary calls: the prediction came from the
// client's side, and the caller stands on no open assumption. Where the caller
// is speculative, or the server's predictions are wanted, the call goes over the
// bidirectional stream /pkg.Service/Method.spec instead, as the frames of
// foresay.spec.v1. Such a call takes effect at its server only when the client
// says Confirm, in a frame: a half-closed, reset or expired stream, a lost peer
// or silence for the length of a lease all undo it. A server that does not know
// the stream runs nothing, and the client makes the call plainly as soon as its
// caller is confirmed.
//
// # What may run for a speculative caller
//
// A method that its .proto declares free of side effects (idempotency_level =
// NO_SIDE_EFFECTS) or that SideEffectFree names, and one whose handler holds its
// effects back (Stages). A handler does that with foresay.Barrier, Act, OnCommit
// and OnRollback. All other calls wait until their caller is confirmed.
//
// # Interceptors
//
// The client's unary interceptors run once per call that is really made, with
// the method's own name, and never see a prediction as the response. They must
// not rely on running in the goroutine that made the call. The server's unary
// interceptors are what guards a method: they run around speculative calls too,
// with the method's own name, and nobody has to declare them. Stream interceptors,
// of a client and of a Server, do not see speculative streams.
package specgrpc
