package specgrpc_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/foresay/foresay"
	"github.com/foresay/foresay/control"
	"github.com/foresay/foresay/internal/seed"
	"github.com/foresay/foresay/report"

	kvpb "github.com/foresay/foresay/api/foresay/testkv/v1"
	"github.com/foresay/foresay/specgrpc"
)

// ending is a program whose code ends contexts of its own, and goes on. Its calls
// are the program's by place: what is guessed for each is what a test varies.
type ending struct {
	name string
	code func(ctx context.Context, e *endings) error
}

// endings makes an ending's calls and notes what the code sees.
type endings struct {
	c       kvpb.TestKVClient
	cc      grpc.ClientConnInterface
	guesses int // a digit in base 3 for each of the first places: nothing, right, wrong

	mu   sync.Mutex
	seen []string
}

func (e *endings) note(format string, args ...any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.seen = append(e.seen, fmt.Sprintf(format, args...))
}

// ended notes with what a context has ended by now.
func (e *endings) ended(ctx context.Context) {
	time.Sleep(time.Microsecond) // timers of one instant expire one after the other
	e.note("%v", ctx.Err())
}

// get reads a key, which takes the server so many milliseconds.
func (e *endings) get(ctx context.Context, place, takes int) error {
	v, err := e.read(ctx, place, takes)
	e.note("get %d: %q %v", place, v, status.Code(err))
	return err
}

// read is get for code that races with others.
func (e *endings) read(ctx context.Context, place, takes int) (string, error) {
	key := fmt.Sprintf("%d/%d", place, takes)
	guess := e.guesses
	for range place {
		guess /= 3
	}
	switch guess % 3 {
	case 1:
		ctx = foresay.Predicting(ctx, value(key))
	case 2:
		ctx = foresay.Predicting(ctx, value("wrong"))
	}
	r, err := e.c.Get(ctx, &kvpb.GetRequest{Key: key})
	return r.GetValue(), err
}

// put writes a key, which takes the server so many milliseconds.
func (e *endings) put(ctx context.Context, place, takes int) error {
	_, err := e.c.Put(ctx, &kvpb.PutRequest{Key: fmt.Sprintf("%d/%d", place, takes), Value: "x"})
	e.note("put %d: %v", place, status.Code(err))
	return err
}

// endedPrograms are those whose task's context ends.
func endedPrograms() []ending {
	return []ending{
		{"a fallback", func(ctx context.Context, e *endings) error {
			_ = e.get(ctx, 0, 5)
			_ = e.put(ctx, 4, 5)
			if e.get(ctx, 1, 500) == nil {
				return e.put(ctx, 5, 0)
			}
			e.ended(ctx)
			return nil
		}},
		{"cleaning up", func(ctx context.Context, e *endings) error {
			_ = e.get(ctx, 0, 5)
			_ = e.put(ctx, 4, 5)
			err := e.get(ctx, 1, 500)
			after, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
			defer cancel()
			_ = e.get(after, 2, 5)
			_ = e.put(after, 5, 5)
			return err
		}},
		{"going on regardless", func(ctx context.Context, e *endings) error {
			_ = e.get(ctx, 0, 30)
			_ = e.get(ctx, 1, 500)
			_ = e.put(ctx, 4, 0)
			e.ended(ctx)
			return e.get(ctx, 2, 5)
		}},
		{"two goroutines", func(ctx context.Context, e *endings) error {
			g := foresay.NewGroup(ctx)
			g.Go(func(ctx context.Context) error {
				_, _ = e.read(ctx, 0, 5)
				time.Sleep(msecs(10))
				if ctx.Err() != nil {
					return nil
				}
				_, err := e.c.Put(ctx, &kvpb.PutRequest{Key: "7/5"})
				return err
			})
			g.Go(func(ctx context.Context) error {
				_, err := e.read(ctx, 1, 500)
				return err
			})
			e.note("%v", status.Code(g.Wait()))
			return e.put(ctx, 4, 0)
		}},
	}
}

func msecs(n int) time.Duration { return time.Duration(n) * time.Millisecond }

