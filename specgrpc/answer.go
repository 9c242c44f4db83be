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
// stands, in reply if it is a response; a tentative one is kept until the stream
// ends. An error means that the peer breaks the protocol.
func (x *exchange) take(frame *specv1.ServerFrame, reply proto.Message) (_ result, stands bool, _ error) {
	if err := x.answers.check(frame); err != nil {
		return result{}, false, err
	}
	switch f := frame.GetFrame().(type) {
	case *specv1.ServerFrame_Refused:
		x.full = f.Refused.GetReason() == specv1.Refused_REASON_FULL
		x.beyond = x.full || f.Refused.GetReason() == specv1.Refused_REASON_LIMIT
		x.refusal = fmt.Sprintf("the server refused it: %v %s", f.Refused.GetReason(), f.Refused.GetDetail())
	case *specv1.ServerFrame_Prediction:
		x.predicted(f.Prediction.GetPayload())
	case *specv1.ServerFrame_Final:
		x.waited = microseconds(f.Final.GetWaitedUs())
		x.out.attempt.Served(x.waited, 0)
		if !f.Final.GetTentative() {
			r, err := x.result(f.Final, reply)
			return r, err == nil, err
		}
		r, err := x.result(f.Final, x.out.call.reply.New().Interface())
		if err != nil {
			return result{}, false, err
		}
		x.tentative = &r
		if r.err != nil {
			x.out.attempt.Tentative(nil)
		} else {
			x.out.attempt.Tentative(ownPrediction{r.value})
		}
	}
	return result{}, false, nil
}

// predicted offers a server's prediction to the engine. One that is no response, or too large,
// keeps its place among the indices.
func (x *exchange) predicted(payload []byte) {
	if x.predictions == nil {
		x.predictions = x.few[:0]
	}
	m := x.out.call.reply.New().Interface()
	if err := x.parse(payload, m); err != nil {
		x.s.debug("a prediction is no response", "error", err)
		x.predictions = append(x.predictions, result{err: err})
		return
	}
	x.predictions = append(x.predictions, result{value: m})
	x.out.attempt.Predict(ownPrediction{m})
}

// parse fails as grpc does on a response that is too large or none.
func (x *exchange) parse(payload []byte, into proto.Message) error {
	if len(payload) > x.limitBytes {
		return status.Errorf(codes.ResourceExhausted, "grpc: received message larger than max (%d vs. %d)", len(payload),
			x.limitBytes)
	}
	if err := proto.Unmarshal(payload, into); err != nil {
		return status.Errorf(codes.Internal, "grpc: failed to unmarshal the received message: %v", err)
	}
	return nil
}

// result returns what a Final says. A response that it holds is put into m.
func (x *exchange) result(f *specv1.Final, m proto.Message) (result, error) {
	switch r := f.GetResult().(type) {
	case *specv1.Final_Payload:
		return result{m, x.parse(r.Payload, m)}, nil
	case *specv1.Final_Prediction:
		p := x.predictions[r.Prediction]
		if p.err != nil && status.Code(p.err) != codes.ResourceExhausted {
			return result{}, fmt.Errorf("frame Final refers to prediction %d, which is no response", r.Prediction)
		}
		return p, nil
	case *specv1.Final_Status:
		st := new(spb.Status)
		if err := proto.Unmarshal(r.Status, st); err != nil {
			return result{}, fmt.Errorf("the frame's Final.status is no google.rpc.Status: %w", err)
		}
		if st.GetCode() == int32(codes.OK) {
			return result{}, errors.New("the frame's Final.status is OK")
		}
		return result{err: status.ErrorProto(st)}, nil
	default:
		return result{}, errors.New("frame Final without a result")
	}
}
