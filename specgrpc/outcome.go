package specgrpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/foresay/foresay/control"
)

// unsent ends an exchange whose request never left.
func (x *exchange) unsent(err error) (bool, string, error) {
	if !x.speculative && x.ctx.Err() != nil {
		return true, "", x.cancelled("")
	}
	if why := x.s.gaveUp(); why != "" {
		return false, why, nil
	}
	return false, fmt.Sprintf("its stream cannot be opened: %v", err), nil
}

// violation ends an exchange with a peer that breaks the protocol.
func (x *exchange) violation(err error) (bool, string, error) {
	s := x.s
	s.conn.cfg.logger.Warn("specgrpc: the server breaks the protocol", "error", err,
		"method", s.method.name, "target", s.conn.cc.Target(), "call", s.id.String())
	s.cancel()
	return x.ended(fmt.Errorf("the server breaks the protocol: %w", err), nil)
}

// ended says what the end of the stream means, without a Final that stands.
func (x *exchange) ended(err error, reply proto.Message) (done bool, reason string, _ error) {
	s := x.s
	s.mu.Lock()
	w, why := s.word, s.why
	s.over = true
	s.mu.Unlock()
	unconfirmed := x.speculative && (!s.silence() || len(s.stream.Trailer()[undoneTrailer]) > 0)
	defer s.end()
	switch {
	case x.answers.refused:
		if x.full && x.speculative {
			s.conn.half.room.refused()
		}
		if x.beyond {
			x.out.attempt.Limited(control.LimitServer)
		}
		return false, x.refusal, nil
	case x.answers.none() && status.Code(err) == codes.Unimplemented:
		s.method.setUnaware()
		return false, "the server does not speak " + s.method.spec, nil
	case w == confirmed && x.tentative != nil && errors.Is(err, io.EOF) && x.retried(x.tentative.err):
		return x.tryAgain(x.tentative.err)
	case w == confirmed && x.tentative != nil && errors.Is(err, io.EOF):
		x.hooked()
		return true, "", x.tentative.give(reply)
	case w == confirmed && x.cancelled(why) != nil:
		return true, "", x.cancelled(why)
	case w == confirmed && unconfirmed:
		return false, "the server undid it before it heard Confirm", nil
	case w == confirmed && x.retried(err):
		return x.tryAgain(err)
	case w == confirmed && !s.method.pure:
		return true, "", x.lost(err)
	case why != "":
		return false, why, nil
	default:
		return false, fmt.Sprintf("its stream ended without a result: %v", err), nil
	}
}

// hooked passes on how long the handler's commit hooks took after its result.
func (x *exchange) hooked() {
	if v := x.s.stream.Trailer()[hooksTrailer]; len(v) == 1 {
		if us, err := strconv.ParseInt(v[0], 10, 64); err == nil && us >= 0 {
			x.out.attempt.Served(x.waited, microseconds(us))
		}
	}
}

// microseconds is a duration that a server tells, which may say anything.
func microseconds(us int64) time.Duration {
	const most = math.MaxInt64 / int64(time.Microsecond)
	return time.Duration(max(-most, min(us, most))) * time.Microsecond
}

// cancelled returns the status of a confirmed call that was given up here.
func (x *exchange) cancelled(why string) error {
	switch {
	case why == limitOver, x.own.Err() == context.DeadlineExceeded:
		return status.FromContextError(context.DeadlineExceeded).Err()
	case x.speculative && x.out.Context.Err() != nil:
		return status.FromContextError(x.out.Context.Err()).Err()
	case x.ctx.Err() == context.Canceled, !x.speculative && x.ctx.Err() != nil:
		return status.FromContextError(x.ctx.Err()).Err()
	}
	return nil
}

// lost is the error of a call that was confirmed and may have taken effect, or
// not: it is never sent again. What the server said of the call itself stands.
func (x *exchange) lost(err error) error {
	s := x.s
	code := status.Code(err)
	switch code {
	case codes.OK, codes.Unknown, codes.Internal, codes.Canceled, codes.DeadlineExceeded, codes.Unavailable:
		return status.Errorf(codes.Unavailable,
			"specgrpc: %s to %s, call %v: outcome unknown: the stream ended after Confirm: %v", s.method.name, s.conn.name(),
			s.id, err)
	}
	return status.Errorf(code, "specgrpc: %s to %s, call %v: %s", s.method.name, s.conn.name(), s.id,
		status.Convert(err).Message())
}
