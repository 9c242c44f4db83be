package spectree

import (
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"maps"
	"reflect"
	"slices"
)

// fingerprints are of states: of a tree and of the shell that obeys it. Two
// states with the same one behave alike. Pointers count by the order in which
// they are met; what only makes walks cheaper, or counts them, does not count.
type fingerprints struct {
	hash     maphash.Hash
	pointers map[pointer]int
	counting map[reflect.Type][]int // the fields that count
}

type pointer struct {
	at uintptr
	of reflect.Type
}

// idleFields are those that do not count.
var idleFields = map[string][]string{
	"Tree":       {"out", "few", "walks", "now", "cfg", "unanswered"},
	"Run":        {"fewUses", "assumed", "assumptions", "tree", "at", "inAt"},
	"Lane":       {"fewUses", "counts", "same", "strides"},
	"Call":       {"oneUse", "sentAt", "answeredAt", "chains", "counted", "hold", "wakes"},
	"Use":        {"assumed"},
	"record":     {"few", "index", "confirmed"},
	"chain":      {"joins", "next", "done", "seen", "kept", "keptAt"},
	"shell":      {"rng", "p", "stats", "trace", "time", "pick", "explorer"},
	"shellCall":  {"executedAt", "answeredAt", "site"},
	"shellRun":   {},
	"thread":     {"block"},
	"instr":      {"block"},
	"world":      {"clock"},
	"resolution": {},
}

func newFingerprints() *fingerprints {
	return &fingerprints{pointers: make(map[pointer]int), counting: make(map[reflect.Type][]int)}
}

func (f *fingerprints) of(s *shell) uint64 {
	clear(f.pointers)
	f.hash.Reset()
	f.value(reflect.ValueOf(s))
	return f.hash.Sum64()
}

func (f *fingerprints) number(n uint64) {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], n)
	_, _ = f.hash.Write(b[:]) // never fails
}

func (f *fingerprints) value(v reflect.Value) {
	switch v.Kind() {
	case reflect.Bool:
		n := uint64(0)
		if v.Bool() {
			n = 1
		}
		f.number(n)
	case reflect.Int, reflect.Int32, reflect.Int64:
		f.number(uint64(v.Int()))
	case reflect.Uint8, reflect.Uint32, reflect.Uint64:
		f.number(v.Uint())
	case reflect.String:
		f.number(uint64(v.Len()))
		_, _ = f.hash.WriteString(v.String()) // never fails
	case reflect.Interface:
		f.value(v.Elem())
	case reflect.Slice, reflect.Array:
		f.number(uint64(v.Len()))
		for i := range v.Len() {
			f.value(v.Index(i))
		}
	case reflect.Map:
		f.entries(v)
	case reflect.Pointer:
		f.pointer(v)
	case reflect.Struct:
		f.fields(v)
	case reflect.Invalid, reflect.Func:
		f.number(0)
	default:
		panic(fmt.Sprintf("spectree: a %v in a state", v.Kind()))
	}
}

// pointer writes what v points to, once.
func (f *fingerprints) pointer(v reflect.Value) {
	if v.IsNil() {
		f.number(1)
		return
	}
	at := pointer{v.Pointer(), v.Type()}
	if n, ok := f.pointers[at]; ok {
		f.number(uint64(n) + 2)
		return
	}
	f.pointers[at] = len(f.pointers)
	f.value(v.Elem())
}

// fields writes a struct. A lane's past is written as the guesses that count: the
// list is shortened as they are settled.
func (f *fingerprints) fields(v reflect.Value) {
	t := v.Type()
	if t == reflect.TypeFor[dep]() && v.FieldByName("join").IsNil() {
		c := v.FieldByName("call")
		if !c.IsNil() && c.Elem().FieldByName("answered").Bool() {
			f.value(v.FieldByName("prev"))
			return
		}
	}
	for _, i := range f.fieldsOf(t) {
		f.value(v.Field(i))
	}
}

func (f *fingerprints) fieldsOf(t reflect.Type) []int {
	if known, ok := f.counting[t]; ok {
		return known
	}
	var out []int
	for i := range t.NumField() {
		if !slices.Contains(idleFields[t.Name()], t.Field(i).Name) {
			out = append(out, i)
		}
	}
	f.counting[t] = out
	return out
}

func (f *fingerprints) entries(v reflect.Value) {
	f.number(uint64(v.Len()))
	byName := make(map[string]reflect.Value)
	for _, k := range v.MapKeys() {
		name := k.String()
		if k.Kind() == reflect.Struct { // a key of the record
			name = fmt.Sprint(k.FieldByName("lane"), k.FieldByName("op"), k.FieldByName("occ"))
		}
		byName[name] = v.MapIndex(k)
	}
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		f.value(reflect.ValueOf(name))
		f.value(byName[name])
	}
}
