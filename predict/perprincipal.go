package predict

import (
	"context"
	"math"
	"sync"
)

// PerPrincipal returns a predictor that keeps a predictor of its own, made by
// newPredictor, for each principal, so that nobody is given a guess learnt from
// what another was answered. It is for predictors of one's own: those of this
// package know principals themselves, for much less memory. For principal ""
// nothing is predicted or learnt. It holds maxPrincipals, DefaultEntries if that
// is not positive, and forgets those that are not used with all that was learnt
// for them.
func PerPrincipal(
	principal func(ctx context.Context) string, maxPrincipals int, newPredictor func() Predictor,
) Predictor {
	if principal == nil || newPredictor == nil {
		panic("predict: PerPrincipal: a function is nil")
	}
	scope, err := newScope(false, func(ctx context.Context) (string, bool) {
		who := principal(ctx)
		return who, who != ""
	})
	if err != nil {
		panic(err) // no: there is a principal, and nothing is public
	}
	if maxPrincipals <= 0 {
		maxPrincipals = DefaultEntries
	}
	maxPrincipals = min(maxPrincipals, math.MaxInt32)
	predictors, err := newCache[*owned](maxPrincipals, Bytes(maxPrincipals)*overhead)
	if err != nil {
		panic(err) // no: neither bound is negative
	}
	return &perPrincipal{scope, newPredictor, predictors}
}

type perPrincipal struct {
	scope        *scope
	newPredictor func() Predictor
	predictors   *cache[*owned]
}

// owned is a principal's predictor, whose size nobody knows.
type owned struct {
	make      sync.Once
	predictor Predictor
}

func (*owned) sizeBytes() int64 { return 0 }

func (p *perPrincipal) Predict(ctx context.Context, request any) []any {
	if mine := p.of(ctx); mine != nil {
		return mine.Predict(ctx, request)
	}
	return nil
}

func (p *perPrincipal) Learn(ctx context.Context, request, response any) {
	if mine := p.of(ctx); mine != nil {
		mine.Learn(ctx, request, response)
	}
}

// of returns the principal's predictor, nil if there is no principal.
func (p *perPrincipal) of(ctx context.Context) Predictor {
	who, ok := p.scope.key(ctx, "")
	if !ok {
		return nil
	}
	mine, ok := p.predictors.get(who)
	if !ok {
		mine = p.predictors.putIfAbsent(who, &owned{})
	}
	mine.make.Do(func() { mine.predictor = p.newPredictor() })
	return mine.predictor
}
