package oteltest

import (
	"context"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/foresay/foresay"
	kvpb "github.com/foresay/foresay/api/foresay/testkv/v1"
	"github.com/foresay/foresay/control"
	"github.com/foresay/foresay/report"
	"github.com/foresay/foresay/specgrpc"
	"github.com/foresay/foresay/telemetry"
)

// chain calls Get for one key after the other, with a prediction of each response
// but the last. wrong is the key whose prediction is not what comes.
func chain(c kvpb.TestKVClient, wrong string, keys ...string) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		last, err := "", error(nil)
		for i, key := range keys {
			prediction := []any{value(key)}
			switch {
			case key == wrong:
				prediction = []any{value("nothing")}
			case i == len(keys)-1:
				prediction = nil
			}
			if last, err = get(ctx, c, key, prediction...); err != nil {
				return "", err
			}
			if key == wrong && last != "value of "+key {
				_, err = get(ctx, c, "in vain")
				return "", err
			}
		}
		return last, nil
	}
}

func run(w *world, f func(context.Context) (string, error)) {
	w.Helper()
	ctx, span := w.begin()
	if _, err := foresay.Do(ctx, f, foresay.WithName("page")); err != nil {
		w.Error(err)
	}
	span.End()
}

// TestRight: what stands on right predictions lies in branches, side by side.
func TestRight(t *testing.T) {
	inWorld(t, func(w *world) {
		run(w, chain(w.dial(w.serve("a", kv{})), "", "one", "two", "three"))
		wantTree(w, `
caller 0-10
  task page 0-10 outcome=confirmed runs=1 saved_ms=20 task=page wasted_calls=0 wasted_ms=0
    branch /TestKV/Get 0-10 ->call(TestKV/Get) call=1 depth=1 mode=on outcome=confirmed prediction=0 run=1 site=/TestKV/Get
      TestKV/Get 0-20 client speculative=true
        TestKV/Get 5-15 server speculative=true
    branch /TestKV/Get 0-10 ->call(TestKV/Get in branch /TestKV/Get call 1 run 1) call=2 depth=2 mode=on outcome=confirmed prediction=0 run=1 site=/TestKV/Get
      TestKV/Get 0-20 client speculative=true
        TestKV/Get 5-15 server speculative=true
    TestKV/Get 0-10 client
      TestKV/Get 5-5 server
`)
	})
}

// TestNoPredictions: one span more than without Foresay, around the calls.
func TestNoPredictions(t *testing.T) {
	inWorld(t, func(w *world) {
		c := w.dial(w.serve("a", kv{}))
		run(w, func(ctx context.Context) (string, error) {
			if _, err := get(ctx, c, "one"); err != nil {
				return "", err
			}
			return get(ctx, c, "two")
		})
		wantTree(w, `
caller 0-20
  task page 0-20 outcome=confirmed runs=1 saved_ms=0 task=page wasted_calls=0 wasted_ms=0
    TestKV/Get 0-10 client
      TestKV/Get 5-5 server
    TestKV/Get 10-20 client
      TestKV/Get 15-15 server
`)
	})
}

// TestWrong: what stood on the wrong prediction is in a branch of its own, and no
// error; what was right of the run is adopted by the replay.
func TestWrong(t *testing.T) {
	inWorld(t, func(w *world) {
		run(w, chain(w.dial(w.serve("a", kv{slow: "two"})), "two", "one", "two", "three"))
		wantTree(w, `
caller 0-30
  task page 0-30 outcome=confirmed runs=2 saved_ms=10 task=page wasted_calls=1 wasted_ms=10
    branch /TestKV/Get 0-10 ->call(TestKV/Get) call=1 depth=1 mode=on outcome=confirmed prediction=0 run=1 site=/TestKV/Get
      TestKV/Get 0-20 client speculative=true
        TestKV/Get 5-15 server speculative=true
    branch /TestKV/Get 0-20 ->call(TestKV/Get in branch /TestKV/Get call 1 run 1) call=2 depth=2 mode=on outcome=discarded prediction=0 run=1 site=/TestKV/Get
      TestKV/Get 0-40 client speculative=true CANCELLED
        TestKV/Get 5-35 server speculative=true CANCELLED
    TestKV/Get 0-10 client
      TestKV/Get 5-5 server
    adopted /TestKV/Get 20-20 ->call(TestKV/Get) call=1 outcome=confirmed run=2 site=/TestKV/Get
    adopted /TestKV/Get 20-20 ->call(TestKV/Get in branch /TestKV/Get call 1 run 1) call=2 outcome=confirmed run=2 site=/TestKV/Get
    TestKV/Get 20-30 client
      TestKV/Get 25-25 server
    replay page 20-30 ->branch(branch /TestKV/Get call 2 run 1) call=2 outcome=confirmed replay_of=1 run=2 site=/TestKV/Get
`)
	})
}

