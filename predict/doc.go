// Package predict holds predictors: what guesses the response of a call before
// it arrives, from the request and from earlier responses.
//
// A predictor is given to a call site (foresay.SiteConfig.Predictors). It need
// not be right, only cheap: a wrong guess costs the work that was done on it,
// never correctness.
//
//   - [Constant]: always the same response.
//   - [Func]: a function of the request.
//   - [LastValue]: what the key's last confirmed response was.
//   - [Table]: what a key's responses have most often been.
//   - [Chain]: the first of several that has a guess.
//   - [PerPrincipal]: a predictor for each user, tenant or role.
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
// # Keys and principals
//
// A predictor that learns is a cache. Whoever gets a prediction may see data
// that another caller was answered with, so unless the data is public, the key
// must contain whose data it is. If the request says so (a user id that the
// server checks), the key function can take it from there; if only the
// credentials do, use PerPrincipal.
//
// # Bounds and concurrency
//
// Every table is bounded in entries, and forgets the least recently used. The
// memory that an entry takes is that of the responses in it, which nothing here
// bounds. Predictors are safe for concurrent use. Functions given to them must
// be too, must be quick, and must not keep or change what they are given.
package predict
