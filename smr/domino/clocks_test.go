package domino

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/foresay/foresay/internal/seed"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kv"
	"github.com/foresay/foresay/smr/smrsim"
	"github.com/foresay/foresay/smr/smrtest"
	"github.com/foresay/foresay/wan"
)

// TestClocksAtRandom has clocks be off by up to a week, and be set right again, while replicas are
// restarted, cut off and replaced. After each such step the group serves within a second, claims
// are no further ahead than clocks were when the group began, the application is told of the clocks
// that are off and of no others, and clients keep away from a replica that is ahead alone. Where
// only a minority of clocks is ever off, the group's time is right.
func TestClocksAtRandom(t *testing.T) {
	first := seed.First(t, 1)
	for i := range seed.Count(t, 50) {
		n := first + uint64(i)
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			newClocks(t, n).play()
		})
	}
}

// A clockWorld is a group of three or five whose clocks go wrong.
type clockWorld struct {
	*world
	t     *testing.T
	rand  *rand.Rand
	opt   Options
	wrong []protocol.ID // whose clocks may be off
	few   bool          // they are a minority
	group []protocol.ID
	begun map[protocol.ID]time.Duration // what clocks were ahead when the group began
	off   map[protocol.ID]time.Duration // what they are ahead now
	told  map[protocol.ID]smr.ClockOff
	story []string
}

func newClocks(t *testing.T, seed uint64) *clockWorld {
	w := &clockWorld{
		t: t, rand: rand.New(rand.NewPCG(seed, 0xc10c)), opt: thesis(), few: seed%3 > 0,
		begun: map[protocol.ID]time.Duration{}, off: map[protocol.ID]time.Duration{}, told: map[protocol.ID]smr.ClockOff{},
	}
	if seed%2 == 0 {
		w.opt = beyond()
	}
	n := 3
	if seed%5 == 0 {
		n = 5
	}
	sites := []wan.Site{"a", "b", "c", "d", "e"}[:n]
	for i := range sites {
		w.group = append(w.group, protocol.ID(i+1))
	}
	w.wrong = w.some(w.group, n)
	if w.few {
		w.wrong = w.some(w.group, n/2)
	}
	if w.rand.IntN(2) == 0 {
		for _, id := range w.some(w.wrong, n/2) {
			w.begun[id] = w.draw()
			w.off[id] = w.begun[id]
		}
	}
	w.say("the group begins with clocks off by %v", w.begun)
	w.world = &world{smrtest.Deploy(t, "", smrsim.Config{
		Protocol: New("", "", w.opt), Clients: sites[:2], FirstClient: 100, RoundTrip: 20 * time.Millisecond,
		Place:   wan.Deployment{Matrix: wan.Uniform(20*time.Millisecond, sites...), Replicas: sites},
		Sim:     sim.Config[smr.Message]{Seed: seed, TraceKeep: -1, App: w.app},
		Clock:   func(id protocol.ID) sim.Clock { return sim.Clock{Offset: w.off[id]} },
		Replica: func(c *smr.ReplicaConfig) { c.Machine, c.Leader = kv.New(), 1 },
		Client:  func(c *smr.ClientConfig) { c.Nearest = 0 },
	})}
	return w
}

func (w *clockWorld) app(from protocol.ID, msg smr.Message) {
	if m, ok := msg.(smr.ClockOff); ok {
		w.told[from] = m
	}
}

// some returns between one and most of some replicas.
func (w *clockWorld) some(of []protocol.ID, most int) []protocol.ID {
	of = slices.Clone(of)
	w.rand.Shuffle(len(of), func(i, j int) { of[i], of[j] = of[j], of[i] })
	return of[:1+w.rand.IntN(min(most, len(of)))]
}

// draw returns what a clock is ahead: little, or by more than any two of these times are apart.
func (w *clockWorld) draw() time.Duration {
	by := []time.Duration{100 * time.Millisecond, 5 * time.Second, time.Minute, time.Hour, 7 * 24 * time.Hour}
	d := by[w.rand.IntN(len(by))]
	if w.rand.IntN(3) == 0 {
		d = -d
	}
	return d
}

func (w *clockWorld) say(format string, args ...any) {
	w.story = append(w.story, fmt.Sprintf(format, args...))
}

func (w *clockWorld) fail(format string, args ...any) {
	w.t.Helper()
	w.t.Fatalf("%v: %s", w.Now(), fmt.Sprintf(format, args...))
}

func (w *clockWorld) play() {
	w.t.Cleanup(func() {
		if w.t.Failed() {
			w.t.Log(strings.Join(w.story, "\n"))
		}
	})
	steps := []func(){w.goWrong, w.goWrong, w.setRight, w.restart, w.restart, w.cutOff, w.replace}
	w.check()
	for range 10 {
		steps[w.rand.IntN(len(steps))]()
		w.check()
	}
}

// set has the clock of a replica be off by so much from now on.
func (w *clockWorld) set(id protocol.ID, by time.Duration) {
	w.say("%v: replica %d's clock is %v ahead", w.Now(), id, by)
	w.Jump(id, by-w.off[id])
	w.off[id] = by
}

// goWrong has some clocks be off, every other time by the same.
func (w *clockWorld) goWrong() {
	by, same := w.draw(), w.rand.IntN(2) == 0
	for _, id := range w.some(w.wrong, len(w.wrong)) {
		if !same {
			by = w.draw()
		}
		w.set(id, by)
	}
}

