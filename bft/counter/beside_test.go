package counter_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foresay/foresay/bft"
	"github.com/foresay/foresay/bft/counter"
	"github.com/foresay/foresay/bft/pbft"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/wan"
)

// beside is a simulated group of four and one client, each at a site of its own.
type beside struct {
	*sim.Beside[bft.Message]
	mu    sync.Mutex
	last  bft.CallID
	first map[bft.CallID]chan counter.Reply
	done  map[bft.CallID]chan counter.Reply
}

const clientID = 9

func newBeside(t *testing.T, roundTrip time.Duration) *beside {
	t.Helper()
	b := &beside{first: map[bft.CallID]chan counter.Reply{}, done: map[bft.CallID]chan counter.Reply{}}
	var secrets bft.Secrets
	scheme, dir := bft.NewScheme("test", &secrets), bft.Directory{}
	signer := func(id protocol.ID) *bft.Signer { return secrets.Signer(uint64(id)) }
	for id := protocol.ID(1); id <= 4; id++ {
		dir.Members = append(dir.Members, bft.Party{ID: id, Key: signer(id).Key()})
	}
	dir.Clients = map[protocol.ID]bft.Key{clientID: signer(clientID).Key()}
	sites := []wan.Site{"a", "b", "c", "d", "e"}
	s, err := sim.New(sim.Config[bft.Message]{Seed: 1, WAN: wan.Uniform(roundTrip, sites...),
		Codec: pbft.Protocol().Codec(scheme), App: b.told})
	if err != nil {
		t.Fatal(err)
	}
	for i, site := range sites {
		id := protocol.ID(i + 1)
		build := func() (protocol.Node[bft.Message], error) {
			return pbft.Protocol().NewReplica(bft.ReplicaConfig{ID: id, Directory: &dir, Scheme: scheme, Signer: signer(id),
				Service: counter.Service{}, RoundTrip: roundTrip})
		}
		if i == len(dir.Members) {
			id = clientID
			build = func() (protocol.Node[bft.Message], error) {
				return pbft.Protocol().NewClient(bft.ClientConfig{ID: id, Directory: &dir, Scheme: scheme, Signer: signer(id),
					RoundTrip: roundTrip})
			}
		}
		err := s.Add(sim.Node[bft.Message]{ID: id, Site: site, New: func() protocol.Node[bft.Message] {
			n, err := build()
			if err != nil {
				panic(err)
			}
			return n
		}})
		if err != nil {
			t.Fatal(err)
		}
	}
	b.Beside = sim.NewBeside(s)
	return b
}

// told gets what the client's application is told, and hands it on.
func (b *beside) told(from protocol.ID, msg bft.Message) {
	b.mu.Lock()
	defer b.mu.Unlock()
	to, id, r := b.done, bft.CallID(0), bft.Result{}
	switch m := msg.(type) {
	case bft.First:
		to, id, r = b.first, m.ID, m.Result
	case bft.Done:
		id, r = m.ID, m.Result
	}
	if reply, err := counter.Decode(r.Value); err == nil && to[id] != nil {
		to[id] <- reply
	}
}

// increment makes a call, of which the first reply and the confirmed one are told.
func (b *beside) increment(t *testing.T, shown counter.Reply) (first, done chan counter.Reply) {
	b.mu.Lock()
	b.last++
	call := bft.Call{ID: b.last, Command: counter.Increment(shown)}
	first, done = make(chan counter.Reply, 1), make(chan counter.Reply, 1)
	b.first[call.ID], b.done[call.ID] = first, done
	b.mu.Unlock()
	if err := b.Do(func(s *sim.Sim[bft.Message]) { s.Deliver(clientID, call) }); err != nil {
		t.Error(err)
	}
	return first, done
}

// TestBeside has a program in goroutines increment the counter of a simulated group. A first reply
// comes after two delays and a confirmed one after four, to the nanosecond, so increments that
// wait for the first reply to the one before take half of the time, and two delays more.
func TestBeside(t *testing.T) {
	const roundTrip, n = 30 * time.Millisecond, 20
	took := map[bool]time.Duration{}
	for _, guess := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			b := newBeside(t, roundTrip)
			ctx, cancel := context.WithCancel(t.Context())
			var running, confirmed sync.WaitGroup
			running.Go(func() {
				if err := b.Run(ctx); err != nil {
					t.Error(err)
				}
			})
			time.Sleep(time.Second)
			begun, last := time.Now(), counter.Reply{}
			for i := range uint64(n) {
				asked := time.Now()
				first, done := b.increment(t, last)
				if guess {
					last = <-first
				}
				confirmed.Go(func() {
					if r := <-done; r.Value != i+1 || time.Since(asked) != 2*roundTrip {
						t.Errorf("increment %d comes to %+v, confirmed after %v", i+1, r, time.Since(asked))
					}
				})
				if !guess {
					confirmed.Wait()
					last = <-first
				}
			}
			confirmed.Wait()
			took[guess] = time.Since(begun)
			cancel()
			running.Wait()
		})
	}
	if took[false] != n*2*roundTrip || took[true] != (n+1)*roundTrip {
		t.Errorf("%d increments take %v, on first replies %v", n, took[false], took[true])
	}
}