// TestHeld: a call with side effects waits until its caller is confirmed.
func TestHeld(t *testing.T) {
	inWorld(t, func(w *world) {
		c := w.dial(w.serve("a", kv{}))
		run(w, func(ctx context.Context) (string, error) {
			v, err := get(ctx, c, "one", value("one"))
			if err != nil {
				return "", err
			}
			_, err = c.Put(ctx, &kvpb.PutRequest{Key: "copy", Value: v})
			return v, err
		})
		wantTree(w, `
caller 0-20
  task page 0-20 outcome=confirmed runs=1 saved_ms=0 task=page wasted_calls=0 wasted_ms=0
    branch /TestKV/Get 0-10 ->call(TestKV/Get) call=1 depth=1 mode=on outcome=confirmed prediction=0 run=1 site=/TestKV/Get
    TestKV/Get 0-10 client
      TestKV/Get 5-5 server
    held /TestKV/Put 0-10 ->call(TestKV/Put) call=2 outcome=sent reason=it has side effects and its caller is speculative site=/TestKV/Put
    TestKV/Put 10-20 client
      TestKV/Put 15-15 server
`)
	})
}

// TestHeldByServer: a server that refuses calls on guesses has one made
// once more, where it would be without Foresay, and no error is seen.
func TestHeldByServer(t *testing.T) {
	inWorld(t, func(w *world) {
		run(w, chain(w.dial(w.serve("a", kv{slow: "one"}, specgrpc.WithMaxHalfOpenCalls(0))), "", "one", "two"))
		wantTree(w, `
caller 0-30
  task page 0-30 outcome=confirmed runs=1 saved_ms=0 task=page wasted_calls=0 wasted_ms=0
    branch /TestKV/Get 0-20 ->call(TestKV/Get) call=1 depth=1 mode=on outcome=confirmed prediction=0 run=1 site=/TestKV/Get
      TestKV/Get 0-10 client speculative=true CANCELLED
        TestKV/Get 5-5 server speculative=true CANCELLED
    TestKV/Get 0-20 client
      TestKV/Get 5-15 server
    held /TestKV/Get 10-20 ->call(TestKV/Get) call=2 outcome=sent reason=the server refused it: REASON_FULL 0 calls of speculative callers are under way site=/TestKV/Get
    TestKV/Get 20-30 client
      TestKV/Get 25-25 server
`)
	})
}

// TestUnaware: that a server knows no speculative streams is no error either. Of a
// method that there is not gRPC tells a server's handlers of no end.
func TestUnaware(t *testing.T) {
	inWorld(t, func(w *world) {
		w.neverEnd = 1
		run(w, chain(w.dial(w.serve("a", unaware{kv{slow: "one"}})), "", "one", "two"))
		wantTree(w, `
caller 0-30
  task page 0-30 outcome=confirmed runs=1 saved_ms=0 task=page wasted_calls=0 wasted_ms=0
    branch /TestKV/Get 0-20 ->call(TestKV/Get) call=1 depth=1 mode=on outcome=confirmed prediction=0 run=1 site=/TestKV/Get
      TestKV/Get 0-10 client speculative=true UNIMPLEMENTED
    TestKV/Get 0-20 client
      TestKV/Get 5-15 server
    held /TestKV/Get 10-20 ->call(TestKV/Get) call=2 outcome=sent reason=the server does not speak /TestKV/Get.spec site=/TestKV/Get
    TestKV/Get 20-30 client
      TestKV/Get 25-25 server
`)
	})
}

