package specgrpc_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/status"

	"github.com/foresay/foresay"
	kvpb "github.com/foresay/foresay/api/foresay/testkv/v1"
	"github.com/foresay/foresay/internal/seed"
)

// stage writes a key with a method that stages its effects, which takes the server so
// many milliseconds.
func (e *endings) stage(ctx context.Context, place, takes int) error {
	_, err := e.c.Append(ctx, &kvpb.AppendRequest{Key: fmt.Sprintf("%d/%d", place, takes), Value: "x"})
	e.note("stage %d: %v", place, status.Code(err))
	return err
}

// stream writes a key over a stream of the program's own.
func (e *endings) stream(ctx context.Context, place, takes int) error {
	err := func() error {
		s, err := e.cc.NewStream(ctx, &grpc.StreamDesc{}, putMethod)
		if err != nil {
			return err
		}
		if err := s.SendMsg(&kvpb.PutRequest{Key: fmt.Sprintf("%d/%d", place, takes)}); err != nil {
			return err
		}
		if err := s.CloseSend(); err != nil {
			return err
		}
		return s.RecvMsg(new(kvpb.PutResponse))
	}()
	e.note("stream %d: %v", place, status.Code(err))
	return err
}

// until is how a program limits the time of a part: it returns a context that its
// code has made, or makes one.
type until func(ctx context.Context) (context.Context, context.CancelFunc)

// limitedPart is a part of a program that takes 15 ms, with a time limit.
type limitedPart struct {
	name string
	code func(ctx context.Context, e *endings, d until)
}

func limitedParts() []limitedPart {
	wait := func(e *endings, ctx context.Context, f *foresay.Future[int]) {
		_, err := f.Wait(ctx)
		e.note("wait: %v", err)
	}
	get := func(ctx context.Context, e *endings, place int) *foresay.Future[int] {
		return foresay.Go(ctx, func(ctx context.Context) (int, error) { return 1, e.get(ctx, place, 15) })
	}
	waiting := func(combined func(fs ...*foresay.Future[int]) *foresay.Future[int]) func(ctx context.Context, e *endings,
		d until) {
		return func(ctx context.Context, e *endings, d until) {
			dc, cancel := d(ctx)
			defer cancel()
			// The goroutines' notes come in any order.
			quiet := &endings{c: e.c, guesses: e.guesses}
			wait(e, dc, combined(get(ctx, quiet, 1), get(ctx, quiet, 2)))
		}
	}
	plain := func(f func(ctx context.Context, e *endings)) func(ctx context.Context, e *endings, d until) {
		return func(ctx context.Context, e *endings, d until) {
			dc, cancel := d(ctx)
			defer cancel()
			f(dc, e)
		}
	}
	return []limitedPart{
		{"a write", plain(func(ctx context.Context, e *endings) { _ = e.put(ctx, 3, 15) })},
		{"a staged write", plain(func(ctx context.Context, e *endings) { _ = e.stage(ctx, 3, 15) })},
		{"a read and a write", plain(func(ctx context.Context, e *endings) {
			_ = e.get(ctx, 1, 15)
			_ = e.put(ctx, 3, 1)
		})},
		{"reads and what its context says", plain(func(ctx context.Context, e *endings) {
			_ = e.get(ctx, 1, 8)
			_ = e.get(ctx, 2, 7)
			e.ended(ctx)
		})},
		{"Barrier", plain(func(ctx context.Context, e *endings) {
			e.note("%v", foresay.Barrier(ctx))
			e.ended(ctx)
			_ = e.put(ctx, 3, 15)
		})},
		{"Act", plain(func(ctx context.Context, e *endings) {
			_, err := foresay.Act(ctx, "act", func(ctx context.Context) (int, error) { return 1, nil })
			e.note("act %v", err)
			_ = e.put(ctx, 3, 15)
		})},
		{"a stream", plain(func(ctx context.Context, e *endings) { _ = e.stream(ctx, 3, 15) })},
		{"Wait", waiting(func(fs ...*foresay.Future[int]) *foresay.Future[int] { return fs[0] })},
		{"Any", waiting(func(fs ...*foresay.Future[int]) *foresay.Future[int] { return foresay.Any(fs...) })},
		{"All", waiting(func(fs ...*foresay.Future[int]) *foresay.Future[int] {
			return foresay.Then(foresay.All(fs...), func(context.Context, []int) (int, error) { return 1, nil })
		})},
		{"Quorum", waiting(func(fs ...*foresay.Future[int]) *foresay.Future[int] { return foresay.Quorum(2, nil, fs...) })},
		{"a wait for a write", plain(func(ctx context.Context, e *endings) {
			quiet := &endings{c: e.c}
			f := foresay.Go(context.WithoutCancel(ctx), func(ctx context.Context) (int, error) {
				return 1, quiet.put(ctx, 3, 15)
			})
			wait(e, ctx, f)
			wait(e, context.WithoutCancel(ctx), f)
		})},
		{"Go, given its context", plain(func(ctx context.Context, e *endings) {
			wait(e, context.WithoutCancel(ctx), foresay.Go(ctx, func(ctx context.Context) (int, error) {
				return 1, e.put(ctx, 3, 15)
			}))
			_ = e.put(ctx, 4, 0)
		})},
		{"Go, with its own context", func(ctx context.Context, e *endings, d until) {
			wait(e, ctx, foresay.Go(ctx, func(ctx context.Context) (int, error) {
				dc, cancel := d(ctx)
				defer cancel()
				return 1, e.put(dc, 3, 15)
			}))
		}},
		{"Group, given its context", plain(func(ctx context.Context, e *endings) {
			g := foresay.NewGroup(ctx)
			g.Go(func(ctx context.Context) error { return e.put(ctx, 3, 15) })
			e.note("group %v", status.Code(g.Wait()))
			_ = e.put(ctx, 4, 0)
		})},
		{"Group, with its own context", func(ctx context.Context, e *endings, d until) {
			g := foresay.NewGroup(ctx)
			g.Go(func(ctx context.Context) error {
				dc, cancel := d(ctx)
				defer cancel()
				return e.put(dc, 3, 15)
			})
			e.note("group %v", status.Code(g.Wait()))
		}},
	}
}

