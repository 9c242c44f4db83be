package spectree

import (
	"errors"
	"fmt"
)

// progress returns what is wrong with whom the threads of live runs wait for.
// The tree says whom its calls and barriers wait for; the shell knows what user
// code waits for, and what is really under way. Followed from one to the next,
// all waits must end in something that is.
func (s *shell) progress() error {
	if s.t.Over() {
		return nil
	}
	for _, r := range s.runs {
		if r.exited || r.discarded || s.t.doubted(r.run) {
			continue
		}
		p := &progress{s: s, run: r, threads: make(map[*shellThread]bool), calls: make(map[*Call]bool)}
		for _, th := range r.threads {
			if err := p.thread(th); err != nil {
				return fmt.Errorf("run %d: %w", r.run.ID, err)
			}
		}
	}
	return nil
}

// progress follows the waits of one run. The maps hold what was looked at, and
// true once it is known to go on.
type progress struct {
	s       *shell
	run     *shellRun
	threads map[*shellThread]bool
	calls   map[*Call]bool
}

func (p *progress) thread(th *shellThread) (err error) {
	if well, seen := p.threads[th]; well {
		return nil
	} else if seen {
		return fmt.Errorf("lane %q waits for itself", th.lane.id)
	}
	p.threads[th] = false
	switch th.state {
	case joining:
		err = p.thread(th.awaited)
	case waiting:
		err = p.follow(Wait{Cause: ForAnswer, Call: th.use.Call})
	case parked:
		for _, w := range th.lane.Waits() {
			if err = p.follow(w); err != nil {
				break
			}
		}
	}
	if err != nil {
		delete(p.threads, th)
		return fmt.Errorf("lane %q, which waits for %w", th.lane.id, err)
	}
	p.threads[th] = true
	return nil
}

func (p *progress) follow(w Wait) error {
	switch w.Cause {
	case ForAttempt:
		if c := w.Call.Data.(*shellCall); c.state == idle || c.state == postponed {
			return fmt.Errorf("%v, which is not under way: it is in state %d", w, c.state)
		}
	case ForCaller:
		if !p.s.caller {
			return fmt.Errorf("%v, which came", w)
		}
	case ForGrace:
		if p.s.t.Orphans() == 0 {
			return fmt.Errorf("%v, which nobody counts", w)
		}
	case ForCode:
		return p.thread(w.Call.Data.(*shellCall).local)
	case ForRun:
		return p.comes(w)
	case ForAnswer:
		return p.answer(w)
	}
	return nil
}

// comes holds that some thread of the run goes on by itself.
func (p *progress) comes(w Wait) error {
	for _, th := range w.Run.Data.(*shellRun).threads {
		if th.state != gone && p.thread(th) == nil {
			return nil
		}
	}
	return fmt.Errorf("%v, of which nothing goes on", w)
}

func (p *progress) answer(w Wait) error {
	c := w.Call
	if well, seen := p.calls[c]; well || c.answered {
		return nil
	} else if seen {
		return fmt.Errorf("%v, which waits for itself", w)
	}
	p.calls[c] = false
	err := fmt.Errorf("%v, which waits for nothing", w)
	for _, way := range p.s.t.Ways(c, p.run.run) {
		if e := p.all(way); e == nil {
			p.calls[c] = true
			return nil
		} else {
			err = fmt.Errorf("%v, and that for %w", w, e)
		}
	}
	delete(p.calls, c)
	return err
}

func (p *progress) all(way []Wait) error {
	if len(way) == 0 {
		return errors.New("nothing")
	}
	for _, w := range way {
		if err := p.follow(w); err != nil {
			return err
		}
	}
	return nil
}
