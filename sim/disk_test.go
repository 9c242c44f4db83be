package sim_test

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/sim"
)

func TestSendsWaitForTheDisk(t *testing.T) {
	b := newBench(t, sim.Config[any]{Disk: sim.Disk{Latency: 10 * ms}})
	b.do(0, 1, func(env *protocol.Env[any]) {
		env.Send(2, "before the record, in the same call")
		env.Append("x")
		env.Send(2, "behind it")
		env.SendAhead(2, "ahead of it")
		env.Send(1, "to oneself")
		env.Send(protocol.App, "to the application")
	})
	b.do(2*ms, 1, func(env *protocol.Env[any]) { env.Send(2, "wrote nothing, waits for the call before") })
	b.do(4*ms, 1, func(env *protocol.Env[any]) { env.Put([]byte("k"), nil); env.Send(2, "for the next sync") })
	b.do(6*ms, 1, func(env *protocol.Env[any]) { env.Delete([]byte("k")); env.Send(2, "for that one too") })
	b.do(30*ms, 1, func(env *protocol.Env[any]) { env.Send(2, "all is durable") })
	b.run(t)
	b.want(t, 1, "10ms 1: to oneself")
	b.want(t, 2,
		"50ms 1: ahead of it",
		"60ms 1: before the record, in the same call",
		"60ms 1: behind it",
		"60ms 1: wrote nothing, waits for the call before",
		"70ms 1: for the next sync",
		"70ms 1: for that one too",
		"80ms 1: all is durable")
}

// TestDiskGetsFaster: a disk that takes no time any more still has to end the sync that is under
// way.
func TestDiskGetsFaster(t *testing.T) {
	b := newBench(t, sim.Config[any]{Disk: sim.Disk{Latency: 10 * ms}})
	b.do(0, 1, func(env *protocol.Env[any]) { env.Append("a"); env.Send(2, "a") })
	b.At(2*ms, func() { b.SetDisk(1, sim.Disk{}) })
	b.do(4*ms, 1, func(env *protocol.Env[any]) { env.Append("b"); env.Send(2, "b") })
	b.do(20*ms, 1, func(env *protocol.Env[any]) { env.Append("c"); env.Send(2, "c") })
	b.run(t)
	b.want(t, 2, "60ms 1: a", "60ms 1: b", "70ms 1: c")
}

func TestCrashKeepsAPrefix(t *testing.T) {
	for keep, want := range map[sim.Keep][]string{
		-1:           {"50ms record 1 a"},
		sim.KeepNone: {"50ms record 1 a"},
		1:            {"50ms record 1 a", "50ms record 2 b"},
		2:            {"50ms record 2 b", "50ms record 3 c"},
		3:            {"50ms record 2 b", "50ms record 3 c", "50ms record 4 d"},
		sim.KeepAll:  {"50ms record 2 b", "50ms record 3 c", "50ms record 4 d"},
	} {
		b := newBench(t, sim.Config[any]{Disk: sim.Disk{Latency: 10 * ms}})
		b.do(0, 1, func(env *protocol.Env[any]) { env.Append("a") })
		b.do(20*ms, 1, func(env *protocol.Env[any]) { env.Append("b"); env.Send(2, "b") })
		b.do(21*ms, 1, func(env *protocol.Env[any]) { env.Append("c"); env.Truncate(2) })
		b.do(22*ms, 1, func(env *protocol.Env[any]) { env.Append("d"); env.After(time.Second, "a timer") })
		b.At(23*ms, func() { b.Crash(1, keep) })
		b.At(50*ms, func() { b.Restart(1) })
		b.run(t)
		b.want(t, 1, want...)
		b.want(t, 2, "73ms broken 1")
		if got := b.Stats(); got.Crashes != 1 || got.Restarts != 1 {
			t.Errorf("stats are %+v", got)
		}
	}
}

