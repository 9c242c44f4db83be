package predict

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/foresay/foresay/internal/fieldpath"
	"github.com/foresay/foresay/internal/nearest"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// Config describes a predictor in a configuration file:
//
//	{"kind": "last", "key_fields": ["user.id"], "entries": 10000, "bytes": "64MB"}
//	{"kind": "table", "public": true, "min_share": 0.9, "min_responses": 20}
//	{"kind": "constant", "value": {"allowed": true}}
//	{"kind": "chain", "of": [{"kind": "last"}, {"kind": "constant", "value": {}}]}
//
// All but the kind, a chain's of and a constant's value may be left out.
type Config struct {
	// Kind is "last", "table", "constant" or "chain".
	Kind string `json:"kind"`

	// KeyFields are the fields of the request, such as "user.id", that make the
	// key of a last or a table. None: the whole request.
	KeyFields []string `json:"key_fields,omitempty"`
	// Public declares of a last or a table that responses do not depend on who
	// asks, and may be seen by all who may ask.
	Public bool `json:"public,omitempty"`
	// PrincipalMetadata names metadata that tell principals apart, besides those
	// of Credentials.
	PrincipalMetadata []string `json:"principal_metadata,omitempty"`
	// Entries and Bytes bound what a last or a table keeps. Defaults:
	// DefaultEntries and DefaultBytes.
	Entries int   `json:"entries,omitempty"`
	Bytes   Bytes `json:"bytes,omitempty"`

	// Guesses, MinShare, MinResponses, Values and Window are a table's: see TableConfig.
	Guesses      int     `json:"guesses,omitempty"`
	MinShare     float64 `json:"min_share,omitempty"`
	MinResponses int     `json:"min_responses,omitempty"`
	Values       int     `json:"values,omitempty"`
	Window       int     `json:"window,omitempty"`

	// Value is a constant's response, as Protobuf's JSON.
	Value json.RawMessage `json:"value,omitempty"`
	// Of are the predictors of a chain, of which the first that has a guess predicts.
	Of []Config `json:"of,omitempty"`
}

// Messages are the types of a method's messages. They may be nil where nothing
// of a Config refers to their fields.
type Messages struct {
	Request, Response protoreflect.MessageDescriptor
}

// MessagesOf returns a method's messages.
func MessagesOf(method protoreflect.MethodDescriptor) Messages {
	return Messages{Request: method.Input(), Response: method.Output()}
}

// ParseConfig reads a Config from JSON. Whether it makes sense, New finds out.
func ParseConfig(data []byte) (Config, error) {
	var cfg Config
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&cfg); err != nil {
		return Config{}, fmt.Errorf("predict: config: %w", nearest.Field(err, &cfg))
	}
	if _, err := d.Token(); err != io.EOF {
		return Config{}, fmt.Errorf("predict: config: more after the first JSON value, at byte %d", d.InputOffset())
	}
	return cfg, nil
}

// maxChain bounds how deep chains go.
const maxChain = 8

// New returns the predictor that cfg describes, for a method with these
// messages. Errors name the predictor and the field.
func New(cfg Config, messages Messages) (Predictor, error) {
	p, err := newPredictor(&cfg, messages, maxChain)
	if err != nil {
		return nil, fmt.Errorf("predict: %w", err)
	}
	return p, nil
}

func newPredictor(cfg *Config, messages Messages, depth int) (Predictor, error) {
	if err := cfg.strange(); err != nil {
		return nil, err
	}
	switch cfg.Kind {
	case "last":
		return cfg.last(messages)
	case "table":
		return cfg.table(messages)
	case "constant":
		return cfg.constant(messages)
	}
	if depth == 0 {
		return nil, fmt.Errorf("chain: more than %d of them within each other", maxChain)
	}
	if len(cfg.Of) == 0 {
		return nil, fmt.Errorf(`chain: field "of": names no predictor`)
	}
	var all []Predictor
	for i := range cfg.Of {
		p, err := newPredictor(&cfg.Of[i], messages, depth-1)
		if err != nil {
			return nil, fmt.Errorf("chain: predictor %d: %w", i+1, err)
		}
		all = append(all, p)
	}
	return Chain(all...), nil
}

