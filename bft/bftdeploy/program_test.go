package bftdeploy_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/foresay/foresay/bft"
	"github.com/foresay/foresay/bft/bftdeploy"
	"github.com/foresay/foresay/bft/client"
	"github.com/foresay/foresay/bft/pbft"
	"github.com/foresay/foresay/bft/sessions"
	"github.com/foresay/foresay/bft/zyzzyva"
	"github.com/foresay/foresay/history"
	"github.com/foresay/foresay/internal/randtest"
	"github.com/foresay/foresay/internal/seed"
	"github.com/foresay/foresay/keyspace"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/sim"
	smrclient "github.com/foresay/foresay/smr/client"
	"github.com/foresay/foresay/wan"
)

// sums is a service: it adds to named numbers, and keeps what was added to each, in order.
type sums struct{}

// addition is a command, or a query if n is 0.
type addition struct {
	key  string
	n    int
	name string // tells it from others
}

func (a addition) bytes() []byte { return fmt.Appendf(nil, "%s %d %s", a.key, a.n, a.name) }

func additionOf(b []byte) (a addition) {
	_, _ = fmt.Sscanf(string(b), "%s %d %s", &a.key, &a.n, &a.name) // no name is right
	return a
}

func (sums) Apply(space keyspace.Space, _ time.Duration, command []byte) []byte {
	a := additionOf(command)
	list, _ := space.Get([]byte(a.key))
	list = bytes.Clone(list)
	if a.n != 0 {
		list = fmt.Appendf(list, "+%d ", a.n)
		space.Put([]byte(a.key), list)
	}
	return strconv.AppendInt(nil, int64(sumOf(list)), 10)
}

func (sums) Read(keys keyspace.Reader, query []byte) []byte {
	list, _ := keys.Get([]byte(additionOf(query).key))
	return strconv.AppendInt(nil, int64(sumOf(list)), 10)
}

func sumOf(list []byte) (sum int) {
	for _, n := range strings.Fields(string(list)) {
		v, _ := strconv.Atoi(n)
		sum += v
	}
	return sum
}

// adder is a session with a group that has sums.
type adder struct {
	client.Typed[addition, addition, int]
}

func newAdder(c *client.Client) adder {
	encode := func(a addition) ([]byte, error) { return a.bytes(), nil }
	return adder{client.Typed[addition, addition, int]{Client: c,
		Guess: func(sum int) ([]byte, error) { return strconv.AppendInt(nil, int64(sum), 10), nil },
		Coding: smrclient.Coding[addition, addition, int]{Command: encode, Query: encode,
			Result: func(b []byte) (int, error) { return strconv.Atoi(string(b)) }}}}
}

// Add is part of randtest.Adder. What adds nothing is a query.
func (a adder) Add(ctx context.Context, key string, n int, name string) (int, error) {
	if n == 0 {
		return a.Read(ctx, addition{key: key, name: name})
	}
	return a.Execute(ctx, addition{key, n, name})
}

// group is a simulated group with sums, some of whose replicas may be traitors.
type group struct {
	*bftdeploy.Group
	traitors map[protocol.ID]string // with their strategies

	mu     sync.Mutex
	calls  map[protocol.ID]map[bft.CallID]addition
	told   map[string]map[int]string // by key: what was confirmed, by what it came to
	guess  map[bft.CallID]bft.Result // of the first client
	counts counts
	failed error
}

// counts are what happened in a group.
type counts struct{ confirmed, optimised, wrong, refused, withdrawn int }

func (c *counts) add(o counts) {
	c.confirmed += o.confirmed
	c.optimised += o.optimised
	c.wrong += o.wrong
	c.refused += o.refused
	c.withdrawn += o.withdrawn
}

const tripTime = 20 * time.Millisecond

func newGroup(
	ctx context.Context, p bft.Protocol, seed uint64, clients int, traitors map[protocol.ID]string,
) (*group, error) {
	g := &group{traitors: traitors, calls: map[protocol.ID]map[bft.CallID]addition{}, told: map[string]map[int]string{},
		guess: map[bft.CallID]bft.Result{}}
	sites := []wan.Site{"a", "b", "c", "d"}
	rng := rand.New(rand.NewPCG(seed, 0xbf7))
	var at []wan.Site
	for range clients {
		at = append(at, sites[rng.IntN(len(sites))])
	}
	cfg := bftdeploy.Config{Protocol: p, Service: sums{}, Replicas: sites, Clients: at, Hear: g.hear,
		Sim: sim.Config[bft.Message]{Seed: seed, WAN: wan.Uniform(tripTime, sites...), CodecChance: 0.1, CheckEvery: 16},
		Wrap: func(n protocol.Node[bft.Message], cfg bft.ReplicaConfig) protocol.Node[bft.Message] {
			if s, ok := traitors[cfg.ID]; ok {
				return p.Traitor(s)(n, cfg)
			}
			return n
		},
		Client: func(id protocol.ID, cfg *client.Config) {
			g.calls[id] = map[bft.CallID]addition{}
			deliver := cfg.Deliver
			cfg.Deliver = func(ctx context.Context, msg bft.Message) error {
				if call, ok := msg.(bft.Call); ok {
					g.mu.Lock()
					g.calls[id][call.ID] = additionOf(call.Command)
					g.mu.Unlock()
				}
				return deliver(ctx, msg)
			}
		}}
	var err error
	if g.Group, err = bftdeploy.New(cfg); err != nil {
		return nil, err
	}
	go func() {
		if err := g.Run(ctx); err != nil {
			g.mu.Lock()
			defer g.mu.Unlock()
			g.failed = err
		}
	}()
	return g, nil
}

