package specgrpc_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/foresay/foresay"
	"github.com/foresay/foresay/control"

	kvpb "github.com/foresay/foresay/api/foresay/testkv/v1"
	"github.com/foresay/foresay/specgrpc"
)

// A read of a plain server is sent on a guess if its site says so, and no other
// call is; what it answers counts once the guess is confirmed.
func TestSendPlainly(t *testing.T) {
	for name, tt := range map[string]struct {
		plainly bool
		guess   string
		took    time.Duration
		gets    int
	}{
		"right":       {true, "value of slow", 60 * time.Millisecond, 1},
		"wrong":       {true, "wrong", 70 * time.Millisecond, 2},
		"held, right": {false, "value of slow", 70 * time.Millisecond, 1},
		"held, wrong": {false, "wrong", 70 * time.Millisecond, 1},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				first, behind := &kvServer{get: slow("slow", 40*time.Millisecond)}, &kvServer{}
				_, _, front := w.kv("a", first)
				_, plain := w.serve("b", func(s *grpc.Server) { kvpb.RegisterTestKVServer(s, behind) })
				a := w.dial(front)
				b := w.dial(plain, specgrpc.WithCallSites(control.CallSiteConfig{Name: getMethod, SendPlainly: tt.plainly}))
				ca, cb := kvpb.NewTestKVClient(a), kvpb.NewTestKVClient(b)
				time.Sleep(time.Second) // they are connected
				for range 2 {           // at first nobody knows that the server is plain
					behind.seen = nil
					start := time.Now()
					got, err := foresay.Do(w.Context(), func(ctx context.Context) (string, error) {
						v, err := guessed(ctx, ca, "slow", &kvpb.GetResponse{Value: tt.guess})
						if err != nil {
							return "", err
						}
						r, err := cb.Get(ctx, &kvpb.GetRequest{Key: v.GetValue()})
						if err != nil {
							return "", err
						}
						_, err = cb.Put(ctx, &kvpb.PutRequest{Key: r.GetValue()})
						return r.GetValue(), err
					})
					if got != "value of value of slow" || err != nil {
						w.Errorf("%q, %v", got, err)
					}
					if took := time.Since(start); took != tt.took {
						w.Errorf("took %v, want %v", took, tt.took)
					}
					if puts := len(behind.notes()) - tt.gets; puts != 1 {
						w.Errorf("%v, want %d reads and one write", behind.notes(), tt.gets)
					}
					w.quiet(b)
				}
			})
		})
	}
}

// Reads that are sent plainly ahead wait for room as any speculative call: a connection of whose
// peer nothing is known has four of them at first, and the next ones a millisecond later.
func TestSendPlainlyQueues(t *testing.T) {
	inWorld(t, func(w *world) {
		var mu sync.Mutex
		came := make(map[time.Duration]int)
		start := time.Now()
		_, _, front := w.kv("a", &kvServer{get: slow("slow", 40*time.Millisecond)})
		_, plain := w.serve("b", func(s *grpc.Server) {
			kvpb.RegisterTestKVServer(s, &kvServer{get: func(_ context.Context, r *kvpb.GetRequest) (*kvpb.GetResponse, error) {
				mu.Lock()
				defer mu.Unlock()
				came[time.Since(start)]++
				return value(r.GetKey()), nil
			}})
		})
		cc := w.dial(plain, specgrpc.WithCallSites(control.CallSiteConfig{Name: getMethod, SendPlainly: true}))
		ca, cb := kvpb.NewTestKVClient(w.dial(front)), kvpb.NewTestKVClient(cc)
		task := func(reads int) {
			_, err := foresay.Do(w.Context(), func(ctx context.Context) (int, error) {
				if _, err := guessed(ctx, ca, "slow", value("slow")); err != nil {
					return 0, err
				}
				g := foresay.NewGroup(ctx)
				for i := range reads {
					g.Go(func(ctx context.Context) error {
						_, err := cb.Get(ctx, &kvpb.GetRequest{Key: strconv.Itoa(i)})
						return err
					})
				}
				return 0, g.Wait()
			})
			if err != nil {
				w.Error(err)
			}
		}
		task(1) // it shows that the server is a plain one
		time.Sleep(time.Second)
		came, start = make(map[time.Duration]int), time.Now()
		task(6)
		w.quiet(cc)
		want := map[time.Duration]int{rtt / 2: 4, rtt/2 + time.Millisecond: 2}
		if diff := cmp.Diff(want, came); diff != "" {
			w.Errorf("reads that came to the server, by when (-want +got):\n%s", diff)
		}
	})
}

