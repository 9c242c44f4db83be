package spectree

// world is what the calls of a program touch. A naive execution and a
// speculative one each have their own.
type world struct {
	state [maxKeys]int
	clock int // calls executed
	once  [maxKeys]bool
}

const refusal = -1 // putKey's answer when it changes nothing

func newWorld() world {
	return world{state: [maxKeys]int{3, 5, 0, 1, 2, 4, 2, 4, 6, 0}}
}

// outcome of a call, computed from the world as it is now.
type outcome struct {
	answer  int
	changes bool
	value   int // of the key, afterwards
}

func (w *world) peek(p *program, q request) outcome {
	v := w.state[q.key]
	switch p.sites[q.site].kind {
	case readKey:
		return outcome{answer: v + int(q.arg)}
	case addKey:
		v = (v*3 + int(q.arg) + 1) % 11
		return outcome{v, true, v}
	case putKey:
		if v%5 == 4 && q.arg != 3 {
			return outcome{answer: refusal}
		}
		return outcome{v, true, int(q.arg)}
	case actOnce:
		return outcome{v, true, v + 1}
	default:
		return outcome{answer: w.clock + 1}
	}
}

func (w *world) apply(q request, o outcome) {
	if o.changes {
		w.state[q.key] = o.value
	}
}

// step is what a thread did: a call, or a wait for a child.
type step struct {
	request request
	wait    bool
	dropped bool
	value   int // that the thread went on with
}

// model is the naive execution: one thing after the other, in the program's
// order. Where the speculative execution went on with a prediction that was
// equivalent to the answer, or gave up waiting, so does the model.
type model struct {
	p       *program
	world   world
	effects []modelEffect
	logs    map[uint64]*replayed
	acts    int // effects of calls that are made once
	problem string
}

// replayed is a thread's steps in the speculative execution.
type replayed struct {
	steps []step
	next  int
	acc   uint32 // in the end
}

// modelEffect is a change of the world by the n-th step of a thread.
type modelEffect struct {
	place
	after []int // effects that the program orders before it
}

type modelThread struct {
	thread
	children [maxChildren]*modelThread
	parent   *modelThread
	frontier []int // the last effects before the thread's next step
}

func (m *model) run() *modelThread {
	main := &modelThread{thread: thread{block: m.p.main}}
	m.exec(main)
	return main
}

func (m *model) fail(problem string) {
	if m.problem == "" {
		m.problem = problem
	}
}

// take returns what the thread's next step was in the speculative execution.
func (m *model) take(t *modelThread) (step, int) {
	log := m.logs[t.path]
	if log == nil || log.next >= len(log.steps) {
		m.fail("the speculative execution ended before the sequential one")
		return step{}, 0
	}
	s := log.steps[log.next]
	log.next++
	return s, log.next - 1
}

func (m *model) exec(t *modelThread) {
	for m.problem == "" {
		in := t.next()
		switch in.op {
		case opCall:
			m.call(t, t.request(in))
		case opFork, opSpawn:
			child := &modelThread{thread: t.start(in), parent: t, frontier: append([]int(nil), t.frontier...)}
			t.children[in.child] = child
			m.exec(child)
		case opJoin, opAwait, opSibling:
			child := t.children[in.child]
			if in.op == opSibling {
				child = t.parent.children[in.child]
			}
			s, _ := m.take(t)
			if !s.wait || s.value != child.result() {
				m.fail("a child's result differs from the sequential one")
			}
			t.mix(s.value)
			t.frontier = append(t.frontier, child.frontier...)
		case opEnd:
			m.ended(t)
			return
		}
		t.pc++
	}
}

func (m *model) ended(t *modelThread) {
	if log := m.logs[t.path]; log == nil && t.pc > 0 || log != nil && (log.next != len(log.steps) || log.acc != t.acc) {
		m.fail("a thread did more than in the sequential execution, or ended with another result")
	}
}

func (m *model) call(t *modelThread, q request) {
	s, index := m.take(t)
	if s.wait || s.request != q {
		m.fail("a call differs from the sequential execution's")
		return
	}
	site := &m.p.sites[q.site]
	switch {
	case s.dropped:
	case site.kind == actOnce && m.world.once[q.key]:
		if s.value != m.world.state[q.key]-1 {
			m.fail("a later use of a call that is made once has another answer")
		}
	case site.kind == readTime: // any time will do
	default:
		o := m.world.peek(m.p, q)
		if !site.equal(s.value, o.answer) {
			m.fail("an answer is not equivalent to that of the sequential execution")
			return
		}
		m.world.apply(q, o)
		switch {
		case site.kind == actOnce: // which thread is the first may differ
			m.world.once[q.key] = true
			m.acts++
		case o.changes:
			t.frontier = []int{m.effect(t, index)}
		}
	}
	t.mix(s.value)
}

func (m *model) effect(t *modelThread, index int) int {
	m.effects = append(m.effects, modelEffect{place{t.path, index}, t.frontier})
	return len(m.effects) - 1
}
