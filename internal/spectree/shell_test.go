package spectree

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// shell executes a program as the engine does, obeying a tree, but in one
// goroutine: a random scheduler picks what happens next.
type shell struct {
	rng *rand.Rand // nil if all ways are followed
	// explorer says what happens next, in place of chance.
	explorer *explorer
	p        *program
	t        *Tree
	world    world
	check    bool // the tree's invariants after each step
	// thorough says that the waits of all threads are followed after each step.
	thorough bool
	// doubts says when doubters are started, see Doubt; nil for never.
	doubts *rand.Rand
	// rescue has a task that is stuck go on without speculation.
	rescue bool

	runs    []*shellRun
	calls   []*shellCall
	applied []*shellCall // effects on the world, in order
	domains [2]Domain    // by session
	alive   int
	caller  bool      // the caller's word is yet to come
	passed  *shellRun // it passed a barrier

	final    *shellRun
	winner   *shellRun
	ended    bool // the task was ended from outside
	refuted  bool
	diverged bool
	dropped  bool // some run gave up waiting for a call
	frozen   bool
	hurried  bool // goroutines that share a lane did not get the time to catch up
	patient  bool // what is sent for a speculative caller waits for a while
	busy     bool // and goes on to wait for as long as there is something to wait for

	time    int // steps so far
	pick    [4]int
	problem string
	trace   *strings.Builder
	stats   *stats
}

// stats shows that random programs do what they are meant to.
type stats struct {
	programs, steps, calls, runs, discards, adopted, accepted, refused, withdrawn, dropped, skipped, gaveWay, effects,
	ahead, falsified,
	variants, diverged, refuted, ended, barriers, stalls, doubted, hurried, heldUp, insisted int
}

type threadState uint8

const (
	ready threadState = iota
	waiting
	parked
	joining
	gone
)

type shellRun struct {
	run       *Run
	threads   []*shellThread
	live      int
	doubter   bool // when it was started
	discarded bool
	exited    bool
}

type shellThread struct {
	thread
	run      *shellRun
	lane     *Lane
	own      bool // its lane is not shared with its parent
	state    threadState
	in       *instr
	parent   *shellThread
	children [maxChildren]*shellThread
	awaited  *shellThread
	use      *Use
	steps    []shellStep
	guesses  []int
	subs     []localWait
	deps     []guess // that the thread has gone on with
}

// guess is a prediction that a thread has gone on with.
type guess struct {
	call   *shellCall
	answer int
}

// shellUse is what a thread knew when it made a call.
type shellUse struct {
	thread *shellThread
	use    *Use
	deps   int // of the thread's
}

type shellStep struct {
	step
	use *Use
}

// localWait is somebody's wait for a thread, as a call.
type localWait struct {
	c *shellCall
	u *Use
}

type attemptState uint8

const (
	idle attemptState = iota
	postponed
	inFlight
	executed
	applied // a staged call's effects
	answered
	aborted
)

type shellCall struct {
	c           *Call
	q           request
	site        *site
	local       *shellThread
	predictions []int
	coming      []int // predictions yet to come, by how far they are off
	value       int
	matched     int
	users       []*shellUse
	out         outcome
	state       attemptState
	speculative bool // the attempt was sent as such and has no word yet
	confirmed   bool
	abandoned   bool
	settled     bool
	spent       bool             // nobody is to ask for the answer any more
	hinted      bool             // a staged call's answer was offered as a prediction
	conds       []shellCondition // of a predicated call that was sent on guesses
	tries       int              // how often it was refused or lost
	late        int
	refusals    int
	executedAt  int
	answeredAt  int
	changed     bool
}

func newShell(p *program, rng *rand.Rand) *shell {
	s := &shell{rng: rng, p: p, world: newWorld()}
	cfg := Config{
		Limits:     Limits{Depth: 1 + rng.IntN(8), Width: 1 + rng.IntN(4), Replays: rng.IntN(12), Runs: 1 + rng.IntN(6)},
		Replayable: rng.IntN(16) != 0,
	}
	if rng.IntN(4) == 0 {
		cfg.Limits = Limits{Depth: 32, Width: 4, Replays: 64, Runs: 16}
	}
	if cfg.Limits.Replays == 0 {
		cfg.Limits.Replays = 1
	}
	if rng.IntN(4) == 0 {
		cfg.CallerOpen, cfg.Depth = true, rng.IntN(2)
		s.caller = true
	}
	s.patient, s.busy = rng.IntN(4) == 0, rng.IntN(2) == 0
	s.t = New(cfg)
	s.pick = [4]int{1 + rng.IntN(8), 1 + rng.IntN(8), 1 + rng.IntN(4), 1}
	return s
}

