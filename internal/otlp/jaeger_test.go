package otlp_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/foresay/foresay/internal/otlp"
)

// TestJaeger: Jaeger's spans are read, whether their processes stand before or after them; wrong
// ones are named and left out.
func TestJaeger(t *testing.T) {
	const span = `{"traceID":"ab","spanID":"c","operationName":"x","startTime":1000,"duration":5,"processID":"p2",
		"references":[{"refType":"FOLLOWS_FROM","traceID":"ab","spanID":"e"},{"refType":"CHILD_OF","traceID":"ab","spanID":"d"}],
		"tags":[{"key":"span.kind","value":"client"},{"key":"error","value":true},{"key":"rpc.method","value":"Get"},{"key":"n","value":3}]}`
	const processes = `"processes":{"p1":{"serviceName":"one"},"p2":{"serviceName":"two"},"p3":7}`
	for _, trace := range []string{`{"traceID":"ab","spans":[` + span + `],` + processes + `}`, `{` + processes +
		`,"spans":[` + span + `]}`} {
		n := 0
		for s, err := range otlp.Spans("f", strings.NewReader(`{"data":[`+trace+`],"total":0}`)) {
			n++
			if err != nil {
				t.Fatal(err)
			}
			if got, want := fmt.Sprintf("%x %x %x", s.Trace, s.ID, s.Parent),
				"000000000000000000000000000000ab 000000000000000c 000000000000000d"; got != want {
				t.Errorf("the ids are %s, want %s", got, want)
			}
			if s.Name != "x" || s.Kind != otlp.Client || !s.Failed || s.Start != time.Millisecond ||
				s.End != 1005*time.Microsecond || s.Resource.Service != "two" || s.Attribute("rpc.method") != "Get" ||
				len(s.Attributes) != 1 {
				t.Errorf("got %+v of %+v", s, s.Resource)
			}
		}
		if n != 1 {
			t.Errorf("%d spans", n)
		}
	}
	bad := `{"data":[{"spans":[{"traceID":"xy","spanID":"1","startTime":1},{"traceID":"1","spanID":"0","startTime":1},{"traceID":"1","spanID":"1"},{"traceID":7},` + span + `]}]}`
	read, wrong := 0, 0
	for _, err := range otlp.Spans("f", strings.NewReader(bad)) {
		fault := (*otlp.Error)(nil)
		switch {
		case err == nil:
			read++
		case errors.As(err, &fault) && fault.Span && fault.Line == 1:
			wrong++
		default:
			t.Error(err)
		}
	}
	if read != 1 || wrong != 4 {
		t.Errorf("%d spans read, %d wrong; want 1 and 4", read, wrong)
	}
}
