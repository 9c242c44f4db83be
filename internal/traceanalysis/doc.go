// Package traceanalysis finds, in OpenTelemetry traces, the calls for which requests wait one after
// the other, and what predictions of their answers would save, with the model of package critpath.
//
// Spans come in any order; memory is bounded. A Collector gathers the spans of a trace until
// nothing more comes or room is needed, takes the trace apart into requests (a request is a server
// span, or a root span, with the client spans under it), and keeps of each kind of request the
// number and a sample, drawn with a fixed seed. Report works the sample out.
package traceanalysis
