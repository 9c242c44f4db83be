package randtest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foresay/foresay"
	"github.com/foresay/foresay/control"
)

// This file runs programs of predicated calls: each sequentially first, which tells what guesses
// are right, and then as tasks, in a bubble. There the sessions may be those of any service.

// An Adder is a session with a service that adds to named numbers.
type Adder interface {
	// Add adds n to a key's number, which it answers, by a predicated call of ctx's task. It is
	// another call than those with another name. n is not negative; 0 only reads.
	Add(ctx context.Context, key string, n int, name string) (int, error)
}

// A Backend is the services of one execution of a program, and sessions with them.
type Backend struct {
	Sessions []Adder
	// Known returns what those who called know to have taken effect, and Done what has, a while
	// later: by service and key, as in "0 a", what was added, in order, as in "+3".
	Known, Done func() map[string][]string
	// Unknown reports whether an error says that a call may yet take effect. nil: only if it is
	// foresay.ErrUnfinished.
	Unknown func(error) bool
	// Wait is how long that takes at most.
	Wait time.Duration
	// Check, if it is not nil, tells what else is wrong then.
	Check func() error
}

// A Wish is what a program wants of its backend.
type Wish struct {
	Seed     uint64
	Sessions int
	Shared   bool // all sessions are with one service; otherwise each has its own
	Early    bool // first replies come early
	Lies     bool // some of them are wrong
}

// sessionWorld is the world of one execution of a program.
type sessionWorld struct {
	p        *sessionProgram
	sessions []Adder
	look     *control.CallSite
	post     *control.CallSite

	mu      sync.Mutex
	rng     *rand.Rand
	answers map[string]int // by place, of the sequential execution
	posts   []string
	hooks   []string
	plain   bool
}

func newSessionWorld(p *sessionProgram, answers map[string]int) (*sessionWorld, error) {
	w := &sessionWorld{p: p, rng: rand.New(rand.NewPCG(p.seed, 1)), answers: answers, plain: answers == nil}
	if w.plain {
		w.answers = make(map[string]int)
	}
	var err error
	if w.look, err = control.NewCallSite(control.CallSiteConfig{Name: "/shelf/look", Mode: control.ModeOn,
		Effect: control.EffectNone}); err != nil {
		return nil, err
	}
	w.post, err = control.NewCallSite(control.CallSiteConfig{Name: "/shelf/post", Mode: control.ModeOn,
		Effect: control.EffectImmediate})
	return w, err
}

// inMemory has the world's sessions be with counters in memory.
func (w *sessionWorld) inMemory() (*Backend, error) {
	b := &Backend{Wait: time.Second, Unknown: func(err error) bool { return errors.As(err, new(*unknownOutcome)) }}
	var services []*counters
	for i := range w.p.sessions {
		if i == 0 || !w.p.shared() {
			c, err := newCounters(w.delays, func() bool { return w.chance(w.p.lies) })
			if err != nil {
				return nil, err
			}
			c.tired = func() bool { return w.chance(w.p.retries) }
			services = append(services, c)
		}
		b.Sessions = append(b.Sessions, &session{at: services[len(services)-1]})
	}
	b.Done = func() map[string][]string {
		out := make(map[string][]string)
		for i, c := range services {
			for _, e := range c.done() {
				key, what, _ := strings.Cut(e, " ")
				at := fmt.Sprint(i, " ", key)
				out[at] = append(out[at], what)
			}
		}
		return out
	}
	b.Known = b.Done
	return b, nil
}

// shared reports whether the program's sessions are with one service.
func (p *sessionProgram) shared() bool { return p.seed%2 == 0 }

func (w *sessionWorld) chance(percent int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rng.IntN(100) < percent
}

func (w *sessionWorld) delays() delays {
	w.mu.Lock()
	defer w.mu.Unlock()
	d := delays{arrives: time.Duration(w.rng.IntN(5000)) * time.Microsecond}
	d.decided = d.arrives + time.Duration(1000+w.rng.IntN(40_000))*time.Microsecond
	if w.p.early {
		d.early = d.arrives + 1
	}
	return d
}

// record returns all that took effect: what was added by key, and the rest by goroutine.
func (w *sessionWorld) record(added map[string][]string) map[string][]string {
	out := make(map[string][]string)
	for at, list := range added {
		out["counter "+at] = list
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for kind, list := range map[string][]string{"post ": w.posts, "act ": w.hooks} {
		for _, e := range list {
			at := kind + e[:strings.LastIndexByte(e, '.')]
			out[at] = append(out[at], e)
		}
	}
	return out
}

// differs returns what is wrong with what took effect, given what does sequentially: all of it must
// have, or, if the execution was cut short, some of each list that comes first.
func differs(got, want map[string][]string, cut bool) error {
	for at, list := range got {
		if !hasPrefix(want[at], list) {
			return fmt.Errorf("%s: %v, sequentially %v", at, list, want[at])
		}
	}
	for at, list := range want {
		if !cut && !slices.Equal(got[at], list) {
			return fmt.Errorf("%s: %v, sequentially %v", at, got[at], list)
		}
	}
	return nil
}

// PlaySession executes the program of a seed, with sessions of a backend that open returns in the
// bubble, or with counters in memory if it is nil, and returns what is wrong.
func PlaySession(t *testing.T, seed uint64, open func(ctx context.Context, w Wish) (*Backend, error)) error {
	t.Helper()
	p := newSessionProgram(seed)
	plain, err := newSessionWorld(p, nil)
	if err != nil {
		return err
	}
	in, err := plain.inMemory()
	if err != nil {
		return err
	}
	plain.sessions = in.Sessions
	want, err := plain.run(context.Background())
	if err != nil {
		return err
	}
	var problem error
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		w, err := newSessionWorld(p, plain.answers)
		if err != nil {
			problem = err
			return
		}
		var b *Backend
		if open == nil {
			b, err = w.inMemory()
		} else {
			b, err = open(ctx, Wish{p.seed, p.sessions, p.shared(), p.early, p.lies > 0})
		}
		if err != nil {
			problem = err
			return
		}
		w.sessions = b.Sessions
		problem = w.judge(ctx, b, want, plain.record(in.Done()))
	})
	return problem
}

// judge runs the program and returns what is wrong with what comes of it, given what does
// sequentially.
func (w *sessionWorld) judge(ctx context.Context, b *Backend, result int, want map[string][]string) error {
	under := ctx
	if w.p.cancel > 0 {
		var cancel context.CancelFunc
		under, cancel = context.WithTimeout(ctx, w.p.cancel)
		defer cancel()
	}
	got, err := w.run(under)
	known := w.record(b.Known())
	time.Sleep(b.Wait)
	after := w.record(b.Done())
	unknown := errors.Is(err, foresay.ErrUnfinished) || b.Unknown != nil && b.Unknown(err)
	cut := w.p.cancel > 0 && err != nil
	switch {
	case err != nil && !cut:
		return err
	case !cut && got != result:
		return fmt.Errorf("the result is %d, sequentially %d", got, result)
	case !reflect.DeepEqual(known, after) && !unknown:
		return fmt.Errorf("after the end, which was %v, there were effects: %v, before %v", err, after, known)
	}
	if err := differs(after, want, cut); err != nil {
		return err
	}
	if b.Check != nil {
		return b.Check()
	}
	return nil
}