// TestAlternatives: each of two predictions has a run with a branch.
func TestAlternatives(t *testing.T) {
	inWorld(t, func(w *world) {
		c := w.dial(w.serve("a", kv{}))
		run(w, func(ctx context.Context) (string, error) {
			v, err := get(ctx, c, "one", value("nothing"), value("one"))
			if err != nil {
				return "", err
			}
			return get(ctx, c, v)
		})
		wantTree(w, `
caller 0-10
  task page 0-10 outcome=confirmed runs=2 saved_ms=10 task=page wasted_calls=1 wasted_ms=10
    branch /TestKV/Get 0-10 ->call(TestKV/Get) adopted=true call=1 depth=1 mode=on outcome=confirmed prediction=1 run=2 site=/TestKV/Get
      TestKV/Get 0-20 client speculative=true
        TestKV/Get 5-15 server speculative=true
    branch /TestKV/Get 0-10 ->call(TestKV/Get) call=1 depth=1 mode=on outcome=discarded prediction=0 run=1 site=/TestKV/Get
      TestKV/Get 0-20 client speculative=true CANCELLED
        TestKV/Get 5-15 server speculative=true CANCELLED
    TestKV/Get 0-10 client
      TestKV/Get 5-5 server
`)
	})
}

// TestUnsampled: under a span that is not recorded, and where the sampler does not
// want a trace, there are no spans, and the engine is told so.
func TestUnsampled(t *testing.T) {
	inWorld(t, func(w *world) {
		provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(w.spans),
			sdktrace.WithSampler(sdktrace.NeverSample()))
		tracer := telemetry.NewTracer(provider)
		if got := tracer.Task(w.Context(), "page"); got != nil {
			t.Errorf("a task that the sampler does not want is followed by %v", got)
		}
		ctx, _ := provider.Tracer("test").Start(w.Context(), "caller")
		if got := telemetry.NewTracer(w.provider).Task(ctx, "page"); got != nil {
			t.Errorf("a task whose parent is not recorded is followed by %v", got)
		}
		if n := len(w.spans.Started()); n != 0 {
			t.Errorf("%d spans were started", n)
		}
		remote := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{1},
			TraceFlags: trace.FlagsSampled})
		if telemetry.NewTracer(w.provider).Task(trace.ContextWithRemoteSpanContext(w.Context(), remote), "page") == nil {
			t.Error("a task of a sampled caller elsewhere is not followed")
		}
	})
}

// TestFutures: each future that is a task of its own has a task's span.
func TestFutures(t *testing.T) {
	inWorld(t, func(w *world) {
		c := w.dial(w.serve("a", kv{}))
		ctx, span := w.begin()
		one := foresay.Go(ctx, func(ctx context.Context) (string, error) {
			return get(ctx, c, "one", value("one"))
		}, foresay.WithName("one"))
		two := foresay.Then(one, func(ctx context.Context, v string) (string, error) {
			return get(ctx, c, v)
		}, foresay.WithName("two"))
		if _, err := two.Wait(ctx); err != nil {
			t.Error(err)
		}
		span.End()
		wantTree(w, `
caller 0-10
  task one 0-10 outcome=confirmed runs=1 saved_ms=0 task=one wasted_calls=0 wasted_ms=0
    branch /TestKV/Get 0-10 ->call(TestKV/Get) call=1 depth=1 mode=on outcome=confirmed prediction=0 run=1 site=/TestKV/Get
    TestKV/Get 0-10 client
      TestKV/Get 5-5 server
  task two 0-10 outcome=confirmed runs=1 saved_ms=10 task=two wasted_calls=0 wasted_ms=0
    branch future 0-10 call=1 depth=1 mode=on outcome=confirmed prediction=0 run=1 site=future
      TestKV/Get 0-20 client speculative=true
        TestKV/Get 5-15 server speculative=true
`)
	})
}

