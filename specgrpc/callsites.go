package specgrpc

import (
	"cmp"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/foresay/foresay/control"
	"github.com/foresay/foresay/internal/nearest"
	"github.com/foresay/foresay/predict"
)

// unawareFor is how long a connection remembers that a peer does not offer a
// method's speculative stream. It only saves attempts: what the peer really is
// shows anew in each of them.
const unawareFor = 5 * time.Second

// method is what a connection knows of a method.
type method struct {
	name string // full
	spec string // of its speculative stream
	site *control.CallSite
	cfg  control.CallSiteConfig
	// observed is the call site of calls whose caller looks at the transport, since their
	// values are not plain responses, and of those with credentials of their own:
	// they are neither predicted nor learnt.
	observed *control.CallSite
	// pure says that the method has no side effects.
	pure         bool
	copyRequest  bool     // user code looks at requests while they are sent
	ignored      []string // metadata, sorted
	looks        lookedUp
	unawareUntil atomic.Int64 // Unix nanoseconds
	askedAgain   atomic.Int64 // the same: when a call last asked although its caller does not wait
	aware        atomic.Bool  // the last speculative stream was served
}

// peer returns what the connection has seen of the method's server, for a call with such options.
func (m *method) peer(opts []grpc.CallOption) control.Peer {
	switch {
	case observes(opts) || !plainCodec(opts):
		return control.PeerNever
	case m.aware.Load():
		return control.PeerSpeculative
	case m.unawareUntil.Load() != 0:
		return control.PeerPlain
	}
	return control.PeerUnknown
}

func (m *method) unaware() bool {
	until := m.unawareUntil.Load()
	return until != 0 && time.Now().UnixNano() < until
}

// asks reports whether a call whose caller waits for nothing else asks the server to predict. Where
// the peer did not offer the stream, one call finds out whether it does by now, and costs a round
// trip; the others do not ask meanwhile.
func (m *method) asks() bool {
	if m.aware.Load() || m.unawareUntil.Load() == 0 {
		return true
	}
	last, now := m.askedAgain.Load(), time.Now().UnixNano()
	return !m.unaware() && now-last > int64(unawareFor) && m.askedAgain.CompareAndSwap(last, now)
}

func (m *method) setAware() {
	if !m.aware.Load() {
		m.aware.Store(true)
	}
}

func (m *method) setUnaware() {
	m.aware.Store(false)
	m.unawareUntil.Store(time.Now().Add(unawareFor).UnixNano())
}

// callSiteTable is what a connection knows of its methods.
type callSiteTable struct {
	control *control.Control
	mode    control.Mode // of call sites that say none
	target  string
	id      string   // distinguishes connections to one target
	methods sync.Map // full method name -> *method
	configs map[string]control.CallSiteConfig

	strangers atomic.Int64 // methods that nobody configured
	closed    atomic.Bool

	// Buffers in which identities are put together, and what observes calls.
	scratches, watches sync.Pool

	reloader  *reloader
	principal predict.Principal // on whose behalf calls are made
	outgoing  any               // the key of outgoing metadata in contexts
}

func newCallSiteTable(ctl *control.Control, mode control.Mode, target string) *callSiteTable {
	return &callSiteTable{control: ctl, mode: mode, target: target, principal: predict.Credentials(),
		outgoing: metadataKey()}
}

// method returns what is known of a method, configured or not.
func (c *callSiteTable) method(fullMethod string) *method {
	if m, ok := c.methods.Load(fullMethod); ok {
		return m.(*method)
	}
	if _, configured := c.configs[fullMethod]; !configured && c.strangers.Add(1) > maxStrangers {
		return c.stranger(fullMethod)
	}
	m, err := c.newMethod(strings.Clone(fullMethod))
	if err != nil { // an empty name: let grpc refuse it
		m, _ = newCallSiteTable(c.control, c.mode, "").newMethod("/")
		c.control.Remove(m.site)
		return m
	}
	known, loaded := c.methods.LoadOrStore(m.name, m)
	switch {
	case loaded || c.closed.Load():
		c.control.Remove(m.site)
	default:
		c.reloader.apply(m.site) // files may have changed since
	}
	return known.(*method)
}

// maxStrangers is how many methods that nobody configured are kept: a proxy hands
// on whatever its callers name.
const maxStrangers = 1000

// stranger returns a method that is not kept, with a call site that does nothing.
func (c *callSiteTable) stranger(fullMethod string) *method {
	c.strangers.Store(maxStrangers)
	m, err := newMethod(control.CallSiteConfig{Name: fullMethod, Mode: control.ModeOff}, control.NewCallSite)
	if err != nil {
		m, _ = newMethod(control.CallSiteConfig{Name: "/", Mode: control.ModeOff}, control.NewCallSite)
	}
	return m
}

// close has the control forget the call sites.
func (c *callSiteTable) close() {
	c.closed.Store(true)
	c.reloader.close()
	var all []*control.CallSite
	for _, m := range c.methods.Range {
		all = append(all, m.(*method).site)
	}
	c.control.Remove(all...)
}

