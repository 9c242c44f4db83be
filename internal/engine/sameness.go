package engine

import "reflect"

// Sameness is what is known of whether two things are the same.
type Sameness uint8

// The kinds of Sameness, by what they rule out: of several, the highest counts.
const (
	Same Sameness = iota
	// PerhapsSame: they cannot be compared, such as two pointers to what others may change.
	PerhapsSame
	Different
)

// CompareValues compares two values by what they hold. What they point to is not
// looked at, since others may change it: two pointers are one and the same, or perhaps
// the same.
func CompareValues(a, b any) Sameness { return compareValues(reflect.ValueOf(a), reflect.ValueOf(b)) }

func compareValues(a, b reflect.Value) Sameness {
	if a.IsValid() != b.IsValid() || a.IsValid() && a.Type() != b.Type() {
		return Different
	}
	switch a.Kind() {
	case reflect.Invalid:
		return Same
	case reflect.Pointer, reflect.UnsafePointer, reflect.Map, reflect.Chan, reflect.Func, reflect.Slice:
		return compareReferences(a, b)
	case reflect.Interface:
		return compareValues(a.Elem(), b.Elem())
	case reflect.Struct:
		return compareParts(a.NumField(), func(i int) Sameness { return compareValues(a.Field(i), b.Field(i)) })
	case reflect.Array:
		return compareParts(a.Len(), func(i int) Sameness { return compareValues(a.Index(i), b.Index(i)) })
	}
	if a.Equal(b) {
		return Same
	}
	return Different
}

// compareReferences compares what may lead to something that changes.
func compareReferences(a, b reflect.Value) Sameness {
	switch {
	case a.IsNil() != b.IsNil():
		return Different
	case a.IsNil():
		return Same
	case a.Kind() == reflect.Func: // two closures of one function may differ
		return PerhapsSame
	case a.UnsafePointer() != b.UnsafePointer(), a.Kind() == reflect.Slice && a.Len() != b.Len():
		return PerhapsSame
	}
	return Same
}

func compareParts(n int, part func(i int) Sameness) Sameness {
	s := Same
	for i := range n {
		s = max(s, part(i))
	}
	return s
}