// strange refuses an unknown kind, and fields that it does not have.
func (cfg *Config) strange() error {
	const kinds = "last, table, constant, chain"
	learns := cfg.Kind == "last" || cfg.Kind == "table"
	switch cfg.Kind {
	case "last", "table", "constant", "chain":
	case "":
		return fmt.Errorf(`field "kind" is missing; want one of %s`, kinds)
	default:
		return fmt.Errorf(`field "kind": %q is not one of %s%s`, cfg.Kind, kinds,
			nearest.Hint(cfg.Kind, strings.Split(kinds, ", ")))
	}
	for _, f := range []struct {
		name    string
		set, ok bool
	}{
		{"key_fields", cfg.KeyFields != nil, learns},
		{"public", cfg.Public, learns},
		{"principal_metadata", cfg.PrincipalMetadata != nil, learns},
		{"entries", cfg.Entries != 0, learns},
		{"bytes", cfg.Bytes != 0, learns},
		{"guesses", cfg.Guesses != 0, cfg.Kind == "table"},
		{"min_share", cfg.MinShare != 0, cfg.Kind == "table"},
		{"min_responses", cfg.MinResponses != 0, cfg.Kind == "table"},
		{"values", cfg.Values != 0, cfg.Kind == "table"},
		{"window", cfg.Window != 0, cfg.Kind == "table"},
		{"value", cfg.Value != nil, cfg.Kind == "constant"},
		{"of", cfg.Of != nil, cfg.Kind == "chain"},
	} {
		if f.set && !f.ok {
			return fmt.Errorf("%s: field %q: a %s has none", cfg.Kind, f.name, cfg.Kind)
		}
	}
	return nil
}

func (cfg *Config) last(messages Messages) (Predictor, error) {
	key, principal, err := cfg.keyAndPrincipal(messages)
	if err != nil {
		return nil, err
	}
	return named[*Last[proto.Message]](NewLast(LastConfig[proto.Message]{
		Key: key, Principal: principal, Public: cfg.Public, MaxEntries: cfg.Entries, MaxBytes: cfg.Bytes,
	}))
}

func (cfg *Config) table(messages Messages) (Predictor, error) {
	key, principal, err := cfg.keyAndPrincipal(messages)
	if err != nil {
		return nil, err
	}
	return named[*Table[proto.Message]](NewTable(TableConfig[proto.Message]{
		Key: key, Principal: principal, Public: cfg.Public, MaxEntries: cfg.Entries, MaxBytes: cfg.Bytes,
		Guesses: cfg.Guesses, MinShare: cfg.MinShare, MinResponses: cfg.MinResponses, MaxValues: cfg.Values,
		Window: cfg.Window,
	}))
}

// named takes the package's name off an error, and makes no Predictor of a nil.
func named[P Predictor](p P, err error) (Predictor, error) {
	if err != nil {
		return nil, fmt.Errorf("%s", strings.TrimPrefix(err.Error(), "predict: "))
	}
	return p, nil
}

func (cfg *Config) keyAndPrincipal(messages Messages) (func(proto.Message) string, Principal, error) {
	var principal Principal
	if cfg.PrincipalMetadata != nil {
		if cfg.Public {
			return nil, nil, fmt.Errorf(`%s: field "principal_metadata": it is public, so there are no principals`, cfg.Kind)
		}
		for _, name := range cfg.PrincipalMetadata {
			if name == "" {
				return nil, nil, fmt.Errorf(`%s: field "principal_metadata": a name is empty`, cfg.Kind)
			}
		}
		principal = Credentials(cfg.PrincipalMetadata...)
	}
	if cfg.KeyFields == nil {
		return whole, principal, nil
	}
	if messages.Request == nil {
		return nil, nil, fmt.Errorf(`%s: field "key_fields": the method is unknown here; link its generated package in`,
			cfg.Kind)
	}
	paths, err := fieldpath.Parse(messages.Request, cfg.KeyFields)
	if err != nil {
		return nil, nil, fmt.Errorf(`%s: field "key_fields": %w`, cfg.Kind, err)
	}
	return func(request proto.Message) string { return string(paths.Only(request)) }, principal, nil
}

// whole is the key that a request is itself.
func whole(request proto.Message) string {
	b, err := proto.MarshalOptions{Deterministic: true, AllowPartial: true}.Marshal(request)
	if err != nil {
		return "" // such a request cannot be sent either
	}
	return string(b)
}

func (cfg *Config) constant(messages Messages) (Predictor, error) {
	switch {
	case cfg.Value == nil:
		return nil, fmt.Errorf(`constant: field "value" is missing`)
	case messages.Response == nil:
		return nil, fmt.Errorf(`constant: field "value": the method is unknown here; link its generated package in`)
	}
	typ, err := protoregistry.GlobalTypes.FindMessageByName(messages.Response.FullName())
	if err != nil {
		return nil, fmt.Errorf(`constant: field "value": %s: %w; link its generated package in`, messages.Response.FullName(),
			err)
	}
	value := typ.New().Interface()
	if err := protojson.Unmarshal(cfg.Value, value); err != nil {
		return nil, fmt.Errorf(`constant: field "value": %w`, err)
	}
	return Constant(value), nil
}
