package specgrpc

import (
	"context"
	"slices"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/protobuf/proto"
)

// revealed is the value or the error of a call whose caller looks at the
// transport. What was seen is part of the task's record, so that a later run
// sees the same.
type revealed struct {
	error
	reply   proto.Message
	header  metadata.MD
	trailer metadata.MD
	peer    peer.Peer
}

func (r *revealed) Unwrap() error { return r.error }

// isObserver reports whether an option lets its caller see the transport.
func isObserver(o grpc.CallOption) bool {
	switch o.(type) {
	case grpc.HeaderCallOption, grpc.TrailerCallOption, grpc.PeerCallOption, grpc.OnFinishCallOption:
		return true
	}
	return false
}

func observes(opts []grpc.CallOption) bool { return slices.ContainsFunc(opts, isObserver) }

// observe makes a call and returns what it saw, as value or as error.
func (k *call) observe(ctx context.Context, reply proto.Message) (any, error) {
	o := &revealed{reply: reply}
	opts := append(slices.Clip(k.opts), grpc.Header(&o.header), grpc.Trailer(&o.trailer), grpc.Peer(&o.peer))
	o.error = k.conn.cc.Invoke(ctx, k.method.name, k.request, reply, opts...)
	if o.error != nil {
		return nil, o
	}
	return o, nil
}

// reveal gives the caller's options what was seen, and returns the plain value
// and error.
func reveal(value any, err error, opts []grpc.CallOption) (any, error) {
	o, ok := value.(*revealed)
	if !ok {
		if o, ok = err.(*revealed); !ok {
			return value, err
		}
	}
	for _, opt := range opts {
		switch opt := opt.(type) {
		case grpc.HeaderCallOption:
			*opt.HeaderAddr = o.header.Copy()
		case grpc.TrailerCallOption:
			*opt.TrailerAddr = o.trailer.Copy()
		case grpc.PeerCallOption:
			*opt.PeerAddr = o.peer
		}
	}
	return o.reply, o.error
}

// finished calls the caller's OnFinish options.
func finished(opts []grpc.CallOption, err error) {
	for _, o := range opts {
		if o, ok := o.(grpc.OnFinishCallOption); ok {
			o.OnFinish(err)
		}
	}
}