// TestManySpans: a task has a bounded number of spans, and says what is missing.
func TestManySpans(t *testing.T) {
	inWorld(t, func(w *world) {
		follow := telemetry.NewTracer(w.provider).Task(w.Context(), "page")
		told := &report.Report{Start: time.Now(), Outcome: "confirmed", Runs: []report.Run{{ID: 1, State: "confirmed"}}}
		follow.Run(w.Context(), told.Runs[0])
		for id := 1; id <= 1000; id++ {
			call := report.Call{ID: id, CallSite: "/a/b", Match: 0}
			told.Calls = append(told.Calls, call)
			told.Runs[0].Steps = append(told.Runs[0].Steps, report.Step{Call: id})
			follow.Attempt(w.Context(), call, told.Runs[0], id-1, id > 1)
		}
		follow.Ended(told)
		task := w.spans.Ended()[len(w.spans.Ended())-1]
		left := int64(0)
		for _, kv := range task.Attributes() {
			if kv.Key == "foresay.left_out" {
				left = kv.Value.AsInt64()
			}
		}
		if n := len(w.spans.Ended()); n != 513 || len(w.spans.Started()) != n || left != 1000-512 {
			t.Errorf("%d spans of %d have ended and %d are left out, want 512 and the task's, and %d", n, len(w.spans.Started()),
				left, 1000-512)
		}
	})
}

// TestRoot: without a caller's span the task's is the first of its trace.
func TestRoot(t *testing.T) {
	inWorld(t, func(w *world) {
		c := w.dial(w.serve("a", kv{}))
		_, span := w.begin()
		span.End()
		w.spans.Reset()
		if _, err := foresay.Do(w.control.Context(w.Context()), chain(c, "", "one", "two")); err != nil {
			t.Error(err)
		}
		wantTree(w, `
task 0-10 outcome=confirmed runs=1 saved_ms=10 wasted_calls=0 wasted_ms=0
  branch /TestKV/Get 0-10 ->call(TestKV/Get) call=1 depth=1 mode=on outcome=confirmed prediction=0 run=1 site=/TestKV/Get
    TestKV/Get 0-20 client speculative=true
      TestKV/Get 5-15 server speculative=true
  TestKV/Get 0-10 client
    TestKV/Get 5-5 server
`)
	})
}

// TestShadow: what runs in shadow mode leaves calls that say so, and no errors.
func TestShadow(t *testing.T) {
	inWorld(t, func(w *world) {
		c := w.dial(w.serve("a", kv{}), specgrpc.WithCallSites(control.CallSiteConfig{Name: kvpb.TestKV_Get_FullMethodName,
			Mode: control.ModeShadow, Share: 1}))
		run(w, chain(c, "", "one", "two"))
		wantTree(w, `
caller 0-20
  TestKV/Get 0-20 client speculative=true CANCELLED
    TestKV/Get 5-15 server speculative=true CANCELLED
  task page 0-20 outcome=confirmed runs=1 saved_ms=0 task=page wasted_calls=0 wasted_ms=0
    TestKV/Get 0-10 client
      TestKV/Get 5-5 server
    TestKV/Get 10-20 client
      TestKV/Get 15-15 server
`)
	})
}

