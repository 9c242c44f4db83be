package predict

import (
	"context"

	lru "github.com/hashicorp/golang-lru/v2"
)

// PerPrincipal returns a predictor that keeps a predictor of its own, made by
// newPredictor, for each principal, so that nobody is given a guess learnt from
// what another was answered. principal takes it from the call's context, where
// the credentials or the metadata are; for "" nothing is predicted or learnt. It
// holds maxPrincipals, DefaultEntries if that is not positive, and forgets the
// least recently used with all that was learnt for them.
func PerPrincipal(principal func(ctx context.Context) string, maxPrincipals int, newPredictor func() Predictor) Predictor {
	if principal == nil || newPredictor == nil {
		panic("predict: PerPrincipal: a function is nil")
	}
	return &perPrincipal{principal, newPredictor, newLRU[Predictor](maxPrincipals)}
}

type perPrincipal struct {
	principal    func(context.Context) string
	newPredictor func() Predictor
	predictors   *lru.Cache[string, Predictor]
}

func (p *perPrincipal) Predict(ctx context.Context, request any) []any {
	who := p.principal(ctx)
	if who == "" {
		return nil
	}
	mine, ok := p.predictors.Get(who)
	if !ok {
		mine = p.add(who)
	}
	return mine.Predict(ctx, request)
}

func (p *perPrincipal) Learn(ctx context.Context, request, response any) {
	who := p.principal(ctx)
	if who == "" {
		return
	}
	mine, ok := p.predictors.Get(who)
	if !ok {
		mine = p.add(who)
	}
	mine.Learn(ctx, request, response)
}

func (p *perPrincipal) add(who string) Predictor {
	mine := p.newPredictor()
	if first, ok, _ := p.predictors.PeekOrAdd(who, mine); ok {
		return first
	}
	return mine
}
