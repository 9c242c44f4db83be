package spectree

// The runs of a shell: how goroutines of user code behave.

func (s *shell) newThread(r *shellRun, parent *shellThread, l *Lane, own bool, th thread) *shellThread {
	t := &shellThread{thread: th, run: r, lane: l, parent: parent, own: own}
	if parent != nil {
		t.deps = append(t.deps, parent.deps...)
	}
	r.threads = append(r.threads, t)
	r.live++
	return t
}

func (t *shellThread) runnable() bool {
	if t.state == gone {
		return false
	}
	if t.run.discarded {
		return true
	}
	switch t.state {
	case ready:
		return true
	case joining:
		return t.awaited.state == gone
	}
	return false
}

func (s *shell) exit(r *shellRun) {
	r.exited = true
	s.log("run %d returned", r.run.ID)
	s.t.Exited(r.run)
	s.t.Returned(r.run)
}

func (s *shell) stepThread(t *shellThread) {
	if t.run.discarded || s.t.Over() {
		s.endThread(t)
		return
	}
	if t.state == joining {
		s.joined(t)
		return
	}
	in := t.next()
	t.in = in
	switch in.op {
	case opCall:
		s.call(t, t.request(in))
	case opFork, opSpawn:
		l := t.lane
		if in.op == opFork {
			l = s.t.Fork(l)
		}
		child := s.newThread(t.run, t, l, in.op == opFork, t.start(in))
		t.children[in.child] = child
		for i := range in.n {
			child.guesses = append(child.guesses, int(in.arg+i)&3)
		}
		t.pc++
	case opJoin, opAwait, opSibling:
		t.awaited = t.children[in.child]
		if in.op == opSibling {
			t.awaited = t.parent.children[in.child]
		}
		if in.op == opJoin || t.awaited.state == gone {
			t.state = joining
			return
		}
		s.await(t)
	case opBarrier:
		if s.t.Barrier(t.lane) {
			s.pass(t)
			t.pc++
		} else {
			s.park(t, t.lane)
		}
	case opNondet:
		t.mix(t.run.run.ID)
		t.pc++
	case opEnd:
		s.endThread(t)
	}
}

// park has a thread wait at a barrier, like all others of its lane that do.
func (s *shell) park(t *shellThread, l *Lane) {
	t.state = parked
	l.Data = append(parkedIn(l), t)
}

func parkedIn(l *Lane) []*shellThread {
	p, _ := l.Data.([]*shellThread)
	return p
}

func (s *shell) passBarrier(l *Lane) {
	for _, t := range parkedIn(l) {
		s.pass(t)
		if t.state == parked {
			t.state = ready
			if t.in.op == opBarrier {
				t.pc++
			}
		}
	}
	l.Data = nil
}

// pass notes that the thread is beyond a barrier.
func (s *shell) pass(t *shellThread) {
	s.stats.barriers++
	if s.passed != nil && s.passed != t.run {
		s.fail("run %d passes a barrier that run %d has passed", t.run.run.ID, s.passed.run.ID)
	}
	s.passed = t.run
	if s.caller || t.run.run.Speculative() {
		s.fail("run %d passes a barrier and is speculative", t.run.run.ID)
	}
}

func (s *shell) endThread(t *shellThread) {
	t.state = gone
	t.run.live--
	for _, w := range t.subs {
		s.completed(t, w)
	}
}

// joined goes on after a child has ended.
func (s *shell) joined(t *shellThread) {
	child := t.awaited
	if child.own {
		s.t.Join(t.lane, child.lane)
	}
	t.deps = append(t.deps, child.deps...)
	s.goOn(t, shellStep{step: step{wait: true}}, child.result())
}

func (s *shell) goOn(t *shellThread, st shellStep, v int) {
	s.t.Heard(t.lane, int(t.awaited.path), v)
	st.value = v
	t.steps = append(t.steps, st)
	t.resumeWith(v)
}

func (t *shellThread) resumeWith(v int) {
	t.steps[len(t.steps)-1].value = v
	t.mix(v)
	t.pc++
	t.state = ready
}

// await makes waiting for a child a call, see the engine's futures.
func (s *shell) await(t *shellThread) {
	child := t.awaited
	spec := &CallSpec{Op: "local " + child.lane.ID(), Local: true}
	if !s.p.blind {
		spec.Lanes = []string{child.lane.ID()}
	}
	u := s.t.Call(t.lane, spec)
	c := &shellCall{c: u.Call, local: child}
	u.Call.Data = c
	u.Data = &shellUse{t, u, len(t.deps)}
	t.use, t.state = u, waiting
	s.log("run %d lane %q local call %d", t.run.run.ID, t.lane.ID(), u.Call.ID)
	child.subs = append(child.subs, localWait{c, u})
	for _, v := range child.guesses {
		s.predict(c, v)
	}
}

func (s *shell) completed(child *shellThread, w localWait) {
	if w.u.Answer() == Waiting {
		s.t.Answered(w.c.c, Actual)
		return
	}
	match := w.c.match(child.result())
	w.c.state, w.c.matched = answered, match
	s.t.Resolve(w.c.c, []*Lane{child.lane}, match)
}