// hear notes what clients are told.
func (g *group) hear(id protocol.ID, msg bft.Message) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch m := msg.(type) {
	case bft.First:
		g.guess[m.ID] = m.Result
	case bft.Withdrawn:
		g.counts.withdrawn++
	case bft.Done:
		g.done(id, m)
	}
}

func (g *group) done(id protocol.ID, m bft.Done) {
	a := g.calls[id][m.ID]
	first, guessed := g.guess[m.ID]
	delete(g.guess, m.ID)
	switch {
	case m.Result.Outcome != bft.Executed:
		g.counts.refused++
		return
	case guessed && first.Digest() != m.Result.Digest():
		g.counts.wrong++
	case !guessed && a.n == 0:
		g.counts.optimised++
	}
	g.counts.confirmed++
	if a.n == 0 {
		return
	}
	if g.told[a.key] == nil {
		g.told[a.key] = map[int]string{}
	}
	sum, err := strconv.Atoi(string(m.Result.Value))
	if was, twice := g.told[a.key][sum]; twice || err != nil {
		g.failed = cmp.Or(g.failed, fmt.Errorf("%s comes to %s by %+v, and did by %s", a.key, m.Result.Value, a, was))
	}
	g.told[a.key][sum] = fmt.Sprintf("+%d", a.n)
}

// known returns what was confirmed, in order.
func (g *group) known(out map[string][]string, prefix string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for key, by := range g.told {
		for _, sum := range slices.Sorted(maps.Keys(by)) {
			out[prefix+key] = append(out[prefix+key], by[sum])
		}
	}
}

// state returns what an honest replica has committed, by key: of the service, or all of it.
func (g *group) state(id protocol.ID, all bool) (map[string][]string, error) {
	out := map[string][]string{}
	var failed error
	err := g.Do(func(s *sim.Sim[bft.Message]) {
		_, disk, err := s.Disk(id)
		o, ok := s.Get(id).(bft.Observed)
		if err != nil || !ok {
			failed = fmt.Errorf("replica %d: %w", id, cmp.Or(err, errors.New("it is down")))
			return
		}
		state := o.State(disk)
		if !all {
			state = sessions.ServiceView(state)
		}
		for k, v := range state.Scan(nil, nil) {
			out[string(k)] = strings.Fields(string(v))
		}
	})
	return out, cmp.Or(err, failed)
}

// check returns what is wrong with the group: with f traitors the others are equal.
func (g *group) check() error {
	g.mu.Lock()
	failed := g.failed
	g.mu.Unlock()
	if failed != nil {
		return failed
	}
	var first map[string][]string
	for _, m := range g.Directory.Members {
		if _, traitor := g.traitors[m.ID]; traitor {
			continue
		}
		got, err := g.state(m.ID, true)
		switch {
		case err != nil:
			return err
		case first == nil:
			first = got
		case !maps.EqualFunc(first, got, slices.Equal):
			return fmt.Errorf("replica %d has %v, another one %v", m.ID, got, first)
		}
	}
	return nil
}

// committed adds what an honest replica has, under the prefix of a
// service.
func (g *group) committed(out map[string][]string, prefix string) {
	for _, m := range g.Directory.Members {
		if _, traitor := g.traitors[m.ID]; traitor {
			continue
		}
		got, _ := g.state(m.ID, false) // check tells of what is wrong with it
		for key, list := range got {
			if key != "other" {
				out[prefix+key] = list
			}
		}
		return
	}
}

// onlooker is a client of a group without tasks: its calls, and what it reads of the programs', are
// linearizable with theirs.
type onlooker struct {
	ops   history.Recorder[seen, int]
	from  time.Time
	ended time.Duration       // when the program did
	known map[string][]string // what was confirmed by then
}

// seen is what an onlooker sees: an addition of its own, or of the program's, which comes when the
// sum is what it was.
type seen struct {
	key     string
	n       int
	program bool
	sum     int
}

