package randtest

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/foresay/foresay/control"
	"github.com/foresay/foresay/internal/processors"
	"github.com/foresay/foresay/wan"
)

// timing are the settings of a scenario of which it is known how long it may
// take: nothing in it waits for its turn in a task that does not without one.
type timing struct {
	On   bool
	Fast bool // the network is, and so are servers: what a guess would save is hardly worth it
	Busy int  // in so many of 100 looks goroutines queue for the processors
	Many bool // calls are guessed several times over
	Slow bool // some handlers take much longer than others
}

// NewTimed returns such a scenario, with the default limits. Its programs write
// early, read the same again while the first reading is under way, and guess a lot.
func NewTimed(seed uint64) *Scenario {
	sc := &Scenario{Seed: seed, chance: chance(seed)}
	r := rand.New(rand.NewPCG(seed, 0x71ed))
	sc.knobs = newKnobs(r, false)
	k := &sc.knobs
	k.Ordered, k.Tight, k.Streams, k.Limits, k.HandlerLimit = false, false, 0, control.Limits{}, control.Limits{}
	k.Timing = timing{On: true, Fast: r.IntN(3) == 0, Busy: []int{0, 0, 50, 100}[r.IntN(4)], Many: r.IntN(2) == 0,
		Slow: r.IntN(2) == 0}
	sc.matrix = k.Timing.steady(newMatrix(r, k.Servers))
	g := &generator{Rand: r, servers: k.Servers, timed: true}
	sc.tasks = g.tasks()
	if r.IntN(2) == 0 {
		g.id++
		first := &step{id: g.id, kind: kindAppend, keys: []string{keyOf(0, classOwn, 0)}, value: "v1"}
		sc.tasks[0].links[0] = append([]*step{first}, sc.tasks[0].links[0]...)
	}
	return sc
}

// NewRetried returns such a scenario whose connections admit few streams, and in which first
// attempts of calls fail that gRPC then makes again: calls that wait for those want the same
// streams.
func NewRetried(seed uint64) *Scenario {
	sc := NewTimed(seed)
	sc.retried = true
	sc.knobs.Streams, sc.knobs.Lease = 2+uint32(sc.chance.below(4, "streams")), 0
	return sc
}

// steady takes the jitter from the links, and most of the delay if the network is
// to be fast.
func (g *timing) steady(m wan.Matrix) wan.Matrix {
	for p, l := range m.Links() {
		if l.Jitter = 0; g.Fast {
			l.Delay /= 100
		}
		m = m.WithLink(p, l)
	}
	return m
}

// again repeats some readings at once.
func (g *generator) again(steps []*step) []*step {
	last := steps[len(steps)-1]
	if !g.timed || last.kind != kindGet || g.IntN(3) > 0 {
		return steps
	}
	g.id++
	same := *last
	same.id = g.id
	return append(steps, &same)
}

// work is how long the handler takes for a call at a place. Where it is known how long the
// scenario may take, equal requests take equally long: a call may be another place's that a
// wrong guess made there.
func (sc *Scenario) work(at string, request proto.Message) time.Duration {
	if at == "" { // a trap's call, which others may adopt
		return 0
	}
	most := 4_000_000
	if g := sc.knobs.Timing; g.On {
		at = bytesOf(request)
		if g.Slow && sc.chance.percent(15, "slow", at) {
			most = 60_000_000
		}
		if g.Fast {
			most /= 40
		}
	}
	return time.Duration(sc.chance.below(most, "work", at))
}

// pretend has the world's processors be as busy as the scenario wants them.
func (w *world) pretend(ctx context.Context) context.Context {
	busy := w.sc.knobs.Timing.Busy
	if busy == 0 {
		return ctx
	}
	return processors.Pretend(ctx, func() (wait time.Duration) {
		if w.sc.chance.percent(busy, "busy", time.Since(w.start).String()) {
			wait = time.Millisecond
		}
		return wait
	})
}

// pretending does the same for a server's streams.
func (w *world) pretending(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	return handler(srv, &contextStream{ss, w.pretend(ss.Context())})
}

type contextStream struct {
	grpc.ServerStream
	ctx context.Context
}

func (s *contextStream) Context() context.Context { return s.ctx }

// refusals is how long handlers may take to find out which methods of other servers take no
// calls that ask for predictions: from each of them a round trip to the farthest other one.
func (sc *Scenario) refusals() (sum time.Duration) {
	for _, from := range sc.matrix.Sites() {
		longest := time.Duration(0)
		for _, to := range sc.matrix.Sites() {
			if from != clientSite && to != clientSite {
				longest = max(longest, sc.matrix.RTT(from, to))
			}
		}
		sum += longest
	}
	return sum
}