// configure makes the configured methods known: those of the code at once, those
// of files when they are called first.
func (c *callSiteTable) configure(own *clientConfig) error {
	configs := make(map[string]control.CallSiteConfig)
	var coded []string
	for _, site := range own.sites {
		if err := cmp.Or(checkMethodName(site.Name), checkKnown(site.Name)); err != nil {
			return fmt.Errorf("specgrpc: site: %w", err)
		}
		if _, ok := configs[site.Name]; ok {
			return fmt.Errorf("specgrpc: site %s: configured twice", site.Name)
		}
		configs[site.Name] = site
		coded = append(coded, site.Name)
	}
	for _, f := range own.files {
		for _, o := range f.overlays {
			cfg := configs[o.method]
			mode, share := cfg.Mode, cfg.Share
			cfg.Name = o.method
			o.apply(&cfg)
			cfg.Mode, cfg.Share = mode, share // the reloader's
			if _, err := control.NewCallSite(classed(cfg)); err != nil {
				return fmt.Errorf("specgrpc: site file %s: %w", f.path, err)
			}
			configs[o.method] = cfg
		}
	}
	c.configs = configs
	c.reloader = c.watchFiles(own)
	for _, name := range coded {
		m, err := c.newMethod(name)
		if err != nil {
			c.close()
			return fmt.Errorf("specgrpc: %w", err)
		}
		c.methods.Store(name, m)
	}
	return nil
}

// checkMethodName accepts /pkg.Service/Method.
func checkMethodName(name string) error {
	service, method, ok := strings.Cut(strings.TrimPrefix(name, "/"), "/")
	if !ok || service == "" || method == "" || name[0] != '/' || strings.Contains(method, "/") {
		return fmt.Errorf("method %q: want a full name such as /pkg.Service/Method", name)
	}
	if strings.HasSuffix(method, specSuffix) {
		return fmt.Errorf("method %q: name the method itself, not its speculative stream", name)
	}
	return nil
}

// newMethod makes a method known that is called or configured.
func (c *callSiteTable) newMethod(name string) (*method, error) {
	cfg := c.configs[name]
	cfg.Name = name
	if cfg.Mode == control.ModeDefault {
		cfg.Mode = c.mode
	}
	m, err := newMethod(cfg, func(cfg control.CallSiteConfig) (*control.CallSite, error) {
		return c.control.NewCallSite(cfg, c.target)
	})
	if err == nil {
		c.reloader.apply(m.site)
	}
	return m, err
}

// newMethod returns a method with a call site that newCallSite makes.
func newMethod(
	cfg control.CallSiteConfig, newCallSite func(control.CallSiteConfig) (*control.CallSite, error),
) (*method, error) {
	cfg = classed(cfg)
	watched := cfg
	watched.Predictors, watched.Mode = nil, control.ModeOff
	observed, err := control.NewCallSite(watched)
	if err != nil {
		return nil, err
	}
	site, err := newCallSite(cfg)
	if err != nil {
		return nil, err
	}
	return &method{
		name: cfg.Name, spec: cfg.Name + specSuffix, site: site, cfg: cfg, observed: observed,
		pure:        cfg.Effect == control.EffectNone,
		copyRequest: len(cfg.Predictors) > 0 || cfg.ConflictKey != nil,
		ignored:     ignoredMetadata(&cfg),
	}, nil
}

// classed returns a configuration with its effect class.
func classed(cfg control.CallSiteConfig) control.CallSiteConfig {
	if cfg.Effect == control.EffectUnknown {
		cfg.Effect = control.EffectImmediate
		if declaredPure(cfg.Name) {
			cfg.Effect = control.EffectNone
		}
	}
	return cfg
}

// declaredPure reports whether a method's .proto declares it free of side effects.
func declaredPure(fullMethod string) bool {
	d := methodDescriptor(fullMethod)
	if d == nil {
		return false
	}
	o, ok := d.Options().(*descriptorpb.MethodOptions)
	return ok && o.GetIdempotencyLevel() == descriptorpb.MethodOptions_NO_SIDE_EFFECTS
}

// checkKnown refuses a method that its service, whose generated package is linked
// in, does not have, and a service that such a package does not have if one there has
// that name but for a letter.
func checkKnown(fullMethod string) error {
	service, method, _ := strings.Cut(strings.TrimPrefix(fullMethod, "/"), "/")
	d, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(service))
	if err != nil {
		name := protoreflect.FullName(service)
		if like := nearest.Slip(string(name.Name()), servicesOf(name.Parent())); like != "" {
			return fmt.Errorf("%s: no such service is known; did you mean %s?", fullMethod,
				name.Parent().Append(protoreflect.Name(like)))
		}
		return nil
	}
	s, ok := d.(protoreflect.ServiceDescriptor)
	if !ok || s.Methods().ByName(protoreflect.Name(method)) != nil {
		return nil
	}
	var names []string
	for i := range s.Methods().Len() {
		names = append(names, string(s.Methods().Get(i).Name()))
	}
	return fmt.Errorf("%s: the service has no method %s; it has: %s", fullMethod, method, strings.Join(names, ", "))
}

// servicesOf returns the services of a package, as far as it is linked in.
func servicesOf(pkg protoreflect.FullName) (names []string) {
	protoregistry.GlobalFiles.RangeFilesByPackage(pkg, func(f protoreflect.FileDescriptor) bool {
		for i := range f.Services().Len() {
			names = append(names, string(f.Services().Get(i).Name()))
		}
		return true
	})
	return names
}

// methodDescriptor returns the descriptor of a method whose generated package
// is linked in, or nil.
func methodDescriptor(fullMethod string) protoreflect.MethodDescriptor {
	name := protoreflect.FullName(strings.ReplaceAll(strings.TrimPrefix(fullMethod, "/"), "/", "."))
	d, err := protoregistry.GlobalFiles.FindDescriptorByName(name)
	if err != nil {
		return nil
	}
	m, _ := d.(protoreflect.MethodDescriptor)
	return m
}