// limitedPrograms have read for 50 ms before they come to a part, whose context they
// have made before or make then.
func limitedPrograms() (all []ending) {
	for _, part := range limitedParts() {
		for _, limit := range []int{13, 42, 64, 77, 97, 300} {
			made := func(ctx context.Context) (context.Context, context.CancelFunc) {
				return context.WithTimeout(ctx, msecs(limit))
			}
			all = append(all, ending{fmt.Sprintf("%s/%d ms after a read", part.name, limit),
				func(ctx context.Context, e *endings) error {
					_ = e.get(ctx, 0, 50)
					part.code(ctx, e, made)
					return e.put(ctx, 6, 0)
				}})
			all = append(all, ending{fmt.Sprintf("%s/%d ms before a read", part.name, limit),
				func(ctx context.Context, e *endings) error {
					d, cancel := made(ctx)
					defer cancel()
					_ = e.get(ctx, 0, 50)
					part.code(ctx, e, func(context.Context) (context.Context, context.CancelFunc) { return d, func() {} })
					return e.put(ctx, 6, 0)
				}})
		}
	}
	return all
}

// TestTimeLimits: a time limit that code sets for a part of its work runs out where it
// would without speculation, and only there, whatever is guessed, however the part
// waits, and wherever its context was made.
func TestTimeLimits(t *testing.T) {
	for _, p := range limitedPrograms() {
		t.Run(p.name, func(t *testing.T) {
			want, plain := p.end(t, 0, false)
			keeps := !strings.Contains(want, "DeadlineExceeded") && !strings.Contains(want, "deadline exceeded")
			all := []int{0, 1, 2, 4, 5, 7, 13, 22}
			for i := 0; i < len(all); i += seed.Every(4) {
				guesses := all[i]
				got, took := p.end(t, guesses, true)
				if got != want && keeps {
					t.Errorf("guesses %s: got\n%s, plainly\n%s", strconv.FormatInt(int64(guesses), 3), got, want)
				}
				if testing.Verbose() {
					t.Logf("guesses %s: %v, plainly %v", strconv.FormatInt(int64(guesses), 3), took, plain)
				}
			}
		})
	}
}

// TestLateByTheirLimits: a time limit that the code sets begins anew in a replay. A task whose
// steps miss their limits is late by no more than those that ran out before its last wrong guess,
// each once, and sees what plain code does. Its report says how late it was.
func TestLateByTheirLimits(t *testing.T) {
	const limit, read = 20, 5
	program := ending{name: "steps that miss their limits", code: func(ctx context.Context, e *endings) error {
		for place := range 4 {
			_ = e.get(ctx, place, read)
			if place == 3 {
				break
			}
			limited, cancel := context.WithTimeout(ctx, msecs(limit))
			_ = e.get(limited, 4+place, 500)
			e.ended(limited)
			cancel()
		}
		return e.put(ctx, 9, 0)
	}}
	var saved time.Duration
	reported := func(ctx context.Context) (context.Context, context.CancelFunc) {
		return context.WithCancel(context.WithValue(ctx, savedKey{}, &saved))
	}
	want, plain := program.end(t, 0, false)
	latest := time.Duration(0)
	for guesses := range 81 {
		got, took := program.endWithin(t, reported, guesses, true)
		if got != want {
			t.Errorf("guesses %s: got\n%s, plainly\n%s", strconv.FormatInt(int64(guesses), 3), got, want)
		}
		before, n := 0, 0 // limits that ran out before the last wrong guess
		for place, left := 0, guesses; place < 4; place, left = place+1, left/3 {
			if n = place; left%3 == 2 {
				before = n
			}
		}
		late := took - plain
		if diff := saved + late; diff < -time.Millisecond || diff > time.Millisecond {
			t.Errorf("guesses %s: it took %v, %v plainly, and the report says that %v were saved",
				strconv.FormatInt(int64(guesses), 3), took, plain, saved)
		}
		latest = max(latest, late)
		if late > msecs(before*limit)+time.Millisecond {
			t.Errorf("guesses %s: it took %v, %v plainly, and %d limits ran out before the last wrong guess",
				strconv.FormatInt(int64(guesses), 3), took, plain, before)
		}
	}
	t.Logf("plainly %v, at most %v later", plain, latest)
}
