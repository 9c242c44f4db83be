package replicated

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/foresay/foresay/bench"
	"github.com/foresay/foresay/bench/table"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/service"
)

// A Turn is what a system did in one of its turns.
type Turn struct {
	PerSecond float64
	// CPUPerOp is the servers' processor time per call in microseconds.
	CPUPerOp float64
	Took     []time.Duration // by call, in no order
}

// NewTurn returns what clients' calls took in a turn, by client, in which the servers used so much
// processor time.
func NewTurn(took [][]time.Duration, lasted, cpu time.Duration) Turn {
	t := Turn{Took: slices.Concat(took...)}
	t.PerSecond = float64(len(t.Took)) / lasted.Seconds()
	t.CPUPerOp = float64(cpu.Microseconds()) / float64(max(len(t.Took), 1))
	return t
}

// A contender is a system with servers of its own. Nothing of it is encrypted, and all of it is
// synced to disk.
type contender struct {
	system, trip string
	servers      *Processes
	close        func()
	put          func(ctx context.Context, client int, key string, value []byte) error
}

// contest is contenders that take turns.
type contest struct {
	etcd string // why none is among them, "" if the first one is etcd
	all  []*contender
}

// startContest starts etcd, if there is one, and a service for each round trip that is to be
// configured.
func startContest(ctx context.Context, o bench.Options, dir string, p smr.Protocol, trips ...string) (*contest, error) {
	c := &contest{}
	add := func(one *contender, err error) error {
		if err == nil {
			c.all = append(c.all, one)
		}
		return err
	}
	path := Etcd()
	if path == "" {
		c.etcd = "none: there is no program etcd in PATH"
	} else if err := add(contendingEtcd(ctx, path, dir)); err != nil {
		return c, err
	}
	for _, trip := range trips {
		if err := add(contendingService(ctx, o.Program, filepath.Join(dir, trip), p, trip)); err != nil {
			return c, err
		}
	}
	return c, nil
}

func (c *contest) close() {
	for _, one := range c.all {
		one.close()
	}
}

// beside is the cell that says what the services are compared with.
func (c *contest) beside() table.Cell {
	if c.etcd != "" {
		return table.Is("beside", c.etcd)
	}
	return table.Is("beside", "etcd")
}

// contendingEtcd starts etcd. A third of the clients share a connection, to a member of their own.
func contendingEtcd(ctx context.Context, path, dir string) (*contender, error) {
	servers, addresses, err := StartEtcd(ctx, path, dir, 3)
	if err != nil {
		return nil, err
	}
	c := &contender{system: "etcd", servers: servers}
	var conns []*EtcdConn
	c.close = func() {
		for _, conn := range conns {
			conn.Close()
		}
		servers.Close()
	}
	for _, a := range addresses {
		conn, err := DialEtcd(a)
		if err != nil {
			c.close()
			return nil, err
		}
		conns = append(conns, conn)
	}
	c.put = func(ctx context.Context, client int, key string, value []byte) error {
		return conns[client%len(conns)].Put(ctx, []byte(key), value)
	}
	return c, nil
}

// contendingService starts a service. The clients are one host, so a connection to each replica is
// shared.
func contendingService(ctx context.Context, program, dir string, p smr.Protocol, trip string) (*contender, error) {
	s, err := startServed(ctx, program, dir, service.Config{Protocol: p.Name, RoundTrip: trip})
	if err != nil {
		return nil, err
	}
	return &contender{
		system: p.Name, trip: trip, servers: s.servers, close: s.close,
		put: func(ctx context.Context, _ int, key string, value []byte) error {
			ctx, cancel := context.WithTimeout(ctx, turnPatience) // without a limit, that is 128 round trips
			defer cancel()
			_, err := s.client.Put(ctx, key, value)
			return err
		},
	}, nil
}

const (
	turnPatience = 20 * time.Second
	turnKeys     = 8 // of a client
)

// closedLoop is clients of a contender, each of which puts a value after the other.
type closedLoop struct {
	*contender
	clients    int
	valueBytes int
	turns      []Turn
}

func turnKey(client, n int) string { return fmt.Sprintf("bench/%d/%d", client, n%turnKeys) }

// begin has each client put a key, again until the servers are ready.
func (l *closedLoop) begin(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	value := make([]byte, l.valueBytes)
	return l.each(ctx, func(ctx context.Context, client int) error {
		for {
			try, end := context.WithTimeout(ctx, 10*time.Second)
			err := l.put(try, client, turnKey(client, 0), value)
			end()
			if err == nil || ctx.Err() != nil {
				return err
			}
		}
	})
}

// each runs something for each client, until the first error, or the end of a server.
func (l *closedLoop) each(ctx context.Context, f func(ctx context.Context, client int) error) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	defer context.AfterFunc(l.servers.Context(), func() { stop(context.Cause(l.servers.Context())) })()
	var wg sync.WaitGroup
	for client := range l.clients {
		wg.Go(func() {
			if err := f(ctx, client); err != nil {
				stop(err)
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}

// turn has the clients write, each one call after the other. Those on their way at the end are part
// of it.
func (l *closedLoop) turn(ctx context.Context, lasting time.Duration) error {
	took, value := make([][]time.Duration, l.clients), make([]byte, l.valueBytes)
	began, cpu := time.Now(), l.servers.CPU()
	err := l.each(ctx, func(ctx context.Context, client int) error {
		for n := 0; n == 0 || time.Since(began) < lasting; n++ {
			start := time.Now()
			if err := l.put(ctx, client, turnKey(client, n), value); err != nil {
				return err
			}
			took[client] = append(took[client], time.Since(start))
		}
		return nil
	})
	l.turns = append(l.turns, NewTurn(took, time.Since(began), l.servers.CPU()-cpu))
	return err
}

// play has loops begin, and then take so many turns each, in an order of chance.
func play(ctx context.Context, o bench.Options, loops []*closedLoop, turns int, lasting time.Duration) error {
	for _, l := range loops {
		if err := l.begin(ctx); err != nil {
			return fmt.Errorf("%s %s: %w", l.system, l.trip, err)
		}
	}
	for n := range turns {
		for _, i := range bench.Random(o.Seed, uint64(n)).Perm(len(loops)) {
			if err := loops[i].turn(ctx, lasting); err != nil {
				return fmt.Errorf("%s %s: turn %d: %w", loops[i].system, loops[i].trip, n+1, err)
			}
		}
	}
	return nil
}

// cells are the medians of the turns, and of the ratios within a round to another loop, which is
// etcd's.
func (l *closedLoop) cells(etcd *closedLoop) table.Row {
	var took []time.Duration
	var rates, cpu, ratios []float64
	for i, t := range l.turns {
		took = append(took, t.Took...)
		rates, cpu = append(rates, t.PerSecond), append(cpu, t.CPUPerOp)
		if etcd != nil {
			ratios = append(ratios, t.PerSecond/etcd.turns[i].PerSecond)
		}
	}
	slices.Sort(took)
	row := table.Row{
		table.Is("clients", l.clients), table.Is("value_bytes", l.valueBytes),
		table.Measure("ops_per_s", table.Median(rates)),
		table.Measure("p50_ms", table.Ms(table.Quantile(took, 0.5))),
		table.Measure("p99_ms", table.Ms(table.Quantile(took, 0.99))), table.Measure("server_us_per_op", table.Median(cpu)),
	}
	if etcd != nil {
		row = append(row, table.Measure("ops_ratio_to_etcd", table.Median(ratios)))
	}
	return row
}
