package randtest

import (
	"context"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	kvpb "github.com/foresay/foresay/api/foresay/testkv/v1"
)

// RelayRead carries out reads, here and at other servers.
func (s *kvServer) RelayRead(ctx context.Context, r *kvpb.RelayRequest) (*kvpb.RelayResponse, error) {
	return s.relay(ctx, methodRelayRead, r)
}

// RelayWrite carries out operations, here and at other servers.
func (s *kvServer) RelayWrite(ctx context.Context, r *kvpb.RelayRequest) (*kvpb.RelayResponse, error) {
	return s.relay(ctx, methodRelayWrite, r)
}

func (s *kvServer) relay(ctx context.Context, method methods, r *kvpb.RelayRequest) (*kvpb.RelayResponse, error) {
	in := s.begin(ctx, method, r)
	if err := s.failing(in); err != nil {
		return nil, err
	}
	if err := s.early(in, &kvpb.RelayResponse{Name: r.GetName()}); err != nil {
		return nil, err
	}
	if err := s.work(in); err != nil {
		return nil, err
	}
	out := &kvpb.RelayResponse{Name: r.GetName()}
	digest := r.GetName()
	for i, o := range r.GetOperations() {
		res, err := s.operate(in, fmt.Sprintf("%s/%d", in.at, i), digest, o)
		switch {
		case err == nil:
		case s.w.sc.fatal(err):
			return nil, err
		default:
			res = &kvpb.Result{Result: &kvpb.Result_Failure{Failure: &kvpb.Failure{Code: uint32(status.Code(err))}}}
		}
		if g := res.GetGet(); g != nil && s.w.sc.knobs.Loose {
			res = result(&kvpb.GetResponse{Value: g.GetValue()}) // all that counts
		}
		out.Results = append(out.Results, res)
		digest = fold(digest, bytesOf(res))
	}
	return out, nil
}

// operate carries out one operation of a relay.
func (s *kvServer) operate(in *invocation, at, digest string, o *kvpb.Operation) (*kvpb.Result, error) {
	o = proto.CloneOf(o) // the request is the interceptors', too
	derive(o, digest)
	if o.GetTarget() == "local" {
		return s.local(in, o)
	}
	if in.life == nil {
		return nil, status.Error(codes.Internal, "no interceptor told the process's life")
	}
	c := &invoker{w: s.w, clients: in.life.clients, serves: true}
	m, err := c.call(in.ctx, at, serverOf(o.GetTarget()), o)
	if err != nil {
		return nil, err
	}
	return result(m), nil
}

// local carries out an operation on the server's own state.
func (s *kvServer) local(in *invocation, o *kvpb.Operation) (*kvpb.Result, error) {
	switch x := o.GetOperation().(type) {
	case *kvpb.Operation_Get:
		v, err := s.read(in, x.Get.GetKey())
		return result(v), err
	case *kvpb.Operation_Put:
		v, err := s.write(in, kindPut, x.Put.GetKey(), x.Put.GetValue())
		return result(&kvpb.PutResponse{Version: v.GetVersion()}), err
	case *kvpb.Operation_Append:
		v, err := s.write(in, kindAppend, x.Append.GetKey(), x.Append.GetValue())
		return result(&kvpb.AppendResponse{Value: v.GetValue(), Version: v.GetVersion()}), err
	}
	return nil, status.Error(codes.InvalidArgument, "no operation")
}

// derive fills in the values that the operation leaves to what was computed.
func derive(o *kvpb.Operation, digest string) {
	if p := o.GetPut(); p != nil && p.GetValue() == "" {
		p.Value = digest
	}
	if a := o.GetAppend(); a != nil && a.GetValue() == "" {
		a.Value = digest
	}
}

func result(m proto.Message) *kvpb.Result {
	switch m := m.(type) {
	case *kvpb.GetResponse:
		return &kvpb.Result{Result: &kvpb.Result_Get{Get: m}}
	case *kvpb.PutResponse:
		return &kvpb.Result{Result: &kvpb.Result_Put{Put: m}}
	case *kvpb.AppendResponse:
		return &kvpb.Result{Result: &kvpb.Result_Append{Append: m}}
	case *kvpb.RelayResponse:
		return &kvpb.Result{Result: &kvpb.Result_Relay{Relay: m}}
	}
	panic(fmt.Sprintf("randtest: no result holds a %T", m))
}

// request turns a relay into the message that asks for it.
func (r *relay) request(name string) *kvpb.RelayRequest {
	out := &kvpb.RelayRequest{Name: name}
	for i, o := range r.ops {
		var m *kvpb.Operation
		target := o.key
		if o.kind == kindRelay {
			m = o.relay.operation(fmt.Sprintf("%s/%d", name, i))
			target = serverName(o.relay.server)
		} else {
			m = operation(o.kind, o.key, o.value)
		}
		m.Target = target[:1]
		if serverOf(m.Target) == r.server {
			m.Target = "local"
		}
		out.Operations = append(out.Operations, m)
	}
	return out
}

func (r *relay) operation(name string) *kvpb.Operation {
	if r.write {
		return &kvpb.Operation{Operation: &kvpb.Operation_RelayWrite{RelayWrite: r.request(name)}}
	}
	return &kvpb.Operation{Operation: &kvpb.Operation_RelayRead{RelayRead: r.request(name)}}
}

func operation(k kind, key, value string) *kvpb.Operation {
	switch k {
	case kindPut:
		return &kvpb.Operation{Operation: &kvpb.Operation_Put{Put: &kvpb.PutRequest{Key: key, Value: value}}}
	case kindAppend:
		return &kvpb.Operation{Operation: &kvpb.Operation_Append{Append: &kvpb.AppendRequest{Key: key, Value: value}}}
	default:
		return &kvpb.Operation{Operation: &kvpb.Operation_Get{Get: &kvpb.GetRequest{Key: key}}}
	}
}
