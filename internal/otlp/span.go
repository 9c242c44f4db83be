package otlp

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// TraceID names a trace.
type TraceID [16]byte

// SpanID names a span within its trace. The zero value names none.
type SpanID [8]byte

// Kind is what a span stands for.
type Kind uint8

// The kinds, with OTLP's numbers.
const (
	Unspecified Kind = iota
	Internal
	Server
	Client
	Producer
	Consumer
)

// Span is what is kept of a span.
type Span struct {
	Trace      TraceID
	ID, Parent SpanID
	Name       string
	Kind       Kind
	Start, End time.Duration // since 1970 UTC; End may be before Start, as it is in the input
	Failed     bool          // its status is an error
	Attributes []Attribute   // those that are strings
	// Resource is shared by the spans of one service. Its fields may be filled in only after the
	// span was read, where the input tells them later.
	Resource *Resource
}

// Attribute is a key and a string.
type Attribute struct{ Key, Value string }

// Attribute returns the first of these attributes that the span has and that is not empty, or "".
func (s *Span) Attribute(keys ...string) string {
	for _, key := range keys {
		for _, a := range s.Attributes {
			if a.Key == key && a.Value != "" {
				return a.Value
			}
		}
	}
	return ""
}

// Resource is what a span is of.
type Resource struct {
	Service string // service.name, "" if it has none
}

// jsonSpan is a span as it is written: in lowerCamelCase, or in snake_case by tools that keep
// Protobuf's names.
type jsonSpan struct {
	TraceID      string          `json:"traceId"`
	TraceIDSnake string          `json:"trace_id"`
	ID           string          `json:"spanId"`
	IDSnake      string          `json:"span_id"`
	Parent       string          `json:"parentSpanId"`
	ParentSnake  string          `json:"parent_span_id"`
	Name         string          `json:"name"`
	Kind         jsonKind        `json:"kind"`
	Start        jsonNanos       `json:"startTimeUnixNano"`
	StartSnake   jsonNanos       `json:"start_time_unix_nano"`
	End          jsonNanos       `json:"endTimeUnixNano"`
	EndSnake     jsonNanos       `json:"end_time_unix_nano"`
	Attributes   []jsonAttribute `json:"attributes"`
	Status       struct {
		Code jsonStatus `json:"code"`
	} `json:"status"`
}

type jsonAttribute struct {
	Key   string `json:"key"`
	Value struct {
		String      string `json:"stringValue"`
		StringSnake string `json:"string_value"`
	} `json:"value"`
}

type jsonResource struct {
	Attributes []jsonAttribute `json:"attributes"`
}

func (r *jsonResource) service() string {
	for _, a := range r.Attributes {
		if a.Key == "service.name" {
			return a.value()
		}
	}
	return ""
}

func (a *jsonAttribute) value() string { return either(a.Value.String, a.Value.StringSnake) }

func either[T comparable](camel, snake T) T {
	var none T
	if camel == none {
		return snake
	}
	return camel
}

// jsonNanos is a number of nanoseconds, which JSON's numbers cannot hold in all languages: mostly a
// string.
type jsonNanos time.Duration

func (n *jsonNanos) UnmarshalJSON(b []byte) error {
	text := strings.Trim(string(b), `"`)
	if text == "null" || text == "" {
		return nil
	}
	x, err := strconv.ParseInt(text, 10, 64)
	if err != nil || x < 0 {
		return fmt.Errorf("the time %.40s is no number of nanoseconds since 1970", b)
	}
	*n = jsonNanos(x)
	return nil
}

// jsonKind is a number, or a name with or without SPAN_KIND_. One that is not known is Unspecified.
type jsonKind Kind

func (k *jsonKind) UnmarshalJSON(b []byte) error {
	text := strings.TrimPrefix(strings.ToUpper(strings.Trim(string(b), `"`)), "SPAN_KIND_")
	switch text {
	case "1", "INTERNAL":
		*k = jsonKind(Internal)
	case "2", "SERVER":
		*k = jsonKind(Server)
	case "3", "CLIENT":
		*k = jsonKind(Client)
	case "4", "PRODUCER":
		*k = jsonKind(Producer)
	case "5", "CONSUMER":
		*k = jsonKind(Consumer)
	default:
		*k = jsonKind(Unspecified)
	}
	return nil
}

// jsonStatus reports whether a status code, a number or a name, is an error.
type jsonStatus bool

func (s *jsonStatus) UnmarshalJSON(b []byte) error {
	text := strings.ToUpper(strings.Trim(string(b), `"`))
	*s = text == "2" || text == "ERROR" || text == "STATUS_CODE_ERROR"
	return nil
}

// span returns the span, or an error that says what is wrong with it.
func (j *jsonSpan) span(resource *Resource) (Span, error) {
	s := Span{
		Name: j.Name, Kind: Kind(j.Kind), Start: time.Duration(either(j.Start, j.StartSnake)),
		End:    time.Duration(either(j.End, j.EndSnake)),
		Failed: bool(j.Status.Code), Resource: resource,
	}
	if err := readID(s.Trace[:], either(j.TraceID, j.TraceIDSnake)); err != nil {
		return s, fmt.Errorf("traceId: %w", err)
	}
	if err := readID(s.ID[:], either(j.ID, j.IDSnake)); err != nil {
		return s, fmt.Errorf("spanId: %w", err)
	}
	if parent := either(j.Parent, j.ParentSnake); parent != "" {
		if err := readID(s.Parent[:], parent); err != nil && !errors.Is(err, errZero) {
			return s, fmt.Errorf("parentSpanId: %w", err)
		}
	}
	if s.Start == 0 || s.End == 0 {
		return s, errors.New("it has no time of its beginning or its end")
	}
	for i := range j.Attributes {
		if v := j.Attributes[i].value(); v != "" {
			s.Attributes = append(s.Attributes, Attribute{j.Attributes[i].Key, v})
		}
	}
	return s, nil
}

var errZero = errors.New("it is zero")

// readID reads hexadecimal digits, as OTLP says, or base64, as Protobuf's JSON has it. The lengths
// differ.
func readID(id []byte, text string) error {
	var got []byte
	var err error
	switch len(text) {
	case hex.EncodedLen(len(id)):
		got, err = hex.DecodeString(text)
	case base64.StdEncoding.EncodedLen(len(id)):
		got, err = base64.StdEncoding.DecodeString(text)
	}
	if err != nil || len(got) != len(id) {
		return fmt.Errorf("%.40q is not %d hexadecimal digits", text, 2*len(id))
	}
	copy(id, got)
	for _, b := range id {
		if b != 0 {
			return nil
		}
	}
	return errZero
}

// decodeSpan reads one span. The error is a SpanError if the reader can go on after it.
func decodeSpan(d *json.Decoder, resource *Resource) (Span, error) {
	var j jsonSpan
	if err := d.Decode(&j); err != nil {
		return Span{}, err
	}
	return j.span(resource)
}