func endingPrograms() []ending {
	return []ending{
		{"a read runs out, and a write with its context", func(ctx context.Context, e *endings) error {
			d, cancel := context.WithTimeout(ctx, msecs(20))
			defer cancel()
			_ = e.get(d, 0, 50)
			e.ended(d)
			return e.put(d, 1, 0)
		}},
		{"a read runs out, and a read with its context", func(ctx context.Context, e *endings) error {
			d, cancel := context.WithTimeout(ctx, msecs(20))
			defer cancel()
			_ = e.get(d, 0, 50)
			return e.get(d, 1, 0)
		}},
		{"a read runs out, and a write with a context of its context", func(ctx context.Context, e *endings) error {
			d, cancel := context.WithTimeout(ctx, msecs(20))
			defer cancel()
			_ = e.get(d, 0, 50)
			c, cancel := context.WithTimeout(d, msecs(15))
			defer cancel()
			return e.put(c, 1, 0)
		}},
		{"reads run out one after the other, and a write", func(ctx context.Context, e *endings) error {
			for i := range 3 {
				d, cancel := context.WithTimeout(ctx, msecs(20))
				_ = e.get(d, i, 500)
				e.ended(d)
				cancel()
			}
			return e.put(ctx, 3, 0)
		}},
		{"the code cancels what it reads", func(ctx context.Context, e *endings) error {
			d, cancel := context.WithCancel(ctx)
			defer cancel()
			defer time.AfterFunc(msecs(20), cancel).Stop()
			_ = e.get(ctx, 0, 1)
			_ = e.get(d, 2, 5000)
			e.ended(d)
			_ = e.put(d, 6, 0)
			return e.get(ctx, 1, 5)
		}},
		{"a call that another one held up, and one with its context", func(ctx context.Context, e *endings) error {
			_ = e.get(ctx, 0, 50)
			d, cancel := context.WithTimeout(ctx, msecs(40))
			defer cancel()
			_ = e.put(d, 1, 5)
			return e.put(d, 2, 5)
		}},
		{"a read in time, and a write with its context", func(ctx context.Context, e *endings) error {
			_ = e.get(ctx, 0, 50)
			d, cancel := context.WithTimeout(ctx, msecs(90))
			defer cancel()
			_ = e.get(d, 1, 15)
			_ = e.put(d, 2, 5)
			return e.put(d, 3, 5)
		}},
		{"a read with a context that had ended, and a write", func(ctx context.Context, e *endings) error {
			_ = e.get(ctx, 0, 50)
			d, cancel := context.WithTimeout(ctx, msecs(10))
			defer cancel()
			time.Sleep(msecs(25))
			_ = e.get(d, 1, 5)
			return e.put(d, 2, 5)
		}},
	}
}

// hedge reads from a slow server, and after a while from a fast one, too.
func hedge(ctx context.Context, e *endings) error {
	_ = e.get(ctx, 0, 5)
	d, cancel := context.WithCancel(ctx)
	defer cancel()
	won := make(chan int, 2)
	read := func(place, takes int) {
		if _, err := e.read(d, place, takes); err != nil {
			place = 0
		}
		won <- place
	}
	go read(1, 5000)
	var first int
	select {
	case first = <-won:
	case <-time.After(msecs(20)):
		go read(2, 30)
		first = <-won
	}
	cancel()
	_ = e.put(ctx, first, 0)
	return e.put(d, 4, 0)
}

// racingPrograms are those whose goroutines end each other's contexts.
func racingPrograms() []ending {
	return []ending{
		{"a failure cancels its siblings", func(ctx context.Context, e *endings) error {
			d, cancel := context.WithCancel(ctx)
			defer cancel()
			g := foresay.NewGroup(d)
			g.Go(func(ctx context.Context) error {
				d, end := context.WithTimeout(ctx, msecs(20))
				defer end()
				err := e.get(d, 0, 50)
				cancel()
				return err
			})
			g.Go(func(ctx context.Context) error {
				if err := e.get(ctx, 1, 5000); err != nil {
					_ = e.put(ctx, 4, 0)
					return nil
				}
				return e.put(ctx, 3, 0)
			})
			e.note("%v", status.Code(g.Wait()))
			return e.get(ctx, 2, 5)
		}},
		{"a failure cancels futures", func(ctx context.Context, e *endings) error {
			d, cancel := context.WithCancel(ctx)
			defer cancel()
			a := foresay.Go(ctx, func(ctx context.Context) (int, error) {
				d, end := context.WithTimeout(ctx, msecs(20))
				defer end()
				return 0, e.get(d, 0, 50)
			})
			b := foresay.Go(d, func(ctx context.Context) (int, error) {
				if err := e.get(ctx, 1, 5000); err != nil {
					return 0, e.put(ctx, 4, 0)
				}
				return 0, e.put(ctx, 3, 0)
			})
			_, err := a.Wait(ctx)
			cancel()
			_, err2 := b.Wait(ctx)
			e.note("%v %v", status.Code(err), status.Code(err2))
			return e.get(ctx, 2, 5)
		}},
		{"a hedge", hedge},
		{"the loser of Any ends its own context", func(ctx context.Context, e *endings) error {
			member := func(i, takes int) *foresay.Future[string] {
				return foresay.Go(ctx, func(ctx context.Context) (string, error) {
					ctx, cancel := context.WithCancel(ctx)
					_, _ = e.c.Get(ctx, &kvpb.GetRequest{Key: fmt.Sprintf("m/%d", takes)})
					cancel()
					_, _ = e.c.Put(ctx, &kvpb.PutRequest{Key: fmt.Sprintf("%d/0", i)})
					return "x", nil
				})
			}
			v, err := foresay.Any(member(1, 5), member(2, 50)).Wait(ctx)
			e.note("%v", v)
			return err
		}},
		{"the loser of Any writes before it reads", func(ctx context.Context, e *endings) error {
			member := func(i, takes int) *foresay.Future[string] {
				return foresay.Go(ctx, func(ctx context.Context) (string, error) {
					c, cancel := context.WithTimeout(ctx, time.Second)
					defer cancel()
					_, _ = e.c.Put(c, &kvpb.PutRequest{Key: fmt.Sprintf("%d/%d", i, takes)})
					_, _ = e.c.Put(c, &kvpb.PutRequest{Key: fmt.Sprintf("%d/1", i)})
					return "x", nil
				})
			}
			v, err := foresay.Any(member(1, 5), member(2, 50)).Wait(ctx)
			e.note("%v", v)
			return err
		}},
	}
}

