package kit

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
)

// queues are reservations, with a clock.
type queues struct {
	Reservations
	t     *testing.T
	env   *protocol.Env[store.Message]
	now   time.Duration
	freed []store.Key
}

const queuesTrip = 100 * time.Millisecond

func newQueues(t *testing.T, maxWaiting int) *queues {
	t.Helper()
	q := &queues{t: t, env: protocol.NewEnv[store.Message](nil, 1, rand.New(rand.NewPCG(1, 1))), now: time.Hour}
	q.Reservations = NewReservations(store.Config{RoundTrip: queuesTrip, Retain: time.Minute, MaxAhead: time.Minute,
		MaxWaiting: maxWaiting}, func(k store.Key) { q.freed = append(q.freed, k) })
	return q
}

// age is that of a transaction that began after so many of the clock's smallest steps from now.
func (q *queues) age(n int) store.Priority {
	return store.Priority{Began: uint64(q.now) + uint64(n), Client: 1}
}

// do has something happen now.
func (q *queues) do(f func(*protocol.Env[store.Message])) {
	q.t.Helper()
	q.env.Begin(q.now)
	f(q.env)
	if err := q.Check(); err != nil {
		q.t.Fatal(err)
	}
}

func (q *queues) reserve(key store.Key, write bool, p store.Priority) {
	q.t.Helper()
	q.do(func(env *protocol.Env[store.Message]) { q.Reserve(env, key, write, p) })
}

func (q *queues) expire(key store.Key) {
	q.t.Helper()
	q.do(func(env *protocol.Env[store.Message]) { q.Expire(env, ReserveTimer{key}) })
}

// wantBefore fails the test unless older transactions want a key, or do not.
func (q *queues) wantBefore(what string, key store.Key, write bool, p store.Priority, want bool) {
	q.t.Helper()
	if got := q.Before(q.now, key, write, p); got != want {
		q.t.Errorf("%s: somebody goes before it: %v, want %v", what, got, want)
	}
}

// TestReservationsAreByAge: who is older goes first, until it is done, or its time is over. Reads
// go together.
func TestReservationsAreByAge(t *testing.T) {
	q := newQueues(t, 100)
	old, young := q.age(0), q.age(1)
	q.reserve("k", true, old)
	q.reserve("r", false, old)
	q.wantBefore("a younger one", "k", false, young, true)
	q.wantBefore("one whose age is none", "k", true, store.Priority{}, true)
	q.wantBefore("who has reserved", "k", true, old, false)
	q.wantBefore("an older one", "k", true, q.age(-1), false)
	q.wantBefore("a younger reader, beside one", "r", false, young, false)
	q.wantBefore("a younger writer, beside a reader", "r", true, young, true)
	q.reserve("k", true, young)
	q.do(func(env *protocol.Env[store.Message]) { q.Release(env, "k", old) })
	q.wantBefore("the next one", "k", true, young, false)
	q.wantBefore("one that comes then", "k", true, q.age(2), true)
	if fmt.Sprint(q.freed) != "[k]" {
		t.Errorf("told that somebody left %v, want k", q.freed)
	}
	q.now += ReserveFor * queuesTrip
	q.wantBefore("one that comes when the time is over", "k", true, q.age(2), false)
}

// TestReservationsAreBounded: a queue is left by the youngest, and what is reserved in all is
// bounded too.
func TestReservationsAreBounded(t *testing.T) {
	q := newQueues(t, MaxQueue+1)
	key := store.Key("k")
	for n := range 2 * MaxQueue {
		q.reserve(key, true, q.age(2*MaxQueue-n))
	}
	queue := q.Queue(key)
	if len(queue) != MaxQueue || queue[0].Priority != q.age(1) || queue[MaxQueue-1].Priority != q.age(MaxQueue) {
		t.Errorf("%d reservations from %v on, want the oldest %d", len(queue), queue[0].Priority, MaxQueue)
	}
	for n := range 3 {
		q.reserve(store.Key(fmt.Sprint(n)), false, q.age(n))
	}
	if q.Len() != MaxQueue+1 {
		t.Errorf("%d reservations in all, want %d", q.Len(), MaxQueue+1)
	}
	q.now += ReserveFor * queuesTrip
	for _, k := range []store.Key{key, "0"} {
		q.expire(k)
	}
	if q.Len() != 0 {
		t.Errorf("%d reservations are left after their time", q.Len())
	}
}

// TestReservationsEndWhateverTheClock: a clock that is set back, by little or by much, leaves no
// reservation behind, and none that lasts for longer than others.
func TestReservationsEndWhateverTheClock(t *testing.T) {
	for _, back := range []time.Duration{queuesTrip, 30 * time.Minute} {
		q := newQueues(t, 100)
		q.reserve("k", true, q.age(0))
		q.reserve("l", true, q.age(0))
		q.now -= back
		q.reserve("k", true, q.age(0))
		if n := len(q.Queue("k")); back > time.Minute && n != 1 {
			t.Errorf("set back by %v: %d reservations of a key, want the one that was made since", back, n)
		}
		if back > time.Minute && q.Before(q.now, "l", true, store.Priority{}) {
			t.Errorf("set back by %v: a reservation keeps others away for longer than any", back)
		}
		q.expire("k")
		q.expire("l")
		if q.Len() != 0 {
			t.Errorf("set back by %v: %d reservations are left, and nothing ends them", back, q.Len())
		}
	}
}
