package sim_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/foresay/foresay/internal/seed"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/wan"
)

// A letter is what couriers send: who wrote it when, and what is durable there.
type letter struct {
	Life, Number uint64 // of the sender's incarnation, and of the letter in it, to this peer
	Durable      uint64 // how many records the sender has
}

// letters is the codec of couriers.
type letters struct{}

func (letters) Append(buf []byte, l letter) ([]byte, error) {
	buf = append(buf, 1)
	buf = binary.AppendUvarint(buf, l.Life)
	buf = binary.AppendUvarint(buf, l.Number)
	return binary.AppendUvarint(buf, l.Durable), nil
}

func (letters) Decode(b []byte) (l letter, err error) {
	if len(b) == 0 || b[0] != 1 {
		return letter{}, errors.New("no letter of version 1")
	}
	b = b[1:]
	for _, x := range []*uint64{&l.Life, &l.Number, &l.Durable} {
		v, n := binary.Uvarint(b)
		if n <= 0 {
			return letter{}, errors.New("cut short")
		}
		*x, b = v, b[n:]
	}
	return l, nil
}

// A post is what couriers promise each other, over crashes: nobody forgets what it let others know.
type post struct {
	known    map[protocol.ID]uint64 // how many records of a node others have heard of
	disorder bool                   // links are datagrams
	careless bool                   // a planted bug: couriers do not wait for the disk
	unsorted bool                   // a planted bug: they go through a map
	broken   int
}

// A courier writes, sends letters at random, and checks what the simulator promises.
type courier struct {
	id      protocol.ID
	peers   []protocol.ID
	post    *post
	life    uint64
	records uint64
	sent    map[protocol.ID]uint64
	last    map[protocol.ID]letter
	gap     map[protocol.ID]bool
	err     error
}

type round struct{ n int }

func (c *courier) Start(env *protocol.Env[letter], log []protocol.Record[letter]) {
	c.sent, c.last, c.gap = map[protocol.ID]uint64{}, map[protocol.ID]letter{}, map[protocol.ID]bool{}
	c.life = env.Rand.Uint64() >> 1
	v, _ := env.Get([]byte("records"))
	if len(v) > 0 {
		c.records = binary.BigEndian.Uint64(v)
	}
	if n := uint64(len(log)); n > c.records || n > 0 && log[n-1].Index != c.records || env.NextIndex() != c.records+1 {
		c.err = fmt.Errorf("the keys know %d records, the log has %v, the next index is %d", c.records, log, env.NextIndex())
	}
	if c.records < c.post.known[c.id] {
		c.err = fmt.Errorf("it has %d records, and others know of %d", c.records, c.post.known[c.id])
	}
	env.After(time.Millisecond, round{1})
}

func (c *courier) Receive(env *protocol.Env[letter], from protocol.ID, l letter) {
	last, seen := c.last[from]
	c.last[from] = l
	c.post.known[from] = max(c.post.known[from], l.Durable)
	if c.post.disorder {
		return
	}
	next := last.Life == l.Life && last.Number+1 == l.Number
	if seen && !next && !c.gap[from] {
		c.err = fmt.Errorf("%+v from %d came after %+v and nobody said that there is a gap", l, from, last)
	}
	if seen && last.Life == l.Life && last.Number >= l.Number {
		c.err = fmt.Errorf("%+v from %d came after %+v", l, from, last)
	}
	c.gap[from] = false
}

func (c *courier) Broken(_ *protocol.Env[letter], from protocol.ID) {
	c.gap[from] = true
	c.post.broken++
}

func (c *courier) Expire(env *protocol.Env[letter], t protocol.Timer) {
	env.After(time.Duration(1+env.Rand.IntN(20))*time.Millisecond, round{1})
	if env.Rand.IntN(2) == 0 {
		env.Stop(round{2})
		env.After(10*time.Millisecond, round{3})
	}
	for range env.Rand.IntN(3) {
		c.records++
		env.Append(letter{Life: c.life, Number: c.records})
		if c.records%10 == 0 {
			env.Truncate(c.records - 5)
		}
	}
	env.Put([]byte("records"), binary.BigEndian.AppendUint64(nil, c.records))
	if c.post.unsorted {
		for id := range c.sent {
			c.write(env, id)
		}
	}
	for _, id := range c.peers {
		if env.Rand.IntN(3) > 0 {
			c.write(env, id)
		}
	}
}