// endingServer takes as long for a call as its key says, and notes what it wrote.
type endingServer struct {
	kvServer
	mu    sync.Mutex
	wrote []string
}

func takes(ctx context.Context, key string) error {
	_, n, _ := strings.Cut(key, "/")
	d, err := strconv.Atoi(n)
	if err != nil {
		return err
	}
	return pause(ctx, msecs(d))
}

func newEndingServer() *endingServer {
	s := new(endingServer)
	s.get = func(ctx context.Context, r *kvpb.GetRequest) (*kvpb.GetResponse, error) {
		if err := takes(ctx, r.GetKey()); err != nil {
			return nil, err
		}
		return value(r.GetKey()), nil
	}
	s.put = func(ctx context.Context, r *kvpb.PutRequest) (*kvpb.PutResponse, error) {
		if err := takes(ctx, r.GetKey()); err != nil {
			return nil, err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.wrote = append(s.wrote, r.GetKey())
		return &kvpb.PutResponse{Version: 1}, nil
	}
	s.append = func(ctx context.Context, r *kvpb.AppendRequest) (*kvpb.AppendResponse, error) {
		if err := takes(ctx, r.GetKey()); err != nil {
			return nil, err
		}
		foresay.OnCommit(ctx, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.wrote = append(s.wrote, r.GetKey())
		})
		return &kvpb.AppendResponse{}, nil
	}
	return s
}

// end carries a program out, and returns what its code saw and wrote, and how
// long it took.
func (p ending) end(t *testing.T, guesses int, speculative bool) (out string, took time.Duration) {
	return p.endWithin(t, context.WithCancel, guesses, speculative)
}

// savedKey is the key of where a task's report says what it saved.
type savedKey struct{}