func (w *clockWorld) setRight() {
	for _, id := range w.some(w.wrong, len(w.wrong)) {
		w.set(id, 0)
	}
}

// restart has some replicas be down for a while, all of them only where most clocks are right:
// otherwise nobody knows the time.
func (w *clockWorld) restart() {
	most := len(w.group) - 1
	if w.few {
		most++
	}
	which := w.some(w.group, most)
	w.say("%v: replicas %v are restarted", w.Now(), which)
	for _, id := range which {
		w.Crash(id, sim.KeepAll)
	}
	w.Run(time.Duration(w.rand.IntN(3000)) * time.Millisecond)
	if w.rand.IntN(2) == 0 {
		w.goWrong()
	}
	together := w.rand.IntN(2) == 0
	for _, id := range which {
		w.Restart(id)
		w.told[id] = smr.ClockOff{}
		if !together {
			w.Run(time.Duration(w.rand.IntN(1500)) * time.Millisecond)
		}
	}
}

func (w *clockWorld) cutOff() {
	id := w.some(w.group, 1)
	others := slices.DeleteFunc(slices.Clone(w.group), func(o protocol.ID) bool { return o == id[0] })
	w.say("%v: replica %d is cut off", w.Now(), id[0])
	w.Partition(id, others)
	w.Run(10 * time.Second)
	w.Reunite(id, others)
}

// replace puts another replica, whose clock may be off as well, in the place of one whose clock may
// be off.
func (w *clockWorld) replace() {
	old := w.some(w.wrong, 1)[0]
	id := slices.Max(w.group) + 1
	w.wrong = append(w.wrong, id)
	w.off[id] = w.draw()
	w.say("%v: replica %d takes the place of %d, its clock is %v ahead", w.Now(), id, old, w.off[id])
	w.join(w.t, w.opt, old, id)
	gone := func(o protocol.ID) bool { return o == old }
	w.wrong = slices.DeleteFunc(w.wrong, gone)
	w.group = append(slices.DeleteFunc(w.group, gone), id)
}

// check lets two seconds pass, and looks at everything.
func (w *clockWorld) check() {
	w.t.Helper()
	w.Run(2 * time.Second)
	w.serves(w.t, "then")
	if w.t.Failed() {
		w.fail("the group does not serve")
	}
	for _, id := range w.group {
		r := w.replica(id)
		if claimed := at(max(r.acceptor.skipped, r.acceptor.closed)) - w.time(); claimed > w.most(id) {
			w.fail("replica %d claims %v ahead, want at most %v", id, claimed, w.most(id))
		}
		w.checkTold(id, r)
		if r.alone() {
			w.checkAlone(id)
		}
	}
}

// most returns how far ahead a replica's claims may be: a little, what its own clock was ahead when
// the group began, and if its clock may be off, what another one was ahead with which it agreed.
func (w *clockWorld) most(id protocol.ID) time.Duration {
	slack := time.Second + w.Now()/catchUp
	most := slack
	for other, by := range w.begun {
		if other == id || !w.few || slices.Contains(w.wrong, id) {
			most = max(most, by+2*slack)
		}
	}
	return most
}

// checkTold looks at what the application was told of a replica's clock.
func (w *clockWorld) checkTold(id protocol.ID, r *replica) {
	w.t.Helper()
	const far, near = 3 * time.Second, 300 * time.Millisecond
	passed := at(r.passed())
	ahead, told := w.Clock(id)-passed, w.told[id]
	switch {
	case ahead > far && told.Held == 0 && told.Alone == 0:
		w.fail("replica %d's clock is %v ahead of the group's time, and it says %+v", id, ahead, told)
	case ahead < -far && told.Behind == 0 && told.Alone == 0:
		w.fail("replica %d's clock is %v behind the group's time, and it says %+v", id, -ahead, told)
	case ahead < near && ahead > -near && at(r.acceptor.skipped)-passed < near && told != (smr.ClockOff{}):
		w.fail("replica %d's clock is right, and it says %+v", id, told)
	}
	if !w.few || len(w.begun) > 0 {
		return
	}
	if late := ahead - r.time.held; r.time.held > 0 && (late > near || late < -near) {
		w.fail("replica %d holds its clock by %v, and it is %v ahead of the group's time", id, r.time.held, ahead)
	}
	if slices.Contains(w.wrong, id) {
		return
	}
	if late := w.time() - passed; late > near || late < -near {
		w.fail("replica %d takes the group's time for %v behind what most clocks show", id, late)
	}
	if told != (smr.ClockOff{}) {
		w.fail("replica %d's clock was always right, and it says %+v", id, told)
	}
}

// checkAlone looks at how a replica that is ahead alone is told of, and treated.
func (w *clockWorld) checkAlone(id protocol.ID) {
	w.t.Helper()
	if w.told[id].Alone == 0 {
		w.fail("replica %d is ahead alone, and says %+v", id, w.told[id])
	}
	for _, c := range w.Clients {
		cl := w.Get(c).(*client)
		if way := cl.choose(w.Clock(c)); way.target == id && !way.fast {
			w.fail("client %d chooses %+v, though that replica is ahead alone", c, way)
		}
		if _, ok := cl.throughOwner(w.Clock(c), id); ok {
			w.fail("client %d would have commands proposed by replica %d, which is ahead alone", c, id)
		}
	}
}
