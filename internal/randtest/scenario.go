package randtest

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/foresay/foresay/control"
	"github.com/foresay/foresay/wan"
)

// methods is a set of the methods with side effects, or of relays.
type methods uint8

const (
	methodPut methods = 1 << iota
	methodAppend
	methodRelayWrite
	methodRelayRead
	allMethods = methodPut | methodAppend | methodRelayWrite | methodRelayRead
)

// knobs are the settings that a seed chooses for a world.
type knobs struct {
	Servers  int
	Right    int  // percent of the guesses that are right
	Guessed  int  // percent of the calls with guesses by the caller
	Learnt   int  // percent of the calls with guesses by a predictor
	Early    int  // percent of the handlers that answer early
	Loose    bool // a read's version does not count
	Stubborn bool // the code goes on after foresay.ErrMisspeculated
	Tight    bool // time limits are only just long enough
	Uneven   bool // the code takes its time, in each run another one

	Conflict          bool // calls on different keys commute
	Ordered           bool
	ServerPredictions bool
	OwnKey            bool // Site.Key is set
	Off               bool // writes take no predictions
	SendPlainly       bool // clients send Gets of plain servers on a guess

	ClientStages methods             // what clients take to be staged
	Stages       [maxServers]methods // what each server declares to stage
	Replayable   [maxServers]methods // what each server declares replayable
	Plain        [maxServers]bool    // servers that know nothing of speculation
	RefuseLate   bool                // and take their time to say so
	Streams      uint32              // how many streams a connection admits, 0 for any number
	HalfOpen     [2]int              // the limits of clients and servers on half-open streams, 0 for the default
	Keepalive    bool                // connections notice a dead network, in place of a deadline
	Lease        time.Duration       // of clients
	Limits       control.Limits      // of tasks
	HandlerLimit control.Limits      // of handlers
	Timing       timing
	Options      bool         // calls, connections and servers have options of grpc's
	Unguessed    control.Mode // of clients that make no guesses, or ModeDefault
}

const maxServers = 3

// Scenario is all that a seed decides.
type Scenario struct {
	Seed   uint64
	Faults bool

	retried bool // the service config retries, and many first attempts fail
	knobs   knobs
	tasks   []*task
	early   earlyEnd
	clock   bool // the program reads clocks: only their order counts
	drifts  bool // the program is not deterministic: it must be stopped, or not repeated
	faults  []*fault
	matrix  wan.Matrix
	chance  chance
}

// NewScenario returns the scenario of a seed, with faults or without.
func NewScenario(seed uint64, faults bool) *Scenario {
	sc := &Scenario{Seed: seed, Faults: faults, chance: chance(seed)}
	r := rand.New(rand.NewPCG(seed, 0xf0e5a4))
	sc.knobs = newKnobs(r, faults)
	sc.knobs.choosePlainServers(seed)
	sc.knobs.Uneven = !faults && !sc.knobs.Tight && sc.chance.percent(20, "uneven")
	sc.knobs.Options = sc.chance.percent(30, "options")
	sc.matrix = newMatrix(r, sc.knobs.Servers)
	g := &generator{Rand: r, servers: sc.knobs.Servers, faults: faults}
	sc.tasks = g.tasks()
	sc.twin()
	if !faults && !sc.retries() && !sc.knobs.Uneven { // how long code takes decides what it ends
		sc.addEndings()
	}
	if !faults {
		sc.addCrowds()
	}
	if faults {
		sc.faults = newFaults(r, sc)
		sc.pause()
	}
	return sc
}