// What was sent plainly ahead gives its stream up for calls of confirmed callers, those that were
// sent ahead and turned out right included: it may never end by itself.
func TestSendPlainlyMakesRoom(t *testing.T) {
	for _, inTask := range []bool{true, false} {
		t.Run(fmt.Sprintf("for a call of a task %t", inTask), func(t *testing.T) {
			inWorld(t, func(w *world) { w.makesRoom(inTask) })
		})
	}
}

func (w *world) makesRoom(inTask bool) {
	_, _, front := w.kv("a", &kvServer{get: func(ctx context.Context, r *kvpb.GetRequest) (*kvpb.GetResponse, error) {
		after := map[string]time.Duration{"soon": 40 * time.Millisecond, "late": 2 * time.Second}
		return value(r.GetKey()), pause(ctx, after[r.GetKey()])
	}})
	_, plain := w.serve("b", func(s *grpc.Server) {
		kvpb.RegisterTestKVServer(s, &kvServer{get: func(ctx context.Context, r *kvpb.GetRequest) (*kvpb.GetResponse, error) {
			if r.GetKey() == "never" {
				<-ctx.Done()
			}
			return value(r.GetKey()), ctx.Err()
		}})
	}, grpc.MaxConcurrentStreams(1))
	cc := w.dial(plain, specgrpc.WithCallSites(control.CallSiteConfig{Name: getMethod, SendPlainly: true}))
	ca, cb := kvpb.NewTestKVClient(w.dial(front)), kvpb.NewTestKVClient(cc)
	task := func(actual, guess, key string) {
		if _, err := foresay.Do(w.Context(), func(ctx context.Context) (int, error) {
			if v, err := guessed(ctx, ca, actual, value(guess)); err != nil || v.GetValue() != value(guess).GetValue() {
				return 0, err
			}
			_, err := cb.Get(ctx, &kvpb.GetRequest{Key: key})
			return 0, err
		}); err != nil {
			w.Error(err)
		}
	}
	time.Sleep(time.Second)
	task("soon", "soon", "the server is a plain one")
	time.Sleep(time.Second)
	var wg sync.WaitGroup
	wg.Go(func() { task("late", "wrong", "never") })
	time.Sleep(5 * time.Millisecond)
	start := time.Now()
	if inTask {
		task("soon", "soon", "short")
	} else if _, err := cb.Get(w.Context(), &kvpb.GetRequest{Key: "short"}); err != nil {
		w.Error(err)
	}
	if took := time.Since(start); took > 150*time.Millisecond {
		w.Errorf("it took %v", took)
	}
	wg.Wait()
	w.quiet(cc)
}

