package domino

import (
	"fmt"
	"testing"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
	"github.com/foresay/foresay/smr/kv"
)

// aRule is a rule of the protocol that the papers leave out or get wrong, with a test that fails
// without it.
type aRule struct {
	name  string
	check func(testing.TB, Options) error
}

func rules() []aRule {
	return []aRule{
		{"promises by the clock survive a restart", promiseSurvivesRestart},
		{"promises by the clock survive a clock that is set back", promiseSurvivesClock},
		{"a claim holds for a stream without gaps", claimNeedsStream},
		{"any replica may fail", survivesAnyReplica},
		{"nobody votes for what is too far ahead", futureIsBounded},
	}
}

// TestRules checks each rule. TestPlants leaves them out.
func TestRules(t *testing.T) {
	for _, r := range rules() {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			o := Options{Direct: true, AllLearn: true, Arrival: true, Probe: 50 * time.Millisecond}
			if err := r.check(t, o); err != nil {
				t.Error(err)
			}
		})
	}
}

// puppet is a client node that sends what it is told and keeps what it gets.
type puppet struct{ got []smr.Message }

type errand struct {
	to  []protocol.ID
	msg smr.Message
}

func (*puppet) Start(*protocol.Env[smr.Message], []protocol.Record[smr.Message]) {}

func (p *puppet) Receive(env *protocol.Env[smr.Message], from protocol.ID, msg smr.Message) {
	if e, ok := msg.(errand); ok && from == protocol.App {
		for _, to := range e.to {
			env.Send(to, e.msg)
		}
		return
	}
	p.got = append(p.got, msg)
}

func (*puppet) Expire(*protocol.Env[smr.Message], protocol.Timer) {}

const puppetID = protocol.ID(77)

// withPuppet adds a puppet at the site of a replica.
func withPuppet(t testing.TB, s setup, at int) (*world, *puppet) {
	w := newWorld(t, s)
	p := &puppet{}
	must(t, w.Add(puppetID, w.Place.Replicas[at-1], func() (protocol.Node[smr.Message], error) { return p, nil }))
	return w, p
}

// submission asks for a command in a slot of the shared track.
func submission(s smr.Slot) submit {
	return submit{
		Request: kit.Request{Session: 1, Acked: 1,
			Commands: []kit.RequestedCommand{{Seq: 1, Command: kv.Put([]byte("k"), []byte("v"))}}},
		Slot: s, Answer: 1, Acks: []smr.Ack{smr.AckExecuted},
	}
}

// verdicts sends a submission to replicas and returns their votes.
func (w *world) verdicts(p *puppet, s smr.Slot, to ...protocol.ID) []verdict {
	p.got = nil
	w.Deliver(puppetID, errand{to, submission(s)})
	w.Run(100 * time.Millisecond)
	var out []verdict
	for _, m := range p.got {
		if v, ok := m.(vote); ok {
			out = append(out, v.Verdict)
		}
	}
	return out
}

// promiseSurvivesRestart has all replicas crash, with clocks that go wrong by a second, and a
// command arrive late that they had passed before.
func promiseSurvivesRestart(t testing.TB, o Options) error {
	w, p := withPuppet(t, setup{preset: "na3", opt: o}, 2)
	w.Run(time.Second)
	passed := above(w.replica(2).acceptor.closed-smr.Slot(200*time.Millisecond), sharedDigit)
	for _, m := range w.Members {
		w.Crash(m.ID, sim.KeepAll)
		w.Jump(m.ID, -time.Second)
		w.Restart(m.ID)
	}
	w.Run(400 * time.Millisecond)
	for _, v := range w.verdicts(p, passed, 1, 2, 3) {
		if v == yes {
			return fmt.Errorf("a replica votes for slot %d, which it has passed before it crashed", passed)
		}
	}
	return nil
}

// promiseSurvivesClock sets a clock back, of a replica that does not hear the others.
func promiseSurvivesClock(t testing.TB, o Options) error {
	w, p := withPuppet(t, setup{preset: "na3", opt: o}, 2)
	w.Partition([]protocol.ID{2}, []protocol.ID{1, 3})
	w.Run(200 * time.Millisecond)
	passed := above(w.replica(2).acceptor.closed-smr.Slot(50*time.Millisecond), sharedDigit)
	if v := w.verdicts(p, passed, 2); len(v) != 1 || v[0] != no {
		t.Fatalf("before: %v", v)
	}
	w.Jump(2, -time.Second)
	w.Run(50 * time.Millisecond) // before the ticks count as time
	if v := w.verdicts(p, passed, 2); len(v) != 1 || v[0] != no {
		return fmt.Errorf("verdict %v on slot %d, which the replica has passed before its clock was set back", v, passed)
	}
	return nil
}

