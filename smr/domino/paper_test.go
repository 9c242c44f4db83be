package domino

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/foresay/foresay/protocol"

	"github.com/foresay/foresay/quorum"
	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kv"
	"github.com/foresay/foresay/smr/smrsim"
	"github.com/foresay/foresay/wan"
)

// thesis is the thesis' Domino, with its probing interval [Thesis §4.5.1].
func thesis() Options { return Options{Probe: 10 * time.Millisecond} }

// beyond is Domino with what goes beyond the thesis.
func beyond() Options {
	o := thesis()
	o.Direct, o.AllLearn, o.Arrival = true, true, true
	return o
}

// dfp returns what a command takes by DFP: the round trip to the furthest replica of the nearest
// supermajority [Thesis §4.3.6].
func (w *world) dfp(client wan.Site) time.Duration {
	return w.Trip(client, quorum.Fast(len(w.Members)))
}

// dm returns what it takes by DM: the round trip to the best owner and the owner's to a majority,
// min(E_r + L_r) [Thesis §4.3.6].
func (w *world) dm(client wan.Site) time.Duration {
	best := time.Duration(1 << 62)
	for _, r := range w.Place.Replicas {
		best = min(best, w.Place.Matrix.RTT(client, r)+w.Trip(r, quorum.Majority(len(w.Place.Replicas))))
	}
	return best
}

// direct returns what it takes by DM if acceptors answer the client.
func (w *world) direct(client wan.Site) time.Duration {
	best := time.Duration(1 << 62)
	for _, r := range w.Place.Replicas {
		var paths []time.Duration
		for _, a := range w.Place.Replicas {
			paths = append(paths, (w.Place.Matrix.RTT(client, r)+w.Place.Matrix.RTT(r, a)+w.Place.Matrix.RTT(a, client))/2)
		}
		slices.Sort(paths)
		best = min(best, paths[quorum.Majority(len(paths))-1])
	}
	return best
}

// TestCommitLatencyIsTheModel: on the thesis' tables, without jitter, a client's commands are
// durable after what the better of DFP and DM takes by the model [§4.3.6], to less than a
// millisecond, in which what comes up together waits for each other.
func TestCommitLatencyIsTheModel(t *testing.T) {
	for _, preset := range []string{"na3", "na5", "globe3"} {
		for name, o := range map[string]Options{"domino": thesis(), "domino-direct": beyond()} {
			t.Run(preset+"/"+name, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, setup{preset: preset, opt: o})
				all := w.load(smr.Call{Kind: smr.Propose, Ack: smr.AckDurable}, 50, 400*time.Millisecond)
				for _, site := range w.Place.Matrix.Sites() {
					slow := w.dm(site)
					if o.Direct {
						slow = w.direct(site)
					}
					want := min(slow, w.dfp(site))
					got := percentile(of(all, w.Client(site)), 0.9)
					if got < want || got > want+time.Millisecond {
						t.Errorf("%s: %v, want %v (DFP %v, DM %v)", site, got, want, w.dfp(site), slow)
					}
				}
			})
		}
	}
}

// of returns one client's answers.
func of(all []smrsim.Answer, id any) []smrsim.Answer {
	return slices.DeleteFunc(slices.Clone(all), func(a smrsim.Answer) bool { return a.Client != id })
}

// TestFigures4Point9: durable and executed latencies of NA-3 as the thesis reports them, 48 and 70
// ms at the median and the 95th percentile [Figure 4.9a], with a jitter of up to 2 ms in each
// direction, and what options beyond the thesis give.
func TestFigures4Point9(t *testing.T) {
	slack := func(o Options, s time.Duration) Options { o.Slack = s; return o }
	for _, c := range []struct {
		name     string
		opt      Options
		ack      smr.Ack
		p50, p95 time.Duration // at most
	}{
		{"domino", slack(thesis(), 8*time.Millisecond), smr.AckDurable, 49 * time.Millisecond, 71 * time.Millisecond},
		{"domino-direct", slack(beyond(), 2*time.Millisecond), smr.AckDurable, 46 * time.Millisecond, 70 * time.Millisecond},
		{"domino-direct", slack(beyond(), 2*time.Millisecond), smr.AckExecuted, 75 * time.Millisecond, 90 * time.Millisecond},
	} {
		t.Run(fmt.Sprintf("%s/%v", c.name, c.ack), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, setup{preset: "na3", opt: c.opt, jitter: 2 * time.Millisecond})
			all := w.load(smr.Call{Kind: smr.Propose, Ack: c.ack}, 200, 300*time.Millisecond)
			p50, p95 := percentile(all, 0.5), percentile(all, 0.95)
			t.Logf("ack %v, slack %v: p50 %v, p95 %v", c.ack, c.opt.Slack, p50, p95)
			if p50 > c.p50 || p95 > c.p95 {
				t.Errorf("p50 %v, p95 %v, want at most %v and %v", p50, p95, c.p50, c.p95)
			}
		})
	}
}

