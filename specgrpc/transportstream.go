package specgrpc

import (
	"context"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// bufferedStream is what a handler sees of its transport: it keeps the metadata
// that the handler sets until it is known that the run that set them stands.
type bufferedStream struct {
	method string

	mu              sync.Mutex
	header, trailer metadata.MD
	sent            bool // SendHeader was called
}

// errHeaderSent is what a stream of grpc's answers too.
var errHeaderSent = status.Error(codes.Internal, "specgrpc: the header was sent already")

var _ grpc.ServerTransportStream = (*bufferedStream)(nil)

// withBuffer returns a context whose metadata go to a buffer.
func withBuffer(ctx context.Context, method string) (context.Context, *bufferedStream) {
	b := &bufferedStream{method: method}
	return grpc.NewContextWithServerTransportStream(ctx, b), b
}

// Method returns the method that was called, not the name of its speculative stream.
func (b *bufferedStream) Method() string { return b.method }

// SetHeader keeps md for the header.
func (b *bufferedStream) SetHeader(md metadata.MD) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.sent {
		return errHeaderSent
	}
	b.header = metadata.Join(b.header, md)
	return nil
}

// SendHeader keeps md for the header: nothing leaves before the run stands.
func (b *bufferedStream) SendHeader(md metadata.MD) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.sent {
		return errHeaderSent
	}
	b.sent = true
	b.header = metadata.Join(b.header, md)
	return nil
}

// SetTrailer keeps md for the trailer.
func (b *bufferedStream) SetTrailer(md metadata.MD) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.trailer = metadata.Join(b.trailer, md)
	return nil
}

// flush hands the metadata on to another stream.
func (b *bufferedStream) flush(to grpc.ServerTransportStream) {
	if to == nil {
		return
	}
	b.mu.Lock()
	header, trailer := b.header, b.trailer
	b.mu.Unlock()
	if header.Len() > 0 {
		_ = to.SetHeader(header)
	}
	if trailer.Len() > 0 {
		_ = to.SetTrailer(trailer)
	}
}

// all returns header and trailer together.
func (b *bufferedStream) all() metadata.MD {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.header)+len(b.trailer) == 0 {
		return nil
	}
	return metadata.Join(b.header, b.trailer)
}
