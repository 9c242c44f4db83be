// Package msgtext writes messages, records and states for people: the kind, and the fields that say
// something. It needs no method per message, so that a new one is readable at once.
package msgtext

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"unicode"
)

// maxElements bounds how many elements of a list are written.
const maxElements = 8

// A Format tells how some values are written, by family or protocol: ok is false for those that are
// written as all are. nil: none.
type Format func(v any) (text string, ok bool)

// A Texter writes itself with a format: a message that another module's type has the fields of.
type Texter interface{ Text(Format) string }

// Of returns a message as text: the name of its type, then each field that is not zero or empty, as
// name=value. A value with a method String is what that says. Fields of embedded structs are the
// message's own; lists are in brackets.
func (f Format) Of(msg any) string {
	v := reflect.ValueOf(msg)
	if !v.IsValid() {
		return "nil"
	}
	if text, ok := f.special(v); ok {
		return text
	}
	for v.Kind() == reflect.Pointer && !v.IsNil() {
		v = v.Elem()
	}
	if v.Kind() != reflect.Struct {
		return strings.TrimSpace(v.Type().Name() + " " + f.value(v))
	}
	return strings.TrimSpace(title(v.Type().Name()) + " " + strings.Join(f.fields(v), " "))
}

// title writes a kind as papers do, whether its type is exported or not.
func title(name string) string {
	if name == "" {
		return ""
	}
	return strings.ToUpper(name[:1]) + name[1:]
}

// Fields returns what Of writes behind the name of a struct's type.
func (f Format) Fields(v any) string { return strings.Join(f.fields(reflect.ValueOf(v)), " ") }

// special returns what a value says of itself, or is said of it.
func (f Format) special(v reflect.Value) (string, bool) {
	if !v.CanInterface() {
		return "", false
	}
	x := v.Interface()
	if f != nil {
		if text, ok := f(x); ok {
			return text, true
		}
	}
	if v.Kind() == reflect.Pointer && v.IsNil() {
		return "nil", true
	}
	switch x := x.(type) {
	case Texter:
		return x.Text(f), true
	case error:
		return x.Error(), true
	case fmt.Stringer:
		return x.String(), true
	}
	return "", false
}

func (f Format) fields(v reflect.Value) []string {
	var out []string
	for i := range v.NumField() {
		field, value := v.Type().Field(i), v.Field(i)
		switch {
		case value.IsZero() || field.Name == "_" || value.Kind() == reflect.Slice && value.Len() == 0:
		case field.Anonymous && value.Kind() == reflect.Struct:
			if text, ok := f.special(value); ok {
				out = append(out, text)
				break
			}
			out = append(out, f.fields(value)...)
		case value.Kind() == reflect.Bool:
			out = append(out, lower(field.Name))
		default:
			out = append(out, lower(field.Name)+"="+f.value(value))
		}
	}
	return out
}

func (f Format) value(v reflect.Value) string {
	if text, ok := f.special(v); ok {
		return text
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return "nil"
		}
		return f.value(v.Elem())
	case reflect.Struct:
		return "{" + strings.Join(f.fields(v), " ") + "}"
	case reflect.Slice, reflect.Array:
		return f.list(v)
	case reflect.Map:
		return fmt.Sprintf("%d keys", v.Len())
	case reflect.String:
		return strconv.Quote(v.String())
	case reflect.Bool:
		return strconv.FormatBool(v.Bool())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return strconv.FormatInt(v.Int(), 10)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return strconv.FormatUint(v.Uint(), 10)
	}
	return fmt.Sprint(v)
}

func (f Format) list(v reflect.Value) string {
	if v.Type().Elem() == reflect.TypeFor[byte]() {
		b := make([]byte, v.Len())
		for i := range b { // reflect.Copy panics at the fields that are not exported
			b[i] = byte(v.Index(i).Uint())
		}
		return bytesText(b)
	}
	var out []string
	for i := 0; i < v.Len(); {
		if len(out) == maxElements {
			out = append(out, fmt.Sprintf("and %d more", v.Len()-i))
			break
		}
		text, same := f.value(v.Index(i)), 1
		for i+same < v.Len() && f.value(v.Index(i+same)) == text {
			same++
		}
		if i += same; same > 4 {
			text = fmt.Sprintf("%d times %s", same, text)
		} else {
			text += strings.Repeat(", "+text, same-1)
		}
		out = append(out, text)
	}
	return "[" + strings.Join(out, ", ") + "]"
}

// bytesText returns bytes as text if they are, and else how many there are, with the first ones.
func bytesText(b []byte) string {
	const limit = 32
	text := strings.IndexFunc(string(b), func(r rune) bool {
		return r == unicode.ReplacementChar || !unicode.IsPrint(r)
	}) < 0
	switch {
	case len(b) > limit:
		return fmt.Sprintf("%d bytes, %x...", len(b), b[:limit/4])
	case text:
		return strconv.Quote(string(b))
	}
	return fmt.Sprintf("%x", b)
}

// lower returns a field's name as a word in a text.
func lower(name string) string {
	if rest, ok := strings.CutPrefix(name, "ID"); ok {
		return "id" + rest
	}
	return strings.ToLower(name[:1]) + name[1:]
}
