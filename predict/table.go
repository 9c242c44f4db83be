package predict

import (
	"context"
	"fmt"
	"slices"
	"sync"

	lru "github.com/hashicorp/golang-lru/v2"
)

// TableConfig describes a Table. The zero value of every field but Key is its
// default.
type TableConfig[Req any] struct {
	// Key says which requests are expected to have the same response. Required.
	// Unless the responses are public it must contain whose they are: see the
	// package comment.
	Key func(request Req) string
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
	// MaxValues bounds the distinct responses per key. Default 8.
	MaxValues int
	// Window is how many responses a key's counts reach before they are halved,
	// so that the recent ones weigh more. Default 256.
	Window int
	// Equal says when two responses are the same. nil: proto.Equal for protocol
	// buffers, reflect.DeepEqual for the rest. It is called with a lock held.
	Equal func(a, b any) bool
}

// Table predicts the responses that were most frequent for a key.
//
// A key's counts are those of a frequent-items summary with MaxValues counters:
// a response that had a larger share than 1/(MaxValues+1) is in it, and no share
// is overestimated. [Misra and Gries, Finding repeated elements, 1982]
type Table[Req any] struct {
	cfg     TableConfig[Req]
	entries *lru.Cache[string, *entry]
}

// entry counts a key's responses.
type entry struct {
	mu    sync.Mutex
	total int
	// Invariant: sorted by count, largest first; the counts' sum is at most total.
	values []counted
}

type counted struct {
	value any
	count int
}

// NewTable validates the configuration.
func NewTable[Req any](cfg TableConfig[Req]) (*Table[Req], error) {
	switch {
	case cfg.Key == nil:
		return nil, fmt.Errorf("predict: table: Key is nil")
	case !(cfg.MinShare >= 0 && cfg.MinShare <= 1):
		return nil, fmt.Errorf("predict: table: MinShare is %v; want 0 to 1", cfg.MinShare)
	case cfg.Guesses < 0 || cfg.MinResponses < 0 || cfg.MaxEntries < 0 || cfg.MaxValues < 0 || cfg.Window < 0:
		return nil, fmt.Errorf("predict: table: a limit is negative")
	}
	def := func(v *int, to int) {
		if *v == 0 {
			*v = to
		}
	}
	def(&cfg.Guesses, 1)
	def(&cfg.MinResponses, 1)
	def(&cfg.MaxEntries, DefaultEntries)
	def(&cfg.MaxValues, 8)
	def(&cfg.Window, 256)
	if cfg.MinShare == 0 {
		cfg.MinShare = 0.5
	}
	if cfg.Equal == nil {
		cfg.Equal = same
	}
	return &Table[Req]{cfg: cfg, entries: newLRU[*entry](cfg.MaxEntries)}, nil
}

// Predict returns the key's most frequent responses, most frequent first, and of
// equally frequent ones the last learnt first.
func (t *Table[Req]) Predict(_ context.Context, request any) []any {
	req, ok := request.(Req)
	if !ok {
		return nil
	}
	e, ok := t.entries.Get(t.cfg.Key(req))
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

// Learn counts a confirmed response.
func (t *Table[Req]) Learn(_ context.Context, request, response any) {
	req, ok := request.(Req)
	if !ok || response == nil {
		return
	}
	key := t.cfg.Key(req)
	e, ok := t.entries.Get(key)
	if !ok {
		e = &entry{}
		if first, ok, _ := t.entries.PeekOrAdd(key, e); ok {
			e = first
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.learn(response, t.cfg.MaxValues, t.cfg.Equal)
	if e.total >= t.cfg.Window {
		e.shrink(func(n int) int { return n / 2 })
		e.total /= 2
	}
}

func (e *entry) learn(response any, maxValues int, equal func(a, b any) bool) {
	e.total++
	for i := range e.values {
		if !equal(e.values[i].value, response) {
			continue
		}
		e.values[i].count++
		e.rise(i)
		return
	}
	if len(e.values) < maxValues {
		e.values = append(e.values, counted{own(response), 1})
		e.rise(len(e.values) - 1)
		return
	}
	e.shrink(func(n int) int { return n - 1 })
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
