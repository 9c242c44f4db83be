package specgrpc_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/foresay/foresay"
	"github.com/foresay/foresay/control"

	kvpb "github.com/foresay/foresay/api/foresay/testkv/v1"
	"github.com/foresay/foresay/specgrpc"
)

// overlapping is a program whose goroutines share the context of the task, as plain code's do.
type overlapping struct {
	name    string
	guesses bool // it may be given a prediction
	code    func(ctx context.Context, c kvpb.TestKVClient, guess *kvpb.GetResponse) error
}

const overlapWork = 300 * time.Millisecond

// beside runs functions at the same time, and returns one of their errors.
func beside(fs ...func() error) error {
	errs := make(chan error, len(fs))
	for _, f := range fs {
		go func() { errs <- f() }()
	}
	var err error
	for range fs {
		if e := <-errs; e != nil {
			err = e
		}
	}
	return err
}

func overlaps() []overlapping {
	get := func(ctx context.Context, c kvpb.TestKVClient, key string) func() error {
		return func() error {
			_, err := c.Get(ctx, &kvpb.GetRequest{Key: key})
			return err
		}
	}
	add := func(ctx context.Context, c kvpb.TestKVClient, key string) func() error {
		return func() error {
			_, err := c.Append(ctx, &kvpb.AppendRequest{Key: key})
			return err
		}
	}
	out := []overlapping{{"reads and writes", false, func(ctx context.Context, c kvpb.TestKVClient,
		_ *kvpb.GetResponse) error {
		return beside(get(ctx, c, "a"), add(ctx, c, "b"), get(ctx, c, "c"), add(ctx, c, "d"))
	}}, {"one after a guess, others beside it", true, func(ctx context.Context, c kvpb.TestKVClient,
		guess *kvpb.GetResponse) error {
		return beside(func() error {
			v, err := guessed(ctx, c, "a", guess)
			if err != nil {
				return err
			}
			return get(ctx, c, "next "+v.GetValue())()
		}, get(ctx, c, "b"), get(ctx, c, "c"))
	}}, {"a value goes from one to the other", false, func(ctx context.Context, c kvpb.TestKVClient,
		_ *kvpb.GetResponse) error {
		values := make(chan string, 1)
		return beside(func() error {
			v, err := c.Get(ctx, &kvpb.GetRequest{Key: "a"})
			values <- v.GetValue()
			return err
		}, func() error { return add(ctx, c, "after "+<-values)() }, get(ctx, c, "c"))
	}}, {"a write after all of them", false, func(ctx context.Context, c kvpb.TestKVClient, _ *kvpb.GetResponse) error {
		if err := beside(add(ctx, c, "a"), add(ctx, c, "b"), get(ctx, c, "c")); err != nil {
			return err
		}
		return add(ctx, c, "d")()
	}}}
	for n := range 8 {
		out = append(out, overlapping{fmt.Sprint(n+1, " reads"), false, func(ctx context.Context, c kvpb.TestKVClient,
			_ *kvpb.GetResponse) error {
			var fs []func() error
			for i := range n + 1 {
				fs = append(fs, get(ctx, c, fmt.Sprint(i)))
			}
			return beside(fs...)
		}})
	}
	return out
}

// TestOverlappingCalls: calls that goroutines make with the task's own context at the same time are
// in flight at the same time, whatever the server is: a task takes no longer than plain code, but
// for the round trip in which a client learns what a server is. The calls are not declared, so each
// may have side effects. The rows with a guess say less: plainly the call that follows the guess
// makes the program as long as a task may take in which all wait for the guess.
func TestOverlappingCalls(t *testing.T) {
	for _, p := range overlaps() {
		for _, plainServer := range []bool{true, false} {
			guesses := []string{""}
			if p.guesses {
				guesses = []string{"", "right", "wrong"}
			}
			for _, g := range guesses {
				t.Run(fmt.Sprintf("%s, plain server %t, guess %s", p.name, plainServer, g), func(t *testing.T) {
					inWorld(t, func(w *world) { w.overlap(p, plainServer, g, control.CallSiteConfig{}) })
				})
			}
		}
	}
}

func (w *world) overlap(p overlapping, plainServer bool, g string, site control.CallSiteConfig) {
	impl := &kvServer{
		get: func(ctx context.Context, r *kvpb.GetRequest) (*kvpb.GetResponse, error) {
			return value(r.GetKey()), pause(ctx, overlapWork)
		},
		append: func(ctx context.Context, _ *kvpb.AppendRequest) (*kvpb.AppendResponse, error) {
			return &kvpb.AppendResponse{}, pause(ctx, overlapWork)
		},
	}
	var addr string
	if plainServer {
		_, addr = w.serve("a", func(s *grpc.Server) { kvpb.RegisterTestKVServer(s, impl) })
	} else {
		_, _, addr = w.kv("a", impl)
	}
	site.Name = getMethod
	guess := map[string]*kvpb.GetResponse{"right": value("a"), "wrong": value("wrong")}[g]
	raw, cc := kvpb.NewTestKVClient(w.raw(addr)), kvpb.NewTestKVClient(w.dial(addr, specgrpc.WithCallSites(site)))
	time.Sleep(time.Second)
	var mu sync.Mutex
	timed := func(f func() error) time.Duration {
		mu.Lock()
		defer mu.Unlock()
		start := time.Now()
		if err := f(); err != nil {
			w.Error(err)
		}
		return time.Since(start)
	}
	plain := timed(func() error { return p.code(w.Context(), raw, nil) })
	before := len(impl.notes())
	task := timed(func() error {
		_, err := foresay.Do(w.Context(), func(ctx context.Context) (int, error) { return 0, p.code(ctx, cc, guess) })
		return err
	})
	if limit := plain + 2*rtt; task > limit {
		w.Errorf("the task took %v, plainly %v; the calls were %v", task, plain, impl.notes()[before:])
	}
	if g != "wrong" && len(impl.notes()) != 2*before {
		w.Errorf("the calls were %v, want as many as plainly, %v", impl.notes()[before:], impl.notes()[:before])
	}
}

