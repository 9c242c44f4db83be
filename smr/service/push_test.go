package service

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr/client"
	"github.com/foresay/foresay/smr/kv"
	"github.com/foresay/foresay/wan"
)

// watcher notes what a watch has shown, and when.
type watcher struct {
	mu   sync.Mutex
	seen []kv.Item
	last time.Time

	batches int
}

// watching has a client of its own watch keys until the test ends.
func (w *world) watching(ctx context.Context, o WatchOptions) *watcher {
	c := w.dialed()
	s := &watcher{}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for items, err := range c.Watch(ctx, o) {
			s.mu.Lock()
			s.seen, s.last = append(s.seen, items...), time.Now()
			s.batches++
			if err != nil && !isUnknown(err) {
				w.Errorf("the watch: %v", err)
			}
			s.mu.Unlock()
		}
	}()
	w.Cleanup(func() {
		cancel()
		<-done
	})
	return s
}

func (s *watcher) newest() (value string, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.seen) > 0 {
		value = string(s.seen[len(s.seen)-1].Value)
	}
	return value, s.last
}

// await waits until a value was shown last, and returns when it was.
func (s *watcher) await(t *testing.T, value string, within time.Duration) time.Time {
	t.Helper()
	for began := time.Now(); ; time.Sleep(time.Millisecond) {
		got, at := s.newest()
		if got == value {
			return at
		}
		if time.Since(began) > within {
			t.Fatalf("after %v the watch has shown %q last, not %q", within, got, value)
		}
	}
}

// resting reports whether the group of what is watched rests.
func (w *world) resting(ctx context.Context, c *Client) bool {
	w.Helper()
	statuses, err := c.Status(ctx)
	if err != nil {
		w.Fatal(err)
	}
	statuses = ofGroup(statuses, c.GroupOf("w"))
	return len(statuses) == 3 && !slices.ContainsFunc(statuses, func(s Status) bool { return !s.Resting })
}

// TestWatchedGroupsRest: a group that is watched rests while nothing changes, and what is put then
// is shown within three round trips of its acknowledgement.
func TestWatchedGroupsRest(t *testing.T) {
	for _, name := range protocolNames() {
		t.Run(name, func(t *testing.T) { inGroups(t, name, byRange, testWatchedGroupsRest) })
	}
}

func testWatchedGroupsRest(w *world) {
	w.start(1)
	w.start(2)
	w.start(3)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	c := w.dialed()
	put := func(key, value string) {
		w.Helper()
		if _, err := c.Put(ctx, key, []byte(value)); err != nil {
			w.Fatal(err)
		}
	}
	put("w", "0")
	one, some := w.watching(ctx, OnlyKey("w")), w.watching(ctx, WatchOptions{From: "v", To: "x"})
	one.await(w.T, "0", 5*time.Second)
	for i := range 3 {
		time.Sleep(10 * time.Second)
		for range 20 {
			time.Sleep(777 * time.Millisecond)
			if !w.resting(ctx, c) {
				w.Fatalf("%d: the watched group does not rest", i)
			}
		}
		value := fmt.Sprint(i + 1)
		put("w", value)
		acknowledged := time.Now()
		for _, s := range []*watcher{one, some} {
			if took := s.await(w.T, value, time.Second).Sub(acknowledged); took > 31*time.Millisecond {
				w.Errorf("%d: what was put was shown after %v", i, took)
			}
		}
	}
}

// TestWatchWithoutPromises: if only a minority of the members tells of changes, the watch reads by
// itself.
func TestWatchWithoutPromises(t *testing.T) {
	inGroups(t, "raft", byRange, func(w *world) {
		w.start(1)
		for _, r := range []*ran{w.start(2), w.start(3)} {
			r.watchers.mu.Lock()
			r.watchers.bytes = maxWaitBytes // no room, as with an older version, which knows of no watches
			r.watchers.mu.Unlock()
		}
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
		defer cancel()
		c := w.dialed()
		s := w.watching(ctx, OnlyKey("w"))
		for i := range 5 {
			time.Sleep(5 * time.Second)
			if w.resting(ctx, c) {
				w.Error("the group rests: nobody reads")
			}
			if _, err := c.Put(ctx, "w", fmt.Append(nil, i)); err != nil {
				w.Fatal(err)
			}
			s.await(w.T, fmt.Sprint(i), 300*time.Millisecond)
		}
	})
}

// TestWatchOfAClosedClient: a watch that nobody has anything to tell ends soon after its client.
func TestWatchOfAClosedClient(t *testing.T) {
	inWorld(t, "raft", func(w *world) {
		w.start(1)
		w.start(2)
		w.start(3)
		c := w.dialed()
		var closed time.Time
		go func() {
			time.Sleep(10 * time.Second)
			closed = time.Now()
			if err := c.Close(); err != nil {
				w.Error(err)
			}
		}()
		var last error
		for _, err := range c.Watch(context.Background(), OnlyKey("w")) {
			last = err
		}
		_, rejected := errors.AsType[*client.RejectedError](last)
		if took := time.Since(closed); !rejected || took > 300*time.Millisecond {
			w.Errorf("%v after its client was closed the watch ended with %v", took, last)
		}
	})
}