func TestCrashWithinACall(t *testing.T) {
	for _, keep := range []sim.Keep{sim.KeepNone, 1, sim.KeepAll} {
		for _, latency := range []time.Duration{0, 10 * ms} {
			sent := make(map[int]bool)
			for seed := range uint64(50) {
				b := newBench(t, sim.Config[any]{Seed: seed, Disk: sim.Disk{Latency: latency}})
				b.CrashInNextWrite(1, keep)
				b.do(0, 1, func(env *protocol.Env[any]) { env.Send(2, "writes nothing") })
				b.do(ms, 1, func(env *protocol.Env[any]) {
					env.SendAhead(2, "ahead")
					env.Append("x")
					env.Put([]byte("k"), []byte("v"))
					env.Send(2, "1")
					env.Send(2, "2")
				})
				b.do(2*ms, 1, func(env *protocol.Env[any]) { t.Error("it is down") })
				b.run(t)
				if b.Up(1) || b.Get(1) != nil {
					t.Fatal("it is up")
				}
				log, keys, err := b.Disk(1)
				if err != nil {
					t.Fatal(err)
				}
				_, ok := keys.Get([]byte("k"))
				if kept := keep > 0; kept != ok || kept != (len(log) == 1) {
					t.Errorf("keep %d: log %v, key %v", keep, log, ok)
				}
				notes := b.notes[2]
				if len(notes) < 3 || notes[0] != "50ms 1: writes nothing" || notes[1] != "51ms 1: ahead" ||
					notes[len(notes)-1] != "51ms broken 1" {
					t.Fatalf("got %q", notes)
				}
				sent[len(notes)-3] = true
			}
			if want := keep > 0; sent[1] != want || sent[2] != want || !sent[0] {
				t.Errorf("keep %d: so many messages left: %v", keep, sent)
			}
		}
	}
}

func TestLostDisk(t *testing.T) {
	b := newBench(t, sim.Config[any]{})
	b.do(0, 1, func(env *protocol.Env[any]) { env.Append("x"); env.Put([]byte("k"), []byte("v")) })
	b.At(ms, func() { b.LoseDisk(1) })
	b.At(2*ms, b.Heal)
	b.At(3*ms, func() {
		if b.Up(1) {
			t.Error("it came back by healing")
		}
		b.Restart(1)
	})
	b.do(4*ms, 1, func(env *protocol.Env[any]) {
		if _, ok := env.Get([]byte("k")); ok || env.NextIndex() != 1 {
			t.Errorf("key %v, next index %d", ok, env.NextIndex())
		}
	})
	b.run(t)
	b.want(t, 1)
}

