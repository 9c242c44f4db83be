package engine

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/foresay/foresay/control"
)

// network is what a program reads by.
type network struct {
	get   *control.CallSite
	began time.Time
	there map[string]time.Duration // when answers are there at the latest, since then

	mu   sync.Mutex
	came map[string]time.Duration // when they came first
}

// answer notes that an answer comes.
func (n *network) answer(id string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, ok := n.came[id]; !ok {
		n.came[id] = time.Since(n.began)
	}
}

// fetches yields all that the step reads.
func (s *combining) fetches(yield func(*fetch) bool) {
	for i := range s.then {
		if !yield(&s.then[i]) {
			return
		}
	}
	for i := range s.parts {
		m := &s.parts[i]
		for j := range m.reads {
			if !yield(&m.reads[j]) {
				return
			}
		}
		if m.inner != nil {
			for f := range m.inner.fetches {
				if !yield(f) {
					return
				}
			}
		}
	}
}

// ends is when code ends the context of a combination that it waits for.
type ends int

const (
	endsNever    ends = iota
	endsDeferred      // as its function returns
	endsLimit         // so, and the context has a time limit as well
	endsAtOnce        // after Wait, before its function reads something else
	endsLater         // after that
)

func (e ends) String() string {
	return [...]string{"never", "deferred", "limit", "at once", "later"}[e]
}

type combiner int

const (
	byQuorum combiner = iota
	byAny
	byAll
	guessed // a single future
)

// combining is a step of a program that combines futures.
type combining struct {
	how   combiner
	n     int  // of a quorum
	wrong bool // so is the guess
	ends  ends
	parts []part
	then  []fetch // read afterwards
}

// part is a member: reads one after the other, and then another combination, or a value; 0 fails.
type part struct {
	reads []fetch
	group bool // they are read at once, in a Group
	inner *combining
	value int
}

// fetch is a read, with a prediction of the answer 1, which is right, or 2; or none.
type fetch struct {
	id    string
	delay time.Duration
	guess int
}

// combiningProgram is a task's code: steps one after the other, and then a write.
type combiningProgram struct{ steps []combining }

func (p *combiningProgram) String() string {
	var b strings.Builder
	for i := range p.steps {
		p.steps[i].format(&b, "")
	}
	return b.String()
}

func (s *combining) format(b *strings.Builder, indent string) {
	name := [...]string{"quorum", "any", "all", "guessed"}[s.how]
	fmt.Fprintf(b, "%s%s %d, wrong %v, ends %v, then %v\n", indent, name, s.n, s.wrong, s.ends, s.then)
	for _, m := range s.parts {
		fmt.Fprintf(b, "%s  reads %v, in a group %v, value %d\n", indent, m.reads, m.group, m.value)
		if m.inner != nil {
			m.inner.format(b, indent+"    ")
		}
	}
}

func newCombiningProgram(r *rand.Rand) *combiningProgram {
	p := &combiningProgram{}
	ids := 0
	fetches := func(n int, guessed bool) (out []fetch) {
		for range n {
			ids++
			// no two answers at one instant
			f := fetch{fmt.Sprint("k", ids), ms + time.Duration(r.Int64N(int64(40*ms))), 0}
			if guessed && r.IntN(3) == 0 {
				f.guess = 1 + r.IntN(2)
			}
			out = append(out, f)
		}
		return out
	}
	var step func(depth int, guesses bool) combining
	step = func(depth int, guesses bool) combining {
		s := combining{how: combiner(r.IntN(4)), wrong: r.IntN(2) == 0, ends: ends(r.IntN(5)),
			then: fetches(r.IntN(2), guesses)}
		members := 1 + r.IntN(3)
		if s.how == guessed {
			members = 1
		}
		s.n = 1 + r.IntN(members)
		// All that fails leaves the others to the code, whose cancel a guessed call does not hear
		// for a while.
		guesses = guesses && s.how != byAll
		others := 0 // that are not 1: whatever comes first, a combination comes to 1, or fails
		for range members {
			m := part{reads: fetches(1+r.IntN(2), guesses && r.IntN(3) == 0), group: r.IntN(4) == 0, value: 1}
			switch {
			case r.IntN(8) == 0:
				m.value = 0
			case s.how == byQuorum && others+1 < s.n && r.IntN(3) == 0:
				m.value = 2
				others++
			}
			if depth < 2 && r.IntN(4) == 0 {
				inner := step(depth+1, guesses)
				m.inner = &inner
			}
			s.parts = append(s.parts, m)
		}
		return s
	}
	for range 1 + r.IntN(3) {
		p.steps = append(p.steps, step(0, true))
	}
	return p
}