func (o *onlooker) run(ctx context.Context, c *client.Client, rng *rand.Rand) {
	a := newAdder(c)
	for i := 0; ctx.Err() == nil; i++ {
		what := seen{key: []string{"other", "a0", "b0", "c0"}[rng.IntN(4)]}
		if what.key == "other" {
			what.n = rng.IntN(3)
		}
		call := o.ops.Invoke(1, time.Since(o.from), what)
		if got, err := a.Add(ctx, what.key, what.n, fmt.Sprint(i)); err == nil {
			call.Return(time.Since(o.from), got)
		}
	}
}

// judge returns what is wrong, given what took effect of the programs at some time.
func (o *onlooker) judge(done map[string][]string) error {
	for key, list := range done {
		sum := 0
		for i, what := range list {
			n, _ := strconv.Atoi(what)
			call := o.ops.Invoke(history.Client(100+i), 0, seen{strings.TrimPrefix(key, "0 "), n, true, sum})
			sum += n
			if i < len(o.known[key]) {
				call.Return(o.ended, sum)
			}
		}
	}
	ops, err := o.ops.Ops()
	if err != nil {
		return err
	}
	lin, err := history.CheckLinearizable(ops, history.Model[int, seen, int]{
		Init:      func() int { return 0 },
		Partition: func(a seen) string { return a.key },
		Step: func(sum int, a seen, told *int) (int, bool) {
			return sum + a.n, (told == nil || *told == sum+a.n) && (!a.program || a.sum == sum)
		},
		ReadOnly: func(a seen) bool { return a.n == 0 },
	}, 0)
	if err == nil && lin.Verdict != history.OK {
		err = fmt.Errorf("linearizability: %v: %s", lin.Verdict, lin.Explanation)
	}
	return err
}

// play runs the program of a seed against groups, some of which have a traitor, and returns what is
// wrong.
func play(t *testing.T, seed uint64, sum *counts) error {
	return randtest.PlaySession(t, seed, func(ctx context.Context, w randtest.Wish) (*randtest.Backend, error) {
		b := &randtest.Backend{Wait: 20 * time.Second,
			Unknown: func(err error) bool { return errors.As(err, new(*client.UnknownError)) }}
		var groups []*group
		p, lie := pbft.Protocol(), "lie-early"
		if seed%5 == 4 { // without first replies
			p, lie = zyzzyva.Protocol(), "lie-speculated"
		}
		for i := range w.Sessions {
			if i > 0 && w.Shared {
				b.Sessions = append(b.Sessions, newAdder(groups[0].Clients[1]))
				break
			}
			traitors := map[protocol.ID]string{}
			switch {
			case w.Lies && seed%4 < 2:
				traitors[1] = lie
			case w.Lies:
				traitors[1+protocol.ID(seed%2)] = p.Strategies[int(seed/4)%len(p.Strategies)]
			}
			g, err := newGroup(ctx, p, seed, 3, traitors)
			if err != nil {
				return nil, err
			}
			groups = append(groups, g)
			b.Sessions = append(b.Sessions, newAdder(g.Clients[0]))
		}
		watch := &onlooker{from: time.Now()}
		watching, stop := context.WithTimeout(ctx, 2*time.Second)
		context.AfterFunc(ctx, stop)
		go watch.run(watching, groups[0].Clients[2], rand.New(rand.NewPCG(seed, 2)))
		b.Known = func() map[string][]string {
			out := map[string][]string{}
			for i, g := range groups {
				g.known(out, fmt.Sprint(i, " "))
			}
			maps.DeleteFunc(out, func(key string, _ []string) bool { return strings.HasSuffix(key, "other") })
			watch.ended, watch.known = time.Since(watch.from), out
			return out
		}
		b.Done = func() map[string][]string {
			out := map[string][]string{}
			for i, g := range groups {
				g.committed(out, fmt.Sprint(i, " "))
			}
			return out
		}
		b.Check = func() error {
			for _, g := range groups {
				if err := g.check(); err != nil {
					return err
				}
				sum.add(g.counts)
			}
			return watch.judge(b.Done())
		}
		return b, nil
	})
}

// TestPrograms: random programs on the engine, against simulated groups with traitors, have the
// result and the effects of their sequential execution, each once; a client beside them sees a
// linearizable history; and programs that are cancelled say so if there may be effects yet.
func TestPrograms(t *testing.T) {
	var sum counts
	first := seed.First(t, 1)
	n := seed.Count(t, 120)
	for s := first; s < first+uint64(n); s++ {
		if err := play(t, s, &sum); err != nil {
			t.Fatalf("%v\nreplay: FORESAY_SEED=%d FORESAY_SEEDS=1 go test -count=1 -run '^%s$' ./bft/bftdeploy", err, s,
				t.Name())
		}
	}
	t.Logf("%+v", sum)
	if n >= 100 && (sum.wrong < 20 || sum.refused < 20 || sum.optimised < 50) {
		t.Errorf("in %d programs there was too little: %+v", n, sum)
	}
}
