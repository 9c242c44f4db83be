package sim_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/wan"
)

func wantFailure(t *testing.T, err error, kind, text string, node protocol.ID) *sim.Failure {
	t.Helper()
	var f *sim.Failure
	if !errors.As(err, &f) {
		t.Fatalf("got %v", err)
	}
	if f.Kind != kind || f.Node != node || !strings.Contains(f.Err.Error(), text) {
		t.Errorf("got %q of node %d: %v, want %q of %d: %s", f.Kind, f.Node, f.Err, kind, node, text)
	}
	return f
}

func TestPanicsAreFailures(t *testing.T) {
	b := newBench(t, sim.Config[any]{Seed: 9})
	b.do(5*ms, 2, func(*protocol.Env[any]) { panic("a bug") })
	f := wantFailure(t, b.Run(time.Second), "panic", "a bug\n", 2)
	if f.Seed != 9 || f.At != 5*ms || !strings.Contains(f.Err.Error(), "failure_test.go") {
		t.Errorf("got %+v", f)
	}
	if b.Now() != 5*ms || b.Step() || b.Steps() != f.Step {
		t.Error("it goes on")
	}
	if err := b.RunUntil(time.Second, func() bool { return true }); err != b.Err() {
		t.Errorf("RunUntil returns %v", err)
	}
}

func TestPanicsOfTestsPass(t *testing.T) {
	b := newBench(t, sim.Config[any]{})
	b.At(0, func() { panic("a test's") })
	defer func() {
		if r := recover(); r != "a test's" {
			t.Errorf("recovered %v", r)
		}
		if b.Err() != nil {
			t.Error(b.Err())
		}
	}()
	b.run(t)
	t.Error("it went on")
}

func TestMisuseOfTheEnvIsAFailure(t *testing.T) {
	b := newBench(t, sim.Config[any]{})
	b.do(0, 1, func(env *protocol.Env[any]) { env.Truncate(2) })
	wantFailure(t, b.Run(time.Second), "panic", "truncate before 2, beyond the log's end at 1", 1)

	b = newBench(t, sim.Config[any]{})
	b.do(0, 1, func(env *protocol.Env[any]) { env.After(0, []int{1}) })
	wantFailure(t, b.Run(time.Second), "panic", "unhashable", 1)
}

func TestChecksOfTheWhole(t *testing.T) {
	n := 0
	check := func() error {
		if n++; n == 3 {
			return errors.New("two leaders")
		}
		return nil
	}
	for every, steps := range map[int]uint64{0: 3, 1: 3, 4: 12} {
		n = 0
		b := newBench(t, sim.Config[any]{Check: check, CheckEvery: every})
		for i := range 20 {
			b.do(time.Duration(i)*ms, 1, func(*protocol.Env[any]) {})
		}
		wantFailure(t, b.Run(time.Second), "invariant", "two leaders", 0)
		if b.Steps() != steps {
			t.Errorf("every %d: it took %d steps, want %d", every, b.Steps(), steps)
		}
	}
}

func TestLiveness(t *testing.T) {
	b := newBench(t, sim.Config[any]{})
	b.do(500*ms, 1, func(env *protocol.Env[any]) { env.After(time.Minute, "late") })
	if err := b.RunUntil(time.Second, func() bool { return b.Now() >= 500*ms }); err != nil || b.Now() != 500*ms {
		t.Errorf("%v at %v", err, b.Now())
	}
	f := wantFailure(t, b.RunUntil(time.Second, func() bool {
		return false
	}), "liveness", "did not come about within 1s", 0)
	if b.Now() != 1500*ms || f.At != 1500*ms || b.Err() != nil {
		t.Errorf("it is %v, error %v", b.Now(), b.Err())
	}
	if err := b.RunUntil(time.Hour, func() bool { return len(b.notes[1]) > 0 }); err != nil {
		t.Error(err)
	}
}

func TestTooManyEvents(t *testing.T) {
	b := newBench(t, sim.Config[any]{MaxEvents: 100})
	var twice act
	twice = func(env *protocol.Env[any]) { env.Send(1, twice); env.Send(1, twice) }
	b.do(0, 1, twice)
	wantFailure(t, b.Run(time.Second), "bound", "events and messages wait, more than MaxEvents", 0)
}

// badCodec fails as it is told.
type badCodec struct{ how string }

func (c badCodec) Append(buf []byte, msg any) ([]byte, error) {
	switch c.how {
	case "append":
		return nil, errors.New("no such type")
	case "append panics":
		panic("oh")
	}
	return fmt.Append(buf, msg), nil
}

func (c badCodec) Decode(b []byte) (any, error) {
	switch {
	case c.how == "decode":
		return nil, errors.New("too short")
	case c.how == "decode panics":
		panic("oh")
	}
	return string(b), nil
}

func TestCodecsAreProven(t *testing.T) {
	for how, want := range map[string]string{
		"append": `encode "x": no such type`, "decode": `decode the message that was encoded to "x": too short`,
		"append panics": "oh", "decode panics": "oh",
	} {
		b := newBench(t, sim.Config[any]{Codec: badCodec{how}})
		b.send(0, "x")
		kind := "codec"
		if strings.Contains(how, "panics") {
			kind = "panic"
		}
		wantFailure(t, b.Run(time.Second), kind, want, 1)
	}
	c := &badCodec{}
	b := newBench(t, sim.Config[any]{Codec: c})
	b.do(0, 1, func(env *protocol.Env[any]) {
		env.Append("record")
		env.Send(2, "x")
		env.Send(1, act(func(*protocol.Env[any]) {}))
	})
	b.At(ms, func() { b.Crash(1, 0); c.how = "decode"; b.Restart(1) })
	wantFailure(t, b.Run(time.Second), "codec", "decode its record 1: too short", 1)
}