// An error of a call that was sent on a guess is no result: it is made again, after it.
func TestSendPlainlyFails(t *testing.T) {
	inWorld(t, func(w *world) {
		const takes = 60 * time.Millisecond
		asked := 0
		behind := &kvServer{get: func(ctx context.Context, r *kvpb.GetRequest) (*kvpb.GetResponse, error) {
			asked++
			first := asked == 1
			if err := pause(ctx, takes); err != nil || !first {
				return value(r.GetKey()), err
			}
			return nil, status.Error(codes.ResourceExhausted, "too early")
		}}
		_, _, front := w.kv("a", &kvServer{get: slow("slow", 40*time.Millisecond)})
		_, plain := w.serve("b", func(s *grpc.Server) { kvpb.RegisterTestKVServer(s, behind) })
		ca := kvpb.NewTestKVClient(w.dial(front))
		cb := kvpb.NewTestKVClient(w.dial(plain,
			specgrpc.WithCallSites(control.CallSiteConfig{Name: getMethod, SendPlainly: true})))
		time.Sleep(time.Second)
		start := time.Now()
		got, err := foresay.Do(w.Context(), func(ctx context.Context) (string, error) {
			v, err := guessed(ctx, ca, "slow", value("slow"))
			if err != nil {
				return "", err
			}
			r, err := cb.Get(ctx, &kvpb.GetRequest{Key: v.GetValue()})
			return r.GetValue(), err
		})
		if got != "value of value of slow" || err != nil || asked != 2 {
			w.Errorf("%q, %v, asked %d times", got, err, asked)
		}
		// It finds out first that the server is a plain one, which takes a round trip.
		if took := time.Since(start); took != rtt+2*(rtt+takes) {
			w.Errorf("it took %v, want %v", took, rtt+2*(rtt+takes))
		}
	})
}

// A read that has failed ahead is not sent ahead again after another wrong guess: it is made once
// more, when the guess that it stands on is confirmed.
func TestSendPlainlyFailsOnce(t *testing.T) {
	inWorld(t, func(w *world) {
		const first, other, takes = 50 * time.Millisecond, 30 * time.Millisecond, 20 * time.Millisecond
		var asked atomic.Int32
		after := map[string]time.Duration{"first": first, "other": other}
		_, _, front := w.kv("a", &kvServer{get: func(ctx context.Context, r *kvpb.GetRequest) (*kvpb.GetResponse, error) {
			return value(r.GetKey()), pause(ctx, after[r.GetKey()])
		}})
		_, plain := w.serve("b", func(s *grpc.Server) {
			fails := func(ctx context.Context, _ *kvpb.GetRequest) (*kvpb.GetResponse, error) {
				asked.Add(1)
				if err := pause(ctx, takes); err != nil {
					return nil, err
				}
				return nil, status.Error(codes.NotFound, "no such key")
			}
			kvpb.RegisterTestKVServer(s, &kvServer{get: fails})
		})
		ca := kvpb.NewTestKVClient(w.dial(front))
		cb := kvpb.NewTestKVClient(w.dial(plain,
			specgrpc.WithCallSites(control.CallSiteConfig{Name: getMethod, SendPlainly: true})))
		var took time.Duration
		for range 2 { // the first time it finds out that the server is a plain one
			time.Sleep(time.Second)
			asked.Store(0)
			start := time.Now()
			_, err := foresay.Do(w.Context(), func(ctx context.Context) (int, error) {
				if _, err := guessed(ctx, ca, "first", value("first")); err != nil {
					return 0, err
				}
				g := foresay.NewGroup(ctx)
				g.Go(func(ctx context.Context) error {
					_, err := cb.Get(ctx, &kvpb.GetRequest{Key: "fails"})
					return err
				})
				g.Go(func(ctx context.Context) error {
					_, err := guessed(ctx, ca, "other", value("wrong"))
					return err
				})
				return 0, g.Wait()
			})
			took = time.Since(start)
			if status.Code(err) != codes.NotFound {
				w.Errorf("got %v", err)
			}
		}
		if n := asked.Load(); n != 2 {
			w.Errorf("the server was asked %d times, want 2", n)
		}
		if want := first + rtt + takes + rtt; took != want {
			w.Errorf("it took %v, want %v", took, want)
		}
	})
}