func newKnobs(r *rand.Rand, faults bool) knobs {
	one := func(n int) bool { return r.IntN(n) == 0 }
	k := knobs{
		Servers: 2 + r.IntN(2), Right: []int{0, 50, 80, 95, 100}[r.IntN(5)], Guessed: []int{30, 70, 100}[r.IntN(3)],
		Learnt: []int{0, 30}[r.IntN(2)], Early: []int{0, 40, 90}[r.IntN(3)], Loose: one(4), Stubborn: one(6) && !faults,
		Tight: one(2) && !faults, Conflict: one(3), Ordered: one(4), ServerPredictions: one(2), OwnKey: one(4), Off: one(10),
		ClientStages: methods(r.IntN(int(allMethods) + 1)),
	}
	for i := range maxServers {
		k.Stages[i] = methods(r.IntN(int(allMethods)+1)) &^ methodRelayRead
		k.Replayable[i] = methods(r.IntN(int(allMethods)+1)) &^ (methodPut | methodAppend)
	}
	switch r.IntN(4) {
	case 0: // handlers just write
		k.Stages = [maxServers]methods{}
	case 1, 2: // much of what may be staged is
		k.ClientStages = allMethods
		for i := range maxServers {
			k.Stages[i] |= methodPut | methodRelayWrite
		}
	}
	if one(6) && !k.Tight {
		k.Streams = 2 + r.Uint32N(4)
	}
	if one(6) {
		k.HalfOpen = [2]int{1 + r.IntN(2), 1 + r.IntN(3)}
	}
	k.Keepalive = faults && one(2)
	if one(2) {
		k.Lease = time.Duration(1+r.IntN(4)) * 700 * time.Millisecond
	}
	if one(3) {
		k.Limits = newLimits(r)
	}
	if one(4) {
		k.HandlerLimit = newLimits(r)
	}
	return k
}

func newLimits(r *rand.Rand) control.Limits {
	return control.Limits{
		Depth: r.IntN(4), Width: r.IntN(4), Replays: r.IntN(4), Runs: r.IntN(4),
		AdoptGrace: time.Duration(r.IntN(4)) * 3 * time.Millisecond,
	}
}

const clientSite wan.Site = "client"

func siteOf(server int) wan.Site { return wan.Site(serverName(server)) }

// newMatrix draws links of different delays, so that no two messages arrive at
// one instant by chance.
func newMatrix(r *rand.Rand, servers int) wan.Matrix {
	sites := []wan.Site{clientSite}
	for i := range servers {
		sites = append(sites, siteOf(i))
	}
	m := wan.Uniform(0, sites...)
	jitter := r.IntN(2) == 0
	for i, from := range sites {
		for j, to := range sites {
			if i == j {
				continue
			}
			l := wan.Link{Delay: time.Duration(1_000_000 + r.IntN(14_000_000))}
			if jitter {
				l.Jitter = l.Delay / 5
			}
			m = m.WithLink(wan.Path{From: from, To: to}, l)
		}
	}
	return m
}

// String describes the scenario for whoever looks into a failure.
func (sc *Scenario) String() string {
	s := fmt.Sprintf("seed %d, faults %v\n%+v\n", sc.Seed, sc.Faults, sc.knobs)
	for p, l := range sc.matrix.Links() {
		if p.From != p.To {
			s += fmt.Sprintf("%v %v+%v ", p, l.Delay, l.Jitter)
		}
	}
	s += "\n"
	for _, f := range sc.faults {
		s += f.String() + "\n"
	}
	for _, t := range sc.tasks {
		s += t.String()
	}
	return s
}

// stage has all writes be staged, and those of different keys commute.
func (k *knobs) stage() {
	k.ClientStages, k.Conflict = allMethods, true
	for i := range k.Stages {
		k.Stages[i] = methodPut | methodAppend | methodRelayWrite
	}
}

// choosePlainServers has some worlds have servers that know nothing of speculation,
// and clients that send them reads on a guess. It draws from numbers of its own, so
// that what else a seed decides stays.
func (k *knobs) choosePlainServers(seed uint64) {
	r := rand.New(rand.NewPCG(seed, 0x91a1))
	if r.IntN(8) != 0 {
		return
	}
	for i := range k.Servers {
		k.Plain[i] = r.IntN(2) == 0
	}
	k.SendPlainly = r.IntN(4) != 0
	k.RefuseLate = !k.Tight && r.IntN(2) == 0 // the refusal takes of the time limits
}
