package specgrpc

import (
	"errors"
	"fmt"

	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	specv1 "github.com/foresay/foresay/api/foresay/spec/v1"
)

// take deals with a frame from the server. It returns the result once that
// stands; a tentative one is kept until the stream ends. An error means that
// the peer breaks the protocol.
func (x *exchange) take(frame *specv1.ServerFrame) (*result, error) {
	if err := x.answers.check(frame); err != nil {
		return nil, err
	}
	switch f := frame.GetFrame().(type) {
	case *specv1.ServerFrame_Refused:
		x.refusal = fmt.Sprintf("the server refused it: %v %s", f.Refused.GetReason(), f.Refused.GetDetail())
	case *specv1.ServerFrame_Prediction:
		x.predicted(f.Prediction.GetPayload())
	case *specv1.ServerFrame_Final:
		r, err := x.result(f.Final)
		if err != nil || !f.Final.GetTentative() {
			return r, err
		}
		x.tentative = r
		if r.err == nil {
			x.out.attempt.Predict(ownPrediction{r.value})
		}
	}
	return nil, nil
}

// predicted offers a server's prediction to the engine. One that is no response
// keeps its place among the indices.
func (x *exchange) predicted(payload []byte) {
	m, err := x.parse(payload)
	if err != nil {
		x.s.debug("a prediction is no response", "error", err)
		x.predictions = append(x.predictions, nil)
		return
	}
	x.predictions = append(x.predictions, m)
	x.out.attempt.Predict(ownPrediction{m})
}

func (x *exchange) parse(payload []byte) (proto.Message, error) {
	if len(payload) > x.limitBytes {
		return nil, status.Errorf(codes.ResourceExhausted, "grpc: received message larger than max (%d vs. %d)", len(payload), x.limitBytes)
	}
	m, err := parse(payload, x.out.call.reply)
	if err != nil {
		return nil, status.Errorf(codes.Internal, "grpc: failed to unmarshal the received message: %v", err)
	}
	return m, nil
}

func (x *exchange) result(f *specv1.Final) (*result, error) {
	switch r := f.GetResult().(type) {
	case *specv1.Final_Payload:
		m, err := x.parse(r.Payload)
		return &result{m, err}, nil
	case *specv1.Final_Prediction:
		m := x.predictions[r.Prediction]
		if m == nil {
			return nil, fmt.Errorf("Final refers to prediction %d, which is no response", r.Prediction)
		}
		return &result{value: m}, nil
	case *specv1.Final_Status:
		st := new(spb.Status)
		if err := proto.Unmarshal(r.Status, st); err != nil {
			return nil, fmt.Errorf("Final.status is no google.rpc.Status: %w", err)
		}
		if st.GetCode() == int32(codes.OK) {
			return nil, errors.New("Final.status is OK")
		}
		return &result{err: status.ErrorProto(st)}, nil
	default:
		return nil, errors.New("Final without a result")
	}
}