// TestChoice: on NA-3 the clients in WA, VA, QC and TRT use DM, as they are at or near a replica,
// the other five DFP [§4.5.2].
func TestChoice(t *testing.T) {
	w := newWorld(t, setup{preset: "na3", opt: thesis()})
	for _, site := range w.Place.Matrix.Sites() {
		want := !slices.Contains([]wan.Site{"WA", "VA", "QC", "TRT"}, site)
		if got := w.client(site).choose(w.Clock(w.Client(site))); got.fast != want {
			t.Errorf("%s: DFP %v, want %v", site, got.fast, want)
		}
	}
}

// TestAdapts: when the way from a client to its track's owner becomes long, it takes another way
// within the window of its measurements [§4.3.6, Figure 4.13].
func TestAdapts(t *testing.T) {
	w := newWorld(t, setup{preset: "na3", opt: thesis()})
	before := percentile(of(w.load(smr.Call{Kind: smr.Propose, Ack: smr.AckDurable}, 20, 200*time.Millisecond),
		w.Client("TRT")), 0.5)
	for _, p := range []wan.Path{{From: "TRT", To: "QC"}, {From: "QC", To: "TRT"}} {
		l, _ := w.Link(p)
		l.Delay += 40 * time.Millisecond
		if err := w.SetLink(p, l); err != nil {
			t.Fatal(err)
		}
	}
	w.Run(1200 * time.Millisecond)
	if way := w.client("TRT").choose(w.Clock(w.Client("TRT"))); way.target == 3 && !way.fast {
		t.Errorf("the client in TRT still uses QC's track, 91 ms away")
	}
	after := percentile(of(w.load(smr.Call{Kind: smr.Propose, Ack: smr.AckDurable}, 20, 200*time.Millisecond),
		w.Client("TRT")), 0.5)
	if after > 80*time.Millisecond {
		t.Errorf("%v before, %v after, want at most 80 ms: 67 by VA's track", before, after)
	}
}

// TestFastPathIsTaken: with clocks within a millisecond of each other and 8 ms of slack, at least
// 99 of 100 slots of DFP are decided on the fast path.
func TestFastPathIsTaken(t *testing.T) {
	o := beyond()
	o.Slack, o.Path = 8*time.Millisecond, OnlyDFP
	w := newWorld(t, setup{preset: "na3", opt: o, jitter: 2 * time.Millisecond, clocks: func(id protocol.ID) sim.Clock {
		return sim.Clock{Offset: time.Duration(int(id%3)-1) * time.Millisecond}
	}})
	w.load(smr.Call{Kind: smr.Propose, Ack: smr.AckDurable}, 100, 300*time.Millisecond)
	taken, tried := 0, 0
	for _, site := range w.Place.Matrix.Sites() {
		fast, all := w.client(site).FastPath()
		taken, tried = taken+fast, tried+all
	}
	if taken*100 < tried*99 || tried < 200 {
		t.Errorf("%d slots of %d were decided on the fast path", taken, tried)
	}
}

// TestAdaptiveSlack: without slack, jitter makes votes come late now and then, and everything
// behind waits for the coordinator. With as much as votes have needed they rarely do [beyond
// §4.3.4].
func TestAdaptiveSlack(t *testing.T) {
	executed := func(adapt bool) (p95 time.Duration, missed int) {
		o := beyond()
		o.AdaptSlack = adapt
		w := newWorld(t, setup{preset: "na3", opt: o, jitter: 2 * time.Millisecond, cfg: sim.Config[smr.Message]{Seed: 2}})
		p95 = percentile(w.load(smr.Call{Kind: smr.Execute}, 200, 1500*time.Millisecond), 0.95)
		for _, site := range w.Place.Matrix.Sites() {
			taken, tried := w.client(site).FastPath()
			missed += tried - taken
		}
		return p95, missed
	}
	with, missedWith := executed(true)
	without, missedWithout := executed(false)
	t.Logf("executed, p95: %v with, %v without; not on the fast path: %d with, %d without", with, without, missedWith,
		missedWithout)
	if with > without*9/10 || missedWith*3 > missedWithout {
		t.Errorf("executed, p95: %v with, %v without; not on the fast path: %d with, %d without", with, without, missedWith,
			missedWithout)
	}
}

// TestSkewIsMeasured: what clocks differ by is part of the delay that a client measures, so a clock
// that is off for good does not cost anything [§4.3.4].
func TestSkewIsMeasured(t *testing.T) {
	o := thesis()
	o.Path = OnlyDFP
	w := newWorld(t, setup{preset: "na3", opt: o, clocks: func(id protocol.ID) sim.Clock {
		if id >= 100 {
			return sim.Clock{Offset: 150 * time.Millisecond}
		}
		return sim.Clock{}
	}})
	all := w.load(smr.Call{Kind: smr.Propose, Ack: smr.AckDurable}, 50, 200*time.Millisecond)
	for _, site := range w.Place.Matrix.Sites() {
		if got := percentile(of(all, w.Client(site)), 0.9); got > w.dfp(site)+time.Millisecond {
			t.Errorf("%s: %v, want %v", site, got, w.dfp(site))
		}
	}
}