// endWithin is end in a task whose context ends.
func (p ending) endWithin(t *testing.T, within until, guesses int, speculative bool) (out string, took time.Duration) {
	inWorld(t, func(w *world) {
		s := newEndingServer()
		r, _, addr := w.kv("a", s, specgrpc.SideEffectFree(getMethod), specgrpc.Stages(appendMethod))
		ctl, err := control.New(control.Config{Budget: -1})
		if err != nil {
			t.Fatal(err)
		}
		c := w.dial(addr, specgrpc.WithControl(ctl), specgrpc.WithCallSites(
			control.CallSiteConfig{Name: getMethod, Effect: control.EffectNone},
			control.CallSiteConfig{Name: appendMethod, Effect: control.EffectStaged}))
		plain := w.raw(addr)
		_, _ = kvpb.NewTestKVClient(plain).Get(w.Context(), &kvpb.GetRequest{Key: "warm/0"})
		_, _ = kvpb.NewTestKVClient(c).Get(w.Context(), &kvpb.GetRequest{Key: "warm/0"})
		var last *endings
		start := time.Now()
		run := func(cc grpc.ClientConnInterface) func(ctx context.Context) (int, error) {
			return func(ctx context.Context) (int, error) {
				e := &endings{c: kvpb.NewTestKVClient(cc), cc: cc, guesses: guesses}
				if !speculative {
					e.guesses = 0
				}
				err := p.code(ctx, e)
				foresay.OnCommit(ctx, func() { last = e })
				return 0, err
			}
		}
		counted, request := ctl.Begin(w.Context(), "request", "")
		defer request.End(nil)
		ctx, cancel := within(counted)
		defer cancel()
		if speculative {
			_, err = foresay.Do(ctx, run(c), foresay.WithReport(func(r *report.Report) {
				if told, ok := ctx.Value(savedKey{}).(*time.Duration); ok {
					*told = r.Saved
				}
			}))
		} else {
			_, err = run(plain)(ctx)
		}
		took = time.Since(start)
		w.quiet(c, r)
		if errors.Is(err, foresay.ErrDiverged) || last == nil {
			out = fmt.Sprint(err)
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		out = fmt.Sprint(status.Code(err), last.seen, " wrote ", s.wrote)
	})
	return out, took
}

// TestContextsThatCodeEnds: where code ends a context of its own, it sees the same
// of it, and the calls that it goes on to make with it come to the same, whatever
// is guessed.
func TestContextsThatCodeEnds(t *testing.T) {
	for _, p := range slices.Concat(endingPrograms(), racingPrograms()) {
		t.Run(p.name, func(t *testing.T) {
			want, plain := p.end(t, 0, false)
			wrong := 0
			for guesses := range 27 {
				got, took := p.end(t, guesses, true)
				if got != want && wrong < 3 {
					wrong++
					t.Errorf("guesses %s: got\n%s, plainly\n%s", strconv.FormatInt(int64(guesses), 3), got, want)
				}
				if testing.Verbose() {
					t.Logf("guesses %s: %v, plainly %v", strconv.FormatInt(int64(guesses), 3), took, plain)
				}
			}
		})
	}
}

// TestTasksThatEnd: where a task's own context ends, its code goes on as plain code does, and
// what it does then stands, whatever is guessed.
func TestTasksThatEnd(t *testing.T) {
	ends := map[string]until{
		"a deadline": func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, msecs(60))
		},
		"cancelled": func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			time.AfterFunc(msecs(60), cancel)
			return ctx, cancel
		},
	}
	for _, p := range endedPrograms() {
		for name, within := range ends {
			t.Run(p.name+"/"+name, func(t *testing.T) {
				want, _ := p.endWithin(t, within, 0, false)
				for guesses := 0; guesses < 27; guesses += seed.Every(4) {
					if got, _ := p.endWithin(t, within, guesses, true); got != want {
						t.Errorf("guesses %s: got\n%s, plainly\n%s", strconv.FormatInt(int64(guesses), 3), got, want)
					}
				}
			})
		}
	}
}

// TestStatusOfATaskThatEnds: a task whose context ends while all its runs stand on
// guesses ends with the status that plain code would have ended with.
func TestStatusOfATaskThatEnds(t *testing.T) {
	tasks := map[string]func(ctx context.Context, e *endings) error{
		"Do": func(ctx context.Context, e *endings) error {
			_, err := foresay.Do(ctx, func(ctx context.Context) (int, error) {
				if err := e.get(ctx, 0, 100); err != nil {
					return 0, err
				}
				return 0, e.put(ctx, 1, 0)
			})
			return err
		},
		"futures": func(ctx context.Context, e *endings) error {
			get := foresay.Go(ctx, func(ctx context.Context) (int, error) { return 0, e.get(ctx, 0, 100) })
			put := foresay.Then(get, func(ctx context.Context, _ int) (int, error) { return 0, e.put(ctx, 1, 0) })
			_, err := put.Wait(context.WithoutCancel(ctx))
			return err
		},
	}
	for name, task := range tasks {
		for _, want := range []codes.Code{codes.DeadlineExceeded, codes.Canceled} {
			t.Run(fmt.Sprintf("%s/%v", name, want), func(t *testing.T) {
				inWorld(t, func(w *world) {
					r, _, addr := w.kv("a", newEndingServer(), specgrpc.SideEffectFree(getMethod))
					c := w.dial(addr, specgrpc.WithCallSites(control.CallSiteConfig{Name: getMethod, Effect: control.EffectNone}))
					ctx, cancel := context.WithTimeout(w.Context(), msecs(50))
					defer cancel()
					if want == codes.Canceled {
						time.AfterFunc(msecs(30), cancel)
					}
					wantCode(t, task(ctx, &endings{c: kvpb.NewTestKVClient(c), guesses: 1}), want)
					w.quiet(c, r)
				})
			})
		}
	}
}
