package predict

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// The tests' method takes a FieldDescriptorProto and returns a StringValue.
func testMessages() Messages {
	return Messages{
		Request:  (&descriptorpb.FieldDescriptorProto{}).ProtoReflect().Descriptor(),
		Response: (&wrapperspb.StringValue{}).ProtoReflect().Descriptor(),
	}
}

func mustNew(t *testing.T, config string) Predictor {
	t.Helper()
	cfg, err := ParseConfig([]byte(config))
	if err != nil {
		t.Fatal(err)
	}
	p, err := New(cfg, testMessages())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestNew(t *testing.T) {
	request := func(name, extendee string, number int32) *descriptorpb.FieldDescriptorProto {
		return &descriptorpb.FieldDescriptorProto{
			Name: &name, Number: &number, Extendee: &extendee, Options: &descriptorpb.FieldOptions{Packed: new(bool)},
		}
	}
	a, b := wrapperspb.String("a"), wrapperspb.String("b")
	learnt := request("x", "e", 1)
	tests := []struct {
		name    string
		config  string
		request *descriptorpb.FieldDescriptorProto
		want    []any
	}{
		{"whole request", `{"kind": "last"}`, request("x", "e", 1), []any{a}},
		{"another request", `{"kind": "last"}`, request("x", "e", 2), nil},
		{"the same fields", `{"kind": "last", "key_fields": ["name", "options.packed"]}`, request("x", "other", 2), []any{a}},
		{"another field", `{"kind": "last", "key_fields": ["name"]}`, request("y", "e", 1), nil},
		{"table", `{"kind": "table", "key_fields": ["name"], "min_share": 0.9, "entries": 10, "bytes": "64kB"}`,
			request("x", "", 5), []any{a}},
		{"table without enough", `{"kind": "table", "min_responses": 2, "guesses": 2, "values": 3, "window": 8}`,
			request("x", "e", 1), nil},
		{"constant", `{"kind": "constant", "value": "b"}`, request("y", "e", 1), []any{b}},
		{"chain", `{"kind": "chain", "of": [{"kind": "last", "bytes": 1000}, {"kind": "constant", "value": "b"}]}`,
			request("x", "e", 1), []any{a}},
		{"chain goes on", `{"kind": "chain", "of": [{"kind": "last"}, {"kind": "constant", "value": "b"}]}`,
			request("y", "e", 1), []any{b}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := mustNew(t, tt.config)
			p.Learn(t.Context(), learnt, a)
			if diff := cmp.Diff(tt.want, p.Predict(t.Context(), tt.request), protocmp.Transform()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestNewPrincipals(t *testing.T) {
	request, response := &descriptorpb.FieldDescriptorProto{}, wrapperspb.String("a")
	for _, tt := range []struct {
		config             string
		otherUser, another bool // are given what ann's call taught
	}{
		{`{"kind": "last"}`, false, true},
		{`{"kind": "table"}`, false, true},
		{`{"kind": "last", "public": true}`, true, true},
		{`{"kind": "table", "public": true}`, true, true},
		{`{"kind": "last", "principal_metadata": ["X-Tenant"]}`, false, false},
	} {
		p := mustNew(t, tt.config)
		p.Learn(outgoing("authorization", "ann", "x-tenant", "1"), request, response)
		bob, tenant := outgoing("authorization", "bob", "x-tenant", "1"), outgoing("authorization", "ann", "x-tenant", "2")
		if got := p.Predict(bob, request) != nil; got != tt.otherUser {
			t.Errorf("%s: another user gets a guess: %v", tt.config, got)
		}
		if got := p.Predict(tenant, request) != nil; got != tt.another {
			t.Errorf("%s: another tenant gets a guess: %v", tt.config, got)
		}
	}
}

func TestConfigErrors(t *testing.T) {
	chain := strings.Repeat(`{"kind": "chain", "of": [`, 10) + `{"kind": "last"}` + strings.Repeat(`]}`, 10)
	for config, want := range map[string]string{
		`{`:                              "unexpected EOF",
		`{"kind": "last"} {}`:            "more after the first JSON value",
		`{"kind": "last", "x":1}`:        `unknown field "x"`,
		`{}`:                             `"kind" is missing`,
		`{"kind": "lru"}`:                `"lru" is not one of last, table, constant, chain`,
		`{"kind": "last", "guesses": 2}`: `last: field "guesses"`,
		`{"kind": "constant", "value": "x", "public": true}`:            `constant: field "public"`,
		`{"kind": "last", "entries": -1}`:                               "last value: MaxEntries is -1",
		`{"kind": "last", "bytes": -1}`:                                 "last value: MaxBytes is -1",
		`{"kind": "last", "bytes": "1TB"}`:                              `"1TB" is no amount`,
		`{"kind": "last", "entries": 1, "bytes": "900GB"}`:              "MaxBytes is 900GB for 1 entries",
		`{"kind": "last", "key_fields": ["nam"]}`:                       `last: field "key_fields": "nam": google.protobuf.FieldDescriptorProto has no field "nam"`,
		`{"kind": "table", "key_fields": []}`:                           `table: field "key_fields": names no field`,
		`{"kind": "table", "min_share": 2}`:                             "table: MinShare is 2",
		`{"kind": "table", "values": -1}`:                               "table: a limit is negative",
		`{"kind": "last", "public": true, "principal_metadata": ["x"]}`: `"principal_metadata": it is public`,
		`{"kind": "last", "principal_metadata": [""]}`:                  "a name is empty",
		`{"kind": "constant"}`:                                          `"value" is missing`,
		`{"kind": "constant", "value": 5}`:                              `constant: field "value"`,
		`{"kind": "chain"}`:                                             `"of": names no predictor`,
		`{"kind": "chain", "of": [{"kind": "last"}, {"kind": "x"}]}`:    `chain: predictor 2: field "kind": "x"`,
		chain: "more than 8 of them",
	} {
		cfg, err := ParseConfig([]byte(config))
		if err == nil {
			_, err = New(cfg, testMessages())
		}
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "predict: ") ||
			strings.Count(err.Error(), "predict:") > 1 {
			t.Errorf("%s: error %v, want %q", config, err, want)
		}
	}
	for _, config := range []string{`{"kind": "last", "key_fields": ["name"]}`, `{"kind": "constant", "value": "x"}`} {
		cfg, err := ParseConfig([]byte(config))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := New(cfg, Messages{}); err == nil || !strings.Contains(err.Error(), "the method is unknown here") {
			t.Errorf("%s without messages: %v", config, err)
		}
	}
}

// FuzzConfig: any file is refused, or describes a predictor that works.
func FuzzConfig(f *testing.F) {
	for _, seed := range []string{
		`{"kind": "last", "key_fields": ["name", "options.packed"], "entries": 9000000000000000000, "bytes": 1}`,
		`{"kind": "table", "public": true, "min_share": 1e-300, "values": 1, "window": 1, "guesses": 9}`,
		`{"kind": "chain", "of": [{"kind": "last", "bytes": "1kB"}, {"kind": "constant", "value": "x"}]}`,
		`{"kind": "last", "principal_metadata": ["x-tenant", "\u0000"]}`,
	} {
		f.Add(seed)
	}
	request := &descriptorpb.FieldDescriptorProto{Name: new(string)}
	f.Fuzz(func(t *testing.T, config string) {
		cfg, err := ParseConfig([]byte(config))
		if err != nil {
			return
		}
		p, err := New(cfg, testMessages())
		if err != nil {
			return
		}
		for range 3 {
			p.Learn(t.Context(), request, wrapperspb.String("x"))
			for _, guess := range p.Predict(t.Context(), request) {
				if _, ok := guess.(*wrapperspb.StringValue); !ok {
					t.Errorf("%s predicts %v", config, guess)
				}
			}
		}
	})
}

func TestBytes(t *testing.T) {
	for text, want := range map[string]Bytes{
		"0B": 0, "7B": 7, "64MB": 64e6, "64 MB": 64e6, "1GiB": 1 << 30, "500kB": 500_000, "3KiB": 3 << 10, "2GB": 2e9,
		"8MiB": 8 << 20,
	} {
		got, err := ParseBytes(text)
		if err != nil || got != want {
			t.Errorf("%s: %d, %v", text, got, err)
		}
		back, err := ParseBytes(got.String())
		if err != nil || back != want {
			t.Errorf("%s: %s is read as %d, %v", text, got, back, err)
		}
	}
	for _, text := range []string{"", "64", "MB", "-1MB", "+1MB", "1.5MB", "1mb", "9999999999GiB", "1 000kB"} {
		if got, err := ParseBytes(text); err == nil {
			t.Errorf("%q is read as %d", text, got)
		}
	}
	out, err := json.Marshal(Config{Kind: "last", Bytes: 64e6})
	if err != nil || string(out) != `{"kind":"last","bytes":"64MB"}` {
		t.Errorf("%s, %v", out, err)
	}
	var b Bytes
	if err := json.Unmarshal([]byte(`4096`), &b); err != nil || b != 4096 {
		t.Errorf("%d, %v", b, err)
	}
	if err := json.Unmarshal([]byte(`true`), &b); err == nil {
		t.Error("true is an amount")
	}
	if s := Bytes(math.MaxInt64).String(); !strings.HasSuffix(s, "B") {
		t.Error(s)
	}
}
