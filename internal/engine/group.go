package engine

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/foresay/foresay/internal/spectree"
)

// Group is foresay.Group.
type Group struct {
	ctx      context.Context
	lane     *lane
	wg       sync.WaitGroup
	children []*member
	running  int  // of them; under the task's mu
	awaited  bool // by the lane's code; under the task's mu
}

type member struct {
	lane   *lane
	err    error
	failed *PanicError
	goexit bool
}

// NewGroup is foresay.NewGroup.
func NewGroup(ctx context.Context) *Group { return &Group{ctx: ctx, lane: laneOf(ctx)} }

// Go is that of foresay.Group.
func (g *Group) Go(f func(ctx context.Context) error) {
	m := &member{}
	ctx := g.ctx
	if g.lane != nil {
		m.lane = g.lane.fork()
		g.started(m.lane)
		ctx = &laneContext{g.ctx, m.lane}
	}
	g.children = append(g.children, m)
	g.wg.Add(1)
	go func() {
		normal := false
		defer func() {
			if !normal {
				m.end(recover())
			}
			if m.lane != nil {
				m.lane.ended(ctx)
				g.ended(m.lane)
			}
			g.wg.Done()
			if m.lane != nil {
				m.lane.run.giveUp()
				m.lane.run.lanes.Done()
			}
		}()
		m.err = f(ctx)
		normal = true
	}()
}

// Wait is that of foresay.Group.
func (g *Group) Wait() error {
	var began time.Time
	if g.lane != nil {
		began = g.lane.run.task.clock()
		g.lane.run.task.mu.Lock()
		g.lane.beside()
		if g.awaited = g.running > 0; g.awaited {
			g.lane.idle.Store(true)
			g.lane.run.rests()
		}
		g.lane.run.task.unlock()
	}
	g.wg.Wait()
	children := g.children
	g.children = nil
	if g.lane != nil {
		t := g.lane.run.task
		lanes := make([]*lane, len(children))
		for i, m := range children {
			lanes[i] = m.lane
		}
		cut := g.lane.run.cutOff(g.ctx)
		t.mu.Lock()
		if cut {
			t.doubtNow(lanes)
		}
		for _, m := range children {
			t.tree.Join(g.lane.tree, m.lane.tree)
			g.lane.commit = append(g.lane.commit, hooks{lanes: []*lane{m.lane}})
			if m.failed != nil && g.lane.run.stray == m.failed {
				g.lane.run.stray = nil // raised here instead
			}
		}
		g.lane.pause(began, pause{lanes: lanes})
		t.unlock()
	}
	var err error
	for _, m := range children {
		switch {
		case m.failed != nil:
			return g.lane.raise(m.failed)
		case m.goexit && err == nil:
			err = errGoexit
		case err == nil:
			err = m.err
		}
	}
	return err
}

// raise panics with the panic of code that the lane's code waited for, once the run is
// confirmed. The lane's code may be in a goroutine that the engine did not start, errgroup's
// for example. A panic there ends the process, and a wrong guess must not do that. The lane
// is nil outside of tasks.
func (l *lane) raise(p *PanicError) error {
	if l != nil {
		if err := l.barrier(&l.run.ctx); err != nil {
			return err
		}
	}
	panic(p)
}

// end notes that the function did not return, see run.ended. A panic that
// nobody waits for is the run's.
func (m *member) end(p any) {
	if p == nil {
		m.goexit = true
		return
	}
	m.failed = asPanic(p)
	if m.lane != nil {
		m.lane.run.strayed(m.failed)
	}
}

// started notes that a function of the group runs in the lane.
func (g *Group) started(l *lane) {
	l.run.task.mu.Lock()
	defer l.run.task.mu.Unlock()
	x := l.run.rarely()
	x.grouped = append(x.grouped, l)
	g.running++
}

// ended tells that the function of this lane of the group returned. The code that waits for the
// last of them executes from now on: at no moment does it look as if all waited.
func (g *Group) ended(l *lane) {
	r := l.run
	r.task.mu.Lock()
	defer r.task.unlock()
	r.rare.grouped = slices.DeleteFunc(r.rare.grouped, func(o *lane) bool { return o == l })
	g.running--
	l.idle.Store(true)
	if g.awaited && g.running == 0 {
		g.awaited = false
		g.lane.idle.Store(false)
	}
	if now := r.task.clock(); !now.IsZero() {
		l.trail().ended = now
	}
	r.rests()
}

// fork returns a lane for a goroutine of the same run, which the run waits for.
func (l *lane) fork() *lane {
	t := l.run.task
	t.mu.Lock()
	defer t.mu.Unlock()
	l.beside()
	l.run.lanes.Add(1)
	return newLane(l, t.tree.Fork(l.tree))
}

// beside tells the tree if the lane's code, which does something now, waits for a Group, or
// has ended: then another goroutine shares the lane. Under mu.
func (l *lane) beside() {
	if l.idle.Load() {
		l.run.task.tree.Shared(l.tree)
	}
}

func newLane(parent *lane, tl *spectree.Lane) *lane {
	r := parent.run
	l := &lane{tree: tl, run: r, parent: parent, future: parent.future}
	if parent.path != nil {
		l.trail().forked = len(parent.path.pauses)
	}
	tl.Data = l
	r.forked = append(r.forked, l)
	return l
}
