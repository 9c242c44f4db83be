package fstest

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/foresay/foresay/keyspace"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/specfs"
	"github.com/foresay/foresay/specfs/server"
	"github.com/foresay/foresay/specfs/view"
	"github.com/foresay/foresay/wan"
)

// Config is what a World is made from.
type Config struct {
	Seed    uint64
	Systems []view.System // of the clients, one each
	Ops     int           // how many operations each client makes
	Faults  sim.Faults
	Lease   time.Duration // 0 is 4 s
	// Server has what is not as tests need it. It is asked whenever the server starts.
	Server func(*server.Config)
	View   func(*view.Config) // likewise
	// Crashes has clients crash, and come back as new processes.
	Crashes bool
	// Wide has programs make more kinds of operations, on large files and many directories.
	Wide   bool
	Trace  io.Writer
	Replay string
}

// World is a server and clients. Each runs a program; if programs do not run ahead it runs two at
// once.
type World struct {
	config   Config
	sim      *sim.Sim[specfs.Message]
	programs []*program
	clients  []protocol.ID
	starts   map[protocol.ID]uint64 // how often a client has started
	// seen are the server's states by their serial numbers, nil where it had several in one step.
	seen     []*keyspace.Memory
	unjudged bool // as it is not known what a process did before it crashed
	judge    *judge
	serial   specfs.Version                             // the highest that the server has reached
	known    specfs.Version                             // the highest that a program was told of
	script   func(from protocol.ID, msg specfs.Message) // is told in place of programs, if it is set
}

// serverID is the node of the server; clients have those above it.
const serverID protocol.ID = 1

