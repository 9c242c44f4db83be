package specgrpc

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"google.golang.org/grpc"

	"github.com/foresay/foresay"
)

// A ServerOption configures a ServiceRegistrar.
type ServerOption interface{ apply(*serverConfig) }

type serverOption func(*serverConfig)

func (o serverOption) apply(c *serverConfig) { o(c) }

type serverConfig struct {
	interceptor   grpc.UnaryServerInterceptor
	intercepted   bool // UnaryInterceptors or NoInterceptors was given
	staged        map[string]bool
	pure          map[string]bool
	replayable    map[string]bool
	allReplayable bool
	reauthorize   func(ctx context.Context, fullMethod string, req any) error
	maxHalfOpen   int
	maxDepth      int
	maxPayload    int
	lease         time.Duration
	limits        foresay.Limits
	logger        *slog.Logger
	errs          []error
}

func newServerConfig() serverConfig {
	return serverConfig{
		staged: make(map[string]bool), pure: make(map[string]bool), replayable: make(map[string]bool),
		maxHalfOpen: 1024, maxDepth: 32, maxPayload: 4 << 20, lease: 15 * time.Second,
		logger: slog.New(slog.DiscardHandler),
	}
}

func (c *serverConfig) check() error {
	if !c.intercepted {
		c.errs = append(c.errs, errors.New("specgrpc: Registrar needs UnaryInterceptors with the server's unary interceptors, "+
			"which guard speculative calls too, or NoInterceptors if it has none"))
	}
	for _, name := range c.named() {
		if err := checkMethodName(name); err != nil {
			c.errs = append(c.errs, fmt.Errorf("specgrpc: server option: %w", err))
		}
	}
	return errors.Join(c.errs...)
}

// named returns the methods that options name.
func (c *serverConfig) named() []string {
	all := maps.Clone(c.staged)
	maps.Copy(all, c.pure)
	maps.Copy(all, c.replayable)
	return slices.Sorted(maps.Keys(all))
}

// UnaryInterceptors gives the server's unary interceptors, outermost first: all
// that grpc.NewServer was given with UnaryInterceptor and ChainUnaryInterceptor.
func UnaryInterceptors(interceptors ...grpc.UnaryServerInterceptor) ServerOption {
	return serverOption(func(c *serverConfig) {
		c.intercepted = true
		for _, i := range interceptors {
			c.interceptor = chain(c.interceptor, i)
		}
	})
}

// chain returns an interceptor that runs outer around inner. Either may be nil.
func chain(outer, inner grpc.UnaryServerInterceptor) grpc.UnaryServerInterceptor {
	if outer == nil || inner == nil {
		if outer == nil {
			return inner
		}
		return outer
	}
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		return outer(ctx, req, info, func(ctx context.Context, req any) (any, error) {
			return inner(ctx, req, info, handler)
		})
	}
}

// NoInterceptors says that the server has no unary interceptors.
func NoInterceptors() ServerOption {
	return serverOption(func(c *serverConfig) { c.intercepted = true })
}

// Stages declares that the handlers of these methods hold their effects back
// with foresay.Barrier, Act, OnCommit and OnRollback, so that they may run for a
// speculative caller.
func Stages(methods ...string) ServerOption {
	return serverOption(func(c *serverConfig) { mark(c.staged, methods) })
}

// SideEffectFree declares methods free of side effects, as
// idempotency_level = NO_SIDE_EFFECTS does in a .proto: they may run for a
// speculative caller.
func SideEffectFree(methods ...string) ServerOption {
	return serverOption(func(c *serverConfig) { mark(c.pure, methods) })
}

// Replayable declares that the handlers of these methods may be run again from
// the top on one request, as the functions given to foresay.Do: calls that they
// make may then return predictions.
func Replayable(methods ...string) ServerOption {
	return serverOption(func(c *serverConfig) { mark(c.replayable, methods) })
}

// AllReplayable declares that of all handlers.
func AllReplayable() ServerOption {
	return serverOption(func(c *serverConfig) { c.allReplayable = true })
}

func mark(set map[string]bool, methods []string) {
	for _, m := range methods {
		set[m] = true
	}
}

// WithReauthorize has f decide, when a speculative caller is confirmed, whether
// the call may still take effect: rights may have been withdrawn since the
// interceptors checked them. ctx and req are those of the handler. All results
// for speculative callers are tentative then.
func WithReauthorize(f func(ctx context.Context, fullMethod string, req any) error) ServerOption {
	return serverOption(func(c *serverConfig) { c.reauthorize = f })
}

// WithMaxHalfOpenCalls sets how many calls of speculative callers the registrar
// runs or keeps at once; it refuses more. Default 1024.
func WithMaxHalfOpenCalls(n int) ServerOption {
	return serverOption(func(c *serverConfig) { c.maxHalfOpen = n })
}

// WithMaxDepth sets on how many open assumptions a caller may stand, across all
// nodes, before it is refused. Default 32.
func WithMaxDepth(n int) ServerOption {
	return serverOption(func(c *serverConfig) { c.maxDepth = n })
}

// WithMaxPayload sets the size in bytes of the largest request of a speculative
// caller. Default 4 MiB. The server's own limit on messages holds as well.
func WithMaxPayload(bytes int) ServerOption {
	return serverOption(func(c *serverConfig) { c.maxPayload = bytes })
}

// WithMaxLease sets how long a speculative caller may take to give its word
// before its call is undone; callers may ask for less. Default 15 s.
func WithMaxLease(d time.Duration) ServerOption {
	return serverOption(func(c *serverConfig) {
		if d <= 0 {
			c.errs = append(c.errs, fmt.Errorf("specgrpc: the lease %v is not positive", d))
		}
		c.lease = d
	})
}

// WithTaskLimits bounds the speculation of each handler.
func WithTaskLimits(l foresay.Limits) ServerOption {
	return serverOption(func(c *serverConfig) { c.limits = l })
}

// WithServerLogger has the registrar tell, at debug level, what becomes of each
// speculative call, and at warning level of clients that break the protocol.
func WithServerLogger(l *slog.Logger) ServerOption {
	return serverOption(func(c *serverConfig) {
		if l == nil {
			c.errs = append(c.errs, errors.New("specgrpc: the server's logger is nil"))
			return
		}
		c.logger = l
	})
}
