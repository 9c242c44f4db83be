package byzantine

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/foresay/foresay"
	"github.com/foresay/foresay/bench"
	"github.com/foresay/foresay/bench/figure"
	"github.com/foresay/foresay/bench/table"
	"github.com/foresay/foresay/bft"
	"github.com/foresay/foresay/bft/client"
	"github.com/foresay/foresay/bft/counter"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr/kv"
)

func faultyExperiment() bench.Experiment {
	draw := func(service string) figure.Spec {
		return figure.Spec{
			Suffix: service, Title: "Wrong first replies, 2,000 updates of the " + service + " near the primary",
			Y: "ratio_to_right", YLabel: "times what it takes with right ones", Across: []string{"delay_ms"},
			Series: []string{"wrong"}, Where: table.Is("service", service), Ratio: true, Marks: paperFaults(service),
		}
	}
	return bench.Experiment{
		Name: "bft-faulty",
		Summary: "2,000 dependent updates while one first reply in a hundred is wrong, at the client or by the primary, " +
			"or all are (PBFT-CS figure 9)",
		Modes: []bench.Mode{bench.Virtual}, Bubbles: true,
		Measure: bench.Points(faultyPoints),
		Figures: []figure.Spec{draw("counter"), draw("kv")},
	}
}

// What is wrong. At the client nobody notices whose fault it is, as in the paper, whose relay at
// the client made the replies wrong; so its threshold keeps out of it.
const (
	right       = "none"
	atClient    = "1 % at the client"
	byPrimary   = "1 % by the primary"
	allOfIt     = "all by the primary"
	inAHundred  = 100
	paperFaulty = atClient
)

// paperFaults are what the paper lost in a build on its file service [PBFT-CS §6.9].
func paperFaults(service string) (marks []figure.Mark) {
	if service != "kv" {
		return nil
	}
	for _, p := range []struct {
		delay string
		lost  float64
	}{{"0", 0.03}, {"2.5", 0.09}, {"15", 0.29}} {
		marks = append(marks, figure.Mark{Line: paperFaulty, Category: "delay_ms: " + p.delay, Y: 1 + p.lost})
	}
	return marks
}

// relay is a client node some of whose first replies are wrong when the client gets them, and which
// counts what became of them.
type relay struct {
	protocol.Node[bft.Message]
	random *rand.Rand // nil: none is
	firsts map[bft.CallID]bft.Digest
	told   *guesses
}

// guesses are what a client was told: first replies, how many of them were not what was confirmed
// later, and how many calls were not executed as an earlier one had another result.
type guesses struct{ first, wrong, with int }

// Start is part of protocol.Node, as are Receive and Expire.
func (r *relay) Start(env *protocol.Env[bft.Message], log []protocol.Record[bft.Message]) {
	r.Node.Start(env, log)
	r.pass(env)
}

func (r *relay) Receive(env *protocol.Env[bft.Message], from protocol.ID, msg bft.Message) {
	r.Node.Receive(env, from, msg)
	r.pass(env)
}

func (r *relay) Expire(env *protocol.Env[bft.Message], timer protocol.Timer) {
	r.Node.Expire(env, timer)
	r.pass(env)
}

func (r *relay) pass(env *protocol.Env[bft.Message]) {
	for i, e := range env.Out {
		switch m := e.Msg.(type) {
		case bft.First:
			r.told.first++
			if r.random != nil && len(m.Result.Value) > 0 && r.random.IntN(inAHundred) == 0 {
				m.Result.Value = slices.Clone(m.Result.Value)
				m.Result.Value[len(m.Result.Value)/2] ^= 1 // which is a result all the same
				env.Out[i].Msg = m
			}
			r.firsts[m.ID] = m.Result.Digest()
		case bft.Done:
			if d, ok := r.firsts[m.ID]; ok && d != m.Result.Digest() {
				r.told.wrong++
			}
			if m.Result.Outcome != bft.Executed {
				r.told.with++
			}
			delete(r.firsts, m.ID)
		}
	}
}

// relayed returns the system's protocol with a relay at each client.
func relayed(p bft.Protocol, random *rand.Rand, told *guesses) bft.Protocol {
	build := p.NewClient
	p.NewClient = func(c bft.ClientConfig) (protocol.Node[bft.Message], error) {
		n, err := build(c)
		return &relay{Node: n, random: random, firsts: map[bft.CallID]bft.Digest{}, told: told}, err
	}
	return p
}

// faultyServices are what the updates are of, with the programs that make them.
func faultyServices() []faultyService {
	return []faultyService{{"counter", counter.Service{}, System.count}, {"kv", kv.Service{}, System.store}}
}

type faultyService struct {
	name    string
	service bft.Service
	program func(System, context.Context, *client.Client, int) error
}

func faultyPoints(o bench.Options) []bench.Point {
	var points []bench.Point
	for _, s := range faultyServices() {
		for _, d := range delays(o) {
			points = append(points, bench.Point{Doing: fmt.Sprintf("%s delay=%v", s.name, d),
				Run: func(ctx context.Context) ([]table.Row, error) { return s.rows(ctx, o, place{PrimaryLocal, d}) }})
		}
	}
	return points
}