// TestEmptySlotsCostNothing: a group without commands writes a record only now and then, and each
// replica's empty slots are told by one number [§4.3.3].
func TestEmptySlotsCostNothing(t *testing.T) {
	w := newWorld(t, setup{preset: "na3", opt: thesis()})
	before, sent := w.replica(2).acceptor.journal.Records(), w.Stats().Sent
	w.Run(10 * time.Second)
	if after := w.replica(2).acceptor.journal.Records(); after-before > 30 {
		t.Errorf("%d records in 10 s without a command", after-before)
	}
	r := w.replica(2)
	if lag := slotAt(w.Clock(2)) - r.learner.executed; lag > smr.Slot(200*time.Millisecond) ||
		r.State.Applied() > r.learner.executed {
		t.Errorf("empty slots are decided up to %v ago", at(lag))
	}
	if sent := w.Stats().Sent - sent; sent > 10*1000 {
		t.Errorf("%d messages in 10 s without a command", sent)
	}
}

// TestLateRequest: a command that reaches one replica after its slot has passed there is decided by
// the coordinator, in that slot if two others voted for it [§4.3.3, Figure 4.6].
func TestLateRequest(t *testing.T) {
	w, p := withPuppet(t, setup{preset: "na3", opt: beyond()}, 2)
	s := above(slotAt(w.Clock(1))+smr.Slot(25*time.Millisecond), sharedDigit)
	w.Deliver(puppetID, errand{ids(2, 3), submission(s)})
	w.Run(15 * time.Millisecond)
	w.Deliver(puppetID, errand{ids(1), submission(s)}) // arrives 48 ms after the others were sent
	w.Call(w.Client("WA"), smr.Call{Kind: smr.Execute, Command: kv.Put([]byte("k"), []byte("v"))})
	w.Run(200 * time.Millisecond)
	votes := map[verdict]int{}
	committed := false
	for _, m := range p.got {
		switch m := m.(type) {
		case vote:
			votes[m.Verdict]++
		case outcome:
			committed = committed || m.Committed && m.Slot == s
		}
	}
	if votes[yes] != 2 || votes[no] != 1 || !committed {
		t.Errorf("votes %v, committed %v: got %+v", votes, committed, p.got)
	}
}

// TestCollision: two clients use the same slot. One command is decided there, and the other client
// is told that its is not [§4.3.3].
func TestCollision(t *testing.T) {
	w, p := withPuppet(t, setup{preset: "na3", opt: beyond()}, 2)
	q := &puppet{}
	must(t, w.Add(puppetID+1, "WA", func() (protocol.Node[smr.Message], error) { return q, nil }))
	s := above(slotAt(w.Clock(1))+smr.Slot(50*time.Millisecond), sharedDigit)
	w.Deliver(puppetID, errand{ids(1, 2, 3), submission(s)})
	w.Deliver(puppetID+1, errand{ids(1, 2, 3), submission(s)})
	w.Run(300 * time.Millisecond)
	var outcomes []bool
	for _, m := range slices.Concat(p.got, q.got) {
		if o, ok := m.(outcome); ok && o.Slot == s && !slices.Contains(outcomes, o.Committed) {
			outcomes = append(outcomes, o.Committed)
		}
	}
	if len(outcomes) != 2 {
		t.Errorf("the outcomes are %v, want one of each; got %+v and %+v", outcomes, p.got, q.got)
	}
}

// TestOneLog: DFP's commands and DM's are executed in one order on all replicas, that of their
// slots [§4.3.2, §4.3.7].
func TestOneLog(t *testing.T) {
	var logs [3][]string
	w := newWorld(t, setup{preset: "na3", opt: beyond(), adjust: func(c *smr.ReplicaConfig) {
		c.Machine = &noting{StateMachine: kv.New(), log: &logs[c.ID-1]}
	}})
	all := w.load(smr.Call{Kind: smr.Execute}, 100, 200*time.Millisecond)
	slices.SortFunc(all, func(a, b smrsim.Answer) int { return int(a.Slot) - int(b.Slot) })
	shared := 0
	for _, a := range all {
		if digitOf(a.Slot) == sharedDigit {
			shared++
		}
	}
	if shared == 0 || shared == len(all) {
		t.Errorf("%d of %d commands were in the shared track", shared, len(all))
	}
	for i, log := range logs {
		if len(log) != len(all) || !slices.Equal(log, logs[0]) {
			t.Errorf("replica %d executed %d commands of %d, in the order of replica 1: %v", i+1, len(log), len(all),
				slices.Equal(log, logs[0]))
		}
	}
}
