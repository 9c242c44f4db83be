package specgrpc

import (
	"context"
	"net/http"
	"net/url"
	"reflect"
	"runtime"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/foresay/foresay/driver"
)

// A server's unary interceptors guard its methods, so they run around speculative
// calls too. grpc.Server does not show them, but gives them to the handler of each
// unary method: the registrar learns them from the first plain call. If a
// speculative call comes first the registrar makes a plain call itself, within the
// process, which ends where the interceptors are known: neither they nor the
// handler run, only stats handlers see it. On a server that takes no such call the
// speculative call is refused: its caller makes it plainly, which shows them.

// guards are the interceptors, once they are known; nil for none.
type guards struct{ interceptor grpc.UnaryServerInterceptor }

// errAsked ends the call that asks for the interceptors.
var errAsked = status.Error(codes.Canceled, "specgrpc: this call only finds out the server's interceptors")

// learn keeps the interceptors that grpc gave to a plain call. It returns an error
// for a call that was made for nothing else.
func (r *ServiceRegistrar) learn(ctx context.Context, interceptor grpc.UnaryServerInterceptor) error {
	if r.guards.Load() == nil {
		r.guards.Store(&guards{interceptor})
	}
	if driver.IsProbe(ctx) {
		return errAsked
	}
	return nil
}

// guarded returns the interceptors, and false if there is no way to know them yet.
func (r *ServiceRegistrar) guarded(m *serverMethod) (*guards, bool) {
	if g := r.guards.Load(); g != nil {
		return g, true
	}
	if server, ok := r.server.(http.Handler); ok {
		r.asking.Lock()
		if r.guards.Load() == nil {
			server.ServeHTTP(nowhere{}, asking(m.name))
		}
		r.asking.Unlock()
	}
	g := r.guards.Load()
	return g, g != nil
}

// A method's handler runs as a task within the interceptor that its descriptor's Handler is
// given. One that was written by hand may not call it: the method would run for a speculative
// caller as it does for others. So the method takes such callers only if the Handler is a
// generated one, or has called an interceptor in a plain call.

// generated reports whether the method's Handler is one of protoc-gen-go-grpc's, by its name.
func generated(service string, md *grpc.MethodDesc) bool {
	f := runtime.FuncForPC(reflect.ValueOf(md.Handler).Pointer())
	name := service[strings.LastIndexByte(service, '.')+1:]
	return f != nil && strings.HasSuffix(f.Name(), "._"+inGo(name)+"_"+inGo(md.MethodName)+"_Handler")
}

// inGo is how protoc-gen-go writes a name: get_user becomes GetUser.
func inGo(name string) string {
	var b strings.Builder
	upper := true
	for i, c := range []byte(name) {
		letter := 'a' <= c && c <= 'z'
		switch {
		case c == '_' && i == 0:
			b.WriteByte('X')
			continue
		case c == '_' && i+1 < len(name) && 'a' <= name[i+1] && name[i+1] <= 'z':
			upper = true
			continue
		case letter && upper:
			c -= 'a' - 'A'
		}
		b.WriteByte(c)
		upper = '0' <= c && c <= '9'
	}
	return b.String()
}

// asking is a call of a method that is a probe.
func asking(fullMethod string) *http.Request {
	r := &http.Request{
		Method: http.MethodPost, URL: &url.URL{Path: fullMethod}, Proto: "HTTP/2.0", ProtoMajor: 2,
		Header: http.Header{"Content-Type": {"application/grpc"}}, Body: http.NoBody, RemoteAddr: "127.0.0.1:0",
	}
	return r.WithContext(driver.Probe(context.Background()))
}

// nowhere takes the answer to a call that nobody waits for.
type nowhere struct{}

func (nowhere) Header() http.Header         { return make(http.Header) }
func (nowhere) Write(b []byte) (int, error) { return len(b), nil }
func (nowhere) WriteHeader(int)             {}
func (nowhere) Flush()                      {}
