package predict

import (
	"context"

	lru "github.com/hashicorp/golang-lru/v2"
)

// DefaultEntries is how many keys a table holds if it is not told.
const DefaultEntries = 1024

// LastValue returns a predictor that predicts the last confirmed response to a
// request with the same key. It holds maxEntries keys, DefaultEntries if that is
// not positive, and forgets the least recently used. Unless the responses are
// public, the key must contain whose they are: see the package comment.
func LastValue[Req any](key func(request Req) string, maxEntries int) Predictor {
	if key == nil {
		panic("predict: LastValue: the key function is nil")
	}
	return &lastValue[Req]{key: key, values: newLRU[any](maxEntries)}
}

type lastValue[Req any] struct {
	key    func(Req) string
	values *lru.Cache[string, any]
}

func (l *lastValue[Req]) Predict(_ context.Context, request any) []any {
	req, ok := request.(Req)
	if !ok {
		return nil
	}
	v, ok := l.values.Get(l.key(req))
	if !ok {
		return nil
	}
	return []any{v}
}

func (l *lastValue[Req]) Learn(_ context.Context, request, response any) {
	if req, ok := request.(Req); ok && response != nil {
		l.values.Add(l.key(req), own(response))
	}
}

func newLRU[V any](entries int) *lru.Cache[string, V] {
	if entries <= 0 {
		entries = DefaultEntries
	}
	c, err := lru.New[string, V](entries)
	if err != nil {
		panic(err) // only a size that is not positive is refused
	}
	return c
}
