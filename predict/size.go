package predict

import (
	"reflect"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/runtime/protoimpl"
)

// sizeOf returns about how much memory a value takes, in bytes, and false if it
// has too many parts to say.
func sizeOf(v any) (int64, bool) {
	m := &measure{left: 100_000}
	if msg, ok := v.(proto.Message); ok {
		m.message(msg.ProtoReflect())
	} else {
		value := reflect.ValueOf(v)
		if value.IsValid() {
			m.bytes += int64(value.Type().Size())
			m.inside(value)
		}
	}
	return m.bytes, m.left > 0
}

// measure adds up the memory of a value's parts.
type measure struct {
	bytes int64
	left  int // how many parts it still looks at
	seen  map[uintptr]bool
}

const (
	pointerBytes = 8
	stringBytes  = 16
	sliceBytes   = 24
	mapBytes     = 16 // what an entry of a map takes beside key and value
)

func (m *measure) part() bool {
	m.left--
	return m.left > 0
}

// message adds a message with all below it.
func (m *measure) message(msg protoreflect.Message) {
	if !m.part() || !msg.IsValid() {
		return
	}
	if t := reflect.TypeOf(msg.Interface()); t.Kind() == reflect.Pointer {
		m.bytes += int64(t.Elem().Size())
	}
	m.bytes += int64(len(msg.GetUnknown()))
	msg.Range(func(field protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case field.IsList():
			for i := range v.List().Len() {
				m.value(field, v.List().Get(i), true)
			}
		case field.IsMap():
			v.Map().Range(func(k protoreflect.MapKey, v protoreflect.Value) bool {
				m.bytes += mapBytes
				m.value(field.MapKey(), k.Value(), true)
				m.value(field.MapValue(), v, true)
				return m.left > 0
			})
		default:
			m.value(field, v, false)
		}
		return m.left > 0
	})
}

// value adds what a field's value takes, the place for it included if it is
// not part of the message's own struct.
func (m *measure) value(field protoreflect.FieldDescriptor, v protoreflect.Value, place bool) {
	placeBytes := int64(pointerBytes)
	switch {
	case field.Message() != nil:
		m.message(v.Message())
	case field.Kind() == protoreflect.StringKind:
		placeBytes = stringBytes
		m.bytes += int64(len(v.String()))
	case field.Kind() == protoreflect.BytesKind:
		placeBytes = sliceBytes
		m.bytes += int64(len(v.Bytes()))
	}
	if place || field.HasPresence() && field.Message() == nil {
		m.bytes += placeBytes
	}
	m.part()
}

// inside adds what a Go value refers to, but not the value itself.
func (m *measure) inside(v reflect.Value) {
	if !m.part() {
		return
	}
	switch v.Kind() {
	case reflect.String:
		m.bytes += int64(v.Len())
	case reflect.Slice:
		m.bytes += int64(v.Cap()) * int64(v.Type().Elem().Size())
		m.elements(v)
	case reflect.Array:
		m.elements(v)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[protoimpl.MessageState]() {
			return // it refers to the message's type
		}
		for i := range v.NumField() {
			m.inside(v.Field(i))
		}
	case reflect.Map:
		for i := v.MapRange(); i.Next() && m.left > 0; {
			m.bytes += mapBytes + int64(v.Type().Key().Size()+v.Type().Elem().Size())
			m.inside(i.Key())
			m.inside(i.Value())
		}
	case reflect.Pointer:
		m.pointer(v)
	case reflect.Interface:
		if !v.IsNil() {
			m.bytes += int64(v.Elem().Type().Size())
			m.inside(v.Elem())
		}
	}
}

// pointer adds what v points to, unless that has been counted.
func (m *measure) pointer(v reflect.Value) {
	if v.IsNil() || m.seen[v.Pointer()] {
		return
	}
	if m.seen == nil {
		m.seen = make(map[uintptr]bool)
	}
	m.seen[v.Pointer()] = true
	m.bytes += int64(v.Type().Elem().Size())
	m.inside(v.Elem())
}

func (m *measure) elements(v reflect.Value) {
	switch v.Type().Elem().Kind() {
	case reflect.Bool, reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr,
		reflect.Float32, reflect.Float64, reflect.Complex64, reflect.Complex128:
		return
	}
	for i := 0; i < v.Len() && m.left > 0; i++ {
		m.inside(v.Index(i))
	}
}
