package predict

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
)

// TableConfig describes a Table. The zero value of every field but Key is its
// default.
type TableConfig[Req any] struct {
	// Key says which requests are expected to have the same response. Required.
	Key func(request Req) string
	// Principal says whose a response is: nobody else is given it. nil: Credentials().
	Principal Principal
	// Public declares that responses do not depend on who asks, and may be seen by
	// all who may ask: they are predicted whoever asked before.
	Public bool
	// Guesses is how many responses are predicted at most. Default 1.
	Guesses int
	// MinShare is the share of the key's responses that a response must have had
	// to be predicted, from 0 to 1. Default 0.5.
	MinShare float64
	// MinResponses is how many of the key's responses must be known before any is
	// predicted. Default 1.
	MinResponses int
	// MaxEntries bounds the keys. Default DefaultEntries.
	MaxEntries int
	// MaxBytes bounds the memory that keys and responses take. Default DefaultBytes.
	MaxBytes Bytes
	// MaxValues bounds the distinct responses per key. Default 8.
	MaxValues int
	// Window is how many responses a key's counts reach before they are halved,
	// so that the recent ones weigh more. Default 256.
	Window int
	// Equal says when two responses are the same. nil: proto.Equal for protocol
	// buffers, reflect.DeepEqual for the rest. It is called with a lock held.
	Equal func(a, b any) bool
}

// Table predicts the responses that were most frequent for a principal's key.
//
// A key's counts are those of a frequent-items summary with MaxValues counters:
// a response that had a larger share than 1/(MaxValues+1) is in it, and no share
// is overestimated. [Misra and Gries, Finding repeated elements, 1982]
type Table[Req any] struct {
	cfg     TableConfig[Req]
	scope   *scope
	entries *cache[*entry]
}

// entry counts a key's responses.
type entry struct {
	bytes atomic.Int64 // of the responses, about

	mu    sync.Mutex
	total int
	// Invariant: sorted by count, largest first; the counts' sum is at most total.
	values []counted
}

type counted struct {
	value any
	bytes int64
	count int
}

// counting is how a table counts.
type counting struct {
	roomBytes int64 // for a key's responses
	maxValues int
	window    int
	equal     func(a, b any) bool
}

func (e *entry) sizeBytes() int64 { return e.bytes.Load() }

// NewTable validates the configuration.
func NewTable[Req any](cfg TableConfig[Req]) (*Table[Req], error) {
	switch {
	case cfg.Key == nil:
		return nil, fmt.Errorf("predict: table: Key is nil")
	case !(cfg.MinShare >= 0 && cfg.MinShare <= 1):
		return nil, fmt.Errorf("predict: table: MinShare is %v; want 0 to 1", cfg.MinShare)
	case cfg.Guesses < 0 || cfg.MinResponses < 0 || cfg.MaxValues < 0 || cfg.Window < 0:
		return nil, fmt.Errorf("predict: table: a limit is negative")
	}
	def := func(v *int, to int) {
		if *v == 0 {
			*v = to
		}
	}
	def(&cfg.Guesses, 1)
	def(&cfg.MinResponses, 1)
	def(&cfg.MaxValues, 8)
	def(&cfg.Window, 256)
	if cfg.MinShare == 0 {
		cfg.MinShare = 0.5
	}
	if cfg.Equal == nil {
		cfg.Equal = same
	}
	scope, err := newScope(cfg.Public, cfg.Principal)
	if err != nil {
		return nil, fmt.Errorf("predict: table: %w", err)
	}
	entries, err := newCache[*entry](cfg.MaxEntries, cfg.MaxBytes)
	if err != nil {
		return nil, fmt.Errorf("predict: table: %w", err)
	}
	return &Table[Req]{cfg: cfg, scope: scope, entries: entries}, nil
}

// Predict returns the key's most frequent responses, most frequent first, and of
// equally frequent ones the last learnt first.
func (t *Table[Req]) Predict(ctx context.Context, request any) []any {
	req, ok := request.(Req)
	if !ok {
		return nil
	}
	k, ok := t.scope.key(ctx, t.cfg.Key(req))
	if !ok {
		return nil
	}
	e, ok := t.entries.get(k)
	if !ok {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.total < t.cfg.MinResponses {
		return nil
	}
	var guesses []any
	for _, v := range e.values {
		if len(guesses) == t.cfg.Guesses || float64(v.count) < t.cfg.MinShare*float64(e.total) {
			break
		}
		guesses = append(guesses, v.value)
	}
	return guesses
}

// OwnsPredictions implements control.OwningPredictor.
func (*Table[Req]) OwnsPredictions() {}

// Learn counts a confirmed response.
func (t *Table[Req]) Learn(ctx context.Context, request, response any) {
	req, ok := request.(Req)
	if !ok || response == nil {
		return
	}
	k, ok := t.scope.key(ctx, t.cfg.Key(req))
	if !ok {
		return
	}
	e, ok := t.entries.get(k)
	if !ok {
		e = t.entries.putIfAbsent(k, &entry{})
	}
	before := e.sizeBytes()
	e.learn(response, counting{t.entries.room(k), t.cfg.MaxValues, t.cfg.Window, t.cfg.Equal})
	if e.sizeBytes() != before {
		t.entries.put(k, e)
	}
}

// learn counts a response, and keeps it if there is room.
func (e *entry) learn(response any, c counting) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.total++
	e.count(response, c)
	if e.total >= c.window {
		e.shrink(func(n int) int { return n / 2 })
		e.total /= 2
	}
	sum := int64(0)
	for i, v := range e.values {
		if sum += v.bytes; sum > c.roomBytes {
			sum -= v.bytes
			e.values = slices.Delete(e.values, i, len(e.values)) // the rarest
			break
		}
	}
	e.bytes.Store(sum)
}

func (e *entry) count(response any, c counting) {
	for i := range e.values {
		if c.equal(e.values[i].value, response) {
			e.values[i].count++
			e.rise(i)
			return
		}
	}
	if len(e.values) == c.maxValues {
		e.shrink(func(n int) int { return n - 1 })
		return
	}
	if bytes, ok := sizeOf(response); ok && bytes <= c.roomBytes {
		e.values = append(e.values, counted{own(response), bytes, 1})
		e.rise(len(e.values) - 1)
	}
}

// rise moves a response that was just learnt before those that are no more frequent.
func (e *entry) rise(i int) {
	for ; i > 0 && e.values[i-1].count <= e.values[i].count; i-- {
		e.values[i-1], e.values[i] = e.values[i], e.values[i-1]
	}
}

// shrink reduces the counts and forgets what has none left.
func (e *entry) shrink(to func(count int) int) {
	for i := range e.values {
		e.values[i].count = to(e.values[i].count)
	}
	e.values = slices.DeleteFunc(e.values, func(v counted) bool { return v.count <= 0 })
}
