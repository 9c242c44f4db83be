package byzantine

import (
	"fmt"
	"slices"
	"time"

	"github.com/foresay/foresay/bench"
	"github.com/foresay/foresay/bench/table"
	"github.com/foresay/foresay/bft"
	"github.com/foresay/foresay/bft/bftsim"
	"github.com/foresay/foresay/bft/counter"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/wan"
)

// A Strike is what befalls a group at some moment: members are killed, or begin to betray the
// others.
type Strike struct {
	Protocol bft.Protocol
	Place    wan.Deployment
	// Members are the IDs of those that it befalls. The first primary is 1.
	Members []protocol.ID
	// Strategy is how they betray the others; Killed, that they are killed.
	Strategy string
	Seed     uint64
}

// Killed is in place of a strategy.
const Killed = "killed"

// Aftermath is what clients noticed of a strike. All of them call all the time, one call after the
// other.
type Aftermath struct {
	// Gap is the longest time that the client waited for an answer which waited longest, and GapP50
	// that of the clients' median. Both begin with the last answer before the strike.
	Gap, GapP50 time.Duration
	// Restored is how long it took until the last call was answered that took more than twice as long
	// as any did before the strike. 0: there was none. All such calls in the end are Late.
	Restored time.Duration
	Late     int
	// Before, During and After are calls per second: until the strike, in the time of During after
	// it, and in the last seconds.
	Before, During, After float64
	// P50Before and P50After are medians of what calls took.
	P50Before, P50After time.Duration
	// FirstReplies is how many there were after the strike, and Wrong how many of them were not what
	// was confirmed.
	FirstReplies, Wrong int
	View                bft.View
}

// Times of a strike.
const (
	beforeStrike = 4 * time.Second // after settling
	duringStrike = 5 * time.Second
	afterStrike  = 15 * time.Second // in all
	theEnd       = 5 * time.Second
	thinking     = 20 * time.Millisecond // at most, between two calls
)

// firstClient is one that traitors starve.
const firstClient = 100

// Play has clients at all sites of the network increment one counter, and the strike befall them.
// It fails if an increment is lost, or a client is not served at the end.
func (s Strike) Play() (Aftermath, error) {
	w := &watch{struck: settling + beforeStrike + time.Duration(s.Seed%7)*13*time.Millisecond, values: map[uint64]bool{}}
	c := bftsim.Config{
		Protocol: s.Protocol, Service: counter.Service{}, Place: s.Place, FirstClient: firstClient, Turn: w.struck,
		Traitors: map[protocol.ID]bft.Traitor{},
		Sim: sim.Config[bft.Message]{Seed: s.Seed, CodecChance: codecChance, CheckEvery: 1000, TraceKeep: -1,
			Disk: sim.Disk{Latency: bench.SyncTime}},
	}
	if s.Strategy != Killed {
		for _, id := range s.Members {
			c.Traitors[id] = s.Protocol.Traitor(s.Strategy)
		}
	}
	var err error
	if w.Group, err = bftsim.New(c); err != nil {
		return Aftermath{}, err
	}
	w.random = bench.Random(s.Seed, 0xfa11)
	for _, id := range w.Clients {
		w.callers = append(w.callers, &caller{id: id})
	}
	if s.Strategy == Killed {
		w.At(w.struck, func() {
			for _, id := range s.Members {
				w.Crash(id, sim.KeepNone)
			}
		})
	}
	if err := w.Pass(settling); err != nil {
		return Aftermath{}, err
	}
	for _, c := range w.callers {
		w.next(c)
	}
	if err := w.Pass(w.struck + afterStrike - w.Now()); err != nil {
		return Aftermath{}, err
	}
	return w.aftermath(s)
}

// watch notes what clients see.
type watch struct {
	*bftsim.Group
	struck  time.Duration
	random  interface{ Int64N(int64) int64 }
	callers []*caller
	values  map[uint64]bool // that increments have come to
	told    Aftermath
}

type caller struct {
	id    protocol.ID
	calls []served
	began time.Duration // of the present call
}

// served is a call that was answered.
type served struct{ began, took time.Duration }

func (s served) ended() time.Duration { return s.began + s.took }

func (w *watch) next(c *caller) {
	c.began = w.Now()
	var first *bft.Result
	w.Make(c.id, bft.Call{Command: counter.Increment(counter.Reply{})}, bftsim.Told{
		First: func(r bft.Result) { first = &r },
		Done: func(r bft.Result, took time.Duration) {
			c.calls = append(c.calls, served{c.began, took})
			reply, err := counter.Decode(r.Value)
			if err != nil || r.Outcome != bft.Executed || reply.Refused || w.values[reply.Value] {
				w.Fail("client %d: an increment: %v, %+v, %v", c.id, r.Outcome, reply, err)
			}
			w.values[reply.Value] = true
			if first != nil && c.began >= w.struck {
				if w.told.FirstReplies++; first.Digest() != r.Digest() {
					w.told.Wrong++
				}
			}
			w.After(time.Duration(w.random.Int64N(int64(thinking))), func() { w.next(c) })
		},
	})
}

// aftermath sums up.
func (w *watch) aftermath(s Strike) (Aftermath, error) {
	a, end := &w.told, w.Now()
	var before, after, gaps []time.Duration
	during := 0
	for _, c := range w.callers {
		last, gap := time.Duration(0), time.Duration(0)
		for _, call := range append(slices.Clone(c.calls), served{c.began, end - c.began}) {
			at := call.ended()
			if at >= w.struck && last > 0 {
				gap = max(gap, at-last)
			}
			last = at
		}
		gaps = append(gaps, gap)
		for _, call := range c.calls {
			switch at := call.ended(); {
			case at < w.struck:
				before = append(before, call.took)
			case at >= end-theEnd:
				after = append(after, call.took)
			case at < w.struck+duringStrike:
				during++
			}
		}
	}
	for _, sample := range [][]time.Duration{before, after, gaps} {
		slices.Sort(sample)
	}
	if len(before) == 0 {
		return *a, fmt.Errorf("%s: nobody was served before the strike", s)
	}
	for _, c := range w.callers {
		if end-c.began > theEnd {
			return *a, fmt.Errorf("%s: client %d is not served any more", s, c.id)
		}
		for _, call := range c.calls {
			if call.ended() >= w.struck && call.took > 2*before[len(before)-1] {
				a.Restored, a.Late = max(a.Restored, call.ended()-w.struck), a.Late+1
			}
		}
	}
	a.Gap, a.GapP50 = gaps[len(gaps)-1], table.Quantile(gaps, 0.5)
	a.Before = float64(len(before)) / (w.struck - settling).Seconds()
	a.During, a.After = float64(during)/duringStrike.Seconds(), float64(len(after))/theEnd.Seconds()
	a.P50Before, a.P50After = table.Quantile(before, 0.5), table.Quantile(after, 0.5)
	for i := range w.Directory.Members {
		if id := protocol.ID(i + 1); !slices.Contains(s.Members, id) {
			a.View = max(a.View, w.Standing(id).View)
		}
	}
	return *a, nil
}

// String names the strike.
func (s Strike) String() string {
	return fmt.Sprintf("%s of %d on %s, members %v %s, seed %d", s.Protocol.Name, len(s.Place.Replicas), s.Place.Name,
		s.Members, s.Strategy, s.Seed)
}