func (c *courier) write(env *protocol.Env[letter], to protocol.ID) {
	c.sent[to]++
	send := env.Send
	if c.post.careless {
		send = env.SendAhead
	}
	send(to, letter{c.life, c.sent[to], c.records})
}

func (c *courier) Check() error { return c.err }

func (c *courier) String() string { return fmt.Sprintf("courier with %d records", c.records) }

// paceOf has the couriers of each third seed take their time, so that calls wait in line.
func paceOf(seed uint64) func(sim.Call[letter]) time.Duration {
	if seed%3 != 2 {
		return nil
	}
	return func(c sim.Call[letter]) time.Duration {
		switch c.Kind {
		case sim.CallReceive:
			return time.Duration(c.Msg.Number%8) * 500 * time.Microsecond
		case sim.CallStart:
			return 5 * time.Millisecond
		}
		return 100 * time.Microsecond
	}
}

// newCouriers returns four of them, with faults.
func newCouriers(t testing.TB, seed uint64, faults sim.Faults, p *post, trace io.Writer) *sim.Sim[letter] {
	t.Helper()
	m := wan.Uniform(20*time.Millisecond, "a", "b", "c", "d")
	s, err := sim.New(sim.Config[letter]{
		Seed: seed, WAN: m, Disk: sim.Disk{Latency: 2 * time.Millisecond, Jitter: time.Millisecond}, Codec: letters{},
		CodecChance: 0.7, Trace: trace, Shuffle: seed%2 == 1, Service: paceOf(seed),
		Replay: fmt.Sprintf("FORESAY_SEED=%d go test ./sim -run TestCouriers", seed),
	})
	if err != nil {
		t.Fatal(err)
	}
	p.known = map[protocol.ID]uint64{}
	ids := []protocol.ID{1, 2, 3, 4}
	for _, id := range ids {
		peers := slices.DeleteFunc(slices.Clone(ids), func(x protocol.ID) bool { return x == id })
		err := s.Add(sim.Node[letter]{ID: id, Site: m.Sites()[id-1], New: func() protocol.Node[letter] {
			return &courier{id: id, peers: peers, post: p}
		}})
		if err != nil {
			t.Fatal(err)
		}
	}
	p.disorder = faults&(sim.Duplicate|sim.Reorder) != 0
	err = s.Inject(sim.Profile{Faults: faults, Every: 100 * time.Millisecond, Lasting: 200 * time.Millisecond,
		LostDisk: func(id protocol.ID) { p.known[id] = 0 }})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestCouriers holds the simulator to its promises under all faults: order, or a word that it is
// broken, and durability. FORESAY_SEED is the first seed.
func TestCouriers(t *testing.T) {
	p := &post{}
	lost := uint64(0)
	first := seed.First(t, 0)
	// crashes within a call let its messages leave, and not those that had waited before
	seeds := []uint64{22028, 39043}
	for i := range uint64(seed.Count(t, 150)) {
		seeds = append(seeds, first+i)
	}
	for _, seed := range seeds {
		s := newCouriers(t, seed, sim.Swarm(seed, sim.AllFaults), p, nil)
		if err := s.Run(5 * time.Second); err != nil {
			t.Fatal(err)
		}
		s.Heal()
		lost += s.Stats().Lost
		steps := s.Steps()
		if err := s.RunUntil(time.Second, func() bool { return s.Steps() > steps+100 }); err != nil {
			t.Fatal(err)
		}
	}
	if p.broken < 100 || lost < 1000 {
		t.Errorf("only %d connections broke, %d messages were lost", p.broken, lost)
	}
}

// TestEachFaultStrikes looks for the trace of each kind of fault alone, and that the others are not
// there.
func TestEachFaultStrikes(t *testing.T) {
	words := []struct {
		fault sim.Faults
		trace string
	}{
		{sim.Crash, "crashes; of 1 writes that are not durable 0 are kept"}, {sim.Power, "crashes;"},
		{sim.LostDisk, "loses its disk"},
		{sim.Pause, "stands still for"}, {sim.Skew, "its clock is now off by"}, {sim.Jump, "its clock jumps by"},
		{sim.Partition, "is cut"}, {sim.OneWay, "is cut"}, {sim.Partial, "is cut"}, {sim.Reset, "is reset"},
		{sim.Slow, "BytesPerSecond:"},
		{sim.SlowDisk, "its disk takes"}, {sim.Jitter, "and a loss of 0.000"}, {sim.Loss, "a jitter of 0s more"},
		{sim.Duplicate, "0.000 up to"}, {sim.Reorder, "0.000 arrive twice"},
	}
	count := func(f sim.Faults) map[string]int {
		var b strings.Builder
		s := newCouriers(t, 1, f, &post{}, &b)
		if err := s.Run(4 * time.Second); err != nil {
			t.Fatal(err)
		}
		n := make(map[string]int)
		for _, w := range words {
			n[w.trace] = strings.Count(b.String(), w.trace)
		}
		return n
	}
	none := count(sim.NoFaults)
	for _, w := range words {
		if n := count(w.fault)[w.trace]; n == 0 || none[w.trace] != 0 {
			t.Errorf("%v: the trace says %q %d times, and %d times without it", w.fault, w.trace, n, none[w.trace])
		}
	}
}

// TestPlantedBugsAreCaught shows that faults do what they are for: a node that does not wait for
// the disk is caught.
func TestPlantedBugsAreCaught(t *testing.T) {
	for seed := range uint64(20) {
		s := newCouriers(t, seed, sim.Crash, &post{careless: true}, nil)
		err := s.Run(30 * time.Second)
		if err == nil {
			t.Errorf("seed %d: the bug was not found", seed)
			continue
		}
		var f *sim.Failure
		if !errors.As(err, &f) || f.Kind != "invariant" || f.Seed != seed || f.Node == 0 ||
			!strings.Contains(err.Error(), "others know of") {
			t.Errorf("seed %d: %v", seed, err)
		}
		if want := fmt.Sprintf("\nreplay: FORESAY_SEED=%d go test ./sim -run TestCouriers\n", seed); !strings.Contains(
			err.Error(), want) {
			t.Errorf("no %q in %v", want, err)
		}
		if s.Step() || s.Run(time.Second) == nil || s.Err() == nil {
			t.Error("it goes on after its failure")
		}
	}
}

func TestSameSeedSameHash(t *testing.T) {
	hashes := make(map[uint64]bool)
	for seed := range uint64(20) {
		r, err := sim.Twice(func(trace io.Writer) sim.Run {
			s := newCouriers(t, seed, sim.Swarm(seed, sim.AllFaults), &post{}, trace)
			return s.Result(s.Run(2 * time.Second))
		})
		if err != nil || r.Err != nil {
			t.Errorf("seed %d: %v, %v", seed, err, r.Err)
		}
		hashes[r.Hash] = true
	}
	if len(hashes) != 20 {
		t.Errorf("20 seeds have %d hashes", len(hashes))
	}
}

func TestOrderOfAMapIsCaught(t *testing.T) {
	for seed := range uint64(5) {
		_, err := sim.Twice(func(trace io.Writer) sim.Run {
			s := newCouriers(t, seed, sim.NoFaults, &post{unsorted: true}, trace)
			return s.Result(s.Run(2 * time.Second))
		})
		if err == nil || !strings.Contains(err.Error(), "two runs with the same seed differ") ||
			!strings.Contains(err.Error(), "sends to") {
			t.Errorf("seed %d: %v", seed, err)
		}
	}
}
