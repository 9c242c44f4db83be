package engine

import (
	"context"
	"fmt"
	"reflect"
	"sync"

	"github.com/foresay/foresay/internal/spectree"
)

// What a call sends may depend on its context in ways that no Operation tells: an
// interceptor adds the token that it finds there. So an attempt remembers what was
// looked up in the context of the code that made it, and another run's code uses the
// call only if its own context says the same. Where that cannot be compared the call
// is made anew. A run need not compare where it is sure to make the same call, see
// spectree.Tree.Find: a function that was told the same does the same.

// Comparer is driver.Comparer.
type Comparer interface {
	Transport
	SameCall(other Transport) Sameness
	SameContext(a, b context.Context) Sameness
	Told(key any) bool
}

// lookups are what was looked up in a context, and which context that is.
type lookups struct {
	told func(key any) bool

	mu   sync.Mutex
	ctx  context.Context
	made []lookup
	few  [4]lookup
	all  bool // nothing more will be looked up that tells what is sent
}

type lookup struct{ key, value any }

// value looks up a value, and remembers that it was asked for.
func (s *lookups) value(key any) any {
	for {
		s.mu.Lock()
		ctx := s.ctx
		s.mu.Unlock()
		v := ctx.Value(key) // may be code of the user's
		if !s.counts(key) {
			return v
		}
		s.mu.Lock()
		if s.ctx == ctx {
			s.note(lookup{key, v})
			s.mu.Unlock()
			return v
		}
		s.mu.Unlock()
	}
}

// counts leaves out what package context asks for its own sake, by keys of type
// *int, what the engine does, and what the operation's identity tells.
func (s *lookups) counts(key any) bool {
	_, internal := key.(*int)
	return !internal && !OwnKey(key) && !s.told(key)
}

// note is called under mu.
func (s *lookups) note(l lookup) {
	for i := range s.made {
		if s.made[i].key == l.key {
			return
		}
	}
	if s.made == nil {
		s.made = s.few[:0]
	}
	s.made = append(s.made, l)
}

// agree compares what a context says, as far as it was asked; if that is to be
// certain, with what it will be asked. looked is how often that was.
func (s *lookups) agree(ctx context.Context, certain bool) (looked int, same Sameness) {
	s.mu.Lock()
	made, all := s.made, s.all
	s.mu.Unlock()
	if certain && !all {
		same = PerhapsSame
	}
	for _, l := range made {
		same = max(same, CompareContextValues(l.value, ctx.Value(l.key)))
	}
	return len(made), same
}

// follow has what is looked up from now on come from another context, that said the
// same so far.
func (s *lookups) follow(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ctx = ctx
}

// complete notes that what is sent is certain.
func (s *lookups) complete() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = true
}

// state returns how often was looked up so far, and whether that is all.
func (s *lookups) state() (looked int, all bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.made), s.all
}

// recordLookups has lookups in the context of the call's code be remembered. Under mu.
func (c *call) recordLookups() {
	told := func(any) bool { return false }
	if k, ok := c.op.Transport.(Comparer); ok {
		told = k.Told
	}
	c.looks = &lookups{ctx: c.ctx, told: told}
}

// source returns the context of the code for which the call is made.
func (c *call) source() context.Context {
	if c.looks == nil {
		return c.ctx
	}
	c.looks.mu.Lock()
	defer c.looks.mu.Unlock()
	return c.looks.ctx
}

// ofRun reports whether ctx has no values but those of its task: all runs' contexts
// say the same then.
func ofRun(ctx context.Context) bool {
	for {
		switch c := ctx.(type) {
		case *runContext:
			return true
		case *laneContext:
			ctx = c.Context
		case *outlasting:
			ctx = c.Context
		case *predicting:
			ctx = c.Context
		default:
			return false
		}
	}
}

// found is the call that code is about to use, as far as is known without the
// task's mutex.
type found struct {
	call   *spectree.Call // nil: a new one
	looked int            // so many lookups were compared
	sent   bool           // it was sent already: predictions for it are of no use
}

