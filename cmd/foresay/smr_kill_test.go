package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/foresay/foresay/internal/catalog"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr/service"
)

// killsVariable says how often TestKills kills; without it the test is left out, as it takes a
// second for each.
const killsVariable = "FORESAY_KILLS"

const (
	killWriters  = 4
	killPatience = 30 * time.Second // with anything
	killPause    = 700 * time.Millisecond
)

// TestKills kills replicas, which are processes of their own, while clients write: any of them, and
// leaders as often as all others, each time with SIGKILL. What was acknowledged must be there at
// the end, and what is there must have been written.
func TestKills(t *testing.T) {
	kills, err := strconv.Atoi(os.Getenv(killsVariable))
	if err != nil || kills < 1 {
		t.Skipf("%s does not say how often to kill", killsVariable)
	}
	for _, p := range catalog.Protocols() {
		t.Run(p.Name, func(t *testing.T) { killOften(t, p.Name, kills) })
	}
}

func killOften(t *testing.T, protocolName string, kills int) {
	dir := t.TempDir()
	cfg, err := service.Init(service.InitOptions{Dir: dir, Protocol: protocolName, Replicas: 3, Cluster: "kills",
		Host: "127.0.0.1", RoundTrip: "50ms"})
	if err != nil {
		t.Fatal(err)
	}
	w := &killWorld{t: t, dir: dir, running: map[protocol.ID]*replica{}, killed: map[string]killed{}}
	for _, m := range cfg.Members {
		w.start(m.ID)
	}
	defer func() {
		for _, r := range w.running {
			_ = r.end(syscall.SIGKILL) // that it was killed is its error
		}
	}()
	err = service.WithClient(t.Context(), cfg, service.ClientOptions{},
		func(ctx context.Context, c *service.Client) error {
			w.waitEqual(ctx, c)
			stop := make(chan struct{})
			writers := make([]*killWriter, killWriters)
			var wg sync.WaitGroup
			for i := range writers {
				writers[i] = &killWriter{key: fmt.Sprint("writer-", i), progress: &w.progress}
				wg.Go(func() {
					err := service.WithClient(ctx, cfg, service.ClientOptions{}, func(ctx context.Context, c *service.Client) error {
						return writers[i].run(ctx, c, stop)
					})
					if err != nil {
						t.Error(err)
					}
				})
			}
			random := rand.New(rand.NewPCG(1, uint64(len(protocolName))))
			for range kills {
				w.kill(ctx, c, random)
			}
			close(stop)
			wg.Wait()
			w.waitEqual(ctx, c)
			for _, k := range writers {
				k.check(ctx, t, c)
				w.unknown += k.unknown
			}
			return nil
		})
	if err != nil {
		t.Error(err)
	}
	t.Logf("%s: %d writes acknowledged, %d of unknown outcome", protocolName, w.progress.acked.Load(), w.unknown)
	for _, role := range slices.Sorted(maps.Keys(w.killed)) {
		k := w.killed[role]
		t.Logf("%s: %s killed %d times; longest time without an answer %v", protocolName, role, k.times,
			k.gap.Round(time.Millisecond))
	}
}

type killWorld struct {
	t        *testing.T
	dir      string
	running  map[protocol.ID]*replica
	killed   map[string]killed // by what they were
	unknown  int               // writes
	progress killProgress
}

// killed is what came of the deaths of replicas.
type killed struct {
	times int
	gap   time.Duration // the longest in which nobody was answered
}

// killProgress is what all writers have done.
type killProgress struct {
	acked atomic.Int64
	last  atomic.Int64 // when one was acknowledged, in ns since the epoch
	gap   atomic.Int64
}

func (p *killProgress) note(now time.Time) {
	p.acked.Add(1)
	before := p.last.Swap(now.UnixNano())
	if gap := now.UnixNano() - before; before != 0 && gap > p.gap.Load() {
		p.gap.Store(gap)
	}
}

func (w *killWorld) start(id protocol.ID) {
	r, err := start(w.dir, filepath.Join(w.dir, service.ConfigFile(id)))
	if err != nil {
		w.t.Fatal(err)
	}
	w.running[id] = r
}