func (s *shell) fail(format string, args ...any) {
	if s.problem == "" {
		s.problem = fmt.Sprintf(format, args...)
	}
}

func (s *shell) log(format string, args ...any) {
	if s.trace != nil {
		fmt.Fprintf(s.trace, "%4d ", s.time)
		fmt.Fprintf(s.trace, format+"\n", args...)
	}
}

const maxSteps = 4000

// run executes the program to its end and to the end of all that it started.
func (s *shell) run() {
	s.t.Start()
	s.obey()
	for s.problem == "" && s.step() {
		s.time++
		s.obey()
		if s.doubts != nil && s.problem == "" {
			s.doubt()
			s.obey()
		}
		s.wanted()
		if s.check && s.problem == "" {
			err := s.t.check()
			if err == nil && s.thorough {
				err = s.progress()
			}
			if err != nil {
				s.fail("invariant: %v", err)
			}
		}
		if s.time > maxSteps {
			s.fail("no end after %d steps", s.time)
		}
	}
}

// step has one thing happen. It returns false if nothing can.
func (s *shell) step() bool {
	if s.explorer != nil {
		return s.stepExplored()
	}
	var threads []*shellThread
	var exits []*shellRun
	var buf [32]*shellThread
	threads = buf[:0]
	for _, r := range s.runs {
		if r.exited {
			continue
		}
		if r.live == 0 {
			exits = append(exits, r)
			continue
		}
		for _, th := range r.threads {
			if th.runnable() {
				threads = append(threads, th)
			}
		}
	}
	var calls []*shellCall
	var cbuf [32]*shellCall
	calls = cbuf[:0]
	for _, c := range s.calls {
		if s.canMove(c) {
			calls = append(calls, c)
		}
	}
	if len(threads)+len(calls)+len(exits) == 0 {
		return s.wait()
	}
	total := 0
	var weights [4]int
	for i, n := range [4]int{len(threads), len(calls), len(exits), s.rare()} {
		if n > 0 {
			weights[i] = s.pick[i] * 4
			total += weights[i]
		}
	}
	n := s.rng.IntN(total)
	switch {
	case n < weights[0]:
		s.stepThread(threads[s.rng.IntN(len(threads))])
	case n < weights[0]+weights[1]:
		s.stepCall(calls[s.rng.IntN(len(calls))])
	case n < weights[0]+weights[1]+weights[2]:
		s.exit(exits[s.rng.IntN(len(exits))])
	default:
		s.stepRare()
	}
	return true
}

// wait has the task wait for what comes by itself, if anything does: the
// caller's word, or the end of the grace. Nothing else helps then: whoever is
// cancelled instead was stuck.
func (s *shell) wait() bool {
	switch {
	case s.t.Over():
		return false
	case s.caller:
		s.word()
		return true
	case s.hurry():
		return true
	case s.rescue && len(s.t.early) == 0:
		s.log("go on")
		s.stats.stalls++
		return s.t.GoOn()
	case s.t.Orphans() == 0:
		return false
	}
	if len(s.t.early) == 0 {
		s.fail("the task waits for the end of the grace")
	}
	before := s.t.Orphans()
	s.expire()
	return s.t.Orphans() < before || len(s.t.out) > 0
}

// word has the caller's word come.
func (s *shell) word() {
	if s.rng.IntN(6) == 0 {
		s.refuteCaller()
	} else {
		s.confirmCaller()
	}
}

func (s *shell) refuteCaller() {
	s.log("refute caller")
	s.caller, s.refuted = false, true
	s.t.RefuteCaller()
}

func (s *shell) confirmCaller() {
	s.log("confirm caller")
	s.caller = false
	s.t.ConfirmCaller()
}

