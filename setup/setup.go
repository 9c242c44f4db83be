package setup

import (
	"fmt"
	"log/slog"
	"net/http"
	"slices"

	"google.golang.org/grpc"

	"github.com/foresay/foresay/control"
	"github.com/foresay/foresay/dash"
	"github.com/foresay/foresay/observe"
	"github.com/foresay/foresay/specgrpc"
)

// Config configures a Process. The zero value of a field is its default.
type Config struct {
	// Name is the service's name on the dashboard. Default: the host of the page's address.
	Name string
	// Authorize decides who may switch modes and the kill switch at the debug endpoint: it returns
	// nil for a request that may. nil: nobody.
	Authorize func(*http.Request) error
	// CallSiteFile is the file in which the modes and predictors of call sites are, for all
	// connections. It is read again when it changes: see specgrpc.WithCallSiteFile. Default: none.
	CallSiteFile string
	// Predictors are those that the call site file may name.
	Predictors map[string]control.Predictor
	// Logger is told of trips, switches, and of what is wrong with the call site file. Default:
	// Control.Logger, else nobody.
	Logger *slog.Logger
	// Control configures the Control. What it has in OnRequest is told of requests after the
	// Collector.
	Control control.Config
	// Collector configures the Collector.
	Collector observe.Config
}

// Process is what New set up. It is safe for concurrent use.
type Process struct {
	control   *control.Control
	collector *observe.Collector
	client    []specgrpc.ClientOption
}

// New sets the process up, once, and serves the dashboard and its data below dash.Path of debug,
// which should be where the process's other debug endpoints are: reading is not restricted. With
// nil nothing is served. An error says which field is wrong. The call site file is read by
// NewClient, which returns what is wrong with it.
func New(debug *http.ServeMux, cfg Config) (*Process, error) {
	collector, err := observe.NewCollector(cfg.Collector)
	if err != nil {
		return nil, fmt.Errorf("setup: Collector: %w", err)
	}
	if cfg.Logger != nil {
		cfg.Control.Logger = cfg.Logger
	}
	cfg.Control.OnRequest = slices.Concat([]func(*control.RequestRecord){collector.Record}, cfg.Control.OnRequest)
	ctl, err := control.New(cfg.Control)
	if err != nil {
		return nil, fmt.Errorf("setup: Control: %w", err)
	}
	p := &Process{control: ctl, collector: collector, client: []specgrpc.ClientOption{specgrpc.WithControl(ctl)}}
	if cfg.CallSiteFile != "" {
		p.client = append(p.client, specgrpc.WithCallSiteFile(cfg.CallSiteFile, cfg.Predictors))
	}
	if debug != nil {
		debug.Handle(dash.Path, dash.Handler(dash.Config{
			Control: ctl, Collector: collector, Name: cfg.Name, Authorize: cfg.Authorize, Logger: cfg.Control.Logger,
		}))
	}
	return p, nil
}

// Control returns what switches and watches the process's speculation.
func (p *Process) Control() *control.Control { return p.control }

// Collector returns where the process's observations come together.
func (p *Process) Collector() *observe.Collector { return p.collector }

// DialOptions returns what a connection of specgrpc.NewClient needs to be one of the process's: the
// Control, and the call site file if there is one.
func (p *Process) DialOptions() []grpc.DialOption {
	options := make([]grpc.DialOption, len(p.client))
	for i, o := range p.client {
		options[i] = o
	}
	return options
}

// NewClient makes a connection as specgrpc.NewClient does, with DialOptions before the others.
func (p *Process) NewClient(target string, opts ...grpc.DialOption) (*specgrpc.ClientConn, error) {
	return specgrpc.NewClient(target, slices.Concat(p.DialOptions(), opts)...)
}

// Handler has the calls that next makes for an HTTP request belong to that request: see
// observe.Handler.
func (p *Process) Handler(next http.Handler) http.Handler { return observe.Handler(p.control, next) }

// ServerOptions does for a gRPC server what Handler does for HTTP: the calls that a method makes
// belong to the request that it answers. They go first among the server's options, of
// grpc.NewServer and of specgrpc.NewServer alike.
func (p *Process) ServerOptions() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.ChainUnaryInterceptor(observe.UnaryServerInterceptor(p.control)),
		grpc.ChainStreamInterceptor(observe.StreamServerInterceptor(p.control)),
	}
}

// Observer returns an interceptor that observes the calls of connections that are not the process's
// to make: see specgrpc.ObserveInterceptor. It goes outermost, by grpc.WithChainUnaryInterceptor.
func (p *Process) Observer() (grpc.UnaryClientInterceptor, error) {
	return specgrpc.ObserveInterceptor(p.client...)
}