// claimNeedsStream gives a replica a claim that says something of an item that it has not got, as
// after a connection that was lost, and the item later.
func claimNeedsStream(t testing.TB, o Options) error {
	w := newWorld(t, setup{preset: "na3", opt: o})
	r := w.replica(1)
	p := r.peers[2]
	env := protocol.NewEnv[smr.Message](nil, 1, nil)
	env.Begin(w.Clock(1))
	far := p.claims.Closed + smr.Slot(time.Second)
	r.onNews(env, p, news{First: p.have + 2, claims: claims{Count: p.have + 1, Closed: far, Skipped: far}})
	if p.claims.Closed >= far {
		return fmt.Errorf("slots up to %d count as passed, though a vote before is missing", far)
	}
	r.Broken(env, 2)
	entry := item{Slot: above(far-smr.Slot(time.Millisecond), sharedDigit), Answer: 1}
	r.onNews(env, p, news{First: p.have + 1, Items: []item{entry}, claims: claims{Count: p.have + 1}})
	if p.claims.Closed != far {
		return fmt.Errorf("the claim of %d does not count when the vote has come: %d", far, p.claims.Closed)
	}
	return nil
}

// survivesAnyReplica kills one replica after the other, each in a deployment of its own: commands
// of clients at all sites are executed again within a second.
func survivesAnyReplica(t testing.TB, o Options) error {
	alone := o // only the coordinator learns
	alone.AllLearn, alone.Direct, alone.Arrival = false, false, false
	if err := survives(t, alone); err != nil {
		return err
	}
	return survives(t, o)
}

func survives(t testing.TB, o Options) error {
	for victim := protocol.ID(1); victim <= 3; victim++ {
		w := newWorld(t, setup{preset: "na3", opt: o})
		stop := w.Now() + 4*time.Second
		for _, site := range w.Place.Matrix.Sites() {
			for at := time.Duration(0); w.Now()+at < stop-2*time.Second; at += 20 * time.Millisecond {
				w.After(at, func() {
					w.Call(w.Client(site), smr.Call{Kind: smr.Execute, Command: kv.Put([]byte(site), []byte("v"))})
				})
			}
		}
		killed := w.Now() + 500*time.Millisecond
		w.After(500*time.Millisecond, func() { w.Crash(victim, sim.KeepAll) })
		w.Run(stop - w.Now())
		for _, site := range w.Place.Matrix.Sites() {
			if err := w.goesOn(w.Client(site), killed); err != nil {
				return fmt.Errorf("after replica %d was killed, at %s: %w", victim, site, err)
			}
		}
	}
	return nil
}

// goesOn reports whether a client's calls were done within a second of each other, and all of them.
func (w *world) goesOn(client protocol.ID, killed time.Duration) error {
	last, done := killed, 0
	for _, a := range w.Done {
		if a.Client != client || a.Outcome != smr.Committed {
			continue
		}
		done++
		if at := a.Began + a.Took; at > killed {
			if at-last > time.Second {
				return fmt.Errorf("nothing was done for %v", at-last)
			}
			last = at
		}
	}
	if calls := w.Calls(client); done != calls || last == killed {
		return fmt.Errorf("%d calls of %d are done", done, calls)
	}
	return nil
}

// futureIsBounded asks for votes in slots that are far ahead.
func futureIsBounded(t testing.TB, o Options) error {
	w, p := withPuppet(t, setup{preset: "na3", opt: o}, 1)
	now := slotAt(w.Clock(1))
	if v := w.verdicts(p, above(now+smr.Slot(500*time.Millisecond), sharedDigit), 1); len(v) != 1 || v[0] != yes {
		t.Fatalf("half a second ahead: %v", v)
	}
	for _, ahead := range []time.Duration{time.Minute, time.Hour, 24 * time.Hour} {
		if v := w.verdicts(p, above(now+smr.Slot(ahead), sharedDigit), 1); len(v) != 1 || v[0] != full {
			return fmt.Errorf("%v ahead: verdict %v, want that there is no room", ahead, v)
		}
	}
	return nil
}

// TestTwoOfFiveFail: with five replicas any two may fail at once, here the coordinator and another
// one; commands are executed again within a second.
func TestTwoOfFiveFail(t *testing.T) {
	w := newWorld(t, setup{preset: "na5", opt: beyond()})
	for _, site := range w.Place.Matrix.Sites() {
		for at := time.Duration(0); at < 2*time.Second; at += 50 * time.Millisecond {
			w.After(at, func() {
				w.Call(w.Client(site), smr.Call{Kind: smr.Execute, Command: kv.Put([]byte(site), []byte("v"))})
			})
		}
	}
	killed := w.Now() + 500*time.Millisecond
	w.After(500*time.Millisecond, func() {
		w.Crash(w.replica(1).leader(), sim.KeepNone)
		w.Crash(4, sim.KeepNone)
	})
	w.Run(4 * time.Second)
	for _, site := range w.Place.Matrix.Sites() {
		if err := w.goesOn(w.Client(site), killed); err != nil {
			t.Errorf("at %s: %v", site, err)
		}
	}
}