// run returns what the program comes to, how long it takes, and when answers came. They are there
// at these times at the latest.
func (p *combiningProgram) run(
	t *testing.T, mode control.Mode, there map[string]time.Duration,
) (sum string, took time.Duration, came map[string]time.Duration) {
	c := mustControl(t, control.Config{})
	c.Kill(mode == control.ModeOff)
	ctx := c.Context(t.Context())
	w, s := newWorld(6*ms), testCallSites(t)
	n := &network{get: mustCallSite(t, control.CallSiteConfig{Name: "/kv/Get", Mode: mode, Effect: control.EffectNone}),
		began: time.Now(), there: there, came: make(map[string]time.Duration)}
	sum, err := Do(ctx, func(ctx context.Context) (string, error) {
		var out []string
		for i := range p.steps {
			v, err := p.steps[i].do(ctx, n)
			if err != nil {
				v = 7
			}
			out = append(out, fmt.Sprint(v))
		}
		sum := strings.Join(out, "")
		if len(p.steps) > 1 {
			if _, err := perform(ctx, w.op(t, s.put, "put sum %s", sum)); err != nil {
				return "", err
			}
		}
		return sum, nil
	})
	took = time.Since(n.began)
	if err != nil {
		return err.Error(), took, n.came
	}
	time.Sleep(time.Second)
	if len(p.steps) > 1 {
		sum += fmt.Sprint(w.log)
	}
	return sum, took, n.came
}

func (s *combining) do(outer context.Context, on *network) (int, error) {
	ctx, cancel := outer, func() {}
	switch s.ends {
	case endsNever:
	case endsLimit:
		ctx, cancel = context.WithTimeout(outer, time.Hour)
	default:
		ctx, cancel = context.WithCancel(outer)
	}
	defer cancel()
	v, err := s.wait(ctx, on)
	if s.ends == endsAtOnce {
		cancel()
	}
	for _, f := range s.then {
		if err == nil {
			_, err = f.do(outer, on)
		}
	}
	return v, err
}

// wait begins the members and waits for what they come to.
func (s *combining) wait(ctx context.Context, on *network) (int, error) {
	var members []*Future[int]
	for i := range s.parts {
		m := &s.parts[i]
		var opts []CallOption
		if s.how == guessed {
			guess := m.value
			if s.wrong {
				guess = 3
			}
			opts = append(opts, Guess(guess))
		}
		members = append(members, Go(ctx, func(ctx context.Context) (int, error) { return m.do(ctx, on) }, opts...))
	}
	switch s.how {
	case byQuorum:
		return Quorum(s.n, nil, members...).Wait(ctx)
	case byAny:
		return Any(members...).Wait(ctx)
	case byAll:
		_, err := All(members...).Wait(ctx)
		return 1, err
	}
	return members[0].Wait(ctx)
}

func (m *part) do(ctx context.Context, on *network) (int, error) {
	g := NewGroup(ctx)
	for _, f := range m.reads {
		read := func(ctx context.Context) error {
			_, err := f.do(ctx, on)
			return err
		}
		if m.group {
			g.Go(read)
		} else if err := read(ctx); err != nil {
			return 0, err
		}
	}
	if err := g.Wait(); err != nil {
		return 0, err
	}
	if m.inner != nil {
		return m.inner.do(ctx, on)
	}
	if m.value == 0 {
		return 0, errNo
	}
	return m.value, nil
}

func (f *fetch) do(ctx context.Context, on *network) (int, error) {
	if f.guess > 0 {
		ctx = Predicting(ctx, f.guess)
	}
	delay := f.delay
	if at, ok := on.there[f.id]; ok {
		delay = min(delay, max(0, at-time.Since(on.began)))
	}
	return perform(ctx, read(on.get, f.id, delay, func() (any, error) {
		on.answer(f.id)
		return 1, nil
	}))
}
