package observe

import (
	"context"
	"strings"

	"go.opentelemetry.io/otel/trace"
)

// maxID bounds a request's id in bytes.
const maxID = 128

// requestID returns the id by which all services know a request: the trace id of the span that ctx
// belongs to, else that of the traceparent header, else the x-request-id header, else "". header
// returns a header's values.
func requestID(ctx context.Context, header func(name string) []string) string {
	if id := trace.SpanContextFromContext(ctx).TraceID(); id.IsValid() {
		return id.String()
	}
	// W3C Trace Context: with several of them none counts.
	if v := header("traceparent"); len(v) == 1 {
		if id, ok := parseTraceparent(v[0]); ok {
			return id
		}
	}
	if v := header("x-request-id"); len(v) > 0 && len(v[0]) <= maxID {
		return strings.Clone(v[0])
	}
	return ""
}

// parseTraceparent returns the trace id of a traceparent header, by W3C Trace Context, 3.2:
// version, trace id, parent id and flags in lower-case hexadecimal, and for versions to come
// possibly more.
func parseTraceparent(v string) (id string, ok bool) {
	const traceAt, parentAt, flagsAt, end = 3, 36, 53, 55
	if len(v) < end || v[traceAt-1] != '-' || v[parentAt-1] != '-' || v[flagsAt-1] != '-' {
		return "", false
	}
	version, id, parent, flags := v[:2], v[traceAt:parentAt-1], v[parentAt:flagsAt-1], v[flagsAt:end]
	switch {
	case !hexadecimal(version) || !hexadecimal(id) || !hexadecimal(parent) || !hexadecimal(flags):
		return "", false
	case version == "ff" || version == "00" && len(v) != end || len(v) > end && v[end] != '-':
		return "", false
	case strings.Trim(id, "0") == "" || strings.Trim(parent, "0") == "":
		return "", false
	}
	return strings.Clone(id), true
}

func hexadecimal(s string) bool {
	for _, c := range []byte(s) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}
