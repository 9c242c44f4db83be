// Package setup gives a process all that it needs to be observed, and later to speculate, in one
// call:
//
//	speculation, err := setup.New(debug, setup.Config{Name: "checkout"})
//	...
//	conn, err := speculation.NewClient(target, options...)   // was: grpc.NewClient
//	server := &http.Server{Handler: speculation.Handler(mux)} // was: mux
//
// New makes the process's control.Control and observe.Collector, has the one tell the other of
// requests, and serves the dashboard with its report below dash.Path of the debug mux. A [Process]
// then makes connections and wraps what requests come in through. Nothing is speculated until a
// call site's mode says so.
//
// It holds no more than these packages do: whoever needs something else of them uses them directly,
// or takes the Control and the Collector from the Process.
package setup
