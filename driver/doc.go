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
// # What attempts, handlers and observed calls do
//
// "go doc" shows no methods of these types, as they are the engine's own; they are listed here. Of
// an [Operation]:
//
//   - Plainly(ctx) (outside, ok): whether to make the call as plain code does, with outside, and
//     let a [Watched] observe it.
//
// Operations of one [Domain], a session, go to servers that keep them in the order in which the
// code makes them. So one with effects need not wait for the answers of those before it, if it can
// be sent on a guess at all (CanSpeculate, and effects that are not immediate). Its transport finds
// out by Assumes which of them it stands on, and tells the servers.
//
// A predicated operation (control.EffectPredicated, CanSpeculate and a Domain) is sent on guesses
// at operations of its own Domain, and on no others. Its transport has the server carry it out only
// if each [Assumption] is right: the attempt that it names was carried out, with that result. The
// server's comparison and the transport's Equal must agree. If the server says no the transport
// calls Refused, and Finish with the result if it was carried out, which nobody can take back:
// whatever is guessed meanwhile, and whether or not the attempt is still wanted. Starts of one
// Domain's operations are called one after the other, in the order in which they are to be carried
// out as far as there is one, also those of several tasks: what an attempt assumes was started
// before it. So Start must not block, and can give them numbers. That does not go for a
// BlockingTransport, nor for a call that is refused or fails meanwhile: an attempt may assume one
// that has ended, and others of its call may have been started since. A read that must see what
// predicated ones before it do is to be predicated too.
//
// An [Attempt] says what it is, and what its caller may have:
//
//   - Operation() and Number(): what is attempted, and which of the call's attempts this is, from
//     1.
//   - ID() [16]byte: a random name for it.
//   - Speculative(): the caller stands on an open assumption, until Hold has returned nil.
//   - Assumes() (all, ok): the predicted results that it stands on, the newest first, followed
//     through futures to the calls; ok is false if it stands on more. Of predicated ones among them
//     what they were sent on for the same caller is left out, as they are not carried out
//     otherwise.
//   - Depth(): on how many. Budget(): how many runs beyond its first the callee may start.
//   - MayPredict(): runs would go on with a prediction. WantPredictions(): the server's are wanted
//     even though the caller stands on no assumption.
//   - Timeout(): what the task's deadline leaves for a speculative attempt, 0 for no deadline.
//   - Limit(): the time limit that the code set for the call itself, 0 for none. CodeDeadline():
//     the deadline that plain code would make the call with.
//   - TaskBegan() and TaskCalls(): when the task sent its first call, and how many it has sent.
//   - MayGoAhead(): no equal call of the task has FailedAhead.
//
// A transport tells it how the call goes:
//
//   - Begin(): it begins only now, having waited for its turn. Sent(): the request has left.
//   - Predict(v), Withdraw(v): the server predicts v, or takes that back.
//   - Tentative(v): v is the answer of a server that holds its effects back until the caller is
//     confirmed.
//   - OnResolve(f): f is called once, with true when the caller's assumptions held and with false
//     when nobody wants the attempt any more.
//   - Limited(by): a limit keeps it from being sent for a speculative caller. Failed(): it failed
//     as the plain call would. FailedAhead(): it failed because it was made ahead of its caller's
//     confirmation. Hold comes next.
//   - Hold(reason): nothing ran at the server. It blocks until the call may be made plainly (nil),
//     in the PlainContext(ctx), or nobody wants it (foresay.ErrMisspeculated).
//   - Refused(reason): the server ran nothing of a predicated call, since what was assumed is wrong
//     or was not carried out; in place of Finish. If the call is to be made all the same another
//     attempt follows.
//   - Served(waited, hooks): how much of its time the server says that it waited for the caller to
//     be confirmed, and spent in commit hooks.
//   - Finish(v, err): the actual result, exactly once. Unknown(err), in place of it, for calls with
//     a Domain: nobody learns whether the call was carried out, or will be.
//
// A [Handler] runs a server's function, then waits for its caller:
//
//   - Run(f) returns the result of f once it depends on no guess of f's own. Tentative(), after
//     Run: it stands only once Finish has returned nil. Waited(), after Run: how much longer Run
//     took because the caller was not confirmed.
//   - Confirm(), Abort(): the caller was right, or was wrong, gave up or is lost.
//   - Finish() waits for one of these, after Run, and runs the commit hooks: nil once the call is
//     confirmed, otherwise why it is undone. Hooks(), after Finish: how long the hooks took.
//
// A [Watched] observes a call of plain code:
//
//   - Begin(ctx, op): its predictors are asked. If it returns false there is nothing to observe,
//     and Done must not be called.
//   - Done(v, err): the actual result.
package driver