// one reports true once in so many times, and never if all ways are followed:
// then it is a move of its own.
func (s *shell) one(of int) bool { return s.rng != nil && s.rng.IntN(of) == 0 }

// rare reports whether something from outside may happen.
func (s *shell) rare() int {
	if s.t.Over() || !s.caller && s.t.Orphans() == 0 && !s.p.drops && s.rng.IntN(16) != 0 {
		return 0
	}
	return 1
}

func (s *shell) stepRare() {
	switch n := s.rng.IntN(64); {
	case s.caller && n < 24:
		s.word()
	case s.t.Orphans() > 0 && n < 48:
		s.expire()
	case n == 63:
		s.log("end")
		s.ended = true
		s.t.End()
	case n == 62:
		s.frozen = true
		firm := s.t.Freeze()
		s.log("freeze %v", firm)
		if !firm && s.rng.IntN(2) == 0 {
			s.ended = true
			s.t.End()
		}
	case n > 48 && s.p.drops:
		s.drop()
	}
}

func (s *shell) expire() {
	s.log("expire")
	s.hurried = s.hurried || len(s.t.early) > 0
	s.t.Expire(true)
}

// drop has a thread give up waiting.
func (s *shell) drop() {
	for _, r := range s.runs {
		for _, th := range r.threads {
			if th.mayDrop() && s.rng.IntN(2) != 0 {
				s.dropAs(th)
				return
			}
		}
	}
}

// mayDrop reports whether the thread waits for a call that it may give up waiting for.
func (t *shellThread) mayDrop() bool {
	if t.run.discarded || t.state != waiting || t.use.Answer() != Waiting {
		return false
	}
	c := t.use.Call.Data.(*shellCall)
	return c.site != nil && (c.site.effect == None || c.state == idle && c.c.Uses() == 1)
}

func (s *shell) dropAs(th *shellThread) {
	s.log("run %d drops call %d", th.run.run.ID, th.use.Call.ID)
	s.dropped = true
	s.stats.dropped++
	s.t.Insist(th.use)
	s.t.Drop(th.use, false)
	th.steps[len(th.steps)-1].dropped = true
	th.resumeWith(droppedValue)
}

// doubt starts doubters of calls that were guessed, and has some give theirs up.
func (s *shell) doubt() {
	if s.t.Over() {
		return
	}
	if held := s.heldUp(); len(held) > 0 && s.doubts.IntN(2) == 0 {
		s.hurryLane(held[0])
		return
	}
	if s.doubts.IntN(6) != 0 {
		return
	}
	if s.doubts.IntN(4) == 0 {
		s.hurry()
		return
	}
	r := s.runs[s.doubts.IntN(len(s.runs))]
	if r.discarded || len(r.run.uses) == 0 {
		return
	}
	if c := r.run.doubts(); c != nil && s.doubts.IntN(2) == 0 {
		for _, th := range r.threads {
			if th.mayDrop() && th.use.Call == c {
				s.stats.insisted++
				s.dropAs(th)
				return
			}
		}
	}
	if u := r.run.uses[s.doubts.IntN(len(r.run.uses))]; u.Doubtful() {
		s.log("run %d doubts call %d", r.run.ID, u.Call.ID)
		s.stats.doubted++
		s.t.Doubt([]*Use{u})
	}
}

// hurry tells that calls with effects wait for guesses of their lanes' relatives, of each
// once: who is told again may be told when it is too late.
func (s *shell) hurry() (told bool) {
	for _, r := range s.runs {
		for _, u := range r.run.uses {
			if u.Overtaken() && !u.hurried {
				s.log("run %d hurries call %d", r.run.ID, u.Call.ID)
				s.stats.hurried++
				told = true
				s.t.Hurry(u)
			}
		}
	}
	for _, l := range s.heldUp() {
		told = true
		s.hurryLane(l)
	}
	return told && len(s.t.out) > 0
}

// hurryLane tells that a lane is held up at a barrier.
func (s *shell) hurryLane(l *Lane) {
	s.log("run %d hurries lane %q", l.run.ID, l.id)
	s.stats.heldUp++
	s.t.HurryLane(l)
}

