package otlp_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/foresay/foresay/internal/otlp"
)

const (
	traceA = "0af7651916cd43dd8448eb211c80319c"
	spanA  = "b7ad6b7169203331"
	spanB  = "00f067aa0ba902b7"
)

// read returns a line for each span and each error.
func read(t *testing.T, r io.Reader) []string {
	t.Helper()
	var out []string
	for s, err := range otlp.Spans("f.json", r) {
		if err != nil {
			if fault := (*otlp.Error)(nil); !errors.As(err, &fault) {
				t.Fatalf("%v is no *otlp.Error", err)
			}
			out = append(out, "error: "+err.Error())
			continue
		}
		out = append(out, fmt.Sprintf("%x %x<%x %s kind %d %d-%d failed=%v %s %v",
			s.Trace[:2], s.ID[:2], s.Parent[:2], s.Name, s.Kind, s.Start, s.End, s.Failed, s.Resource.Service, s.Attributes))
	}
	return out
}

// line is a document in one line, as the file exporter writes it.
func line(service string, spans ...string) string {
	return `{"resourceSpans":[{"resource":{"attributes":[{"key":"host.name","value":{"stringValue":"h"}},{"key":"service.name","value":{"stringValue":"` +
		service + `"}}]},"scopeSpans":[{"scope":{"name":"otelgrpc","version":"1"},"spans":[` + strings.Join(spans, ",") +
		`]}],"schemaUrl":"u"}]}` + "\n"
}

func span(rest string) string {
	return `{"traceId":"` + traceA + `","spanId":"` + spanA +
		`","name":"n","startTimeUnixNano":"5","endTimeUnixNano":"9"` + rest + `}`
}

func TestForms(t *testing.T) {
	full := `{"traceId":"` + traceA + `","spanId":"` + spanA + `","parentSpanId":"` + spanB +
		`","name":"users.Users/Get","kind":3,"flags":257,` +
		`"startTimeUnixNano":"1780000000000000001","endTimeUnixNano":"1780000000000000009","attributes":[` +
		`{"key":"rpc.system","value":{"stringValue":"grpc"}},{"key":"rpc.grpc.status_code","value":{"intValue":"2"}},{"key":"x","value":{"arrayValue":{"values":[]}}}],` +
		`"events":[{"name":"e","timeUnixNano":"3"}],"links":[],"status":{"code":2,"message":"no"}}`
	want := "0af7 b7ad<00f0 users.Users/Get kind 3 1780000000000000001-1780000000000000009 failed=true shop " +
		"[{rpc.system grpc}]"
	pretty := strings.NewReplacer(`,`, ",\n  ", `{`, "{\n ", `[`, "[\n").Replace(line("shop", full))
	snake := strings.NewReplacer("resourceSpans", "resource_spans", "scopeSpans", "scope_spans", "traceId", "trace_id",
		"spanId", "span_id",
		"parentSpanId", "parent_span_id", "startTimeUnixNano", "start_time_unix_nano", "endTimeUnixNano",
		"end_time_unix_nano", "stringValue", "string_value",
		`"kind":3`, `"kind":"SPAN_KIND_CLIENT"`, `"code":2`, `"code":"STATUS_CODE_ERROR"`).Replace(line("shop", full))
	base64 := strings.NewReplacer(traceA, "CvdlGRbNQ92ESOshHIAxnA==", spanA, "t61rcWkgMzE=", spanB,
		"APBnqgupArc=").Replace(line("shop", full))
	numbers := strings.NewReplacer(`"1780000000000000001"`, `1780000000000000001`, `"1780000000000000009"`,
		`1780000000000000009`).Replace(line("shop", full))
	late := strings.Replace(`{"resourceSpans":[{"scopeSpans":[{"spans":[SPAN]}],"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"shop"}}]}}]}`, "SPAN", full, 1)
	for name, text := range map[string]string{
		"a line": line("shop", full), "over lines": pretty, "snake case and names": snake, "ids in base64": base64,
		"times as numbers":      numbers,
		"older scopes":          strings.Replace(line("shop", full), "scopeSpans", "instrumentationLibrarySpans", 1),
		"an array of documents": "[" + line("shop", full) + "]", "a byte order mark": "\ufeff" + line("shop", full),
		"space before":   " \n\r\n" + line("shop", full),
		"upper case ids": strings.NewReplacer(traceA, strings.ToUpper(traceA)).Replace(line("shop", full)),
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff([]string{want}, read(t, strings.NewReader(text))); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff([]string{want}, read(t, iotest.OneByteReader(zipped(t, text)))); diff != "" {
				t.Errorf("zipped: %s", diff)
			}
		})
	}
	t.Run("resource after its spans", func(t *testing.T) {
		var resources []*otlp.Resource
		for s, err := range otlp.Spans("f", strings.NewReader(late)) {
			if err != nil {
				t.Fatal(err)
			}
			resources = append(resources, s.Resource)
		}
		if len(resources) != 1 || resources[0].Service != "shop" {
			t.Errorf("got %+v", resources)
		}
	})
}