// identify finds the call that the code would use if it made this one, and sets the
// variant in which it does.
func (t *task) identify(ctx context.Context, l *lane, op *Operation, spec *spectree.CallSpec) found {
	t.mu.Lock()
	var candidates []compared
	free, variants := -1, t.tree.Variants()
	for v := 0; v <= variants; v++ {
		spec.Variant = v
		tc, how := t.tree.Find(l.tree, spec)
		if tc == nil {
			if free < 0 {
				free = v
			}
			continue
		}
		f := found{call: tc, sent: t.tree.Recorded(l.tree, spec)}
		if how == spectree.Certain {
			t.mu.Unlock()
			return f
		}
		c, _ := tc.Data.(*call)
		candidates = append(candidates, compared{f, v, how, c.op, c.source(), c.looks, tc.Uses() > 0})
	}
	t.mu.Unlock()
	var same *compared
	for i := range candidates {
		c := &candidates[i]
		s := Same
		if c.looked, s = c.compare(ctx, op); s == Different {
			continue
		}
		if c.how == spectree.Sure {
			same = c
			break
		}
		if s == PerhapsSame { // each run would make it anew, and guess anew
			spec.NoPrediction = true
		}
		if s == Same && same == nil {
			same = c
		}
	}
	if same != nil {
		spec.Variant = same.variant
		return same.found
	}
	if spec.Variant = free; free < 0 {
		spec.Variant = variants + 1
	}
	return found{}
}

// compared is a call to compare with, as it was when somebody looked.
type compared struct {
	found
	variant int
	how     spectree.Certainty
	op      *Operation
	ctx     context.Context
	looks   *lookups
	shared  bool // others use it, and may be the ones that are right
}

// compare compares the call with that of code that would make this one.
func (c *compared) compare(ctx context.Context, op *Operation) (looked int, same Sameness) {
	k, ok := op.Transport.(Comparer)
	if ok {
		same = k.SameCall(c.op.Transport)
	}
	switch {
	case c.looks != nil:
		n, agree := c.looks.agree(ctx, c.shared)
		if _, all := c.looks.state(); ok && !all {
			agree = max(agree, k.SameContext(ctx, c.ctx)) // by what others of its method looked up
		}
		return n, max(same, agree)
	case !ofRun(ctx) || !ofRun(c.ctx):
		same = max(same, PerhapsSame)
	}
	return 0, same
}

// stillFound reports whether the code still finds what it found. Under mu. If so, and
// if nobody else wants the call any more, what is looked up from now on is looked up
// in the context of this code.
func (t *task) stillFound(ctx context.Context, l *lane, spec *spectree.CallSpec, f *found) bool {
	tc, how := t.tree.Find(l.tree, spec)
	if tc == nil {
		return true // then the call is a new one
	}
	c, _ := tc.Data.(*call)
	if how != spectree.Certain {
		if tc != f.call {
			return false
		}
		if c.looks != nil {
			looked, all := c.looks.state()
			if looked != f.looked || how == spectree.Doubtful && !all && tc.Uses() > 0 {
				return false
			}
		}
	}
	if c.looks != nil && tc.Uses() == 0 {
		c.looks.follow(ctx)
	}
	return true
}

// word is what runs of a task heard of one future.
type word struct {
	number int
	values []any
	errs   []string
}

// hear tells the tree what the lane's code got from a future of its run: equal values
// have equal numbers, in all runs.
func (l *lane) hear(name string, v any, err error) {
	t := l.run.task
	text := ""
	if err != nil {
		text = fmt.Sprintf("%T %v", err, err)
	}
	for {
		t.mu.Lock()
		w := t.words[name]
		if w == nil {
			w = &word{number: len(t.words)}
			if t.words == nil {
				t.words = make(map[string]*word)
			}
			t.words[name] = w
		}
		values, errs := w.values, w.errs
		t.mu.Unlock()
		at := 0
		for at < len(values) && (errs[at] != text || !equalValues(values[at], v)) { // may be code of the user's
			at++
		}
		kept := v
		if at == len(values) {
			kept = own(v)
		}
		t.mu.Lock()
		if len(w.values) == len(values) {
			if at == len(values) {
				w.values, w.errs = append(values, kept), append(errs, text)
			}
			t.tree.Heard(l.tree, w.number, at)
			t.mu.Unlock()
			return
		}
		t.mu.Unlock()
	}
}

// IsSpan reports whether a context's value is a span of a tracing library. Each run of
// a function may have its own; it is sent only in TracingMetadata.
func IsSpan(v any) bool {
	switch v.(type) {
	case interface{ IsRecording() bool }, // OpenTelemetry
		interface{ IsRecordingEvents() bool }: // OpenCensus
		return true
	}
	return false
}

// CompareContextValues is CompareValues for what two contexts hold under one key: spans of
// tracing libraries are the same, see IsSpan.
func CompareContextValues(a, b any) Sameness {
	if IsSpan(a) && IsSpan(b) {
		return Same
	}
	return CompareValues(a, b)
}

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
