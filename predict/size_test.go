package predict

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// TestSizes compares estimates with how much the heap grows.
func TestSizes(t *testing.T) {
	type node struct {
		Name string
		Next *node
		m    map[string][]byte
	}
	list := func(n int) *structpb.Struct {
		values := make([]any, n)
		for i := range values {
			values[i] = fmt.Sprint("value", i)
		}
		s, err := structpb.NewStruct(map[string]any{"a": values, "b": 1.0, "c": strings.Repeat("x", 100)})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	text, fields := strings.Repeat("x", 5000), list(100)
	for name, make := range map[string]func(i int) any{
		"message with a string": func(int) any { return wrapperspb.String(strings.Clone(text)) },
		"nested message":        func(int) any { return proto.Clone(fields) },
		"string":                func(int) any { return strings.Clone(text) },
		"structs": func(i int) any {
			n := &node{Name: fmt.Sprint("node", i), m: map[string][]byte{"a": []byte(text), "b": []byte(text[:100])}}
			return &node{Name: fmt.Sprint("first", i), Next: n}
		},
		"slice of pointers": func(i int) any {
			var s []*[16]int64
			for range 20 {
				s = append(s, new([16]int64))
			}
			return s
		},
	} {
		const n = 200
		values := [n]any{}
		before := heapBytes()
		for i := range values {
			values[i] = make(i)
		}
		real := (heapBytes() - before) / n
		runtime.KeepAlive(&values)
		size, ok := sizeOf(values[7])
		if !ok || size < real/2 || size > 2*real {
			t.Errorf("%s: estimated at %d bytes (%v), takes %d", name, size, ok, real)
		}
	}
}

func TestSizesEnd(t *testing.T) {
	type ring struct{ next *ring }
	r := &ring{}
	r.next = &ring{r}
	if size, ok := sizeOf(r); !ok || size < 16 {
		t.Errorf("a ring: %d, %v", size, ok)
	}
	type tree struct{ children []any }
	many := &tree{make([]any, 200_000)}
	for i := range many.children {
		many.children[i] = i
	}
	if _, ok := sizeOf(many); ok {
		t.Error("so many parts are not too many")
	}
	last := LastValue(identity, 1)
	last.Learn(t.Context(), "k", many)
	if got := last.Predict(t.Context(), "k"); got != nil {
		t.Error("a value of unknown size is kept")
	}
	for _, v := range []any{nil, (*wrapperspb.StringValue)(nil), (*ring)(nil), 1, struct{}{}} {
		if size, ok := sizeOf(v); !ok || size > 100 {
			t.Errorf("%#v: %d, %v", v, size, ok)
		}
	}
}
