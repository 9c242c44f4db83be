package randtest

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/protobuf/proto"

	"github.com/foresay/foresay"
	"github.com/foresay/foresay/control"
	"github.com/foresay/foresay/report"

	kvpb "github.com/foresay/foresay/api/foresay/testkv/v1"
	"github.com/foresay/foresay/wan/shape"
)

// world is a client and servers in a bubble, for one execution of a program.
type world struct {
	sc       *Scenario
	plain    bool // sequential, over plain gRPC
	mutation Mutation
	logger   *slog.Logger

	start    time.Time
	net      *shape.Network
	nodes    []*node
	conns    []*connection
	clients  []kvpb.TestKVClient // the program's, by server
	oracle   *oracle
	journal  *journal
	strikes  *strikes
	failures failures

	mu      sync.Mutex
	reports []*report.Report
}

// outcome is what became of a program.
type outcome struct {
	digests []string // of the tasks
	errs    []error
	took    time.Duration
	effects [][]effect // by server
	journal *journal
	reports []*report.Report
}

// execute runs the scenario's program in a world of its own. It must be called
// in a bubble.
func (sc *Scenario) execute(plain bool, o *oracle, m Mutation, logger *slog.Logger) (*outcome, error) {
	w := &world{sc: sc, plain: plain, mutation: m, logger: logger, oracle: o, journal: newJournal(), start: time.Now()}
	if plain {
		w.mutation = Mutation{}
	}
	w.net = shape.NewNetwork(sc.matrix, sc.Seed)
	w.strikes = newStrikes(w)
	defer w.close()
	for i := range sc.knobs.Servers {
		w.nodes = append(w.nodes, newNode(w, i))
	}
	for i := len(w.nodes) - 1; i >= 0; i-- {
		if err := w.nodes[i].start(); err != nil {
			return nil, err
		}
	}
	for i := range w.nodes {
		c, err := w.connect(clientSite, i)
		if err != nil {
			return nil, err
		}
		w.conns = append(w.conns, c)
		w.clients = append(w.clients, kvpb.NewTestKVClient(w.mutation.wrapClient(w, c.conn)))
	}
	if err := w.warm(); err != nil {
		return nil, err
	}
	out := w.runTasks()
	w.settle()
	for _, n := range w.nodes {
		out.effects = append(out.effects, n.server.log())
	}
	out.journal, out.reports = w.journal, w.reports
	return out, nil
}

// warm waits until all connections are ready, so that the first calls take no
// longer than the others.
func (w *world) warm() error {
	conns := w.conns
	for _, n := range w.nodes {
		conns = append(conns[:len(conns):len(conns)], n.now.conns...)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for _, c := range conns {
		c.state.Connect()
		for s := c.state.GetState(); s != connectivity.Ready; s = c.state.GetState() {
			if !c.state.WaitForStateChange(ctx, s) {
				return fmt.Errorf("randtest: a connection is %v", s)
			}
		}
	}
	return nil
}

// patience is how long a program may take, in virtual time.
const patience = 10 * time.Minute

func (w *world) runTasks() *outcome {
	n := len(w.sc.tasks)
	out := &outcome{digests: make([]string, n), errs: make([]error, n)}
	start := time.Now()
	ctx, cancel := context.WithTimeout(w.pretend(context.Background()), patience)
	defer cancel()
	ctx, stopEarly := w.sc.early.bound(ctx)
	defer stopEarly()
	if !w.plain {
		stop := w.strikes.begin(&ctx)
		defer stop()
	}
	var wg sync.WaitGroup
	for i, t := range w.sc.tasks {
		wg.Go(func() { out.digests[i], out.errs[i] = w.runTask(ctx, t) })
	}
	wg.Wait()
	out.took = time.Since(start)
	return out
}

func (w *world) runTask(ctx context.Context, t *task) (digest string, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	if w.plain {
		for i := range t.links {
			if digest, err = w.runLink(ctx, t, i, digest); err != nil {
				return digest, err
			}
			w.oracle.mark(fmt.Sprintf("%s link %d", t.name, i), digest)
		}
		return digest, nil
	}
	opts := []foresay.Option{
		foresay.WithName(t.name), foresay.WithLimits(w.sc.knobs.Limits), foresay.WithReport(w.report),
	}
	if w.logger != nil {
		opts = append(opts, foresay.WithLogger(w.logger))
	}
	if len(t.links) == 1 && w.sc.knobs.Unguessed != control.ModeDefault {
		return w.unguessed(ctx, t)
	}
	if len(t.links) == 1 {
		return foresay.Do(ctx, func(ctx context.Context) (string, error) { return w.runLink(ctx, t, 0, "") }, opts...)
	}
	ctx = foresay.WithDefaults(ctx, opts...)
	f := foresay.Go(ctx, func(ctx context.Context) (string, error) { return w.runLink(ctx, t, 0, "") },
		w.guessDigest(t.name+" link 0")...)
	for i := 1; i < len(t.links); i++ {
		f = foresay.Then(f, func(ctx context.Context, digest string) (string, error) { return w.runLink(ctx, t, i, digest) },
			w.guessDigest(fmt.Sprintf("%s link %d", t.name, i))...)
	}
	return f.Wait(ctx)
}

func (w *world) report(r *report.Report) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reports = append(w.reports, r)
}

// settle lets everything come to its end and checks that it did: while black
// holes last, and once more when what they held back has arrived.
func (w *world) settle() {
	for range 2 {
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		for _, c := range w.conns {
			c.check(w.journal, "the client")
		}
		for _, n := range w.nodes {
			n.check()
		}
		if !w.strikes.heal() {
			return
		}
	}
}

func (w *world) close() {
	w.strikes.stop()
	for _, c := range w.conns {
		c.close()
	}
	for _, n := range w.nodes {
		n.stop()
	}
	w.net.Close()
}

func (w *world) learn(method string, request, response proto.Message) {
	if k, ok := request.(interface{ GetKey() string }); ok {
		switch k.GetKey()[1] {
		case classPrivate, classContended:
			return // what they hold is open
		}
	}
	w.journal.learn(pair(method, request, response))
}

// connection is a connection, plain or speculative.
type connection struct {
	conn  grpc.ClientConnInterface
	close func() error
	state interface {
		Connect()
		GetState() connectivity.State
		WaitForStateChange(ctx context.Context, source connectivity.State) bool
	}
	halfOpen func() int
	sites    func() []*control.CallSite
}

func (c *connection) check(j *journal, who string) {
	if c.halfOpen == nil {
		return
	}
	if n := c.halfOpen(); n != 0 {
		j.brokenRule("%s has %d half-open streams left", who, n)
	}
	for _, s := range c.sites() {
		if n := s.Stats().Stalls; n > 0 {
			j.brokenRule("%d tasks of %s were stuck at a call of %s", n, who, s.Config().Name)
		}
	}
}
