package mvcc_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/foresay/foresay/clock"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/mvcc"
)

// A server serves reads at timestamps and writes, alone on its disk.
type server struct {
	store mvcc.Store
	reads *mvcc.Reads
	waits []read
}

// Messages of a server's and its application's.
type (
	read struct {
		Key store.Key
		At  clock.Stamp
	}
	answer struct {
		read
		Value store.Value
	}
	write    struct{ Key store.Key }
	wrote    struct{ Version store.Version }
	recorded struct{ Ceiling clock.Stamp }
	collect  struct{ Before time.Duration }
)

func (s *server) Start(env *protocol.Env[any], _ []protocol.Record[any]) {
	var err error
	s.store = mvcc.New([]byte("v"))
	s.reads, err = mvcc.NewReads(s.store.Ceiling(env), 5*time.Millisecond, 3)
	if err != nil {
		panic(err)
	}
}

func (s *server) Receive(env *protocol.Env[any], from protocol.ID, msg any) {
	switch m := msg.(type) {
	case read:
		s.read(env, m)
	case recorded:
		s.reads.Recorded(m.Ceiling)
		waits := s.waits
		s.waits = nil
		for _, r := range waits {
			s.read(env, r)
		}
	case write:
		newest := s.store.Newest(env, m.Key)
		at := max(clock.Stamp(env.Now), s.reads.Above(m.Key)+1, clock.Stamp(newest.Version.Time)+1, s.store.Horizon(env)+1)
		v := store.Value{Version: store.Version{Time: uint64(at)}, Present: env.Rand.IntN(3) > 0}
		if v.Present {
			v.Bytes = fmt.Append(nil, m.Key, at)
		}
		if err := s.store.Put(env, m.Key, v); err != nil {
			panic(err)
		}
		env.Send(protocol.App, wrote{v.Version})
	case collect:
		s.store.RaiseHorizon(env, clock.Stamp(env.Now-m.Before))
		s.store.Collect(env, 5)
	}
}

func (s *server) read(env *protocol.Env[any], m read) {
	if !s.reads.Serve(m.Key, m.At) {
		s.waits = append(s.waits, m)
		if c, ok := s.reads.Raise(m.At); ok {
			s.store.RaiseCeiling(env, c)
			env.Send(1, recorded{c}) // it is on disk then
		}
		return
	}
	v, err := s.store.Get(env, m.Key, m.At)
	if err == nil {
		env.Send(protocol.App, answer{m, v})
	}
}

func (s *server) Expire(*protocol.Env[any], protocol.Timer) {}

func (s *server) Check() error { return s.reads.Check() }

// A history is what a server has told its application.
type history struct {
	answers []answer
	wrote   []wrote
	writes  uint64 // to its disk
}

// play has a server take reads and writes, and crash in the writes to its disk that are given. The
// server is asked again at the end: what was read once at a timestamp must still be so.
func play(seed uint64, crashIn func(n int) bool) (*history, error) {
	h := &history{}
	s, err := sim.New(sim.Config[any]{
		Seed: seed, Disk: sim.Disk{Latency: 2 * time.Millisecond},
		App: func(_ protocol.ID, msg any) {
			switch m := msg.(type) {
			case answer:
				h.answers = append(h.answers, m)
			case wrote:
				h.wrote = append(h.wrote, m)
			}
		},
	})
	if err != nil {
		return nil, err
	}
	if err := s.Add(sim.Node[any]{ID: 1, New: func() protocol.Node[any] { return new(server) }}); err != nil {
		return nil, err
	}
	rnd := rand.New(rand.NewPCG(seed, 1))
	epoch := clock.Stamp(time.Hour)
	for n := range 120 {
		key := store.Key(fmt.Sprint(rnd.IntN(5)))
		s.At(time.Duration(n)*time.Millisecond, func() {
			s.Restart(1)
			if crashIn(n) {
				s.CrashInNextWrite(1, sim.Keep(rnd.IntN(4)))
			}
			at := epoch + clock.Stamp(s.Now()+time.Duration(rnd.IntN(20)-10)*time.Millisecond)
			switch rnd.IntN(9) {
			case 0, 1, 2, 3:
				s.Deliver(1, write{key})
			case 4:
				s.Deliver(1, collect{60 * time.Millisecond})
			default:
				s.Deliver(1, read{key, at})
			}
		})
	}
	if err := s.Run(200 * time.Millisecond); err != nil {
		return nil, err
	}
	s.Restart(1)
	h.writes = s.Writes(1)
	return h, h.askAgain(s)
}

func (h *history) askAgain(s *sim.Sim[any]) error {
	first := map[read]store.Value{}
	for _, a := range h.answers {
		if v, ok := first[a.read]; ok && !equal(a.Value, v) {
			return fmt.Errorf("%q at %v was %v and is %v", a.Key, a.At, v, a.Value)
		}
		first[a.read] = a.Value
	}
	h.answers = nil
	var asked []read
	for r := range first {
		asked = append(asked, r)
	}
	slices.SortFunc(asked, func(a, b read) int { return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Key, b.Key)) })
	for _, r := range asked {
		s.Deliver(1, r)
	}
	if err := s.Run(s.Now() + 100*time.Millisecond); err != nil {
		return err
	}
	for _, a := range h.answers {
		if v := first[a.read]; !equal(a.Value, v) {
			return fmt.Errorf("%q at %v was %v and is %v", a.Key, a.At, v, a.Value)
		}
	}
	return nil
}

// equal compares what snapshots have. A deletion may have been collected.
func equal(a, b store.Value) bool {
	return a.Present == b.Present && string(a.Bytes) == string(b.Bytes) && (!a.Present || a.Version == b.Version)
}

// TestReadsStayTrue has a server crash at any time: in no write to its disk, in each one in turn,
// and in many. What it has answered at a timestamp stays so, as later writes are above the ceiling
// that was on disk before.
func TestReadsStayTrue(t *testing.T) {
	for seed := range uint64(20) {
		if _, err := play(seed, func(int) bool { return false }); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for in := range 120 {
			if _, err := play(seed, func(n int) bool { return n == in }); err != nil {
				t.Fatalf("seed %d, with a crash in write %d: %v", seed, in, err)
			}
		}
	}
	answers, all := 0, 0
	for seed := range uint64(500) {
		h, err := play(seed, func(n int) bool { return (n*int(seed+7))%11 < 2 })
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		answers, all = answers+len(h.answers), all+int(h.writes)
	}
	if answers < 5000 || all < 10_000 {
		t.Errorf("only %d reads were asked for again, after %d writes", answers, all)
	}
}