// New returns a world in which nothing has happened yet.
func New(c Config) (*World, error) {
	if c.Lease == 0 {
		c.Lease = 4 * time.Second
	}
	w := &World{config: c, judge: newJudge(), starts: map[protocol.ID]uint64{}}
	s, err := sim.New(sim.Config[specfs.Message]{
		Seed: c.Seed, WAN: wan.Uniform(30*time.Millisecond, "server", "client"),
		Disk:  sim.Disk{Latency: time.Millisecond, Jitter: 2 * time.Millisecond},
		Codec: specfs.Codec(), App: w.told, Check: w.check, Trace: c.Trace, Replay: c.Replay, Shuffle: true,
	})
	if err != nil {
		return nil, err
	}
	w.sim = s
	anybody := func(protocol.ID) (server.Principal, bool) { return server.Principal{Trusted: true}, true }
	err = s.Add(sim.Node[specfs.Message]{ID: serverID, Site: "server", New: func() protocol.Node[specfs.Message] {
		config := server.Config{Principal: anybody, Lease: c.Lease, Root: 0o777}
		if c.Server != nil {
			c.Server(&config)
		}
		return must(server.New(config))
	}})
	if err != nil {
		return nil, err
	}
	for i, system := range c.Systems {
		id := serverID + 1 + protocol.ID(i)
		w.clients = append(w.clients, id)
		threads := 2
		if system.Behind {
			threads = 1
		}
		for range threads {
			n := uint64(len(w.programs))
			w.programs = append(w.programs, &program{
				world: w, id: id, system: system, tag: n << 32,
				state: state{rnd: *rand.NewPCG(c.Seed, n), left: c.Ops / threads, wide: c.Wide},
			})
		}
		if err := s.Add(sim.Node[specfs.Message]{ID: id, Site: "client", New: func() protocol.Node[specfs.Message] {
			config := view.Config{
				Server: serverID, System: system, Token: c.Seed<<8 + uint64(i) + w.starts[id]<<40, Retry: time.Second, MaxOpen: 8,
			}
			w.starts[id]++
			if c.View != nil {
				c.View(&config)
			}
			return must(view.New(config))
		}}); err != nil {
			return nil, err
		}
	}
	return w, nil
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// Run plays all programs to their ends, faults or not, and judges them.
func (w *World) Run() error {
	if w.config.Faults != sim.NoFaults {
		profile := sim.Profile{
			Faults: w.config.Faults, Nodes: []protocol.ID{serverID}, MaxDown: 1,
			Every: 3 * time.Second, Lasting: 2 * time.Second,
		}
		if err := w.sim.Inject(profile); err != nil {
			return err
		}
		// Clients crash by crashClients, which tells their programs. Their clocks go on while they stand
		// still, as leases need it, and do not jump.
		if profile.Faults.Has(sim.Pause) {
			for i, id := range w.clients {
				at := time.Duration(w.config.Seed%7+3*uint64(i)+1) * time.Second
				w.sim.At(at, func() { w.sim.Pause(id, 2*w.config.Lease, false) })
			}
		}
		profile.Nodes, profile.Seed = w.clients, w.config.Seed+1
		profile.Faults &^= sim.Crash | sim.Power | sim.SlowDisk | sim.Jump | sim.Pause
		if err := w.sim.Inject(profile); err != nil {
			return err
		}
		w.sim.After(20*time.Second, w.sim.Heal)
	}
	if w.config.Crashes {
		w.crashClients()
	}
	for _, p := range w.programs {
		p.start()
	}
	done := func() bool {
		for _, p := range w.programs {
			if !p.done() {
				return false
			}
		}
		return true
	}
	if err := w.sim.RunUntil(10*time.Minute, done); err != nil {
		for _, p := range w.programs {
			if !p.done() {
				err = fmt.Errorf("%w\nclient %d has %d operations to go, waits for %+v, and has %d that are not settled: %v",
					err, p.id, p.state.left, p.pending, len(p.items), w.sim.Get(p.id))
			}
		}
		return err
	}
	if err := w.judge.verdict(w); !errors.Is(err, errUntold) {
		return err
	}
	w.unjudged = true
	return nil
}

// crashClients has each client crash now and then.
func (w *World) crashClients() {
	rnd := rand.New(rand.NewPCG(w.config.Seed, 1<<32))
	for _, id := range w.clients {
		at := time.Duration(0)
		for range 1 + rnd.IntN(3) {
			at += time.Duration(rnd.IntN(4000)) * time.Millisecond
			w.sim.At(at, func() {
				w.sim.Crash(id, sim.KeepAll)
				for _, p := range w.programs {
					if p.id == id {
						p.crash()
					}
				}
			})
			at += time.Duration(rnd.IntN(1000)) * time.Millisecond
			w.sim.At(at, func() {
				w.sim.Restart(id)
				for _, p := range w.programs {
					if p.id == id {
						p.next(0)
					}
				}
			})
			at += time.Millisecond
		}
	}
}

// settle takes a transaction that a program was told of.
func (w *World) settle(r record) {
	w.judge.add(r)
	w.known = max(w.known, r.serial)
	w.serial = max(w.serial, r.serial) // it may have crashed within the call
}

// reached returns the highest transaction that the server may have made, and told of. What it did
// in the call in which it crashed is seen only when it is up again.
func (w *World) reached() specfs.Version {
	const inOneCall = 8
	if w.sim.Get(serverID) == nil {
		return w.serial + inOneCall
	}
	return w.serial
}

// check follows the server.
func (w *World) check() error {
	s, ok := w.sim.Get(serverID).(*server.Server)
	if !ok || s.Serial() == 0 {
		return nil
	}
	w.serial = max(w.serial, s.Serial())
	if n := int(s.Serial()) + 1; n != len(w.seen) {
		_, keys, err := w.sim.Disk(serverID)
		if err != nil {
			return err
		}
		m := &keyspace.Memory{}
		for k, v := range keys.Scan([]byte("t"), []byte("u")) {
			m.Put(k[1:], v)
		}
		w.seen = append(w.seen[:min(n-1, len(w.seen))], make([]*keyspace.Memory, max(0, n-1-len(w.seen)))...)
		w.seen = append(w.seen, m)
	}
	return nil
}

// told hands what a view says to its program.
func (w *World) told(from protocol.ID, msg specfs.Message) {
	if w.script != nil {
		w.script(from, msg)
		return
	}
	of := func(p *program) bool { return p.id == from }
	switch msg := msg.(type) {
	case view.Done:
		w.programs[msg.Tag>>32].onDone(msg)
	case view.Settled:
		w.programs[slices.IndexFunc(w.programs, of)].onSettled(msg)
	case view.Refused:
		w.programs[slices.IndexFunc(w.programs, of)].onRefused(msg)
	default:
		panic(fmt.Sprintf("fstest: a view says %T", msg))
	}
}
