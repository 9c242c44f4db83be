// Package fieldpath names places in Protobuf messages, such as "account.id",
// and takes messages apart there: for keys made of a request's fields, and for
// comparisons that leave some out.
package fieldpath

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Paths are places in a message, each a chain of field numbers.
type Paths [][]protoreflect.FieldNumber

// Parse resolves paths such as "account.id".
func Parse(message protoreflect.MessageDescriptor, names []string) (Paths, error) {
	if len(names) == 0 {
		return nil, fmt.Errorf("names no field")
	}
	paths := make(Paths, len(names))
	for i, name := range names {
		at := message
		for step := range strings.SplitSeq(name, ".") {
			if at == nil {
				return nil, fmt.Errorf("%q: only a single message has fields to name", name)
			}
			field := at.Fields().ByName(protoreflect.Name(step))
			if field == nil {
				return nil, fmt.Errorf("%q: %s has no field %q", name, at.FullName(), step)
			}
			paths[i] = append(paths[i], field.Number())
			at = nil
			if field.Message() != nil && !field.IsList() && !field.IsMap() {
				at = field.Message()
			}
		}
	}
	return paths, nil
}

// Only serializes these fields of a message, and nothing else of it. Without
// any of them set the result is empty.
func (p Paths) Only(message any) []byte {
	m, ok := message.(proto.Message)
	if !ok || !m.ProtoReflect().IsValid() {
		return nil
	}
	out := m.ProtoReflect().New()
	for _, path := range p {
		copyField(out, m.ProtoReflect(), path)
	}
	b, err := proto.MarshalOptions{Deterministic: true, AllowPartial: true}.Marshal(out.Interface())
	if err != nil {
		return nil
	}
	return b
}

func copyField(to, from protoreflect.Message, path []protoreflect.FieldNumber) {
	field := from.Descriptor().Fields().ByNumber(path[0])
	switch {
	case field == nil || !from.Has(field):
	case len(path) > 1:
		copyField(to.Mutable(field).Message(), from.Get(field).Message(), path[1:])
	case field.Message() != nil && !field.IsList() && !field.IsMap():
		// A longer path may lead into it, and from must not change.
		to.Set(field, protoreflect.ValueOfMessage(proto.Clone(from.Get(field).Message().Interface()).ProtoReflect()))
	default:
		to.Set(field, from.Get(field))
	}
}

// EqualWithout compares two messages but for these fields.
func (p Paths) EqualWithout(prediction, actual any) bool {
	a, ok := prediction.(proto.Message)
	b, ok2 := actual.(proto.Message)
	if !ok || !ok2 {
		return false
	}
	return proto.Equal(p.without(a), p.without(b))
}

func (p Paths) without(m proto.Message) proto.Message {
	m = proto.Clone(m)
	for _, path := range p {
		clearField(m.ProtoReflect(), path)
	}
	return m
}

func clearField(m protoreflect.Message, path []protoreflect.FieldNumber) {
	field := m.Descriptor().Fields().ByNumber(path[0])
	switch {
	case field == nil || !m.Has(field):
	case len(path) == 1:
		m.Clear(field)
	default:
		clearField(m.Mutable(field).Message(), path[1:])
	}
}