// TestWatchOfABusyKey: while keys change all the time a watch reads fifty times a second at most,
// and shows all that was put soon.
func TestWatchOfABusyKey(t *testing.T) {
	inGroups(t, "raft", byRange, func(w *world) {
		w.start(1)
		w.start(2)
		w.start(3)
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		c := w.dialed()
		s := w.watching(ctx, WatchOptions{From: "w", Every: time.Hour})
		for round := range 3 {
			time.Sleep(4 * time.Second)
			s.mu.Lock()
			before := s.batches
			s.mu.Unlock()
			began := time.Now()
			var puts sync.WaitGroup
			for i := range 10 {
				puts.Go(func() {
					for n := range 30 {
						if _, err := c.Put(ctx, fmt.Sprint("w", i), fmt.Append(nil, round, n)); err != nil {
							w.Error(err)
						}
						time.Sleep(time.Duration(i+n) * 100 * time.Microsecond)
					}
				})
			}
			puts.Wait()
			took := time.Since(began)
			time.Sleep(31 * time.Millisecond)
			s.mu.Lock()
			if len(s.seen) != 300*(round+1) {
				w.Errorf("%d: of %d changes the watch has shown %d", round, 300*(round+1), len(s.seen))
			}
			if reads := s.batches - before; reads > 2+int(took/watchPause) {
				w.Errorf("%d: in %v it has read %d times", round, took, reads)
			}
			s.mu.Unlock()
		}
	})
}

// TestWatchOfAQuietKey: beside steady changes of other keys, too few between two requests to have a
// watch told and more in a minute than the store remembers, a watch of a quiet key misses nothing.
func TestWatchOfAQuietKey(t *testing.T) {
	inGroups(t, "raft", byRange, func(w *world) {
		w.start(1)
		w.start(2)
		w.start(3)
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
		defer cancel()
		c := w.dialed()
		s := w.watching(ctx, WatchOptions{From: "w", To: "w\x00", Every: time.Hour})
		value := make([]byte, 10_000)
		for began := time.Now(); time.Since(began) < 56*time.Second; time.Sleep(100 * time.Millisecond) {
			if _, err := c.Put(ctx, "x", value); err != nil {
				w.Fatal(err)
			}
		}
		if _, err := c.Put(ctx, "w", []byte("last")); err != nil {
			w.Fatal(err)
		}
		s.await(w.T, "last", 100*time.Millisecond)
	})
}

// TestWatchOfTwoChanges: a change that comes while a watch reads another one, or just after, is
// shown as soon as others.
func TestWatchOfTwoChanges(t *testing.T) {
	inGroups(t, "raft", byRange, func(w *world) {
		w.start(1)
		w.start(2)
		w.start(3)
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		c := w.dialed()
		s := w.watching(ctx, WatchOptions{From: "w", Every: time.Hour})
		for apart := range 50 {
			time.Sleep(100 * time.Millisecond)
			var puts sync.WaitGroup
			for i := range 2 {
				puts.Go(func() {
					time.Sleep(time.Duration(i*apart) * time.Millisecond)
					if _, err := c.Put(ctx, "w", fmt.Append(nil, apart, i)); err != nil {
						w.Error(err)
					}
				})
			}
			puts.Wait()
			time.Sleep(41 * time.Millisecond)
			s.mu.Lock()
			shown := len(s.seen)
			s.mu.Unlock()
			if shown != 2*(apart+1) {
				w.Fatalf("%d ms apart: of %d changes the watch has shown %d", apart, 2*(apart+1), shown)
			}
		}
	})
}

// TestWatchFollowsTheMembers: learners promise nothing, and when all members were replaced those of
// now tell a watch.
func TestWatchFollowsTheMembers(t *testing.T) {
	for _, name := range protocolNames() {
		t.Run(name, func(t *testing.T) { inWorld(t, name, testWatchFollowsTheMembers) })
	}
}

func testWatchFollowsTheMembers(w *world) {
	one, two, three := w.start(1), w.start(2), w.start(3)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	c := w.dialed()
	s := w.watching(ctx, OnlyKey("w"))
	put := func(value string, within time.Duration) {
		w.Helper()
		if _, err := c.Put(ctx, "w", []byte(value)); err != nil {
			w.Fatal(err)
		}
		s.await(w.T, value, within)
	}
	put("1", time.Second)
	if _, err := InitJoin(w.dir, 4, "d:1"); err != nil {
		w.Fatal(err)
	}
	four := w.start(4)
	time.Sleep(5 * time.Second)
	put("2", 31*time.Millisecond)
	if w.proto().Learns {
		if _, err := c.AwaitLearner(ctx, 4, nil); err != nil {
			w.Fatal(err)
		}
	}
	put("3", 31*time.Millisecond)
	for _, change := range []change{{Add: smrMembers([]Member{{4, "d:1"}})[0]}, {Remove: 1}} {
		if err := c.Change(ctx, change); err != nil {
			w.Fatal(err)
		}
	}
	put("4", 300*time.Millisecond) // replica 1 may run on, and say what it knew
	one.stop()
	<-one.done
	w.replace(ctx, c, two, 5)
	put("5", 300*time.Millisecond)
	time.Sleep(10 * time.Second)
	put("6", 31*time.Millisecond)
	three.stop()
	<-three.done
	put("7", time.Second) // an election is among it
	time.Sleep(10 * time.Second)
	put("8", 31*time.Millisecond)
	if err := four.end(); err != nil {
		w.Error(err)
	}
}

