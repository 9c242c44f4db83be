package nearest

import (
	"fmt"
	"reflect"
	"strings"
)

// Field says of an error of encoding/json about an unknown field which one of those of v, a pointer to a struct, will
// have been meant. It returns other errors as they are.
func Field(err error, v any) error {
	if err == nil {
		return nil
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
