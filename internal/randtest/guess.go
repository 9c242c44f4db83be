package randtest

import (
	"context"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/foresay/foresay/control"

	kvpb "github.com/foresay/foresay/api/foresay/testkv/v1"
)

// guesses draws predictions for the call at a place: none, right ones, wrong
// ones, several of both, or what cannot be a response at all. The purpose tells
// apart who guesses.
func (w *world) guesses(at, purpose string, often int, blank proto.Message) []any {
	c := w.sc.chance
	if !c.percent(often, purpose, at) {
		return nil
	}
	var right proto.Message
	if a := w.oracle.answer(at); a != nil && a.response != nil {
		right = a.response
	}
	if right == nil {
		return []any{wrong(blank, 1)}
	}
	right = proto.Clone(right)
	isRight := c.percent(w.sc.knobs.Right, "right", purpose, at)
	if w.sc.knobs.Timing.Many && c.percent(40, "many", purpose, at) {
		last := wrong(right, 3)
		if isRight {
			last = right
		}
		return []any{wrong(right, 1), wrong(right, 2), last}
	}
	switch variant := c.below(8, "variant", purpose, at); {
	case isRight && variant == 0:
		return []any{wrong(right, 1), right}
	case isRight && variant == 1:
		return []any{right, wrong(right, 1), wrong(right, 2)}
	case isRight && variant == 2 && w.sc.knobs.Loose:
		return []any{equivalent(right), right}
	case isRight && variant == 3:
		return []any{&kvpb.Failure{Message: "no response at all"}, right}
	case isRight:
		return []any{right}
	case variant == 0:
		return []any{wrong(right, 1), wrong(right, 2)}
	default:
		return []any{wrong(right, 1)}
	}
}

// wrong returns a response that is not this one, in its n-th variant.
func wrong(right proto.Message, n int) proto.Message {
	m := proto.Clone(right)
	switch m := m.(type) {
	case *kvpb.GetResponse:
		m.Value, m.Version = fmt.Sprintf("%s!%d", m.GetValue(), n), m.GetVersion()+100
	case *kvpb.PutResponse:
		m.Version += 100 + uint64(n)
	case *kvpb.AppendResponse:
		m.Value, m.Version = fmt.Sprintf("%s!%d", m.GetValue(), n), m.GetVersion()+100
	case *kvpb.RelayResponse:
		if len(m.GetResults()) == 0 {
			m.Name += "!"
			break
		}
		m.Results[0] = &kvpb.Result{Result: &kvpb.Result_Get{Get: &kvpb.GetResponse{Value: fmt.Sprintf("!%d", n)}}}
	default:
		panic(fmt.Sprintf("randtest: no wrong %T", m))
	}
	return m
}

// equivalent returns a read's response with another version.
func equivalent(right proto.Message) proto.Message {
	m := proto.Clone(right)
	if g, ok := m.(*kvpb.GetResponse); ok {
		g.Version += 50
	}
	return m
}

type atKey struct{}

// oracleOfClients is a predictor. What it guesses depends on the place that the
// context names; what it learns it notes.
type oracleOfClients struct {
	w      *world
	method string
	blank  proto.Message
}

var _ control.Predictor = (*oracleOfClients)(nil)

// Predict guesses by the place of the call.
func (p *oracleOfClients) Predict(ctx context.Context, _ any) []any {
	at, _ := ctx.Value(atKey{}).(string)
	return p.w.guesses(at, "predictor", p.w.sc.knobs.Learnt, p.blank)
}

// Learn notes what it is told.
func (p *oracleOfClients) Learn(_ context.Context, request, response any) {
	p.w.learn(p.method, request.(proto.Message), response.(proto.Message))
}
