package specgrpc_test

import (
	"context"
	"fmt"
	"math/bits"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/foresay/foresay"
	"github.com/foresay/foresay/control"
	"github.com/foresay/foresay/internal/race"
	"github.com/foresay/foresay/internal/seed"

	kvpb "github.com/foresay/foresay/api/foresay/testkv/v1"
	"github.com/foresay/foresay/specgrpc"
)

// firstLoad is what callers do at once over a connection on which no speculative stream has been,
// or what they do in bursts: then the last one is measured.
type firstLoad struct {
	streams   uint32 // that the peer admits, 0 for any number
	tasks     int
	right     bool // the guesses
	half      bool // every other guess is right
	staged    bool // the tasks stage something behind their reads
	connected bool // before they begin
	bursts    int  // 0 for one
	gap       time.Duration
}

func (l firstLoad) String() string {
	return fmt.Sprintf("%d streams, %d tasks, right %t, half %t, staged %t, connected %t, gap %v", l.streams, l.tasks,
		l.right, l.half, l.staged, l.connected, l.gap)
}

const coldWork = 20 * time.Millisecond

// task is three reads, which take coldWork each, a call that stages if there is to be one, and a
// write.
func (l firstLoad) task(ctx context.Context, c kvpb.TestKVClient, i int) error {
	key := fmt.Sprint(i)
	for k := range 3 {
		guess := value(key)
		if !l.right && !(l.half && (i+k)%2 == 0) {
			guess = value(fmt.Sprint("not ", k, key))
		}
		got, err := guessed(ctx, c, key, guess)
		if err != nil {
			return err
		}
		key = got.GetValue()
	}
	if l.staged {
		if _, err := c.Put(ctx, &kvpb.PutRequest{Key: key}); err != nil {
			return err
		}
	}
	_, err := c.Append(ctx, &kvpb.AppendRequest{Key: key})
	return err
}

// took is how long tasks took.
type took struct{ mean, max time.Duration }

// play has all tasks begin, in Do or plainly.
func (l firstLoad) play(w *world, cc grpc.ClientConnInterface, speculate bool) (t took) {
	c := kvpb.NewTestKVClient(cc)
	for _, d := range w.sideBySide(l.tasks, l.apart(), speculate, func(ctx context.Context, i int) error {
		return l.task(ctx, c, i)
	}) {
		t.mean += d / time.Duration(l.tasks)
		t.max = max(t.max, d)
	}
	return t
}

// apart is how far apart tasks begin.
func (l firstLoad) apart() time.Duration {
	if l.bursts > 0 {
		return 37 * time.Microsecond
	}
	return time.Microsecond
}

// last plays all bursts, and returns what the last one took.
func (l firstLoad) last(w *world, cc grpc.ClientConnInterface, speculate bool) (t took) {
	for burst := range max(l.bursts, 1) {
		if burst > 0 {
			time.Sleep(l.gap)
		}
		t = l.play(w, cc, speculate)
	}
	return t
}

// server is one that admits so many streams.
func (l firstLoad) server(w *world) string {
	impl := &kvServer{
		get: func(ctx context.Context, r *kvpb.GetRequest) (*kvpb.GetResponse, error) {
			return value(r.GetKey()), pause(ctx, coldWork)
		},
		put: func(ctx context.Context, _ *kvpb.PutRequest) (*kvpb.PutResponse, error) {
			return &kvpb.PutResponse{}, foresay.Barrier(ctx)
		},
	}
	var opts []grpc.ServerOption
	if l.streams > 0 {
		opts = append(opts, grpc.MaxConcurrentStreams(l.streams))
	}
	_, addr := w.server("a", impl, append(opts, specgrpc.SideEffectFree(getMethod), specgrpc.Stages(putMethod))...)
	return addr
}

// run returns how long the tasks take plainly, which is kept for other guesses, and with us.
func (l firstLoad) run(t *testing.T, kept map[firstLoad]took) (plain, ours took) {
	key := l
	key.right, key.half = false, false
	plain, known := kept[key]
	if !known {
		inWorld(t, func(w *world) {
			cc := w.raw(l.server(w))
			cc.Connect()
			if l.connected {
				time.Sleep(time.Second)
			}
			plain = l.last(w, cc, false)
		})
		kept[key] = plain
	}
	inWorld(t, func(w *world) {
		ctl, err := control.New(control.Config{Budget: -1})
		if err != nil {
			t.Fatal(err)
		}
		cc := w.dial(l.server(w), specgrpc.WithControl(ctl), specgrpc.WithCallSites(
			control.CallSiteConfig{Name: getMethod, Effect: control.EffectNone},
			control.CallSiteConfig{Name: putMethod, Effect: control.EffectStaged}))
		if l.connected {
			time.Sleep(time.Second)
		}
		ours = l.last(w, cc, true)
		w.quiet(cc)
	})
	return plain, ours
}

// TestFirstLoad: tasks over a new connection take as long as plain code where its peer admits few
// streams, though nobody knows that yet, and about half as long where it admits any number.
func TestFirstLoad(t *testing.T) {
	kept := map[firstLoad]took{}
	for _, l := range []firstLoad{
		{streams: 16, tasks: 16}, {streams: 16, tasks: 64}, {streams: 100, tasks: 64}, {streams: 100, tasks: 400},
		{tasks: 128},
	} {
		for i := range 8 {
			if l.streams == 100 && (race.Enabled || bits.OnesCount(uint(i))%2 != 0) || i%seed.Every(3) != 0 {
				continue // two choices at a time: with few streams all three
			}
			l.right, l.staged, l.connected = i&1 != 0, i&2 != 0, i&4 != 0
			plain, ours := l.run(t, kept)
			mean, worst := float64(ours.mean)/float64(plain.mean), float64(ours.max)/float64(plain.max)
			most := 1.06
			if l.streams == 0 && l.right {
				most = 0.7
			}
			if mean > most || worst > 1.25 {
				t.Errorf("%v: mean %v, plainly %v: %.2f; worst %v, plainly %v: %.2f", l, ours.mean, plain.mean, mean, ours.max,
					plain.max, worst)
			}
		}
	}
}

// TestBurstsAtALimit: where a connection has met a limit, tasks take as long as plain code,
// whatever is guessed, though they come in bursts so far apart that nobody remembers how many
// streams confirmed callers wanted.
func TestBurstsAtALimit(t *testing.T) {
	kept := map[firstLoad]took{}
	for _, l := range []firstLoad{
		{streams: 16, tasks: 8}, {streams: 16, tasks: 64}, {streams: 100, tasks: 64}, {streams: 100, tasks: 200},
	} {
		t.Run(fmt.Sprintf("%d tasks in %d streams", l.tasks, l.streams), func(t *testing.T) {
			for i := range 8 {
				if l.streams == 100 && (race.Enabled || bits.OnesCount(uint(i))%2 != 0) || i%seed.Every(3) != 0 {
					continue // two choices at a time: with few streams all three
				}
				l.half, l.staged, l.connected, l.bursts = i&1 != 0, i&2 != 0, true, 3
				if l.gap = 500 * time.Millisecond; i&4 != 0 {
					l.gap = 3 * time.Second
				}
				plain, ours := l.run(t, kept)
				mean, worst := float64(ours.mean)/float64(plain.mean), float64(ours.max)/float64(plain.max)
				if mean > 1.05 || worst > 1.15 {
					t.Errorf("%v: mean %v, plainly %v: %.2f; worst %v, plainly %v: %.2f", l, ours.mean, plain.mean, mean,
						ours.max, plain.max, worst)
				}
			}
		})
	}
}
