package otlp

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// jaegerSpan is a span as Jaeger's UI and its API /api/traces write it. Times are in microseconds.
type jaegerSpan struct {
	TraceID    string `json:"traceID"`
	ID         string `json:"spanID"`
	Parent     string `json:"parentSpanID"` // of old versions
	Name       string `json:"operationName"`
	References []struct {
		Type    string `json:"refType"`
		TraceID string `json:"traceID"`
		ID      string `json:"spanID"`
	} `json:"references"`
	Start    int64       `json:"startTime"`
	Duration int64       `json:"duration"`
	Tags     []jaegerTag `json:"tags"`
	Process  string      `json:"processID"`
}

type jaegerTag struct {
	Key   string `json:"key"`
	Value any    `json:"value"`
}

type jaegerProcess struct {
	Service string `json:"serviceName"`
}

// span returns the span, or an error that says what is wrong with it.
func (j *jaegerSpan) span(resource *Resource) (Span, error) {
	s := Span{Name: j.Name, Resource: resource, Start: time.Duration(j.Start) * time.Microsecond}
	s.End = s.Start + time.Duration(j.Duration)*time.Microsecond
	if err := readID(s.Trace[:], padded(j.TraceID, len(s.Trace))); err != nil {
		return s, fmt.Errorf("traceID: %w", err)
	}
	if err := readID(s.ID[:], padded(j.ID, len(s.ID))); err != nil {
		return s, fmt.Errorf("spanID: %w", err)
	}
	parent := j.Parent
	for _, r := range j.References {
		if r.Type == "CHILD_OF" && (r.TraceID == "" || r.TraceID == j.TraceID) && parent == "" {
			parent = r.ID
		}
	}
	if parent != "" {
		if err := readID(s.Parent[:], padded(parent, len(s.Parent))); err != nil && !errors.Is(err, errZero) {
			return s, fmt.Errorf("references: spanID: %w", err)
		}
	}
	if j.Start <= 0 || j.Duration < 0 {
		return s, errors.New("it has no time of its beginning or its end")
	}
	for _, t := range j.Tags {
		text, isText := t.Value.(string)
		switch {
		case t.Key == "span.kind":
			var kind jsonKind
			_ = kind.UnmarshalJSON([]byte(text)) // it takes everything
			s.Kind = Kind(kind)
		case t.Key == "error":
			s.Failed = t.Value == true || text == "true"
		case t.Key == "otel.status_code":
			s.Failed = s.Failed || text == "ERROR"
		case isText && text != "":
			s.Attributes = append(s.Attributes, Attribute{t.Key, text})
		}
	}
	return s, nil
}

// padded gives an id the digits that it lacks: Jaeger leaves zeros out, and has trace ids of 64
// bits.
func padded(id string, bytes int) string {
	return strings.Repeat("0", max(0, 2*bytes-len(id))) + id
}

// jaegerTrace reads one element of "data".
func (p *parser) jaegerTrace() error {
	processes := make(map[string]*Resource)
	process := func(id string) *Resource {
		r := processes[id]
		if r == nil {
			r = new(Resource)
			processes[id] = r
		}
		return r
	}
	var held []Span // until it is known of which services they are
	err := p.object(func(key string) error {
		switch key {
		case "spans":
			p.found = true
			return p.array(func() error {
				line, offset := p.position()
				var j jaegerSpan
				err := p.decoder.Decode(&j)
				if bad := fatal(err); err != nil && bad != nil {
					return bad
				}
				var span Span
				if err == nil {
					span, err = j.span(process(j.Process))
				}
				if err == nil {
					held = append(held, span)
					return nil
				}
				if !p.yield(Span{}, &Error{File: p.file, Line: line, Offset: offset, Span: true, Err: err}) {
					return errStopped
				}
				return nil
			})
		case "processes":
			var all map[string]json.RawMessage
			if err := p.decode(&all); err != nil {
				return err
			}
			for id, raw := range all {
				var known jaegerProcess
				if json.Unmarshal(raw, &known) == nil { // one of another form has no name
					process(id).Service = known.Service
				}
			}
			return nil
		}
		return p.skip()
	})
	for _, span := range held {
		if !p.yield(span, nil) {
			return errStopped
		}
	}
	return err
}