func zipped(t *testing.T, texts ...string) io.Reader {
	t.Helper()
	var b bytes.Buffer
	for _, text := range texts { // a member each
		z := gzip.NewWriter(&b)
		if _, err := z.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return &b
}

func TestManyLines(t *testing.T) {
	ok := "0af7 b7ad<0000 n kind 0 5-9 failed=false a []"
	got := read(t, strings.NewReader(line("a", span(""), span(""))+line("a")+"\n"+line("a", span(""))))
	if diff := cmp.Diff([]string{ok, ok, ok}, got); diff != "" {
		t.Error(diff)
	}
	if got := read(t, zipped(t, line("a", span("")), line("a", span("")))); len(got) != 2 {
		t.Errorf("of two files joined: %v", got)
	}
	if got := read(t, strings.NewReader("")); got != nil {
		t.Errorf("of nothing: %v", got)
	}
	if got := read(t, strings.NewReader(`{"resourceMetrics":[{"x":[1,{"y":"z"}]}]}`+"\n"+line("a", span("")))); len(
		got) != 1 {
		t.Errorf("beside metrics: %v", got)
	}
	if got := read(t, strings.NewReader(`{"resourceSpans":null}{"resourceSpans":[{"resource":null,"scopeSpans":[{"spans":null},null]},null]}`)); got != nil {
		t.Errorf("of nulls: %v", got)
	}
}

// Whatever is wrong is told with the place; after a wrong span others follow.
func TestWrong(t *testing.T) {
	good := "0af7 b7ad<0000 n kind 0 5-9 failed=false a []"
	text := line("a", span(""))
	badSpan := func(old, bad string) string { return strings.Replace(span(""), old, bad, 1) }
	for _, row := range []struct {
		name, text string
		want       []string
	}{
		{"an id", text + line("a", badSpan(traceA, "xyz"), span("")),
			[]string{good, `:2 (byte 578): a span: traceId: "xyz" is not 32 hexadecimal digits`, good}},
		{"no id", line("a", badSpan(`"spanId":"`+spanA+`",`, "")),
			[]string{`: a span: spanId: "" is not 16 hexadecimal digits`}},
		{"a zero id", line("a", badSpan(spanA, "0000000000000000")), []string{`: a span: spanId: it is zero`}},
		{"a time", line("a", badSpan(`"5"`, `"five"`), span("")), []string{`the time "five" is no number of nanoseconds`,
			good}},
		{"a time before 1970", line("a", badSpan(`"5"`, `-5`)), []string{`the time -5 is no number`}},
		{"no time", line("a", badSpan(`"5"`, `0`)), []string{"it has no time of its beginning or its end"}},
		{"a type", line("a", badSpan(`"n"`, `7`), `3`, span("")),
			[]string{"cannot unmarshal number", "cannot unmarshal number", good}},
		{"syntax at the end", text + text[:100] + "!\n", []string{good, ":2 (byte "}},
		{"syntax", text + text[:100] + "!\n" + text, []string{good, ":2 (byte ", good}},
		{"a line cut off in a string", text + text[:len(text)-60] + "\n" + text + text,
			[]string{good, ":2 (byte ", good, good}},
		{"a line cut off after a comma", text + text[:strings.Index(text, `"scopeSpans"`)] + "\n" + text + text,
			[]string{good, ":3 (byte 513): invalid character '{'", good, good}},
		{"one cut off and another in a line", text + text[:150] + text + text, []string{good, ":2 (byte ", good}},
		{"lines of noise", text + "{noise\n" + "more\n" + "\n{}}\r\n" + text, []string{good, ":2 (byte ", ":5 (byte ", good}},
		{"a bad number", text + `{"resourceSpans":7}` + "\n" + text + "{]\n" + text,
			[]string{good, `:2 (byte 384): "7" where [ is expected`, good, ":4 (byte ", good}},
		{"the end cut off", text + text[:300], []string{good, "the input ends in the middle of what begins here"}},
		{"two values", text + "5", []string{good, `"5" where an object is expected`}},
		{"an object for an array", `{"resourceSpans":{}}`, []string{`"{" where [ is expected`}},
		{"other JSON", `{"data":[{"traceID":"x"}],"total":0}`,
			[]string{`it holds no traces in OTLP JSON or Jaeger's: no object has "resourceSpans", or "data" with spans as Jaeger writes it; they have ["data" "total"]`}},
		{"no JSON", "\n\nhello", []string{`it is not OTLP JSON: it begins with 'h'`}},
		{"protobuf", "\x0a\x8f\x01\x0a", []string{`it is not OTLP JSON: it begins with`}},
		{"zstd", "\x28\xb5\x2f\xfd\x00\x00", []string{"compressed by zstd"}},
		{"zstd with lengths", "\x00\x00\x10\x00\x28\xb5\x2f\xfd\x00\x00", []string{"compressed by zstd"}},
		{"broken gzip", "\x1f\x8b\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00", []string{"gzip: invalid header"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			got := read(t, strings.NewReader(row.text))
			if len(got) != len(row.want) {
				t.Fatalf("got %q", got)
			}
			for i, want := range row.want {
				if !strings.Contains(got[i], want) {
					t.Errorf("got %s\nwant %s", got[i], want)
				}
			}
		})
	}
}

func TestZippedCutOff(t *testing.T) {
	b, err := io.ReadAll(zipped(t, strings.Repeat(line("a", span("")), 1000)))
	if err != nil {
		t.Fatal(err)
	}
	got := read(t, bytes.NewReader(b[:len(b)/2]))
	if n := len(got); n < 2 || !strings.Contains(got[n-1], "the input ends in the middle") {
		t.Errorf("the last of %d is %q", n, got[max(n-1, 0):])
	}
	b[len(b)/2] ^= 0xff
	got = read(t, bytes.NewReader(b))
	if n := len(got); n < 1 || !strings.HasPrefix(got[n-1], "error: f.json:") {
		t.Errorf("of a flipped byte: %q", got[max(n-1, 0):])
	}
}

func TestReadFails(t *testing.T) {
	got := read(t, io.MultiReader(strings.NewReader(line("a", span(""))+`{"resource`),
		iotest.ErrReader(errors.New("disk on fire"))))
	if len(got) != 2 || got[1] != "error: f.json:2 (byte 367): disk on fire" {
		t.Errorf("got %q", got)
	}
}

// endless is a document whose one string never ends.
type endless struct{ head io.Reader }

func (e *endless) Read(b []byte) (int, error) {
	if n, err := e.head.Read(b); err == nil {
		return n, nil
	}
	for i := range b {
		b[i] = 'x'
	}
	return len(b), nil
}

func TestTooLong(t *testing.T) {
	got := read(t, &endless{strings.NewReader(`{"resourceSpans":[{"scopeSpans":[{"spans":[{"name":"`)})
	if len(got) != 1 || !strings.Contains(got[0], "longer than 64 MiB") {
		t.Errorf("got %.200q", got)
	}
}

// After thousands of broken lines, with what was read ahead read again each time, the place is
// still right.
func TestManyBrokenLines(t *testing.T) {
	var b strings.Builder
	for i := range 5000 {
		if i%5 == 4 {
			b.WriteString(line("a", span("")))
			continue
		}
		b.WriteString(`{"resourceSpans": broken}` + "\n")
	}
	n, spans := int64(0), 0
	for _, err := range otlp.Spans("f", iotest.HalfReader(strings.NewReader(b.String()))) {
		n++
		fault := (*otlp.Error)(nil)
		switch {
		case err == nil:
			spans++
		case !errors.As(err, &fault) || !fault.Skipped:
			t.Fatal(err)
		case fault.Line != n:
			t.Fatalf("line %d is told as %d", n, fault.Line)
		case !strings.HasPrefix(b.String()[fault.Offset:], "broken"):
			t.Fatalf("line %d is told to be at byte %d", n, fault.Offset)
		}
	}
	if spans != 1000 {
		t.Errorf("%d spans, want 1000", spans)
	}
}

// One document that is larger than any value may be is read span by span.
func TestLargeDocument(t *testing.T) {
	if testing.Short() {
		t.Skip("reads 80 MB")
	}
	filler := span(`,"attributes":[{"key":"k","value":{"stringValue":"` + strings.Repeat("v", 1<<20) + `"}}]`)
	parts := []io.Reader{strings.NewReader(`{"resourceSpans":[{"scopeSpans":[{"spans":[` + filler)}
	for range 80 {
		parts = append(parts, strings.NewReader("\n,"), strings.NewReader(filler))
	}
	parts = append(parts, strings.NewReader(`]}]}]}`))
	n := 0
	for s, err := range otlp.Spans("f", io.MultiReader(parts...)) {
		if err != nil {
			t.Fatal(err)
		}
		if s.End != 9*time.Nanosecond || len(s.Attribute("absent", "k")) != 1<<20 {
			t.Fatalf("span %d: %v", n, s.End)
		}
		n++
	}
	if n != 81 {
		t.Errorf("%d spans, want 81", n)
	}
}

func TestStopsWhenAsked(t *testing.T) {
	n := 0
	for range otlp.Spans("f", strings.NewReader(line("a", span(""), span("")))) {
		n++
		break
	}
	if n != 1 {
		t.Errorf("%d spans, want 1", n)
	}
}

// FuzzSpans: any input ends, without a panic, with at most one error that is not of a span, as the
// last.
func FuzzSpans(f *testing.F) {
	f.Add([]byte(line("a", span(`,"kind":3`), span(`,"kind":"SERVER"`))))
	f.Add([]byte("[" + line("a", span("")) + "]"))
	f.Add([]byte(strings.ReplaceAll(line("a", span("")), traceA, "CvdlGRbNQ92ESOshHIAxnA==")))
	f.Add([]byte(`{"resourceSpans":[{"scopeSpans":[{"spans":[5,null,{}]}]}]}`))
	f.Add([]byte("\x1f\x8b\x08\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		over := false
		for s, err := range otlp.Spans("f", bytes.NewReader(b)) {
			if over {
				t.Fatal("more after the last error")
			}
			fault := (*otlp.Error)(nil)
			switch {
			case err == nil && (s.Resource == nil || s.ID == otlp.SpanID{} || s.Trace == otlp.TraceID{} || s.Start <= 0 ||
				s.End <= 0):
				t.Fatalf("a span without what spans have: %+v", s)
			case err == nil:
			case !errors.As(err, &fault):
				t.Fatalf("%v is no *otlp.Error", err)
			case fault.Offset < 0 || fault.Offset > 1<<40 || fault.Line < 0:
				t.Fatalf("%+v is nowhere", fault)
			case !fault.Span && !fault.Skipped:
				over = true
			}
		}
	})
}
