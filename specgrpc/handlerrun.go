package specgrpc

import (
	"context"
	"errors"

	"google.golang.org/grpc"

	"github.com/foresay/foresay"
)

// runResult is what one run of a handler returned, as value or as error, with
// the metadata that it set: those of runs that do not stand must not leave.
type runResult struct {
	error
	response any
	metadata *bufferedStream
}

func (r *runResult) Unwrap() error { return r.error }

// runHandler runs a handler, on its own copies of what it may change if it may
// run again.
func runHandler(ctx context.Context, m *serverMethod, req any, handler grpc.UnaryHandler) (any, error) {
	if !m.replayable {
		return handler(ctx, req)
	}
	req = copyRequest(req)
	ctx, buffer := withBuffer(ctx, m.name)
	response, err := handler(ctx, req)
	r := &runResult{error: err, response: response, metadata: buffer}
	if err != nil {
		return nil, r
	}
	return r, nil
}

// stands takes the result of the run that stands apart, and hands its metadata on.
func stands(ctx context.Context, value any, err error) (any, error) {
	r, ok := value.(*runResult)
	if !ok && err != nil {
		r, ok = errors.AsType[*runResult](err)
	}
	if !ok {
		return value, err
	}
	r.metadata.flush(grpc.ServerTransportStreamFromContext(ctx))
	return r.response, r.error
}

// runTask runs the handler of a replayable method for a plain call.
func (r *ServiceRegistrar) runTask(
	ctx context.Context, m *serverMethod, req any, handler grpc.UnaryHandler,
) (any, error) {
	defer r.panicked(m)
	value, err := foresay.Do(ctx, func(ctx context.Context) (any, error) {
		return runHandler(ctx, m, req, handler)
	}, foresay.WithName(m.name), foresay.WithLimits(r.cfg.limits))
	response, err := stands(ctx, value, err)
	if err != nil {
		return nil, errorStatus(err).Err()
	}
	return response, nil
}