// TestLanes: goroutines side by side, one of which is wrong.
func TestLanes(t *testing.T) {
	inWorld(t, func(w *world) {
		a, b := w.dial(w.serve("a", kv{})), w.dial(w.serve("b", kv{slow: "two"}))
		run(w, func(ctx context.Context) (string, error) {
			g := foresay.NewGroup(ctx)
			g.Go(func(ctx context.Context) error {
				_, err := chain(a, "", "one", "left")(ctx)
				return err
			})
			g.Go(func(ctx context.Context) error {
				time.Sleep(time.Millisecond)
				_, err := chain(b, "two", "two", "right")(ctx)
				return err
			})
			return "", g.Wait()
		})
		wantTree(w, `
caller 0-32
  task page 0-32 outcome=confirmed runs=2 saved_ms=-1 task=page wasted_calls=1 wasted_ms=10
    branch /TestKV/Get 0-10 ->call(TestKV/Get) call=1 depth=1 lane=/1 mode=on outcome=confirmed prediction=0 run=1 site=/TestKV/Get
      TestKV/Get 0-20 client speculative=true
        TestKV/Get 5-15 server speculative=true
    TestKV/Get 0-10 client
      TestKV/Get 5-5 server
    branch /TestKV/Get 1-21 ->call(TestKV/Get) call=3 depth=2 lane=/2 mode=on outcome=discarded prediction=0 run=1 site=/TestKV/Get
      TestKV/Get 1-42 client speculative=true CANCELLED
        TestKV/Get 6-37 server speculative=true CANCELLED
    TestKV/Get 1-21 client
      TestKV/Get 6-16 server
    adopted /TestKV/Get 21-21 ->call(TestKV/Get) call=1 lane=/1 outcome=confirmed run=2 site=/TestKV/Get
    adopted /TestKV/Get 21-21 ->call(TestKV/Get in branch /TestKV/Get call 1 run 1) call=2 lane=/1 outcome=confirmed run=2 site=/TestKV/Get
    replay page 21-32 ->branch(branch /TestKV/Get call 3 run 1) call=3 outcome=confirmed replay_of=1 run=2 site=/TestKV/Get
    adopted /TestKV/Get 22-22 ->call(TestKV/Get) call=3 lane=/2 outcome=confirmed run=2 site=/TestKV/Get
    TestKV/Get 22-32 client
      TestKV/Get 27-27 server
`)
	})
}

// TestCancelled: a task that its caller gave up on a guess. Its code sees its call fail, as plain
// code does, in a second run.
func TestCancelled(t *testing.T) {
	inWorld(t, func(w *world) {
		c := w.dial(w.serve("a", kv{slow: "one"}))
		ctx, span := w.begin()
		ctx, cancel := context.WithCancel(ctx)
		time.AfterFunc(12*time.Millisecond, cancel)
		_, err := foresay.Do(ctx, chain(c, "", "one", "two"), foresay.WithName("page"))
		if status.Code(err) != codes.Canceled {
			t.Errorf("got error %v, want what a plain call fails with", err)
		}
		span.End()
		wantTree(w, `
caller 0-12
  task page 0-12 outcome=confirmed runs=2 saved_ms=0 task=page wasted_calls=1 wasted_ms=10
    branch /TestKV/Get 0-12 ->call(TestKV/Get) call=1 depth=1 mode=on outcome=discarded prediction=0 run=1 site=/TestKV/Get
      TestKV/Get 0-22 client speculative=true CANCELLED
        TestKV/Get 5-17 server speculative=true CANCELLED
    TestKV/Get 0-12 client Error CANCELLED
      TestKV/Get 5-15 server
    adopted /TestKV/Get 12-12 ->call(TestKV/Get) call=1 outcome=confirmed run=2 site=/TestKV/Get
    branch /TestKV/Get 12-12 call=2 outcome=unresolved run=2 site=/TestKV/Get
`)
	})
}

// TestOwnSpans: spans that the code makes have its calls below them.
func TestOwnSpans(t *testing.T) {
	inWorld(t, func(w *world) {
		c := w.dial(w.serve("a", kv{}))
		load := func(ctx context.Context, key string, predictions ...any) (string, error) {
			ctx, span := w.provider.Tracer("test").Start(ctx, "load "+key)
			defer span.End()
			return get(ctx, c, key, predictions...)
		}
		run(w, func(ctx context.Context) (string, error) {
			if _, err := load(ctx, "one", value("one")); err != nil {
				return "", err
			}
			return load(ctx, "two")
		})
		wantTree(w, `
caller 0-10
  task page 0-10 outcome=confirmed runs=1 saved_ms=10 task=page wasted_calls=0 wasted_ms=0
    load one 0-0
      TestKV/Get 0-10 client
        TestKV/Get 5-5 server
    load two 0-10
      branch /TestKV/Get 0-10 ->call(TestKV/Get) call=1 depth=1 mode=on outcome=confirmed prediction=0 run=1 site=/TestKV/Get
        TestKV/Get 0-20 client speculative=true
          TestKV/Get 5-15 server speculative=true
`)
	})
}