// TestAnyNumberOfGoroutines: so many goroutines each make a call with the task's own context, the
// first of which may be guessed. Whatever is declared of the calls, and whatever the server is, the
// task takes no longer than plain code. What is missing is a guess at a call with side effects,
// behind which others wait, and a guess that is taken before the other one of two goroutines makes
// its call: that cannot be told from code in sequence. So of two the other one comes first.
func TestAnyNumberOfGoroutines(t *testing.T) {
	sites := map[string]control.CallSiteConfig{"undeclared": {}, "reads": {Effect: control.EffectNone},
		"ordered reads": {Effect: control.EffectNone, Ordered: true}}
	for _, declared := range slices.Sorted(maps.Keys(sites)) {
		for _, plainServer := range []bool{true, false} {
			for _, g := range []string{"", "right", "wrong"} {
				if declared == "undeclared" && g != "" {
					continue
				}
				for _, n := range []int{1, 2, 3, 4, 5, 8} {
					t.Run(fmt.Sprintf("%s, plain server %t, guess %s, %d", declared, plainServer, g, n), func(t *testing.T) {
						inWorld(t, func(w *world) { w.overlap(goroutines(n, g != ""), plainServer, g, sites[declared]) })
					})
				}
			}
		}
	}
}

func goroutines(n int, guess bool) overlapping {
	return overlapping{"", guess, func(ctx context.Context, c kvpb.TestKVClient, g *kvpb.GetResponse) error {
		fs := []func() error{func() error {
			if n == 2 {
				time.Sleep(time.Millisecond)
			}
			_, err := guessed(ctx, c, "a", g)
			return err
		}}
		for i := range n - 1 {
			fs = append(fs, func() error {
				_, err := c.Get(ctx, &kvpb.GetRequest{Key: fmt.Sprint(i)})
				return err
			})
		}
		return beside(fs...)
	}}
}

// TestGroupsOfGoroutines: two goroutines that share the task's context each use a Group, one of
// them after a write, and then a guess is wrong. In a replay the write is answered at once, so the
// Groups may begin in the other order: no write is sent once more, and the task succeeds.
func TestGroupsOfGoroutines(t *testing.T) {
	for range 10 {
		inWorld(t, func(w *world) {
			impl := &kvServer{
				get: func(ctx context.Context, r *kvpb.GetRequest) (*kvpb.GetResponse, error) {
					return value(r.GetKey()), pause(ctx, overlapWork)
				},
				append: func(ctx context.Context, _ *kvpb.AppendRequest) (*kvpb.AppendResponse, error) {
					return &kvpb.AppendResponse{}, pause(ctx, overlapWork)
				},
			}
			_, addr := w.serve("a", func(s *grpc.Server) { kvpb.RegisterTestKVServer(s, impl) })
			c := kvpb.NewTestKVClient(w.dial(addr))
			time.Sleep(time.Second)
			if _, err := foresay.Do(w.Context(), func(ctx context.Context) (int, error) {
				return 0, groups(ctx, c)
			}); err != nil {
				w.Error(err)
			}
			written := map[string]int{}
			for _, note := range impl.notes() {
				written[note]++
			}
			for _, key := range []string{"2", "3", "4"} {
				if n := written["append "+key+"+="]; n != 1 {
					w.Errorf("%s was written %d times: %v", key, n, impl.notes())
				}
			}
		})
	}
}

func groups(ctx context.Context, c kvpb.TestKVClient) error {
	read := func(ctx context.Context, key string) error {
		_, err := c.Get(ctx, &kvpb.GetRequest{Key: key})
		return err
	}
	write := func(ctx context.Context, key string) error {
		_, err := c.Append(ctx, &kvpb.AppendRequest{Key: key})
		return err
	}
	return beside(func() error {
		g := foresay.NewGroup(ctx)
		g.Go(func(ctx context.Context) error { return errors.Join(read(ctx, "1"), write(ctx, "2"), write(ctx, "3")) })
		return g.Wait()
	}, func() error {
		if err := write(ctx, "4"); err != nil {
			return err
		}
		g := foresay.NewGroup(ctx)
		g.Go(func(ctx context.Context) error { return read(ctx, "5") })
		if err := g.Wait(); err != nil {
			return err
		}
		return read(foresay.Predicting(ctx, value("wrong")), "6")
	})
}
