package replica

import (
	"context"
	"fmt"
	"reflect"

	"google.golang.org/protobuf/proto"

	"github.com/foresay/foresay/control"
)

// Config describes a Reader. NearFar fills in the functions.
type Config[Req, Resp any] struct {
	// Name addresses the reads' call site in reports and statistics. Required.
	Name string
	// Near asks the replica whose answer is the prediction. Required. Its errors
	// are not seen: there is no prediction then. It has to end soon after its
	// context has; that ends when Far returns.
	Near func(ctx context.Context, request Req) (Resp, error)
	// Far asks the authority, whose answer counts. Required. It may run for a
	// caller that turns out to be wrong, so it must not have side effects.
	Far func(ctx context.Context, request Req) (Resp, error)
	// Key tells different requests apart, in replays. nil: a Protobuf message's
	// bytes, or the value of a string, a number or a bool; other types need one.
	Key func(request Req) string
	// Equal says when the far answer counts as the near one, which then is the
	// result. nil: when they are equal, as Protobuf messages or else as
	// reflect.DeepEqual compares.
	Equal func(near, far Resp) bool
	// Copy returns a copy that shares nothing that can be changed with its
	// argument. nil: Protobuf messages are cloned, and others must not be changed
	// by who is given them.
	Copy func(answer Resp) Resp
	// Ordered sends a far read only when the earlier ones of ordered call sites, in
	// the same goroutine, are answered: see control.CallSiteConfig.
	Ordered bool
	// Mode and Share say for which requests near answers are asked for and taken:
	// see control.CallSiteConfig. Without one that is none, for the default observes,
	// and to observe here would take calls that nobody makes otherwise.
	Mode  control.Mode
	Share float64
	// Control, if not nil, switches the call site, under Name. It knows the call site until
	// it is told to Remove it.
	Control *control.Control
	// Limits bound what is predicted.
	Limits control.CallSiteLimits
}

// NearFar returns a Config of the two functions.
func NearFar[Req, Resp any](near, far func(ctx context.Context, request Req) (Resp, error)) Config[Req, Resp] {
	return Config[Req, Resp]{Near: near, Far: far}
}

// SameVersion returns an Equal that compares what version returns: that of an
// answer, such as a revision, an ETag or a time of change. Answers of one version
// must not differ in anything that matters.
func SameVersion[Resp any, Version comparable](version func(answer Resp) Version) func(near, far Resp) bool {
	return func(near, far Resp) bool { return version(near) == version(far) }
}

func (cfg *Config[Req, Resp]) complete() error {
	switch {
	case cfg.Name == "":
		return fmt.Errorf("replica: Name is empty")
	case cfg.Near == nil:
		return fmt.Errorf("replica: %s: Near is nil", cfg.Name)
	case cfg.Far == nil:
		return fmt.Errorf("replica: %s: Far is nil", cfg.Name)
	}
	if cfg.Key == nil {
		if cfg.Key = keyOf[Req](); cfg.Key == nil {
			return fmt.Errorf("replica: %s: Key is nil, and there is none for requests of type %v", cfg.Name,
				reflect.TypeFor[Req]())
		}
	}
	if cfg.Equal == nil {
		cfg.Equal = func(near, far Resp) bool { return same(near, far) }
	}
	if cfg.Copy == nil {
		cfg.Copy = func(answer Resp) Resp {
			copied, _ := own(answer).(Resp)
			return copied
		}
	}
	return nil
}

// keyOf returns the usual key for a type of requests, or nil.
func keyOf[Req any]() func(Req) string {
	typ := reflect.TypeFor[Req]()
	switch kind := typ.Kind(); {
	case typ.Implements(reflect.TypeFor[proto.Message]()):
		return func(request Req) string {
			m, ok := any(request).(proto.Message)
			if !ok || m == nil {
				return ""
			}
			b, err := proto.MarshalOptions{Deterministic: true, AllowPartial: true}.Marshal(m)
			if err != nil {
				// Such a message cannot be sent either.
				return fmt.Sprintf("%p", any(request))
			}
			return string(b)
		}
	case kind == reflect.String || kind == reflect.Bool || kind >= reflect.Int && kind <= reflect.Float64:
		return func(request Req) string { return fmt.Sprint(reflect.ValueOf(request)) }
	}
	return nil
}

// own returns a value that nobody else can change, if there is a way.
func own(v any) any {
	if m, ok := v.(proto.Message); ok && m != nil && m.ProtoReflect().IsValid() {
		return proto.Clone(m)
	}
	return v
}

func same(a, b any) bool {
	if ma, ok := a.(proto.Message); ok {
		mb, ok := b.(proto.Message)
		return ok && proto.Equal(ma, mb)
	}
	return reflect.DeepEqual(a, b)
}
