package specgrpc

import (
	"cmp"
	"context"
	"encoding/binary"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/foresay/foresay/driver"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/foresay/foresay/control"
	"github.com/foresay/foresay/predict"
)

// ignoredMetadata returns the metadata that are no part of a call's identity.
func ignoredMetadata(cfg *control.CallSiteConfig) []string {
	names := cfg.IgnoreMetadata
	if names == nil {
		names = control.TracingMetadata()
	}
	var out []string
	for _, name := range names {
		out = append(out, strings.ToLower(name))
	}
	slices.Sort(out)
	return out
}

// appendMetadata appends the outgoing metadata that belong to a call.
func (m *method) appendMetadata(b []byte, ctx context.Context) []byte { //nolint:revive // what is appended to comes first
	md, ok := metadata.FromOutgoingContext(ctx)
	if !ok {
		return b
	}
	return m.appendMD(b, md)
}

// appendMD appends metadata so that different ones make different bytes.
func (m *method) appendMD(b []byte, md metadata.MD) []byte {
	for _, name := range slices.Sorted(maps.Keys(md)) {
		if _, ignored := slices.BinarySearch(m.ignored, name); ignored {
			continue
		}
		b = appendString(b, name)
		b = binary.AppendUvarint(b, uint64(len(md[name])))
		for _, v := range md[name] {
			b = appendString(b, v)
		}
	}
	return b
}

func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// metadataKey returns the key under which contexts hold outgoing metadata.
func metadataKey() any {
	var p keyProbe
	_, _ = metadata.FromOutgoingContext(&p)
	return p.key
}

// keyProbe is a context that notes what it is asked for.
type keyProbe struct {
	emptyContext
	key any
}

type emptyContext struct{ context.Context }

// Value notes the key.
func (p *keyProbe) Value(key any) any {
	p.key = key
	return nil
}

// SameCall compares the options, in their order. Those that only look at the transport
// change nothing about a call.
func (k *call) SameCall(other driver.Transport) driver.Sameness {
	o, ok := other.(*call)
	if !ok {
		return driver.Different
	}
	mine, its := slices.DeleteFunc(slices.Clone(k.opts), isObserver), slices.DeleteFunc(slices.Clone(o.opts), isObserver)
	if len(mine) != len(its) {
		return driver.Different
	}
	same := driver.Same
	for i := range mine {
		same = max(same, driver.CompareValues(mine[i], its[i]))
	}
	return same
}

// SameContext compares two contexts by the keys that calls of the method looked up.
func (k *call) SameContext(a, b context.Context) driver.Sameness {
	same := driver.Same
	if !k.method.looks.made.Load() {
		same = driver.PerhapsSame
	}
	for _, key := range k.method.looks.all() {
		if _, internal := key.(*int); !internal && !driver.OwnKey(key) && !k.Told(key) {
			same = max(same, driver.CompareContextValues(a.Value(key), b.Value(key)))
		}
	}
	return same
}

// Told leaves out the outgoing metadata, which are part of the identity.
func (k *call) Told(key any) bool { return key == k.conn.outgoing }

// Ask has predictors be told on whose behalf the call is made.
func (k *call) Ask(ctx context.Context) context.Context { return k.conn.ask(ctx, k.method, k.opts) }

// ask has predictors be told on whose behalf a call is made.
func (c *callSiteTable) ask(ctx context.Context, m *method, opts []grpc.CallOption) context.Context {
	return predict.WithCaller(ctx, func(ctx context.Context) (id string, ok bool) {
		c.scratch(func(b []byte) []byte {
			b, ok = c.appendCaller(b, ctx, m, opts)
			id = string(b)
			return b
		})
		return id, ok
	})
}

// lookedUp are the keys by which interceptors, credentials and stats handlers look
// values up in the contexts of a method's calls: by what they find, they may send
// other metadata. It is not known before a call has been made.
type lookedUp struct {
	keys atomic.Pointer[[]any] // in the order in which they came
	made atomic.Bool           // a call was made

	mu sync.Mutex
}

// note remembers a key.
func (l *lookedUp) note(key any) {
	if keys := l.keys.Load(); keys != nil && slices.Contains(*keys, key) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	var keys []any
	if old := l.keys.Load(); old != nil {
		keys = *old
	}
	if !slices.Contains(keys, key) {
		keys = append(slices.Clone(keys), key)
		l.keys.Store(&keys)
	}
}

// all returns the keys so far.
func (l *lookedUp) all() []any {
	if keys := l.keys.Load(); keys != nil {
		return *keys
	}
	return nil
}

// over notes that a call was made, if it was.
func (l *lookedUp) over(err error) {
	if err == nil && !l.made.Load() {
		l.made.Store(true)
	}
}

// lookingContext notes what is looked up in it.
type lookingContext struct {
	context.Context
	method *method
}

// Value notes the key.
func (c *lookingContext) Value(key any) any {
	c.method.looks.note(key)
	return c.Context.Value(key)
}

// appendCaller appends on whose behalf a call is made: its metadata, what is looked
// up in its context, the authority, and options that are not gRPC's, which are for
// interceptors. It reports false if that cannot be told.
func (c *callSiteTable) appendCaller(b []byte, ctx context.Context, m *method, opts []grpc.CallOption) (_ []byte, ok bool) { //nolint:revive // what is appended to comes first
	if !m.looks.made.Load() {
		return b, false
	}
	b = m.appendMetadata(b, ctx)
	for _, o := range opts {
		_, authority := o.(grpc.AuthorityOverrideCallOption)
		if v := reflect.ValueOf(o); authority || v.Type().PkgPath() != reflect.TypeFor[grpc.EmptyCallOption]().PkgPath() {
			if b, ok = appendValue(b, v); !ok {
				return b, false
			}
		}
	}
	for i, key := range m.looks.all() {
		if _, internal := key.(*int); internal || key == c.outgoing || driver.OwnKey(key) {
			continue
		}
		v := ctx.Value(key)
		if v == nil || driver.IsSpan(v) {
			continue
		}
		b = binary.AppendUvarint(append(b, 0), uint64(i))
		if md, is := v.(metadata.MD); is {
			b = m.appendMD(b, md)
		} else if b, ok = appendValue(b, reflect.ValueOf(v)); !ok {
			return b, false
		}
	}
	return b, true
}

// appendValue appends a value that holds no references: what those lead to may
// change.
func appendValue(b []byte, v reflect.Value) (_ []byte, ok bool) {
	if !v.IsValid() {
		return append(b, 0), true
	}
	b = appendString(b, cmp.Or(v.Type().PkgPath(), "."))
	b = appendString(b, v.Type().String())
	switch {
	case v.Kind() == reflect.String:
		return appendString(b, v.String()), true
	case v.Kind() == reflect.Bool && v.Bool():
		return append(b, 1), true
	case v.Kind() == reflect.Bool:
		return append(b, 0), true
	case v.CanInt():
		return binary.AppendVarint(b, v.Int()), true
	case v.CanUint() && v.Kind() != reflect.Uintptr:
		return binary.AppendUvarint(b, v.Uint()), true
	case v.Kind() == reflect.Interface:
		return appendValue(b, v.Elem())
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			if b, ok = appendValue(b, v.Field(i)); !ok {
				return b, false
			}
		}
		return b, true
	case v.Kind() == reflect.Array:
		for i := range v.Len() {
			if b, ok = appendValue(b, v.Index(i)); !ok {
				return b, false
			}
		}
		return b, true
	}
	return b, false
}