// late checks that the program took no longer than the sequential one, and what
// speculation may cost:
//   - for each call that is guessed wrong, or several times over, a run goes through
//     the program's own code once more;
//   - a handler's replay does so with the handler's, and there is one for each call
//     that it makes, at most;
//   - a call that is refused after its caller turned out right is made only then, in a handler,
//     too, of whose calls there are no reports: if it may be refused for want of a place, for all
//     that it takes, if its server does not stage what clients think it does, for a round trip;
//   - who passes a barrier, or pins, waits for all that a neighbour has guessed, which may
//     be its calls one after the other, once and once more in each of these runs.
func (v *verdict) late(o *oracle) {
	if few := v.sc.knobs.Streams > 0; few || !v.sc.knobs.Timing.On {
		v.coarselyLate(o, few)
		return
	}
	again := time.Duration(0) // calls for which runs began anew
	allowed := v.want.took + 2*time.Millisecond
	limited := slices.ContainsFunc(v.sc.tasks, func(t *task) bool { return slices.ContainsFunc(t.links, limits) })
	for _, r := range v.got.reports {
		causes := make(map[int]bool)
		for _, run := range r.Runs {
			if run.Cause == 0 && run.ReplayOf > 0 && limited {
				again++
			}
			// A wrong guess starts no run where one is alive by another guess, wrong too perhaps.
			for _, call := range []int{run.Cause, run.RefutedBy} {
				if call > 0 && !causes[call] {
					causes[call] = true
					again++
				}
			}
		}
		for _, c := range r.Calls {
			right := c.Confirmed
			if len(c.Sent) > 0 && !c.Sent[0].Speculative {
				right = c.Sent[0].At
			}
			if last := len(c.Sent) - 1; last > 0 && right >= 0 {
				allowed += max(0, c.Sent[last].At-right)
			}
		}
	}
	for at, call := range o.calls {
		if in := o.calls[at[:max(0, strings.LastIndexByte(at, '/'))]]; in != nil { // its handler makes the call
			allowed += v.sc.work(at, in.request) + v.sc.work(at, call.request)
			if v.sc.knobs.HalfOpen[1] > 0 {
				allowed += call.took
			} else if v.sc.knobs.refuses(call) {
				allowed += v.sc.matrix.RTT(siteOf(in.server), siteOf(call.server))
			}
		}
	}
	allowed += again * o.code
	if v.sc.knobs.ServerPredictions {
		allowed += v.sc.refusals()
	}
	if slices.ContainsFunc(v.sc.tasks, func(t *task) bool { return slices.ContainsFunc(t.links, concurrent) }) {
		allowed += (1 + again) * o.longest()
	}
	if v.got.took > allowed {
		v.wrong("it took %v, sequentially %v, and with all that speculation may cost %v", v.got.took, v.want.took, allowed)
	}
}

// coarselyLate is late for programs of which it is not known how long they may take: calls that
// wait for streams do so in another order than sequentially; goroutines that share a context may
// have to take turns in a replay; and who holds a context that ended in another run is waited for,
// for a quarter of a second, before it is certain that it does not end in this one. Each run goes
// through the program's own code, its timers among it. A task that is stopped, see races, is so
// only once its code had some seconds to repeat what it did.
func (v *verdict) coarselyLate(o *oracle, fewStreams bool) {
	if v.sc.Faults || v.sc.knobs.Uneven || v.sc.drifts || !v.ok {
		return
	}
	if v.sc.knobs.Unguessed != control.ModeDefault && o.code > 0 { // nobody reports how many runs there are
		return
	}
	most := 2*v.want.took + 500*time.Millisecond
	if fewStreams {
		// A later attempt waits a second for a stream that it should have, see surePatience; what
		// calls wanted is kept for them for twice demandSpan; a call to another server waits for its
		// patience.
		n := time.Duration(v.sc.knobs.Servers)
		most += time.Second + n*n*20*time.Millisecond
	}
	for _, r := range v.got.reports {
		most += time.Duration(max(0, len(r.Runs)-1)) * o.code
	}
	if v.got.took > most {
		v.wrong("it took %v, sequentially %v: want at most %v", v.got.took, v.want.took, most)
	}
}

// refuses reports whether a server may refuse a call that clients send on a guess.
func (k *knobs) refuses(call *answer) bool {
	return k.Plain[call.server] || k.ClientStages&^k.Stages[call.server]&call.method&^methodRelayRead != 0
}

// longest returns how long the calls of a goroutine took together, of the one that needed
// longest, or one call outside of these.
func (o *oracle) longest() (longest time.Duration) {
	lanes := make(map[string]time.Duration)
	for at, a := range o.calls {
		longest = max(longest, a.took)
		for {
			i := strings.LastIndexByte(at, '/')
			if i < 0 {
				break
			}
			if name, _, ok := strings.Cut(at[i:], "."); ok { // else a handler's, which is part of another
				lanes[at[:i]+name] += a.took
			}
			at = at[:i]
		}
	}
	for _, sum := range lanes {
		longest = max(longest, sum)
	}
	return longest
}

// RunRetried checks so many scenarios in which calls are tried again over few streams.
func RunRetried(t *testing.T, seeds int) {
	t.Helper()
	run(t, seeds, NewRetried)
}

// RunTimed checks so many scenarios of which it is known how long they may take.
func RunTimed(t *testing.T, seeds int) {
	t.Helper()
	run(t, seeds, NewTimed)
}
