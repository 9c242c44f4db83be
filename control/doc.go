// Package control is for the operator of a service that speculates: what is enabled where, what it
// may cost, and what it does.
//
// A [Control] switches and watches a process's call sites. [New] makes one; specgrpc.WithControl
// gives it to connections, whose call sites it then has. Each [CallSite] is in a [Mode]: off,
// observe, shadow, canary or on, set in code or in a file ([CallSiteConfig]) or at run time by
// SetMode. [Control.Kill], or the environment variable [KillVariable], stops all speculation at
// once. [Control.Status] tells what there is to tell now, and [Control.Tasks] has reports of the
// latest tasks.
//
// A call site that costs more than it gains trips: its hit rate is judged against its break-even,
// the extra load of all call sites against [Config].Budget, and the requests with speculation
// against those without. A tripped call site only observes, and is tried again after
// [Config].Retry.
//
// A [CallSiteConfig] also says what a call does besides answering, its [Effect], and so when it may
// be sent on a guess; and it has the [Predictor]s. [Limits] bound each task, [CallSiteLimits] what
// one call site causes.
//
// [Control.Begin] tells of a request that the service answers. What happened in it comes to
// [Config].OnRequest as a [RequestRecord]; package observe makes reports of these.
package control
