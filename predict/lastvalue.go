package predict

import (
	"context"
	"fmt"
)

// LastConfig describes a Last. The zero value of every field but Key is its
// default.
type LastConfig[Req any] struct {
	// Key says which requests are expected to have the same response. Required.
	Key func(request Req) string
	// Principal says whose a response is: nobody else is given it. nil: Credentials().
	Principal Principal
	// Public declares that responses do not depend on who asks, and may be seen by
	// all who may ask: they are predicted whoever asked before.
	Public bool
	// MaxEntries bounds the keys. Default DefaultEntries.
	MaxEntries int
	// MaxBytes bounds the memory that keys and responses take. Default DefaultBytes.
	MaxBytes Bytes
}

// Last predicts the last confirmed response to a request of the same principal
// with the same key.
type Last[Req any] struct {
	key    func(Req) string
	scope  *scope
	values *cache[*kept]
}

// kept is one response.
type kept struct {
	value any
	bytes int64
}

func (k *kept) sizeBytes() int64 { return k.bytes }

// NewLast validates the configuration.
func NewLast[Req any](cfg LastConfig[Req]) (*Last[Req], error) {
	if cfg.Key == nil {
		return nil, fmt.Errorf("predict: last value: Key is nil")
	}
	scope, err := newScope(cfg.Public, cfg.Principal)
	if err != nil {
		return nil, fmt.Errorf("predict: last value: %w", err)
	}
	values, err := newCache[*kept](cfg.MaxEntries, cfg.MaxBytes)
	if err != nil {
		return nil, fmt.Errorf("predict: last value: %w", err)
	}
	return &Last[Req]{key: cfg.Key, scope: scope, values: values}, nil
}

// LastValue returns a Last of this key for maxEntries keys, DefaultEntries if
// that is not positive, and of principals told apart by their Credentials.
func LastValue[Req any](key func(request Req) string, maxEntries int) Predictor {
	l, err := NewLast(LastConfig[Req]{Key: key, MaxEntries: max(maxEntries, 0)})
	if err != nil {
		panic(err) // only a key that is nil
	}
	return l
}

// Predict returns the last response, if it is known.
func (l *Last[Req]) Predict(ctx context.Context, request any) []any {
	req, ok := request.(Req)
	if !ok {
		return nil
	}
	k, ok := l.scope.key(ctx, l.key(req))
	if !ok {
		return nil
	}
	v, ok := l.values.get(k)
	if !ok {
		return nil
	}
	return []any{v.value}
}

// LearnsChanges implements control.ChangeLearner: a response that was predicted is
// kept already.
func (*Last[Req]) LearnsChanges() {}

// OwnsPredictions implements control.OwningPredictor.
func (*Last[Req]) OwnsPredictions() {}

// Learn keeps a confirmed response, unless it is too large.
func (l *Last[Req]) Learn(ctx context.Context, request, response any) {
	req, ok := request.(Req)
	if !ok || response == nil {
		return
	}
	k, ok := l.scope.key(ctx, l.key(req))
	if !ok {
		return
	}
	if old, ok := l.values.get(k); ok && same(old.value, response) {
		return
	}
	bytes, ok := sizeOf(response)
	if !ok || bytes > l.values.room(k) {
		l.values.forget(k) // the old one is wrong by now
		return
	}
	l.values.put(k, &kept{own(response), bytes})
}
