package counter_test

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/foresay/foresay/bft"
	"github.com/foresay/foresay/bft/bfttest"
	"github.com/foresay/foresay/bft/counter"
	"github.com/foresay/foresay/bft/pbft"
	"github.com/foresay/foresay/history"
	"github.com/foresay/foresay/internal/heap"
	"github.com/foresay/foresay/internal/seed"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/sim"
)

func TestMain(m *testing.M) { os.Exit(heap.RunTests(m)) }

// load is clients of one counter. Each shows with an increment the reply to its last one, or what
// it guesses that this will be.
type load struct {
	ops  history.Recorder[bool, uint64] // the input is whether it is an increment
	last map[protocol.ID]counter.Reply
}

func newLoad() bfttest.Workload { return &load{last: map[protocol.ID]counter.Reply{}} }

func (*load) Service() bft.Service { return counter.Service{} }

func (l *load) Ask(c bfttest.Caller, on *bft.Result) bfttest.Question {
	shown := l.last[c.ID]
	if on != nil {
		if r, err := counter.Decode(on.Value); err == nil && r.Token != 0 {
			shown = r // else it is a lie, or the reply to a query
		}
	}
	increment := on != nil || c.Rand.IntN(3) > 0
	command := counter.Query()
	if increment {
		command = counter.Increment(shown)
	}
	record := l.ops.Invoke(history.Client(c.ID), c.Now, increment)
	return bfttest.Question{Command: command, Query: !increment,
		Ended: func(now time.Duration, r *bft.Result) error {
			if r == nil {
				record.Fail(now)
				return nil
			}
			got, err := counter.Decode(r.Value)
			switch {
			case err != nil:
				return err
			case got.Refused:
				return fmt.Errorf("the counter refuses %+v of client %d", shown, c.ID)
			case increment && got.Value > l.last[c.ID].Value:
				l.last[c.ID] = got
			}
			record.Return(now, got.Value)
			return nil
		}}
}

func (l *load) Judge() error {
	ops, err := l.ops.Ops()
	if err != nil {
		return err
	}
	lin, err := history.CheckLinearizable(ops, history.Model[uint64, bool, uint64]{
		Init: func() uint64 { return 0 },
		Step: func(value uint64, increment bool, told *uint64) (uint64, bool) {
			if increment {
				value++
			}
			return value, told == nil || *told == value
		},
		ReadOnly: func(increment bool) bool { return !increment },
	}, 20*time.Second)
	if err == nil && lin.Verdict != history.OK {
		err = fmt.Errorf("linearizability: %v: %s", lin.Verdict, lin.Explanation)
	}
	return err
}

// TestGroup is a replicated counter whose primary, or another replica, is a traitor: no increment
// is lost or made twice, and no reply shows a value that was not there.
func TestGroup(t *testing.T) {
	t.Parallel()
	all := pbft.Protocol().Strategies
	confirmed, guesses, reads := 0, 0, 0
	first, n := seed.First(t, 1), seed.Count(t, 5*len(all))
	for s := first; s < first+uint64(n); s++ {
		faults := sim.NoFaults
		if s%2 == 0 {
			faults = sim.Swarm(s, sim.AllFaults&^sim.LostDisk)
		}
		r, err := bfttest.Play(bfttest.Scenario{Protocol: pbft.Protocol(), Seed: s, Faults: faults, For: 2 * time.Second,
			Workload: newLoad, Traitors: map[int]bft.Traitor{int(s/2) % 2: pbft.Protocol().Traitor(all[s%uint64(len(all))])}})
		if err != nil {
			t.Errorf("seed %d: %+v: %v", s, r, err)
		}
		confirmed += r.Confirmed
		guesses += r.Right
		reads += r.Reads
	}
	if n >= len(all) && (confirmed < 1000 || guesses < 100 || reads < 100) {
		t.Errorf("%d calls, %d right guesses, %d optimised reads", confirmed, guesses, reads)
	}
}
