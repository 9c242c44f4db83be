package predict

import (
	"context"
	"reflect"

	"google.golang.org/protobuf/proto"
)

// Predictor guesses responses. It is control.Predictor.
type Predictor interface {
	// Predict returns guesses at the response, best first, or none.
	Predict(ctx context.Context, request any) []any
	// Learn tells of a confirmed actual response.
	Learn(ctx context.Context, request, response any)
}

// Constant returns a predictor that always predicts value.
func Constant(value any) Predictor { return constant{[]any{own(value)}} }

type constant struct{ guesses []any }

func (c constant) Predict(context.Context, any) []any { return c.guesses[:1:1] }
func (c constant) Learn(context.Context, any, any)    {}
func (c constant) OwnsPredictions()                   {}

// Func returns a predictor that asks f, which reports false if it has no guess.
func Func[Req, Resp any](f func(ctx context.Context, request Req) (Resp, bool)) Predictor {
	if f == nil {
		panic("predict: Func: the function is nil")
	}
	return function[Req, Resp](f)
}

type function[Req, Resp any] func(context.Context, Req) (Resp, bool)

func (f function[Req, Resp]) Predict(ctx context.Context, request any) []any {
	req, ok := request.(Req)
	if !ok {
		return nil
	}
	guess, ok := f(ctx, req)
	if !ok {
		return nil
	}
	return []any{guess}
}

func (f function[Req, Resp]) Learn(context.Context, any, any) {}

// Chain returns a predictor that asks the given ones in order and predicts what
// the first that has a guess predicts. All of them learn.
func Chain(predictors ...Predictor) Predictor {
	for _, p := range predictors {
		if p == nil {
			panic("predict: Chain: a predictor is nil")
		}
	}
	return chain(append([]Predictor(nil), predictors...))
}

type chain []Predictor

func (c chain) Predict(ctx context.Context, request any) []any {
	for _, p := range c {
		if guesses := p.Predict(ctx, request); len(guesses) > 0 {
			return guesses
		}
	}
	return nil
}

func (c chain) Learn(ctx context.Context, request, response any) {
	for _, p := range c {
		p.Learn(ctx, request, response)
	}
}

// own returns a value that nobody else can change, if there is a way.
func own(v any) any {
	if m, ok := v.(proto.Message); ok && m != nil {
		return proto.Clone(m)
	}
	return v
}

// same reports whether two values are equal.
func same(a, b any) bool {
	if pa, ok := a.(proto.Message); ok {
		pb, ok := b.(proto.Message)
		return ok && proto.Equal(pa, pb)
	}
	return reflect.DeepEqual(a, b)
}
