package engine

import (
	"context"

	"github.com/foresay/foresay/control"
	"github.com/foresay/foresay/internal/usercode"
)

// collection is the predictions of one call, each value once.
type collection struct {
	op     *Operation
	values []any
	// byDigest are the indices of values of equal digest, once there are more than a few values and
	// the transport is a Digester.
	byDigest map[uint64][]int
}

// fewPredictions is up to how many predictions of a call each new one is compared with all. Of
// more, those of another digest are taken for different. Where the transport has no digests, a new
// one is compared with the first few and the last few only: one that is offered twice costs less
// than so many comparisons.
const fewPredictions = 16

// collect returns what the code and the call site's predictors guess. It is called once
// for an Operation.
func (op *Operation) collect(ctx context.Context) []any {
	set := collection{op: op, values: op.few[:0]}
	set.add(offered(ctx), op.Transport.Accept)
	if len(op.config().Predictors) > 0 {
		ctx = op.asking(ctx)
	}
	for _, p := range op.config().Predictors {
		accept := op.Transport.Accept
		if adopter, ok := op.Transport.(Adopter); ok {
			if _, ok := p.(control.OwningPredictor); ok {
				accept = adopter.Adopt
			}
		}
		usercode.Contain(op.config().Name, nil, "predictor", func() { set.add(p.Predict(ctx, op.Request), accept) })
	}
	return set.values
}

// add accepts values up to the call site's limit.
func (s *collection) add(values []any, accept func(any) (any, bool)) {
	limits, counts := &s.op.config().Limits, s.op.CallSite.Engine().Counts()
	for _, v := range values {
		if tooWide(limits, len(s.values)) {
			return
		}
		v, ok := accept(v)
		if !ok {
			counts.Invalid.Add(1)
			continue
		}
		if !s.known(v) {
			s.values = append(s.values, v)
		}
	}
}

// known reports whether the value is there. If it is not, it is the next one.
func (s *collection) known(v any) bool {
	n := len(s.values)
	if n <= fewPredictions {
		return s.among(v, s.values)
	}
	d, ok := s.op.Transport.(Digester)
	if ok && s.byDigest == nil {
		s.byDigest = make(map[uint64][]int)
		for i, earlier := range s.values {
			if digest, told := d.ResponseDigest(earlier); told {
				s.byDigest[digest] = append(s.byDigest[digest], i)
			}
		}
	}
	digest, told := uint64(0), false
	if ok {
		digest, told = d.ResponseDigest(v)
	}
	if !told {
		return s.among(v, s.values[:fewPredictions/2]) || s.among(v, s.values[n-fewPredictions/2:])
	}
	for _, i := range s.byDigest[digest] {
		if s.op.Transport.Same(s.values[i], v) {
			return true
		}
	}
	s.byDigest[digest] = append(s.byDigest[digest], n)
	return false
}

func (s *collection) among(v any, values []any) bool {
	for _, o := range values {
		if s.op.Transport.Same(o, v) {
			return true
		}
	}
	return false
}
