package nearest

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
)

// Field says of an error of encoding/json about an unknown field which one of those of v, a pointer
// to a struct, will have been meant, and of one about a value of the wrong type what Type says. It
// returns other errors as they are.
func Field(err error, v any) error {
	if err == nil {
		return nil
	}
	if kind := (*json.UnmarshalTypeError)(nil); errors.As(err, &kind) {
		return &wrongType{kind}
	}
	_, name, ok := strings.Cut(err.Error(), `json: unknown field "`)
	if !ok {
		return err
	}
	name = strings.TrimSuffix(name, `"`)
	var known []string
	if t := reflect.TypeOf(v).Elem(); t.Kind() == reflect.Struct {
		for i := range t.NumField() {
			known = append(known, strings.Split(t.Field(i).Tag.Get("json"), ",")[0])
		}
	}
	return fmt.Errorf("unknown field %q%s", name, Hint(name, known))
}

// wrongType is such an error in the words of Type.
type wrongType struct{ *json.UnmarshalTypeError }

func (e *wrongType) Error() string {
	if e.Field == "" {
		return Type(e.UnmarshalTypeError)
	}
	return fmt.Sprintf("%q: %s", e.Field, Type(e.UnmarshalTypeError))
}

func (e *wrongType) Unwrap() error { return e.UnmarshalTypeError }

// Type says of an error of encoding/json about a value of the wrong type what is wanted and what is
// there, in the words of JSON and not of Go.
func Type(err *json.UnmarshalTypeError) string {
	want := "something else"
	switch err.Type.Kind() {
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		want = "a whole number"
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		want = "a whole number of 0 or more"
	case reflect.Float32, reflect.Float64:
		want = "a number"
	case reflect.String:
		want = "a string"
	case reflect.Bool:
		want = "true or false"
	case reflect.Slice, reflect.Array:
		want = "a list"
	case reflect.Struct, reflect.Map:
		want = "an object"
	}
	is, number := strings.CutPrefix(err.Value, "number ") // with its digits
	if !number {
		words := map[string]string{"string": "a string", "number": "a number", "bool": "true or false", "array": "a list",
			"object": "an object"}
		if word, known := words[is]; known {
			is = word
		}
	}
	return fmt.Sprintf("want %s, not %s", want, is)
}