// rows measures the systems with right replies, then client speculation with wrong ones.
func (f faultyService) rows(ctx context.Context, o bench.Options, p place) (rows []table.Row, err error) {
	n := bench.Pick(o, 400, updates)
	_, confirmed, err := p.modelled(System{cs, window})
	if err != nil {
		return nil, err
	}
	var base time.Duration
	measure := func(s System, wrong string) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		var told guesses
		r := run{system: s, place: p, service: f.service, seed: o.Seed + 1}
		var random *rand.Rand
		switch traitor := s.protocol().Traitor; wrong {
		case atClient:
			random = bench.Random(o.Seed, 0xfa)
		case byPrimary:
			r.wrap = betrayed(traitor("lie-seldom"))
		case allOfIt:
			r.wrap = betrayed(traitor("lie-early"))
		}
		r.protocol = relayed(s.protocol(), random, &told)
		took, err := r.play(o, func(ctx context.Context, c *client.Client) error { return f.program(s, ctx, c, n) })
		if err != nil {
			return fmt.Errorf("%v, wrong first replies %s: %w", s, wrong, err)
		}
		row := slices.Concat(s.cells(p.Topology, p.delay, "none", false), table.Row{table.Is("service", f.name),
			table.Is("label", s.String()), table.Is("wrong", wrong), table.Is("threshold", threshold(wrong)),
			table.Is("updates", n),
			table.Measure("total_s", took.Seconds())})
		switch {
		case s.Name != cs:
		case wrong == right:
			base = took
		default:
			row = append(row, table.Measure("ratio_to_right", float64(took)/float64(base)))
			if wrong == atClient && told.wrong > 0 {
				each := (took - base) / time.Duration(told.wrong)
				row = append(row, table.Measure("each_ms", table.Ms(each)),
					table.Measure("each_confirmations", float64(each)/float64(confirmed)))
			}
		}
		rows = append(rows, append(row, table.Is("first_replies", told.first), table.Is("failed_directly", told.wrong),
			table.Is("failed_with_them", told.with)))
		return nil
	}
	for _, s := range []System{{plain, 1}, {zero, window}, {cs, window}} {
		if err := measure(s, right); err != nil {
			return nil, err
		}
	}
	for _, wrong := range []string{atClient, byPrimary, allOfIt} {
		if err := measure(System{cs, window}, wrong); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

// threshold tells whether the client's node stops showing first replies of a primary if too many
// are wrong. It does not know of those that are made wrong behind it.
func threshold(wrong string) string {
	if wrong == atClient {
		return "off"
	}
	return "on"
}

// window is how many updates the paper's clients have under way at most [PBFT-CS §5.2].
const window = 100

// betrayed makes the first primary a traitor.
func betrayed(t bft.Traitor) func(protocol.Node[bft.Message], bft.ReplicaConfig) protocol.Node[bft.Message] {
	return func(n protocol.Node[bft.Message], c bft.ReplicaConfig) protocol.Node[bft.Message] {
		if c.ID != 1 {
			return n
		}
		return t(n, c)
	}
}

// stored is where a program is that increments a number under a key.
type stored struct {
	step  int
	value int64
}

// store increments a number under a key n/2 times: it reads it and writes the next one, which are
// two updates of the order. What a write comes to it predicts itself; what it reads nobody can but
// those who have it.
func (s System) store(ctx context.Context, c *client.Client, n int) error {
	key, predicted := []byte("n"), foretold(n/2)
	step := func(ctx context.Context, at stored) (stored, bool, error) {
		b, err := c.Execute(ctx, kv.Get(key))
		if err != nil {
			return at, false, err
		}
		r, err := kv.DecodeResult(b)
		if err != nil {
			return at, false, err
		}
		if at.value, err = strconv.ParseInt(string(r.Value), 10, 64); err != nil && r.Status == kv.OK {
			return at, false, fmt.Errorf("the key has %q", r.Value)
		}
		_, err = c.Execute(foresay.Predicting(ctx, predicted[at.step]), kv.Put(key, fmt.Appendf(nil, "%016d", at.value+1)))
		at.step++
		return at, at.step == n/2, err
	}
	var at stored
	var err error
	if s.speculates() {
		at, err = foresay.Loop(ctx, at, step, s.limits())
	} else {
		for done := false; err == nil && !done; {
			at, done, err = step(ctx, at)
		}
	}
	if err == nil && at.value != int64(n/2)-1 {
		err = fmt.Errorf("after %d increments the last one found %d", n/2, at.value)
	}
	return err
}

// foretold returns what n writes to an empty store come to, if nobody else writes: each makes the
// next version.
func foretold(n int) [][]byte {
	var out [][]byte
	store := kv.New()
	for range n {
		out = append(out, store.Apply(kv.Put([]byte("n"), fmt.Appendf(nil, "%016d", 0))))
	}
	return out
}