// call makes a call as the engine's make does.
func (s *shell) call(t *shellThread, q request) {
	site := &s.p.sites[q.site]
	l := t.lane
	if t.in.outer {
		l = t.parent.lane
	}
	spec := CallSpec{
		Op: s.p.opOf(q), Effect: site.effect, Ordered: site.ordered,
		NoPrediction: site.observed, NoSpeculation: site.nospec, Once: site.kind == actOnce,
	}
	if site.effect == Predicated {
		spec.Domain = &s.domains[site.session]
	}
	if site.conflict {
		spec.Conflict = keyNames[q.key]
	}
	if dead := t.in.dead && !s.t.Late(l, &spec); dead || s.p.drops && s.skips(l, &spec) {
		s.log("run %d lane %q does not make %s (k%d a%d)", t.run.run.ID, l.ID(), spec.Op, q.key, q.arg)
		s.dropped = s.dropped || !dead
		t.steps = append(t.steps, shellStep{step: step{request: q, dropped: true}})
		t.resumeWith(droppedValue)
		return
	}
	if s.t.MustPin(l, &spec) {
		if !s.t.Barrier(l) {
			s.park(t, l)
			return
		}
		s.pass(t)
	}
	if site.hidden {
		s.identify(l, &spec, q)
	}
	var predictions []int
	if !spec.NoPrediction || site.observed {
		predictions = s.predictions(t.in, q)
	}
	spec.Predictions = len(predictions)
	u := s.t.Call(l, &spec)
	if u.Call == nil {
		if !s.t.Over() {
			s.fail("a call diverged and the task is not over")
		}
		return
	}
	c, _ := u.Call.Data.(*shellCall)
	if c == nil {
		c = &shellCall{c: u.Call, q: q, site: site, predictions: predictions}
		if s.p.late && !site.observed {
			c.coming = t.in.offers
		}
		u.Call.Data = c
		s.calls = append(s.calls, c)
		s.stats.calls++
	} else if c.q != q && site.kind != actOnce && !site.hidden { // else the run may be astray, see compare
		s.fail("call %d is adopted for another request", c.c.ID)
	}
	w := &shellUse{t, u, len(t.deps)}
	u.Data = w
	c.users = append(c.users, w)
	s.log("run %d lane %q call %d %s (k%d a%d) predictions %v: answer %d", t.run.run.ID, l.ID(), c.c.ID, spec.Op, q.key,
		q.arg, c.predictions, u.Answer())
	t.steps = append(t.steps, shellStep{step{request: q}, u})
	t.use, t.state = u, waiting
	if u.Answer() != Waiting {
		s.resume(t, u)
	}
}

// identify says in which variant the call is made, as the engine does.
func (s *shell) identify(l *Lane, spec *CallSpec, q request) {
	free, same := -1, -1
	for v := 0; v <= s.t.Variants(); v++ {
		spec.Variant = v
		c, how := s.t.Find(l, spec)
		if c == nil {
			if free < 0 {
				free = v
			}
			continue
		}
		if how == Certain {
			return
		}
		other := c.Data.(*shellCall).q
		switch opaque := s.p.sites[q.site].opaque; {
		case !opaque && other != q:
		case how == Sure:
			return
		case opaque: // each run would make it anew, and guess anew
			spec.NoPrediction = true
		case same < 0:
			same = v
		}
	}
	switch {
	case same >= 0:
		spec.Variant = same
	case free >= 0:
		spec.Variant = free
	default:
		spec.Variant = s.t.Variants() + 1
	}
	if spec.Variant > 0 {
		s.stats.variants++
	}
}

// skips has a call not be made, since the context of its code has ended: as it had in a run that
// was right to go on without, or by chance, unless a right one is known to make it.
func (s *shell) skips(l *Lane, spec *CallSpec) bool {
	switch {
	case s.t.GivesWay(l, spec):
		if s.one(8) { // it may not end in time
			return false
		}
		s.stats.gaveWay++
		s.t.Skip(l, spec)
		return true
	case spec.Once, !s.one(32):
		return false
	}
	s.stats.skipped++
	return !s.t.Late(l, spec)
}

// predictions makes up what is guessed about a call before it is made.
func (s *shell) predictions(in *instr, q request) (out []int) {
	site := &s.p.sites[q.site]
	if site.observed || s.p.late {
		return nil
	}
	probe := &shellCall{q: q, site: site}
	if s.rng == nil {
		for _, off := range in.offers {
			if v := s.world.peek(s.p, q).answer + off; probe.match0(out, v) {
				out = append(out, v)
			}
		}
		return out
	}
	for range s.rng.IntN(s.p.callWidth + 1) {
		if v := s.guess(probe); probe.match0(out, v) {
			out = append(out, v)
		}
	}
	return out
}

// match0 reports that v is not among the predictions.
func (c *shellCall) match0(predictions []int, v int) bool {
	for _, p := range predictions {
		if p == v {
			return false
		}
	}
	return true
}

// resume gives a thread the answer that it waits for.
func (s *shell) resume(t *shellThread, u *Use) {
	if t.state != waiting || t.use != u {
		s.fail("a thread of run %d is resumed that does not wait", t.run.run.ID)
		return
	}
	c := u.Call.Data.(*shellCall)
	if c.spent {
		s.fail("run %d asks for the answer of call %d, which counts as spent", t.run.run.ID, c.c.ID)
	}
	u.Take()
	idx := u.Answer()
	if idx >= 0 && c.state != answered {
		s.stats.accepted++
		t.deps = append(t.deps, guess{c, idx})
		if s.passed == t.run {
			s.fail("run %d takes a prediction after a barrier", t.run.run.ID)
		}
	}
	switch {
	case c.local != nil && idx >= 0:
		s.goOn(t, shellStep{step{wait: true}, u}, c.predictions[idx])
	case c.local != nil:
		t.state = joining
	case idx >= 0:
		t.resumeWith(c.predictions[idx])
	default:
		if c.state != answered {
			s.fail("call %d has an actual result before it was answered", c.c.ID)
		}
		t.resumeWith(c.value)
	}
}