// heldUp returns the lanes that are held up at barriers and may be helped on.
func (s *shell) heldUp() (out []*Lane) {
	for _, r := range s.runs {
		for _, l := range r.run.parked {
			if l.HeldUp() && !s.t.doubted(r.run) {
				out = append(out, l)
			}
		}
	}
	return out
}

const droppedValue = 99

// obey does what the tree says.
func (s *shell) obey() {
	for s.problem == "" {
		acts := s.t.Take()
		if len(acts) == 0 {
			s.spend()
			return
		}
		for i := range acts {
			s.obeyOne(&acts[i])
		}
		s.withinWidth(s.t.doubter() != nil)
	}
}

// withinWidth checks that no more runs are alive than may be, beside a doubter or not.
func (s *shell) withinWidth(doubter bool) {
	width := s.t.cfg.Limits.Width
	if doubter {
		width++
	}
	if s.alive > width {
		s.fail("%d runs are alive", s.alive)
	}
}

// spend notes which answers nobody is to ask for any more.
func (s *shell) spend() {
	if s.t.Last() == nil {
		return
	}
	for _, c := range s.calls {
		c.spent = c.spent || s.t.Spent(c.c)
	}
}

func (s *shell) obeyOne(a *Action) {
	if s.trace != nil {
		s.log("  %s", describe(a))
	}
	switch a.Kind {
	case StartRun:
		r := &shellRun{run: a.Run, doubter: a.Call != nil}
		a.Run.Data = r
		s.runs = append(s.runs, r)
		s.alive++
		// One that the tree has discarded by now was a doubter when this one was started.
		s.withinWidth(slices.ContainsFunc(s.runs, func(r *shellRun) bool { return r.doubter && !r.discarded }))
		s.newThread(r, nil, a.Run.Main(), true, thread{block: s.p.main})
	case DiscardRun:
		s.discard(a.Run.Data.(*shellRun))
	case Resume:
		s.resume(a.Use.Data.(*shellUse).thread, a.Use)
	case Send:
		s.send(a.Call.Data.(*shellCall), a.Speculative)
	case Adopt:
		s.stats.adopted++
	case Confirm:
		s.confirm(a.Call.Data.(*shellCall))
	case Abandon:
		s.abandon(a.Call.Data.(*shellCall))
	case Settle:
		c := a.Call.Data.(*shellCall)
		if c.settled || c.state != answered {
			s.fail("call %d is settled twice or without an answer", c.c.ID)
		}
		c.settled = true
	case Release:
		s.passBarrier(a.Lane)
	case Final:
		if s.final != nil {
			s.fail("two runs are final: %d and %d", s.final.run.ID, a.Run.ID)
		}
		s.final = a.Run.Data.(*shellRun)
	case Commit:
		if s.winner != nil || s.final != a.Run.Data.(*shellRun) || s.caller {
			s.fail("run %d wins, final is %v, the caller's word is missing: %v", a.Run.ID, s.final != nil, s.caller)
		}
		s.winner = s.final
	case Diverge:
		s.diverged = true
	}
}

func describe(a *Action) string {
	names := [...]string{"start", "discard", "resume", "send", "hold", "adopt", "confirm", "abandon", "settle", "release",
		"firm", "offer", "final", "commit", "diverge"}
	out := names[a.Kind]
	if a.Run != nil {
		out += fmt.Sprintf(" run %d", a.Run.ID)
	}
	if a.Call != nil {
		out += fmt.Sprintf(" call %d", a.Call.ID)
	}
	if a.Kind == Resume {
		out += fmt.Sprintf(" answer %d", a.Use.Answer())
	}
	if a.Lane != nil {
		out += fmt.Sprintf(" lane %q", a.Lane.ID())
	}
	if a.Speculative {
		out += " speculatively"
	}
	if a.Kind == Hold {
		out += ": " + a.Reason()
	}
	return out
}

func (s *shell) discard(r *shellRun) {
	if r.discarded || s.winner != nil {
		s.fail("run %d is discarded twice, or after the end", r.run.ID)
	}
	r.discarded = true
	s.alive--
	s.stats.discards++
	if s.passed == r && !s.t.Over() {
		s.fail("run %d is discarded although it passed a barrier", r.run.ID)
	}
}
