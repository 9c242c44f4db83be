package calls

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/foresay/foresay/bench"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	benchv1 "github.com/foresay/foresay/api/foresay/bench/v1"
	"github.com/foresay/foresay/wan"
	"github.com/foresay/foresay/wan/shape"
)

// A stack is one way to make and to serve calls: plain gRPC, or Foresay in one of its ways.
type stack struct {
	name    string
	variant variant
	// newServer makes a server and says where services are registered and how it is stopped.
	newServer func(opts ...grpc.ServerOption) serving
	// dial makes a client connection.
	dial func(target string, opts ...grpc.DialOption) (conn, error)
	// predict answers a call early in its handler. It may be nil.
	predict func(ctx context.Context, response *benchv1.WorkResponse) error
	chain   chainFunc
}

// A chainFunc makes a request's calls, one after the other, each at the next of the
// caller's servers, and returns the last answer.
type chainFunc func(ctx context.Context, c caller, a ask, r request) ([]byte, error)

// A stackKey tells stacks that can share servers and connections from others.
type stackKey struct {
	name    string
	variant variant
}

func (s stack) key() stackKey { return stackKey{s.name, s.variant} }

// A caller is a client of every server that it may call.
type caller []benchv1.BenchClient

// An ask is what a call asks for besides its answer.
type ask struct {
	work time.Duration
	hops int
	// predict asks the server to predict, with a right or a wrong answer.
	predict guess
}

func (a ask) request(payload []byte) *benchv1.WorkRequest {
	return &benchv1.WorkRequest{
		Payload:      payload,
		WorkUs:       uint32(a.work / time.Microsecond),
		Hops:         uint32(a.hops),
		Predict:      a.predict != noGuess,
		PredictWrong: a.predict == wrongGuess,
	}
}

type conn interface {
	grpc.ClientConnInterface
	io.Closer
}

type serving struct {
	server    *grpc.Server
	registrar grpc.ServiceRegistrar
	stop      func()
}

// A topology says which servers there are and how they and the callers are connected.
type topology struct {
	servers int
	rtt     time.Duration
	// forward lets each server call the next.
	forward bool
	// shared makes all callers use the same connections; otherwise each has its own.
	shared bool
	// repeatable keeps chance out of a bubble. Servers are a nanosecond further away each, and if
	// they forward, the later ones are faster by nanoseconds: otherwise the answers to calls that
	// speculation makes at one instant come at one instant, with the aborts that follow from them,
	// and what happens then depends on the scheduler. And flow-control windows stay as they are:
	// left alone, gRPC sends pings to size them, and how many depends on the scheduler too; and
	// they are so large that no update is due.
	repeatable bool
}

const window = 8 << 20

func (t topology) serverOptions() []grpc.ServerOption {
	if !t.repeatable {
		return nil
	}
	return []grpc.ServerOption{grpc.StaticStreamWindowSize(window), grpc.StaticConnWindowSize(window)}
}

func (t topology) dialOptions() []grpc.DialOption {
	if !t.repeatable {
		return nil
	}
	return []grpc.DialOption{grpc.WithStaticStreamWindowSize(window), grpc.WithStaticConnWindowSize(window)}
}

// A system is a stack at work: its servers and its callers on one network.
type system struct {
	stack   stack
	net     *counted
	top     topology
	servers []*server
	// addresses are where the servers listen, by number.
	addresses []string
	callers   []caller

	serving []serving
	conns   []conn
	loops   sync.WaitGroup // the servers' accept loops
}

const callersSite wan.Site = "callers"

func serverSite(i int) wan.Site { return wan.Site(fmt.Sprintf("server-%d", i)) }

// openSystem starts the servers and connects callers. It is to be closed, also after an error.
func openSystem(s stack, mode bench.Mode, top topology, callers int) (*system, error) {
	sys := &system{stack: s, net: &counted{network: newNetwork(mode, top)}, top: top,
		addresses: make([]string, top.servers)}
	// From last to first: a server that forwards needs the next one.
	var next benchv1.BenchClient
	for i := top.servers - 1; i >= 0; i-- {
		srv := &server{predict: s.predict, next: next}
		if top.repeatable && top.forward {
			srv.slower = time.Duration(16 * (top.servers - i))
		}
		if err := sys.serve(srv, i); err != nil {
			return sys, err
		}
		sys.servers = append(sys.servers, srv)
		if !top.forward || i == 0 {
			continue
		}
		var err error
		if next, err = sys.connect(serverSite(i-1), i); err != nil {
			return sys, err
		}
	}
	return sys, sys.admit(callers)
}

// admit connects callers until there are n.
func (sys *system) admit(n int) error {
	for len(sys.callers) < n {
		if sys.top.shared && len(sys.callers) > 0 {
			sys.callers = append(sys.callers, sys.callers[0])
			continue
		}
		c, err := sys.connectAll()
		if err != nil {
			return err
		}
		sys.callers = append(sys.callers, c)
	}
	return nil
}

func (sys *system) serve(srv *server, i int) error {
	l, err := sys.net.Listen(serverSite(i))
	if err != nil {
		return fmt.Errorf("bench: %s: server %d: %w", sys.stack.name, i, err)
	}
	sys.addresses[i] = l.Addr().String()
	s := sys.stack.newServer(sys.top.serverOptions()...)
	benchv1.RegisterBenchServer(s.registrar, srv)
	sys.serving = append(sys.serving, s)
	sys.loops.Go(func() { _ = s.server.Serve(l) }) // ends with the server's stop; a call would tell of any other end
	return nil
}

// connectAll connects to every server; to the first only where servers forward.
func (sys *system) connectAll() (caller, error) {
	n := sys.top.servers
	if sys.top.forward {
		n = 1
	}
	c := make(caller, n)
	for i := range c {
		var err error
		if c[i], err = sys.connect(callersSite, i); err != nil {
			return nil, err
		}
	}
	return c, nil
}

func (sys *system) connect(from wan.Site, to int) (benchv1.BenchClient, error) {
	address := sys.addresses[to]
	opts := append(sys.top.dialOptions(),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return sys.net.Dial(ctx, from, address)
		}))
	c, err := sys.stack.dial("passthrough:///"+address, opts...)
	if err != nil {
		return nil, fmt.Errorf("bench: %s: connect %s to server %d: %w", sys.stack.name, from, to, err)
	}
	sys.conns = append(sys.conns, c)
	return benchv1.NewBenchClient(c), nil
}

// begun returns how many calls the servers have begun.
func (sys *system) begun() int64 {
	var n int64
	for _, s := range sys.servers {
		n += s.begun.Load()
	}
	return n
}

// settleTime is how long a server may stay busy with calls that nobody waits for any more.
const settleTime = 30 * time.Second

// settle waits until no server is busy with such a call, and what is said last has arrived.
func (sys *system) settle(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	for {
		open := int64(0)
		for _, s := range sys.servers {
			open += s.open.Load()
		}
		if err := shape.Pause(ctx, sys.top.rtt+time.Millisecond); err != nil {
			return fmt.Errorf("bench: %s: %d calls still open at the servers: %w", sys.stack.name, open, err)
		}
		if open == 0 {
			return nil
		}
	}
}

// close ends the connections and the servers and waits for them.
func (sys *system) close() error {
	var errs []error
	for _, c := range sys.conns {
		errs = append(errs, c.Close())
	}
	for _, s := range sys.serving {
		s.stop()
	}
	sys.loops.Wait()
	errs = append(errs, sys.net.Close())
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("bench: %s: close: %w", sys.stack.name, err)
	}
	return nil
}
