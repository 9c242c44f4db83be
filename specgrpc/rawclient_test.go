package specgrpc_test

import (
	"context"
	"errors"
	"io"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	specv1 "github.com/foresay/foresay/api/foresay/spec/v1"
)

// rawCall is a speculative stream driven frame by frame.
type rawCall struct {
	w      *world
	stream grpc.ClientStream
	cancel context.CancelFunc
	id     []byte
}

// openRaw opens a method's speculative stream.
func (w *world) openRaw(cc *grpc.ClientConn, method string) *rawCall {
	w.Helper()
	ctx, cancel := context.WithCancel(w.Context())
	w.Cleanup(cancel)
	s, err := cc.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, method+".spec")
	if err != nil {
		w.Fatal(err)
	}
	return &rawCall{w: w, stream: s, cancel: cancel, id: []byte("0123456789abcdef")}
}

// request returns a valid Request of a speculative caller.
func (c *rawCall) request(payload proto.Message) *specv1.Request {
	c.w.Helper()
	b, err := proto.Marshal(payload)
	if err != nil {
		c.w.Fatal(err)
	}
	return &specv1.Request{
		Payload: b, CallId: c.id, Attempt: 1, Depth: 1, Budget: 8,
		Caller: specv1.CallerState_CALLER_STATE_SPECULATIVE,
	}
}

func (c *rawCall) send(f *specv1.ClientFrame) {
	c.w.Helper()
	if err := c.stream.SendMsg(f); err != nil && !errors.Is(err, io.EOF) {
		c.w.Fatal(err)
	}
}

func (c *rawCall) sendRequest(r *specv1.Request) {
	c.w.Helper()
	c.send(&specv1.ClientFrame{Frame: &specv1.ClientFrame_Request{Request: r}})
}

func (c *rawCall) confirm() {
	c.w.Helper()
	c.send(&specv1.ClientFrame{Frame: &specv1.ClientFrame_Confirm{Confirm: &specv1.Confirm{CallId: c.id, Attempt: 1}}})
}

func (c *rawCall) abort() {
	c.w.Helper()
	c.send(&specv1.ClientFrame{Frame: &specv1.ClientFrame_Abort{Abort: &specv1.Abort{CallId: c.id, Attempt: 1}}})
}

// next receives a frame.
func (c *rawCall) next() *specv1.ServerFrame {
	c.w.Helper()
	f := new(specv1.ServerFrame)
	if err := c.stream.RecvMsg(f); err != nil {
		c.w.Fatalf("no frame: %v", err)
	}
	return f
}

// final receives a Final.
func (c *rawCall) final() *specv1.Final {
	c.w.Helper()
	f := c.next()
	if f.GetFinal() == nil {
		c.w.Fatalf("got %v, want Final", f)
	}
	return f.GetFinal()
}

// end returns the status that the stream ends with, nil for OK, and fails on
// any frame before it.
func (c *rawCall) end() error {
	c.w.Helper()
	f := new(specv1.ServerFrame)
	err := c.stream.RecvMsg(f)
	if err == nil {
		c.w.Fatalf("got %v, want the end of the stream", f)
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}
