package fieldpath

import (
	"bytes"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

func field(name string, packed bool, extendee string) *descriptorpb.FieldDescriptorProto {
	return &descriptorpb.FieldDescriptorProto{
		Name: &name, Extendee: &extendee, Options: &descriptorpb.FieldOptions{Packed: &packed},
	}
}

func TestPaths(t *testing.T) {
	p, err := Parse(field("", false, "").ProtoReflect().Descriptor(), []string{"name", "options.packed"})
	if err != nil {
		t.Fatal(err)
	}
	a := field("a", true, "x")
	for _, tt := range []struct {
		b              *descriptorpb.FieldDescriptorProto
		only, butThose bool // are equal
	}{
		{field("a", true, "x"), true, true},
		{field("a", true, "y"), true, false},
		{field("b", true, "x"), false, true},
		{field("a", false, "x"), false, true},
		{&descriptorpb.FieldDescriptorProto{Name: proto.String("a")}, false, false},
	} {
		before := proto.Clone(tt.b)
		if got := bytes.Equal(p.Only(a), p.Only(tt.b)); got != tt.only {
			t.Errorf("%v: only these equal: %v", tt.b, got)
		}
		if got := p.EqualWithout(a, tt.b); got != tt.butThose {
			t.Errorf("%v: equal without these: %v", tt.b, got)
		}
		if !proto.Equal(before, tt.b) {
			t.Errorf("changed %v to %v", before, tt.b)
		}
	}
	for _, none := range []any{nil, "text", (*descriptorpb.FieldDescriptorProto)(nil)} {
		if got := p.Only(none); got != nil {
			t.Errorf("%v: %q", none, got)
		}
	}
	if p.EqualWithout(a, wrapperspb.String("a")) || p.EqualWithout("a", a) {
		t.Error("different types are equal")
	}
}

func TestParseErrors(t *testing.T) {
	message := field("", false, "").ProtoReflect().Descriptor()
	for path, want := range map[string]string{
		"":                                  "has no field",
		"nam":                               `has no field "nam"`,
		"name.x":                            "only a single message has fields",
		"options.uninterpreted_option.name": "only a single message has fields",
	} {
		if _, err := Parse(message, []string{path}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", path, err)
		}
	}
	if _, err := Parse(message, nil); err == nil {
		t.Error("no path is accepted")
	}
}
