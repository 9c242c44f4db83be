// Package otlp reads spans from OTLP JSON, the form in which OpenTelemetry collectors and SDKs
// write traces to files: one ExportTraceServiceRequest per line, or one whole document, compressed
// by gzip or not. It also reads the JSON of Jaeger's UI and API, of which it holds one trace at a
// time.
//
// It parses with encoding/json rather than with protojson and the generated messages of OTLP. OTLP
// JSON is not Protobuf's JSON: ids are hexadecimal where protojson wants base64, and a generated
// message holds a whole document, where this package holds one span, whatever the size of the
// input.
package otlp