// Only methods without side effects may be sent so, in code and in files.
func TestSendPlainlyIsForReads(t *testing.T) {
	for method, want := range map[string]string{getMethod: "", putMethod: "without side effects"} {
		file := filepath.Join(t.TempDir(), "sites.json")
		if err := os.WriteFile(file, []byte(`{"sites": [{"method": "`+method+`", "send_plainly": true}]}`),
			0o600); err != nil {
			t.Fatal(err)
		}
		for name, opt := range map[string]grpc.DialOption{
			"code": specgrpc.WithCallSites(control.CallSiteConfig{Name: method, SendPlainly: true}),
			"file": specgrpc.WithCallSiteFile(file, nil),
		} {
			cc, err := specgrpc.NewClient("passthrough:///nobody", grpc.WithTransportCredentials(insecure.NewCredentials()), opt)
			if err == nil {
				cc.Close()
			}
			if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("%s, %s: got %v, want %q", method, name, err, want)
			}
		}
	}
}

// TestSentAheadGivesWay: reads that were sent plainly ahead and are not answered have taken all
// streams that the peer admits. They give way to calls of confirmed callers, and are made again.
func TestSentAheadGivesWay(t *testing.T) {
	for _, reads := range []int{3, 50} { // as many as there are streams, and many that wait for one
		t.Run(strconv.Itoa(reads), func(t *testing.T) { sentAheadGivesWay(t, reads) })
	}
}

func sentAheadGivesWay(t *testing.T, reads int) {
	inWorld(t, func(w *world) {
		const streams = 3
		var slowReads atomic.Int32
		_, _, front := w.kv("a", &kvServer{get: slow("slow", time.Second)})
		_, plain := w.serve("b", func(s *grpc.Server) {
			kvpb.RegisterTestKVServer(s, &kvServer{get: func(ctx context.Context, r *kvpb.GetRequest) (*kvpb.GetResponse,
				error) {
				if strings.HasPrefix(r.GetKey(), "slow") && slowReads.Add(1) > 0 {
					if err := pause(ctx, 2*time.Second); err != nil {
						return nil, err
					}
				}
				return value(r.GetKey()), nil
			}})
		}, grpc.MaxConcurrentStreams(streams))
		cc := w.dial(plain, specgrpc.WithCallSites(control.CallSiteConfig{Name: getMethod, SendPlainly: true}))
		ca, cb := kvpb.NewTestKVClient(w.dial(front)), kvpb.NewTestKVClient(cc)
		task := func(keys ...string) error {
			_, err := foresay.Do(w.Context(), func(ctx context.Context) (int, error) {
				if _, err := guessed(ctx, ca, "slow", value("slow")); err != nil {
					return 0, err
				}
				g := foresay.NewGroup(ctx)
				for _, key := range keys {
					g.Go(func(ctx context.Context) error {
						r, err := cb.Get(ctx, &kvpb.GetRequest{Key: key})
						if err == nil && r.GetValue() != value(key).GetValue() {
							w.Errorf("%s is %s", key, r.GetValue())
						}
						return err
					})
				}
				return 0, g.Wait()
			})
			return err
		}
		if err := task("a"); err != nil { // it shows that the server is a plain one
			w.Error(err)
		}
		var done sync.WaitGroup
		done.Go(func() {
			var keys []string
			for i := range reads {
				keys = append(keys, "slow"+strconv.Itoa(i))
			}
			if err := task(keys...); err != nil {
				w.Error(err)
			}
		})
		time.Sleep(100 * time.Millisecond)
		if n := slowReads.Load(); n != streams {
			w.Errorf("%d reads are sent ahead, want %d", n, streams)
		}
		for range 5 {
			start := time.Now()
			if _, err := cb.Get(w.Context(), &kvpb.GetRequest{Key: "confirmed"}); err != nil {
				w.Error(err)
			}
			if took := time.Since(start); took > 100*time.Millisecond {
				w.Errorf("a call of a confirmed caller took %v", took)
			}
		}
		done.Wait()
		w.quiet(cc)
	})
}