// TestDiskIsWhatACallPrefixWrote compares disks after crashes with a model: all states after each
// call, of which one must be left.
func TestDiskIsWhatACallPrefixWrote(t *testing.T) {
	type state struct {
		keys map[string]string
		log  map[uint64]any
		next uint64
	}
	for seed := range uint64(300) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		b := newBench(t, sim.Config[any]{Seed: seed, Disk: sim.Disk{Latency: time.Duration(rnd.IntN(3)) * ms,
			Jitter: 2 * ms}})
		states := []state{{map[string]string{}, map[uint64]any{}, 1}}
		oldest := 0 // of states, that may be left
		for range 30 {
			for range rnd.IntN(6) {
				b.Deliver(1, act(func(env *protocol.Env[any]) {
					last := states[len(states)-1]
					s := state{maps.Clone(last.keys), maps.Clone(last.log), last.next}
					calls := len(states)
					wrote := false
					for range rnd.IntN(4) {
						key := fmt.Sprint(rnd.IntN(5))
						wrote = true
						switch rnd.IntN(4) {
						case 0:
							s.keys[key] = fmt.Sprint(rnd.Int())
							env.Put([]byte(key), []byte(s.keys[key]))
						case 1:
							delete(s.keys, key)
							env.Delete([]byte(key))
						case 2:
							if got := env.Append(key); got != s.next {
								t.Errorf("index %d, want %d", got, s.next)
							}
							s.log[s.next] = key
							s.next++
						case 3:
							before := max(0, s.next-uint64(rnd.IntN(int(min(4, s.next+1)))))
							env.Truncate(before)
							maps.DeleteFunc(s.log, func(i uint64, _ any) bool { return i < before })
						}
					}
					if wrote {
						states = append(states, s)
						env.Send(1, act(func(*protocol.Env[any]) { oldest = max(oldest, calls) }))
					}
				}))
				if err := b.Run(time.Duration(rnd.IntN(2000)) * time.Microsecond); err != nil {
					t.Fatal(err)
				}
			}
			keep := sim.Keep(rnd.IntN(4))
			if rnd.IntN(2) == 0 {
				b.Crash(1, keep)
			} else {
				b.CrashInNextWrite(1, keep)
				b.Deliver(1, act(func(env *protocol.Env[any]) {
					last := states[len(states)-1]
					s := state{maps.Clone(last.keys), last.log, last.next}
					s.keys["crash"] = fmt.Sprint(len(states))
					states = append(states, s)
					env.Put([]byte("crash"), []byte(s.keys["crash"]))
				}))
				if err := b.Run(0); err != nil {
					t.Fatal(err)
				}
			}
			b.Restart(1)
			var next uint64
			b.Deliver(1, act(func(env *protocol.Env[any]) { next = env.NextIndex() }))
			if err := b.Run(0); err != nil {
				t.Fatal(err)
			}
			log, keys, err := b.Disk(1)
			if err != nil {
				t.Fatal(err)
			}
			found := -1
			for i, s := range slices.Backward(states) {
				if i >= oldest && s.next == next && equalDisk(s.keys, s.log, keys, log) {
					found = i
					break
				}
			}
			if found < 0 {
				t.Fatalf("seed %d: the disk is in no state from %d to %d: %v, next %d", seed, oldest, len(states)-1, log, next)
			}
			states = states[:found+1]
			oldest = found
		}
	}
}

func equalDisk(keys map[string]string, log map[uint64]any, gotKeys protocol.Keys, gotLog []protocol.Record[any]) bool {
	for _, r := range gotLog {
		if log[r.Index] != r.Msg {
			return false
		}
	}
	n := 0
	for k, v := range gotKeys.Scan(nil, nil) {
		if want, ok := keys[string(k)]; !ok || !bytes.Equal(v, []byte(want)) {
			return false
		}
		n++
	}
	return n == len(keys) && len(gotLog) == len(log)
}

// TestCrashInEachWrite enumerates: it runs once without a crash, and then crashes in each write,
// with each number of writes kept.
func TestCrashInEachWrite(t *testing.T) {
	run := func(in uint64, keep sim.Keep) (writes uint64, log []protocol.Record[any]) {
		b := newBench(t, sim.Config[any]{Disk: sim.Disk{Latency: 10 * ms}})
		for i := range 6 {
			b.do(time.Duration(i)*4*ms, 1, func(env *protocol.Env[any]) { env.Append(i) })
			b.do(time.Duration(i)*4*ms, 1, func(env *protocol.Env[any]) { env.Send(2, "no write") })
		}
		if in > 0 {
			b.CrashInWrite(1, in, keep)
		}
		b.run(t)
		if b.Up(1) != (in == 0) || b.Writes(2) != 0 || b.Writes(7) != 0 {
			t.Errorf("crash in write %d: up is %v", in, b.Up(1))
		}
		log, _, err := b.Disk(1)
		if err != nil {
			t.Fatal(err)
		}
		return b.Writes(1), log
	}
	writes, log := run(0, 0)
	if writes != 6 || len(log) != 6 {
		t.Fatalf("%d writes, %d records", writes, len(log))
	}
	// Syncs begin at 0, 10 and 20 ms, for 1, 3 and 5 writes; writes are at 0, 4, ... 20 ms, the
	// last one just behind the end of the second sync.
	durable := []int{0, 0, 0, 1, 1, 3}
	for in := uint64(1); in <= writes; in++ {
		for keep := range 7 {
			n, log := run(in, sim.Keep(keep))
			if want := min(durable[in-1]+keep, int(in)); n != in || len(log) != want {
				t.Errorf("crash in write %d, keep %d: %d writes, %d records, want %d", in, keep, n, len(log), want)
			}
		}
	}
}