// TestManyWaits: more watches than a replica looks at at once are told all.
func TestManyWaits(t *testing.T) {
	inWorld(t, "raft", func(w *world) {
		w.start(1)
		w.start(2)
		w.start(3)
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		c := w.dialed()
		const keys = 3 * maxLooks
		var shown atomic.Int32
		var watches sync.WaitGroup
		defer watches.Wait()
		defer cancel()
		for k := range keys {
			watches.Go(func() {
				o := WatchOptions{From: fmt.Sprint(k), To: fmt.Sprint(k) + "\x00", Every: time.Hour}
				for items, err := range c.Watch(ctx, o) {
					if shown.Add(int32(len(items))); err != nil {
						w.Error(err)
					}
				}
			})
		}
		time.Sleep(2 * time.Second)
		for k := range keys {
			if _, err := c.Put(ctx, fmt.Sprint(k), nil); err != nil {
				w.Fatal(err)
			}
		}
		time.Sleep(time.Second)
		if n := shown.Load(); n != keys {
			w.Errorf("of %d watches %d were told", keys, n)
		}
	})
}

// TestWatchUnderFaults: replicas are killed and come back, and lose what they send in one
// direction, while a key is changed. A watch shows each change that was acknowledged, in order, and
// within seconds while calls are answered; after the faults it shows the last one at once.
func TestWatchUnderFaults(t *testing.T) {
	for seed, name := range protocolNames() {
		t.Run(name, func(t *testing.T) {
			inWorld(t, name, func(w *world) { testWatchUnderFaults(w, rand.New(rand.NewPCG(uint64(seed), 22))) })
		})
	}
}

func testWatchUnderFaults(w *world, rnd *rand.Rand) {
	replicas := map[protocol.ID]*ran{1: w.start(1), 2: w.start(2), 3: w.start(3)}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	c := w.dialed()
	s := w.watching(ctx, WatchOptions{From: "w", To: "x", Within: 2 * time.Second})
	var acknowledged []string
	n := 0
	change := func(within time.Duration) (value string, ok bool) {
		n++
		value = fmt.Sprint(n)
		brief, cancel := context.WithTimeout(ctx, within)
		defer cancel()
		_, err := c.Put(brief, "w", []byte(value))
		if err == nil {
			acknowledged = append(acknowledged, value)
		}
		return value, err == nil
	}
	var late time.Duration
	for range 5 {
		id := protocol.ID(1 + rnd.IntN(3))
		site := worldSites[id-1]
		other := []wan.Site{"z", worldSites[id%3]}[rnd.IntN(2)]
		mend := func() {}
		switch rnd.IntN(3) {
		case 0:
			replicas[id].stop()
			<-replicas[id].done
			mend = func() { replicas[id] = w.start(id) }
		case 1:
			w.net.SetDown(site, other, true)
			mend = func() { w.net.SetDown(site, other, false) }
		case 2:
			w.net.SetDown(other, site, true)
			mend = func() { w.net.SetDown(other, site, false) }
		}
		for range 3 {
			value, ok := change(2 * time.Second)
			made := time.Now()
			brief, cancel := context.WithTimeout(ctx, 2*time.Second)
			_, _, err := c.Get(brief, "w")
			cancel()
			if ok && err == nil { // with some protocols nobody can read who does not hear the leader
				late = max(late, s.await(w.T, value, 10*time.Second).Sub(made))
			}
			time.Sleep(time.Duration(rnd.IntN(3000)) * time.Millisecond)
		}
		mend()
		time.Sleep(time.Duration(rnd.IntN(5000)) * time.Millisecond)
	}
	// A promise to tell is believed for six seconds, and a read that nobody answers is given up after
	// two.
	if late > 8*time.Second {
		w.Errorf("what was acknowledged was shown after %v", late)
	}
	time.Sleep(15 * time.Second)
	value, ok := change(10 * time.Second)
	if !ok {
		w.Fatal("nothing can be put, though all members are back")
	}
	s.await(w.T, value, 250*time.Millisecond)
	s.mu.Lock()
	defer s.mu.Unlock()
	version, next := uint64(0), 0
	for _, i := range s.seen {
		if i.Version <= version {
			w.Errorf("version %d was shown after version %d", i.Version, version)
		}
		version = i.Version
		if next < len(acknowledged) && string(i.Value) == acknowledged[next] {
			next++
		}
	}
	if next < len(acknowledged) {
		w.Errorf("of %q the watch has not shown %q", acknowledged, acknowledged[next])
	}
}