// kill kills the leader or anybody, and starts it again when the others have gone on.
func (w *killWorld) kill(ctx context.Context, c *service.Client, random *rand.Rand) {
	victim := protocol.ID(random.IntN(3) + 1)
	statuses := w.status(ctx, c)
	if random.IntN(4) == 0 {
		victim = max(statuses[0].Leader, 1)
	}
	role := statuses[victim-1].Role
	w.progress.gap.Store(0)
	defer func() {
		gap := time.Duration(w.progress.gap.Load())
		w.killed[role] = killed{w.killed[role].times + 1, max(w.killed[role].gap, gap)}
	}()
	if err := w.running[victim].end(syscall.SIGKILL); err == nil {
		w.t.Fatalf("replica %d ended well before it was killed", victim)
	}
	before, deadline := w.progress.acked.Load(), time.After(killPatience)
	tick := time.NewTicker(killPause)
	defer tick.Stop()
	for again := true; again; {
		select {
		case <-tick.C:
			again = w.progress.acked.Load() < before+killWriters
		case <-deadline:
			w.t.Fatalf("nothing was acknowledged for %v after replica %d was killed", killPatience, victim)
		}
	}
	w.start(victim)
	w.waitEqual(ctx, c)
}

func (w *killWorld) status(ctx context.Context, c *service.Client) []service.Status {
	ctx, cancel := context.WithTimeout(ctx, killPatience)
	defer cancel()
	s, err := c.Status(ctx)
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

// waitEqual waits until all replicas answer, are ready, and know the same leader if there is to be
// one.
func (w *killWorld) waitEqual(ctx context.Context, c *service.Client) {
	deadline := time.Now().Add(killPatience)
	for tick := time.NewTicker(50 * time.Millisecond); ; <-tick.C {
		statuses := w.status(ctx, c)
		up := 0
		for _, s := range statuses {
			if s.Role != service.Unreachable && s.Ready && s.Leader == statuses[0].Leader {
				up++
			}
		}
		if up == 3 {
			return
		}
		if time.Now().After(deadline) {
			b, err := json.Marshal(statuses)
			w.t.Fatalf("not all replicas came up within %v: %s, %v", killPatience, b, err)
		}
	}
}

// killWriter writes the numbers from 1 on to a key of its own, each onto the version that the one
// before left: if an acknowledged write were lost, the next one would find another version.
type killWriter struct {
	key      string
	progress *killProgress
	tried    int    // the last number that was written, or may have been
	acked    int    // the last one that was acknowledged
	version  uint64 // of the key, as far as is known
	doubt    bool   // a write after the last acknowledged one may have been made
	unknown  int    // writes of which nobody knew what became of them
}

func (k *killWriter) run(ctx context.Context, c *service.Client, stop <-chan struct{}) error {
	for {
		select {
		case <-stop:
			return nil
		default:
		}
		if err := k.write(ctx, c); err != nil {
			return err
		}
	}
}

func (k *killWriter) write(ctx context.Context, c *service.Client) error {
	ctx, cancel := context.WithTimeout(ctx, killPatience)
	defer cancel()
	k.tried++
	version, err := c.CompareAndSet(ctx, k.key, k.version, []byte(strconv.Itoa(k.tried)))
	conflict, _ := errors.AsType[*service.ConflictError](err)
	switch {
	case err == nil:
		k.version, k.acked, k.doubt = version, k.tried, false
		k.progress.note(time.Now())
	case conflict == nil:
		k.doubt = true
		k.unknown++
	case k.doubt:
		k.version = conflict.Version
		return k.checkValue(conflict.Value)
	default:
		return fmt.Errorf("%w, with %q: acknowledged was %d of version %d", conflict, conflict.Value, k.acked, k.version)
	}
	return nil
}

func (k *killWriter) checkValue(v []byte) error {
	if got, err := strconv.Atoi(string(v)); err != nil || got < k.acked || got > k.tried {
		return fmt.Errorf("%s is %q, want %d, which was acknowledged, up to %d, which was tried", k.key, v, k.acked, k.tried)
	}
	return nil
}

// check reads the key: a number that was acknowledged, or a later one that was tried.
func (k *killWriter) check(ctx context.Context, t *testing.T, c *service.Client) {
	ctx, cancel := context.WithTimeout(ctx, killPatience)
	defer cancel()
	item, _, err := c.Get(ctx, k.key)
	if err == nil {
		err = k.checkValue(item.Value)
	}
	if err != nil {
		t.Error(err)
	}
}
