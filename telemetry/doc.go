// Package telemetry shows what Foresay does in OpenTelemetry's traces and
// metrics. It uses OpenTelemetry's API alone: which SDK and which exporters there
// are is the program's choice.
//
// # Traces
//
// NewTracer makes the Tracer of a control.Config. A task becomes a span.
// What stands on no guess lies right below it, where it would be without Foresay:
// the client spans of its calls, and the spans that its code makes. What stands on
// a guess has a span of its own around it:
//
//   - "branch SITE": a run went on with a prediction of a call of that site. It
//     lasts until the verdict, "confirmed" or "discarded". Calls sent meanwhile for
//     that run lie below it.
//   - "held SITE": a call was not sent yet, and why.
//   - "adopted SITE": a later run used again what an earlier one had called.
//   - "replay": the code runs again after a wrong prediction.
//
// These are linked to the client span of the call that they are about, if
// ClientHandler is around otelgrpc's handler, and a replay to the branch that was
// wrong. A discarded branch is not an error: its status stays unset.
//
// A task whose parent is not sampled costs a look into its context.
//
// # Metrics
//
// Register makes instruments that are read from a control.Control when somebody
// collects, and cost nothing before. Requests is an OnRequest hook of a
// control.Config: distributions of what requests took and saved.
package telemetry
