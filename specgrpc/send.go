package specgrpc

import (
	"bytes"
	"fmt"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	specv1 "github.com/foresay/foresay/api/foresay/spec/v1"
)

// maxPredictionBytes is the size of the largest prediction sent: a client with
// grpc's default limit receives it.
const maxPredictionBytes = 3 << 20

// predicted sends an early answer, and does not wait for the client to read it.
func (c *serverCall) predicted(v any) {
	if r, ok := v.(*runResult); ok {
		v = r.response
	}
	m, ok := v.(proto.Message)
	if want := c.method.response; !ok || want != "" && m.ProtoReflect().Descriptor().FullName() != want {
		c.warn("a prediction is not a response of the method", "type", fmt.Sprintf("%T", v))
		return
	}
	b, err := marshal(m)
	if err != nil || len(b) > maxPredictionBytes {
		c.debug("prediction not sent", "bytes", len(b), "error", err)
		return
	}
	c.out.mu.Lock()
	defer c.out.mu.Unlock()
	if c.final || len(c.predictions) == maxPredictions || c.indexOf(b) >= 0 {
		return
	}
	if c.predictions == nil {
		c.predictions = c.fewPredictions[:0]
	}
	c.predictions = append(c.predictions, b)
	f := new(predictionFrame)
	f.frame.Frame, f.oneof.Prediction, f.prediction.Payload = &f.oneof, &f.prediction, b
	// An error means the end of the stream, which the listener sees too.
	_, _ = c.out.post(c.stream, &f.frame, len(b))
}

// predictionFrame is a frame with its parts, allocated at once.
type predictionFrame struct {
	frame      specv1.ServerFrame
	oneof      specv1.ServerFrame_Prediction
	prediction specv1.Prediction
}

// indexOf returns the index of an equal prediction, or -1.
func (c *serverCall) indexOf(b []byte) int {
	return slices.IndexFunc(c.predictions, func(p []byte) bool { return bytes.Equal(p, b) })
}

// finalFrame is a frame with its parts, allocated at once.
type finalFrame struct {
	frame   specv1.ServerFrame
	oneof   specv1.ServerFrame_Final
	final   specv1.Final
	payload specv1.Final_Payload
}

// sendFinal sends the result, an error's status included. It waits for the
// client to read what came before only as long as the call is not undone.
func (c *serverCall) sendFinal(response any, err error, tentative bool) error {
	f := new(finalFrame)
	f.frame.Frame, f.oneof.Final, f.final.Tentative = &f.oneof, &f.final, tentative
	if _, h := c.state(); h != nil {
		f.final.WaitedUs = h.Waited().Microseconds()
	}
	if err == nil {
		if m, ok := response.(proto.Message); !ok {
			err = status.Errorf(codes.Internal, "specgrpc: %s: the response is a %T, not a protocol buffer", c.method.name,
				response)
		} else if f.payload.Payload, err = marshal(m); err != nil {
			err = status.Errorf(codes.Internal, "grpc: error while marshaling: %v", err)
		}
	}
	if err != nil {
		b, err := proto.Marshal(errorStatus(err).Proto())
		if err != nil {
			return status.Errorf(codes.Internal, "grpc: error while marshaling: %v", err)
		}
		f.final.Result = &specv1.Final_Status{Status: b}
	}
	sent, err := c.postFinal(f)
	if sent == nil {
		return err
	}
	select {
	case err := <-sent:
		return err
	case <-c.decided:
	}
	if cause := c.cause(); cause != nil {
		return cause
	}
	return <-sent
}

// postFinal posts the result, in place of predictions that wait to be sent.
func (c *serverCall) postFinal(f *finalFrame) (sent <-chan error, err error) {
	c.out.mu.Lock()
	defer c.out.mu.Unlock()
	c.final = true
	c.predictions = c.predictions[:len(c.predictions)-c.out.drop()]
	if f.final.Result == nil {
		f.final.Result = &f.payload
		if i := c.indexOf(f.payload.Payload); i >= 0 {
			f.final.Result = &specv1.Final_Prediction{Prediction: uint32(i)}
		}
	}
	return c.out.post(c.stream, &f.frame, proto.Size(&f.frame))
}
