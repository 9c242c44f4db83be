package predict

import (
	"fmt"
	"math"

	"github.com/maypok86/otter/v2"
)

// What a predictor that learns keeps, if it is not told.
const (
	// DefaultEntries is how many keys.
	DefaultEntries = 1024
	// DefaultBytes is how much memory they and their responses take, about.
	DefaultBytes Bytes = 8 << 20
)

// overhead is about what an entry takes beside its key and its responses, in bytes.
const overhead = 256

// cacheKey is a key with whose it is.
type cacheKey struct {
	who principalHash
	key string
}

// sized is what a cache keeps. Its size may change while it is kept; put has the
// cache look again.
type sized interface{ sizeBytes() int64 }

// cache is a map that forgets what is not used: by W-TinyLFU, which keeps a key
// that is used often although there are many others that are used once. Both
// bounds hold; while several goroutines write, they may be passed by as many
// entries for a moment. It has no goroutine of its own.
type cache[V sized] struct {
	c *otter.Cache[cacheKey, V]
	// maxBytes bounds an entry's size. The cache forgets a larger one at once.
	maxBytes int64
}

// newCache returns a cache for entries keys of together maxBytes. Zeros are the
// defaults.
func newCache[V sized](entries int, maxBytes Bytes) (*cache[V], error) {
	switch {
	case entries < 0:
		return nil, fmt.Errorf("MaxEntries is %d; want 0 for %d, or more", entries, DefaultEntries)
	case maxBytes < 0:
		return nil, fmt.Errorf("MaxBytes is %d; want 0 for %v, or more", int64(maxBytes), DefaultBytes)
	}
	if entries == 0 {
		entries = DefaultEntries
	}
	if maxBytes == 0 {
		maxBytes = DefaultBytes
	}
	// The library bounds a sum of weights. An entry weighs as much as its size,
	// but at least its share of the whole: so the sum bounds the entries, too.
	least := max(1, int64(maxBytes)/int64(entries))
	if least > math.MaxUint32 {
		return nil, fmt.Errorf("MaxBytes is %v for %d entries; that is more than %v each", maxBytes, entries,
			Bytes(math.MaxUint32))
	}
	heaviest := int64(maxBytes) // for more entries than bytes
	if least > 1 {
		heaviest = least * int64(entries)
	}
	c, err := otter.New(&otter.Options[cacheKey, V]{
		MaximumWeight: uint64(heaviest),
		Weigher: func(k cacheKey, v V) uint32 {
			return uint32(min(max(sizeOfEntry(k, v), least), math.MaxUint32))
		},
		// Its upkeep is done by who uses it, which takes less than starting a
		// goroutine for it would.
		Executor: func(upkeep func()) { upkeep() },
	})
	if err != nil {
		return nil, err
	}
	return &cache[V]{c: c, maxBytes: min(int64(maxBytes), math.MaxUint32)}, nil
}

func sizeOfEntry[V sized](k cacheKey, v V) int64 {
	return overhead + int64(len(k.key)) + v.sizeBytes()
}

func (c *cache[V]) get(k cacheKey) (V, bool) { return c.c.GetIfPresent(k) }

// room returns how large the value of a key may be, to be kept.
func (c *cache[V]) room(k cacheKey) int64 { return c.maxBytes - overhead - int64(len(k.key)) }

func (c *cache[V]) put(k cacheKey, v V) { c.c.Set(k, v) }

func (c *cache[V]) forget(k cacheKey) { c.c.Invalidate(k) }

// putIfAbsent keeps a value unless there is one, and returns the one that there is.
func (c *cache[V]) putIfAbsent(k cacheKey, v V) V {
	first, _ := c.c.SetIfAbsent(k, v)
	return first
}
