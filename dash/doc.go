// Package dash shows what a process's speculation does: a live page of its
// call sites, of what they save and waste, and of recent tasks, and the same as JSON.
//
// Handler serves one process's Control. It goes where a service's other debug
// endpoints are:
//
//	http.Handle(dash.Path, dash.Handler(dash.Config{Control: control}))
//
// Below Path it answers
//
//	GET  (nothing)      the page
//	GET  status         control.Status
//	GET  report         observe.Report, if there is a Collector
//	GET  tasks?after=N  the kept reports of tasks that ended after the first N
//	GET  events         a stream of server-sent events, which the page lives on
//	GET  rights         what the requester may do
//	POST mode           {"site": "/pkg.S/M", "mode": "canary", "share": 0.1}
//	POST kill           {"killed": true}
//
// The two POSTs are refused unless Config.Authorize is given and agrees. Reading is unrestricted:
// anyone who can reach the handler can read, as with other debug endpoints. The page loads nothing
// from anywhere else.
//
// A Relay shows the pages of several processes as one. The command
// "foresay dash" serves one locally.
package dash
