package specgrpc

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"google.golang.org/grpc"

	"github.com/foresay/foresay/control"
)

// A ClientOption configures a ClientConn. It is also a grpc.DialOption, so that
// NewClient takes both kinds in one list; given to grpc.NewClient it does nothing.
type ClientOption interface {
	grpc.DialOption
	applyClient(*clientConfig) error
}

type clientOption struct {
	grpc.EmptyDialOption
	apply func(*clientConfig) error
}

func (o clientOption) applyClient(c *clientConfig) error { return o.apply(c) }

type clientConfig struct {
	sites           []control.CallSiteConfig
	files           []*callSiteFile
	readOnce        bool // they are not read again
	lease           time.Duration
	maxHalfOpen     int
	maxRequestBytes int
	logger          *slog.Logger
	logs            bool // a logger was given
	mode            control.Mode
	control         *control.Control
}

// theControl returns the one given, or a new one for the connection alone.
func (c *clientConfig) theControl() (*control.Control, error) {
	if c.control != nil {
		return c.control, nil
	}
	return control.New(control.Config{Logger: c.logger})
}

// defaultHalfOpen is how many calls of speculative callers both ends allow: a server gives one
// caller half of them at most, and so decides for how many there is room.
const defaultHalfOpen = 4096

func newClientConfig() clientConfig {
	return clientConfig{
		lease: 15 * time.Second, maxHalfOpen: defaultHalfOpen, maxRequestBytes: 3 << 20,
		logger: slog.New(slog.DiscardHandler),
	}
}

// WithMode sets the mode of methods whose call site says none. Default
// control.ModeObserve: predictions are compared with actual responses, and none
// is used.
func WithMode(m control.Mode) ClientOption {
	return clientOption{apply: func(c *clientConfig) error {
		switch m {
		case control.ModeDefault, control.ModeOff, control.ModeObserve, control.ModeOn:
		case control.ModeShadow, control.ModeCanary:
			return fmt.Errorf("specgrpc: mode %v needs a share of the requests: set it with a site", m)
		default:
			return fmt.Errorf("specgrpc: unknown mode %v", m)
		}
		c.mode = m
		return nil
	}}
}

// WithControl has the connection's call sites switched and watched by a Control that
// connections share: usually one per process. Without it the connection makes one
// of its own.
func WithControl(ctl *control.Control) ClientOption {
	return clientOption{apply: func(c *clientConfig) error {
		if ctl == nil {
			return errors.New("specgrpc: the control is nil")
		}
		c.control = ctl
		return nil
	}}
}

// WithCallSites configures methods, each by its full name. A method without a call site
// has one with the zero configuration, whose effect class is taken from the
// method's declaration.
func WithCallSites(sites ...control.CallSiteConfig) ClientOption {
	return clientOption{apply: func(c *clientConfig) error {
		c.sites = append(c.sites, sites...)
		return nil
	}}
}

// WithCallSiteFile configures methods by a JSON file; see ParseCallSites for its form.
// What the file says of a method goes before what WithCallSites says; what it
// leaves out stays. The predictors are those that the file may name.
//
// The file is looked at once a second, and read again when it changed: modes and
// shares take effect at once, other fields when the connection is made anew, which
// is logged. A version with errors changes nothing; the Control's Status tells why.
func WithCallSiteFile(path string, predictors map[string]control.Predictor) ClientOption {
	return clientOption{apply: func(c *clientConfig) error {
		f, err := readCallSiteFile(path, predictors)
		if err == nil {
			c.files = append(c.files, f)
		}
		return err
	}}
}

// WithLease sets how long a speculative stream may stay without a frame from
// the server, or without the caller's word, before it is given up and its call
// is made plainly once the caller is confirmed. Default 15 s. A call's lease is
// never longer than what is left of its deadline.
func WithLease(d time.Duration) ClientOption {
	return clientOption{apply: func(c *clientConfig) error {
		if d < time.Millisecond {
			return fmt.Errorf("specgrpc: the lease %v is shorter than a millisecond", d)
		}
		c.lease = d
		return nil
	}}
}

// WithMaxHalfOpen sets how many speculative streams of the connection may await
// their caller's word at once; further calls wait for their turn, or until their
// caller is confirmed. Default 4096. Where the peer admits fewer streams, fewer
// are opened. 0 sends no call for a speculative caller.
func WithMaxHalfOpen(n int) ClientOption {
	return clientOption{apply: func(c *clientConfig) error {
		if n < 0 {
			return fmt.Errorf("specgrpc: %d half-open streams", n)
		}
		c.maxHalfOpen = n
		return nil
	}}
}

// WithMaxSpeculativeRequest sets the size in bytes of the largest request that
// is sent for a speculative caller. Default 3 MiB, so that with its frame it
// fits into what a gRPC server accepts by default.
func WithMaxSpeculativeRequest(bytes int) ClientOption {
	return clientOption{apply: func(c *clientConfig) error {
		if bytes < 0 {
			return errors.New("specgrpc: the largest speculative request has a negative size")
		}
		c.maxRequestBytes = bytes
		return nil
	}}
}

// WithLogger has the connection tell, at debug level, what becomes of each
// speculative stream, and at warning level of peers that break the protocol and of
// call site files. Without it, what happens to call site files goes to the Control's logger.
func WithLogger(l *slog.Logger) ClientOption {
	return clientOption{apply: func(c *clientConfig) error {
		if l == nil {
			return errors.New("specgrpc: the logger is nil")
		}
		c.logger, c.logs = l, true
		return nil
	}}
}
