// Package predict holds predictors: what guesses the response of a call before
// it arrives, from the request and from earlier responses.
//
// A predictor is given to a call site (control.CallSiteConfig.Predictors). It need
// not be right, only cheap: a wrong guess costs the work that was done on it,
// never correctness.
//
//   - [Constant]: always the same response.
//   - [Func]: a function of the request.
//   - [LastValue], [NewLast]: what the key's last confirmed response was.
//   - [NewTable]: what a key's responses have most often been.
//   - [Chain]: the first of several that has a guess.
//   - [PerPrincipal]: a predictor of one's own for each user, tenant or role.
//   - [New]: any of the above but functions, as a configuration file says.
//
// What a replica says, which takes a call, is no predictor: see package replica.
//
// # What predictors learn
//
// Only confirmed actual responses are learnt: Learn must not be called with a
// prediction, nor with what a run received that was discarded. The engine sees
// to that; code that calls Learn itself has the same duty. Errors are not learnt.
//
// # Values
//
// Protocol buffers are copied when they are learnt. Values that are predicted
// belong to the predictor and must not be changed: the engine copies them for
// each run. Other values are kept as they are and must be immutable. Requests
// and responses of another type than a predictor's own are ignored.
//
// # Principals
//
// A predictor that learns is a cache: whoever is given a guess may see what another caller was
// answered, if only in work that is thrown away. So a key is always a principal's: what is learnt
// from the calls of one is not predicted to another. Principals are told apart by all that the
// call's connection knows of who makes it ([Credentials]), or by a [Principal] of one's own. Keys
// hold keyed hashes of them. Only a predictor that is declared Public is the same for all.
//
// # Bounds
//
// What a predictor keeps is bounded in entries and in bytes; it forgets what is
// used least. Sizes are estimates of the memory that a value takes. Without
// entries a predictor takes about 5 KB. It has no goroutines, and is just
// dropped when it is not needed any more.
//
// # Concurrency
//
// Predictors are safe for concurrent use. Functions given to them must be too,
// must be quick, and must not keep or change what they are given.
package predict
