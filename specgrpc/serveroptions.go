package specgrpc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"log/slog"
	"maps"
	"math"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/tap"

	"github.com/foresay/foresay/control"
)

// A ServerOption configures a Server or a ServiceRegistrar. It is also a
// grpc.ServerOption, so that NewServer takes both kinds in one list; given to
// grpc.NewServer it does nothing.
type ServerOption interface {
	grpc.ServerOption
	applyServer(*serverConfig)
}

type serverOption struct {
	grpc.EmptyServerOption
	apply func(*serverConfig)
}

func (o serverOption) applyServer(c *serverConfig) { o.apply(c) }

func option(apply func(*serverConfig)) ServerOption { return serverOption{apply: apply} }

type serverConfig struct {
	tap           tap.ServerInHandle
	staged        map[string]bool
	pure          map[string]bool
	replayable    map[string]bool
	allReplayable bool
	reauthorize   func(ctx context.Context, fullMethod string, req any) error
	maxHalfOpen   int
	maxPerCaller  int
	principal     func(context.Context) string // nil for credentialsOf
	seed          maphash.Seed                 // of principals
	maxDepth      int
	maxPayload    int
	lease         time.Duration
	limits        control.Limits
	logger        *slog.Logger
	errs          []error
}

func newServerConfig() serverConfig {
	return serverConfig{
		staged: make(map[string]bool), pure: make(map[string]bool), replayable: make(map[string]bool),
		maxHalfOpen: defaultHalfOpen, maxPerCaller: math.MaxInt, seed: maphash.MakeSeed(), maxDepth: 32, maxPayload: 4 << 20,
		lease:  15 * time.Second,
		logger: slog.New(slog.DiscardHandler),
	}
}

func (c *serverConfig) check() error {
	for _, name := range c.named() {
		if err := cmp.Or(checkMethodName(name), checkKnown(name)); err != nil {
			c.errs = append(c.errs, fmt.Errorf("specgrpc: server option: %w", err))
		}
	}
	for _, bound := range []struct {
		option string
		n      int
	}{
		{"WithMaxHalfOpenCalls", c.maxHalfOpen}, {"WithMaxHalfOpenCallsPerCaller", c.maxPerCaller},
		{"WithMaxDepth", c.maxDepth}, {"WithMaxPayload", c.maxPayload},
	} {
		if bound.n < 0 {
			c.errs = append(c.errs, fmt.Errorf("specgrpc: %s is %d, which is negative", bound.option, bound.n))
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

// InTapHandle is grpc.InTapHandle for a Server: h sees a speculative call under the
// name of its method.
func InTapHandle(h tap.ServerInHandle) ServerOption {
	return option(func(c *serverConfig) {
		if c.tap != nil || h == nil {
			c.errs = append(c.errs, errors.New("specgrpc: want one tap handle, which is not nil"))
		}
		c.tap = h
	})
}

// Stages declares that the handlers of these methods hold their effects back
// with foresay.Barrier, Act, OnCommit and OnRollback, so that they may run for a
// speculative caller.
func Stages(methods ...string) ServerOption {
	return option(func(c *serverConfig) { mark(c.staged, methods) })
}

// SideEffectFree declares methods free of side effects, as
// idempotency_level = NO_SIDE_EFFECTS does in a .proto: they may run for a
// speculative caller.
func SideEffectFree(methods ...string) ServerOption {
	return option(func(c *serverConfig) { mark(c.pure, methods) })
}

// Replayable declares that the handlers of these methods may be run again from
// the top on one request, as the functions given to foresay.Do: calls that they
// make may then return predictions.
func Replayable(methods ...string) ServerOption {
	return option(func(c *serverConfig) { mark(c.replayable, methods) })
}

// AllReplayable declares that of all handlers.
func AllReplayable() ServerOption {
	return option(func(c *serverConfig) { c.allReplayable = true })
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
	return option(func(c *serverConfig) { c.reauthorize = f })
}

// WithMaxHalfOpenCalls sets how many calls of speculative callers the server runs
// or keeps at once; it refuses more. Default 4096. Of these places one caller, that
// is one host or one principal, holds at most as many as are free: half of them if
// nobody else wants any, a third if there are two that want all.
func WithMaxHalfOpenCalls(n int) ServerOption {
	return option(func(c *serverConfig) { c.maxHalfOpen = n })
}

// WithMaxHalfOpenCallsPerCaller bounds what one caller may hold further. Behind a
// proxy that is not transparent all callers are one host.
func WithMaxHalfOpenCallsPerCaller(n int) ServerOption {
	return option(func(c *serverConfig) { c.maxPerCaller = n })
}

// WithPrincipal has f say on whose behalf a speculative call is made, for the bound
// on what one caller may hold; "" for nobody in particular. It runs before the
// interceptors, with the call's context. Default: the client's certificate and the
// metadata "authorization", whatever they are worth.
func WithPrincipal(f func(ctx context.Context) string) ServerOption {
	return option(func(c *serverConfig) { c.principal = f })
}

// WithMaxDepth sets on how many open assumptions a caller may stand, across all
// nodes, before it is refused. Default 32.
func WithMaxDepth(n int) ServerOption {
	return option(func(c *serverConfig) { c.maxDepth = n })
}

// WithMaxPayload sets the size in bytes of the largest request of a speculative
// caller. Default 4 MiB. The server's own limit on messages holds as well.
func WithMaxPayload(bytes int) ServerOption {
	return option(func(c *serverConfig) { c.maxPayload = bytes })
}

// WithMaxLease sets how long a speculative caller may take to give its word
// before its call is undone; callers may ask for less. Default 15 s.
func WithMaxLease(d time.Duration) ServerOption {
	return option(func(c *serverConfig) {
		if d <= 0 {
			c.errs = append(c.errs, fmt.Errorf("specgrpc: the lease %v is not positive", d))
		}
		c.lease = d
	})
}

// WithTaskLimits bounds the speculation of each handler.
func WithTaskLimits(l control.Limits) ServerOption {
	return option(func(c *serverConfig) { c.limits = l })
}

// WithServerLogger has the server tell, at debug level, what becomes of each
// speculative call, and at warning level of clients that break the protocol.
func WithServerLogger(l *slog.Logger) ServerOption {
	return option(func(c *serverConfig) {
		if l == nil {
			c.errs = append(c.errs, errors.New("specgrpc: the server's logger is nil"))
			return
		}
		c.logger = l
	})
}
