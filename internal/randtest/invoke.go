package randtest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/foresay/foresay"
	kvpb "github.com/foresay/foresay/api/foresay/testkv/v1"
)

// invoker makes calls, for the program or for a handler.
type invoker struct {
	w       *world
	clients []kvpb.TestKVClient // by server
	tenant  string
	limit   bool        // with a time limit
	dead    bool        // on a cancelled context
	header  metadata.MD // is filled in if observed
	observe bool
	serves  bool // is a handler's
}

// call makes the call that an operation asks for, with predictions.
func (c *invoker) call(ctx context.Context, at string, server int, o *kvpb.Operation) (proto.Message, error) {
	k := c.w.sc.knobs
	c.w.tarry(at)
	ctx = context.WithValue(ctx, atKey{}, at)
	ctx = metadata.AppendToOutgoingContext(ctx, "at", at)
	place := at
	if c.serves { // of equal calls of one context, which may swap places, each handler does the same
		if b, err := (proto.MarshalOptions{Deterministic: true}).Marshal(o); err == nil {
			place = fmt.Sprintf("%x", b)
		}
	}
	opts, check := c.w.callOptions(ctx, place, o)
	ctx, tenants := c.w.as(ctx, at, c.tenant)
	opts = append(opts, tenants...)
	if c.limit {
		limited, cancel := context.WithTimeout(ctx, c.w.limitOf(at))
		defer cancel()
		ctx = limited
	}
	if c.dead {
		ended, cancel := context.WithCancel(ctx)
		cancel()
		ctx = ended
	}
	request, blank := parts(o)
	if g := c.w.guesses(at, "caller", k.Guessed, blank); g != nil {
		ctx = foresay.Predicting(ctx, g...)
	}
	c.w.stagger(at)
	start := time.Now()
	m, err := c.send(ctx, c.clients[server], o, opts)
	if c.w.plain && at != "" {
		c.w.oracle.record(at, &answer{server: server, method: methodOf(o), request: request, response: m,
			took: time.Since(start)}, err)
	}
	if err != nil {
		return nil, err
	}
	if got, ok := m.(*kvpb.GetResponse); ok {
		check(got.GetValue())
	}
	return m, nil
}

// stagger has no two calls of the oracle begin at one instant, as those of
// goroutines do whose answers arrive together: it does the same each time then.
// Elsewhere the scheduler may choose.
func (w *world) stagger(at string) {
	if w.plain {
		time.Sleep(time.Duration(w.sc.chance.below(100_000, "stagger", at)))
	}
}

// tarry has the code take its time before a call, in each run another one: mostly little, now and
// then as long as the answers of several calls.
func (w *world) tarry(at string) {
	if w.plain || !w.sc.knobs.Uneven {
		return
	}
	now := time.Since(w.start).String()
	most := []int{1, 1, 3_000, 3_000, 3_000, 30_000, 30_000, 300_000}[w.sc.chance.below(8, "uneven", at, now)]
	time.Sleep(time.Duration(w.sc.chance.below(most, "tarry", at, now)) * time.Microsecond)
}

func (c *invoker) send(
	ctx context.Context, client kvpb.TestKVClient, o *kvpb.Operation, opts []grpc.CallOption,
) (proto.Message, error) {
	switch x := o.GetOperation().(type) {
	case *kvpb.Operation_Get:
		if c.observe {
			return client.Get(ctx, x.Get, append(opts, grpc.Header(&c.header))...)
		}
		return client.Get(ctx, x.Get, opts...)
	case *kvpb.Operation_Put:
		return client.Put(ctx, x.Put, opts...)
	case *kvpb.Operation_Append:
		return client.Append(ctx, x.Append, opts...)
	case *kvpb.Operation_RelayRead:
		return client.RelayRead(ctx, x.RelayRead, opts...)
	case *kvpb.Operation_RelayWrite:
		return client.RelayWrite(ctx, x.RelayWrite, opts...)
	}
	return nil, status.Error(codes.InvalidArgument, "no operation")
}

// parts returns an operation's request and an empty response.
func parts(o *kvpb.Operation) (request, blank proto.Message) {
	switch x := o.GetOperation().(type) {
	case *kvpb.Operation_Get:
		return x.Get, &kvpb.GetResponse{}
	case *kvpb.Operation_Put:
		return x.Put, &kvpb.PutResponse{}
	case *kvpb.Operation_Append:
		return x.Append, &kvpb.AppendResponse{}
	case *kvpb.Operation_RelayRead:
		return x.RelayRead, &kvpb.RelayResponse{Name: x.RelayRead.GetName()}
	case *kvpb.Operation_RelayWrite:
		return x.RelayWrite, &kvpb.RelayResponse{Name: x.RelayWrite.GetName()}
	}
	panic("randtest: no operation")
}

// methodOf returns the method of an operation's call; 0 for Get.
func methodOf(o *kvpb.Operation) methods {
	switch o.GetOperation().(type) {
	case *kvpb.Operation_Put:
		return methodPut
	case *kvpb.Operation_Append:
		return methodAppend
	case *kvpb.Operation_RelayRead:
		return methodRelayRead
	case *kvpb.Operation_RelayWrite:
		return methodRelayWrite
	}
	return 0
}

// limitOf returns a time limit that sequential code would not reach.
func (w *world) limitOf(at string) time.Duration {
	a := w.oracle.answer(at)
	if a == nil || w.plain || !w.sc.knobs.Tight {
		return 30 * time.Second
	}
	return 2*a.took + 10*time.Millisecond
}

// fatal reports whether code that gets this error gives up.
func (sc *Scenario) fatal(err error) bool {
	if errors.Is(err, foresay.ErrMisspeculated) || errors.Is(err, foresay.ErrDiverged) {
		return !sc.knobs.Stubborn
	}
	return sc.Faults
}

// describe turns a response into what the program goes on with.
func (sc *Scenario) describe(m proto.Message) string {
	switch m := m.(type) {
	case *kvpb.GetResponse:
		if sc.knobs.Loose {
			return m.GetValue()
		}
		return fmt.Sprintf("%s#%d", m.GetValue(), m.GetVersion())
	case *kvpb.PutResponse:
		return fmt.Sprintf("#%d", m.GetVersion())
	case *kvpb.AppendResponse:
		return fmt.Sprintf("%s#%d", m.GetValue(), m.GetVersion())
	case *kvpb.RelayResponse:
		var parts []string
		for _, r := range m.GetResults() {
			parts = append(parts, sc.describeResult(r))
		}
		return m.GetName() + "(" + strings.Join(parts, ", ") + ")"
	}
	return fmt.Sprintf("a %T", m)
}

func (sc *Scenario) describeResult(r *kvpb.Result) string {
	switch x := r.GetResult().(type) {
	case *kvpb.Result_Get:
		return sc.describe(x.Get)
	case *kvpb.Result_Put:
		return sc.describe(x.Put)
	case *kvpb.Result_Append:
		return sc.describe(x.Append)
	case *kvpb.Result_Relay:
		return sc.describe(x.Relay)
	case *kvpb.Result_Failure:
		return codes.Code(x.Failure.GetCode()).String()
	}
	return "nothing"
}
