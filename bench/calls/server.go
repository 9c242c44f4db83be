package calls

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	benchv1 "github.com/foresay/foresay/api/foresay/bench/v1"
	"github.com/foresay/foresay/wan/shape"
)

// server implements the Bench service.
type server struct {
	benchv1.UnimplementedBenchServer
	// next is the server that a request with hops is passed on to. It may be nil.
	next benchv1.BenchClient
	// predict answers early. It is nil where the stack cannot.
	predict func(ctx context.Context, response *benchv1.WorkResponse) error
	// slower is how much longer than asked for work takes.
	slower time.Duration

	begun atomic.Int64 // calls begun
	open  atomic.Int64 // calls not yet returned
}

// Work implements the Bench service.
func (s *server) Work(ctx context.Context, req *benchv1.WorkRequest) (*benchv1.WorkResponse, error) {
	s.begun.Add(1)
	s.open.Add(1)
	defer s.open.Add(-1)
	if req.GetPredict() && s.predict != nil {
		if err := s.predict(ctx, predicted(req)); err != nil {
			return nil, fmt.Errorf("bench: predict: %w", err)
		}
	}
	response, err := s.ownPart(ctx, req)
	if err != nil {
		return nil, err
	}
	if work := time.Duration(req.GetWorkUs()) * time.Microsecond; work > 0 {
		if err := shape.Pause(ctx, work+s.slower); err != nil {
			return nil, err
		}
	}
	return response, nil
}

// ownPart computes the response, from the next server's if the request has hops left.
func (s *server) ownPart(ctx context.Context, req *benchv1.WorkRequest) (*benchv1.WorkResponse, error) {
	own := answer(req.GetPayload())
	if req.GetHops() == 0 {
		return &benchv1.WorkResponse{Payload: own}, nil
	}
	if s.next == nil {
		return nil, fmt.Errorf("bench: a request has %d hops left at the last server", req.GetHops())
	}
	nested, err := s.next.Work(ctx, &benchv1.WorkRequest{
		Payload:      own,
		WorkUs:       req.GetWorkUs(),
		Hops:         req.GetHops() - 1,
		Predict:      req.GetPredict(),
		PredictWrong: req.GetPredictWrong(),
	})
	if err != nil {
		return nil, err
	}
	return &benchv1.WorkResponse{Payload: question(nested.GetPayload())}, nil
}

func predicted(req *benchv1.WorkRequest) *benchv1.WorkResponse {
	if req.GetPredictWrong() {
		return &benchv1.WorkResponse{Payload: wrongAnswer(req.GetPayload())}
	}
	return &benchv1.WorkResponse{Payload: answer(req.GetPayload())}
}
