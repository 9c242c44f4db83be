package randtest

import (
	"context"
	"slices"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
)

// A call is made as a tenant, who shows in what is read and written. A program says
// who it is in one of these ways, which depends on the place of the call.
const (
	asMetadata   = iota // in the metadata
	asToken             // by credentials of the call
	asSession           // by a value of the context, which credentials of the connection send
	asUser              // by one that an interceptor sends
	asOption            // by an option that an interceptor looks for
	asVisitor           // by what a value of the context points to, which an interceptor sends
	waysToBeSeen        //
)

type (
	sessionKey struct{}
	userKey    struct{}
	visitorKey struct{}
	visitor    struct{ tenant string }
	// tokenOf are credentials of a tenant.
	tokenOf string
	// sessions are credentials of whoever's session is in the context.
	sessions struct{}
	// asTenant is an option for the interceptor. It points to the tenant, so that it can only be
	// compared: what an option holds as a value is part of a call's key.
	asTenant struct {
		grpc.EmptyCallOption
		tenant *string
	}
)

// tenants are those who may call, or nobody.
var tenants = [...]string{"", "x", "y"} //tidy:ok nobody changes it

// tenantIn is the metadata that a tenant is told in; none for nobody.
func tenantIn(tenant string) map[string]string {
	if tenant == "" {
		return nil
	}
	return map[string]string{"tenant": tenant}
}

func (t tokenOf) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return tenantIn(string(t)), nil
}
func (tokenOf) RequireTransportSecurity() bool { return false }

func (sessions) GetRequestMetadata(ctx context.Context, _ ...string) (map[string]string, error) {
	tenant, _ := ctx.Value(sessionKey{}).(string)
	return tenantIn(tenant), nil
}
func (sessions) RequireTransportSecurity() bool { return false }

// introduce is the interceptor that says who calls.
func introduce(
	ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker,
	opts ...grpc.CallOption,
) error {
	tenant, _ := ctx.Value(userKey{}).(string)
	if v, ok := ctx.Value(visitorKey{}).(*visitor); ok {
		tenant = v.tenant
	}
	for _, o := range opts {
		if o, ok := o.(asTenant); ok {
			tenant = *o.tenant
		}
	}
	if tenant != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "tenant", tenant)
	}
	return invoker(ctx, method, req, reply, cc, opts...)
}

// as has a call be made as a tenant.
func (w *world) as(ctx context.Context, at, tenant string) (context.Context, []grpc.CallOption) {
	if tenant == "" {
		return ctx, nil
	}
	switch w.sc.chance.below(waysToBeSeen, "as", at) {
	case asToken:
		return ctx, []grpc.CallOption{grpc.PerRPCCredentials(tokenOf(tenant))}
	case asSession:
		return context.WithValue(ctx, sessionKey{}, tenant), nil
	case asUser:
		return context.WithValue(ctx, userKey{}, tenant), nil
	case asVisitor:
		if !sharesLane(ctx) {
			return context.WithValue(ctx, visitorKey{}, &visitor{tenant}), nil
		}
	case asOption:
		if i := slices.Index(tenants[:], tenant); !sharesLane(ctx) {
			return ctx, []grpc.CallOption{asTenant{tenant: &tenants[i]}}
		}
	}
	return metadata.AppendToOutgoingContext(ctx, "tenant", tenant), nil
}

// sharesLane reports whether goroutines share the context's lane: what their calls are made with
// must be comparable, see docs/guide.md.
func sharesLane(ctx context.Context) bool {
	s, ok := ctx.Value(strandKey{}).(*strand)
	return ok && s.shared
}

// tenantOf returns who makes the step's call: whom the results so far make it.
func (x *execution) tenantOf(at string, s *step, digest string) string {
	writes := (s.kind == kindPut || s.kind == kindAppend) && x.w.sc.chance.percent(25, "tenant", at)
	if !s.tenant && !writes {
		return ""
	}
	return tenants[choose(digest, len(tenants))]
}

// signed returns what a tenant writes or reads.
func signed(value, tenant string) string {
	if tenant == "" {
		return value
	}
	return value + "@" + tenant
}

// signedBy is signed for the tenant who calls.
func signedBy(ctx context.Context, value string) string {
	md, _ := metadata.FromIncomingContext(ctx)
	if tenant := md.Get("tenant"); len(tenant) > 0 {
		return signed(value, tenant[0])
	}
	return value
}