func TestMessagesThroughTheCodecShareNoMemory(t *testing.T) {
	for chance, want := range map[float64]string{0: "50ms 1: *original", 1e-9: "50ms 1: *changed"} {
		b := newBench(t, sim.Config[any]{Codec: pointers{}, CodecChance: chance})
		s := "original"
		b.do(0, 1, func(env *protocol.Env[any]) { env.Send(2, pointer{&s}) })
		b.do(10*ms, 1, func(env *protocol.Env[any]) { s = "changed" })
		b.run(t)
		b.want(t, 2, want)
	}
}

type pointer struct{ s *string }

func (p pointer) String() string { return "*" + *p.s }

// pointers is a codec of pointers to strings.
type pointers struct{}

func (pointers) Append(buf []byte, msg any) ([]byte, error) {
	return append(buf, *msg.(pointer).s...), nil
}

func (pointers) Decode(b []byte) (any, error) {
	s := string(b)
	return pointer{&s}, nil
}

func TestConfigsAreChecked(t *testing.T) {
	for want, c := range map[string]sim.Config[any]{
		"sim: CodecChance of 2 is not in [0, 1]":                             {CodecChance: 2},
		"sim: Datagrams.Loss of -1 is not in [0, 1]":                         {Datagrams: &sim.Datagrams{Loss: -1}},
		"sim: Datagrams.Duplicate of 2 is not in [0, 1]":                     {Datagrams: &sim.Datagrams{Duplicate: 2}},
		"sim: Datagrams.Reorder of 2 is not in [0, 1]":                       {Datagrams: &sim.Datagrams{Reorder: 2}},
		"sim: Datagrams.ReorderBy of -1ns is negative":                       {Datagrams: &sim.Datagrams{ReorderBy: -1}},
		"sim: Disk of {Latency:-1ns Jitter:0s} has a negative time":          {Disk: sim.Disk{Latency: -1}},
		"sim: CheckEvery of -1 is negative":                                  {CheckEvery: -1},
		"sim: MaxEvents of -1 is negative\na ClockStart of -1ns is negative": {MaxEvents: -1, ClockStart: -1},
	} {
		if _, err := sim.New(c); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	b := newBench(t, sim.Config[any]{})
	node := func() protocol.Node[any] { return &probe{} }
	for want, n := range map[string]sim.Node[any]{
		"sim: node 0: the ID is 0 or used already":                {New: node, Site: "a"},
		"sim: node 1: the ID is 0 or used already":                {ID: 1, New: node, Site: "a"},
		"sim: node 3: New is missing":                             {ID: 3, Site: "a"},
		`sim: node 3: unknown site "c" (the sites are ["a" "b"])`: {ID: 3, New: node, Site: "c"},
		"sim: node 3: a clock's drift of -600000 millionths is more than 500000": {ID: 3, New: node, Site: "a",
			Clock: sim.Clock{DriftPPM: -600_000}},
		"sim: node 3: Disk of {Latency:0s Jitter:-1ns} has a negative time": {ID: 3, New: node, Site: "a",
			Disk: &sim.Disk{Jitter: -1}},
	} {
		if err := b.Add(n); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	if _, err := sim.New(sim.Config[any]{WAN: wan.Matrix{}}); err != nil {
		t.Error(err)
	}
}

func TestStepsDoNotNest(t *testing.T) {
	b := newBench(t, sim.Config[any]{})
	b.At(0, func() { b.Step() })
	defer func() {
		if r := recover(); r != "sim: a step is asked for within a step" {
			t.Errorf("recovered %v", r)
		}
	}()
	b.run(t)
}

// TestWhatWaitsElsewhereCounts holds messages up at disks and pauses.
func TestWhatWaitsElsewhereCounts(t *testing.T) {
	for name, stall := range map[string]func(b *bench){
		"a disk":  func(b *bench) {},
		"a pause": func(b *bench) { b.Pause(1, time.Hour, false) },
	} {
		b := newBench(t, sim.Config[any]{MaxEvents: 100, Disk: sim.Disk{Latency: time.Hour}})
		b.At(0, func() { stall(b) })
		var again func()
		again = func() {
			b.Deliver(1, act(func(env *protocol.Env[any]) { env.Append("x"); env.Send(2, "y") }))
			b.After(ms, again)
		}
		b.At(ms, again)
		wantFailure(t, b.Run(time.Second), "bound", "101 events and messages wait", 0)
		if b.Now() > 110*ms {
			t.Errorf("%s: it took until %v", name, b.Now())
		}
	}
}

func TestDatagramsShareNoMemory(t *testing.T) {
	b := newBench(t, sim.Config[any]{Codec: pointers{}, Datagrams: &sim.Datagrams{Duplicate: 1}})
	s := "x"
	b.do(0, 1, func(env *protocol.Env[any]) { env.Send(2, pointer{&s}) })
	got := make(map[*string]bool)
	if err := b.Add(sim.Node[any]{ID: 3, Site: "b", New: func() protocol.Node[any] { return keep(got) }}); err != nil {
		t.Fatal(err)
	}
	b.do(0, 1, func(env *protocol.Env[any]) { env.Send(3, pointer{&s}) })
	b.run(t)
	if len(got) != 2 || got[&s] {
		t.Errorf("%d messages of their own", len(got))
	}
}

// keep collects the pointers that arrive.
type keep map[*string]bool

func (k keep) Start(*protocol.Env[any], []protocol.Record[any]) {}

func (k keep) Receive(_ *protocol.Env[any], _ protocol.ID, msg any) { k[msg.(pointer).s] = true }

func (k keep) Expire(*protocol.Env[any], protocol.Timer) {}