// failing is a server whose Get has an error.
type failing struct{ kv }

func (failing) Get(_ context.Context, r *kvpb.GetRequest) (*kvpb.GetResponse, error) {
	if r.GetKey() == "connect" {
		return value("connect"), nil
	}
	return nil, status.Error(codes.NotFound, "no such key")
}

// TestErrors: errors of calls are errors, on whatever they stood.
func TestErrors(t *testing.T) {
	inWorld(t, func(w *world) {
		c, d := w.dial(w.serve("a", kv{})), w.dial(w.serve("b", failing{}))
		ctx, span := w.begin()
		_, err := foresay.Do(ctx, func(ctx context.Context) (string, error) {
			if _, err := get(ctx, c, "one", value("one")); err != nil {
				return "", err
			}
			return get(ctx, d, "two")
		})
		if status.Code(err) != codes.NotFound {
			t.Errorf("got %v, want the server's error", err)
		}
		span.End()
		wantTree(w, `
caller 0-10
  task 0-10 outcome=confirmed runs=1 saved_ms=10 wasted_calls=0 wasted_ms=0
    branch /TestKV/Get 0-10 ->call(TestKV/Get) call=1 depth=1 mode=on outcome=confirmed prediction=0 run=1 site=/TestKV/Get
      TestKV/Get 0-20 client Error speculative=true NOT_FOUND
        TestKV/Get 5-15 server speculative=true NOT_FOUND
    TestKV/Get 0-10 client
      TestKV/Get 5-5 server
`)
	})
}

// relay is a server that calls another one.
type relay struct {
	kv
	next kvpb.TestKVClient
}

func (r relay) Get(ctx context.Context, in *kvpb.GetRequest) (*kvpb.GetResponse, error) {
	return r.next.Get(ctx, in)
}

// TestServer: the handler of a call on a guess is a task below the server's span,
// and ends as its caller does.
func TestServer(t *testing.T) {
	inWorld(t, func(w *world) {
		behind := w.dial(w.serve("b", kv{}))
		under := grpc.UnaryInterceptor(func(ctx context.Context, req any, _ *grpc.UnaryServerInfo,
			handler grpc.UnaryHandler) (any, error) {
			return handler(w.control.Context(ctx), req)
		})
		c := w.dial(w.serve("a", relay{next: behind}, under))
		run(w, chain(c, "one", "one", "two"))
		wantTree(w, `
caller 0-40
  task page 0-40 outcome=confirmed runs=2 saved_ms=0 task=page wasted_calls=1 wasted_ms=20
    branch /TestKV/Get 0-20 ->call(TestKV/Get) call=1 depth=1 mode=on outcome=discarded prediction=0 run=1 site=/TestKV/Get
      TestKV/Get 0-50 client speculative=true CANCELLED
        TestKV/Get 5-45 server speculative=true CANCELLED
          task /TestKV/Get 5-45 outcome=discarded runs=1 saved_ms=0 speculative=true task=/TestKV/Get wasted_calls=1 wasted_ms=10
            TestKV/Get 5-55 client speculative=true CANCELLED
              TestKV/Get 10-50 server speculative=true CANCELLED
    TestKV/Get 0-20 client
      TestKV/Get 5-15 server
        TestKV/Get 5-15 client
          TestKV/Get 10-10 server
    adopted /TestKV/Get 20-20 ->call(TestKV/Get) call=1 outcome=confirmed run=2 site=/TestKV/Get
    TestKV/Get 20-40 client
      TestKV/Get 25-35 server
        TestKV/Get 25-35 client
          TestKV/Get 30-30 server
    replay page 20-40 ->branch(branch /TestKV/Get call 1 run 1) call=1 outcome=confirmed replay_of=1 run=2 site=/TestKV/Get
`)
	})
}
