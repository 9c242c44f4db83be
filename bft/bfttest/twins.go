package bfttest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/foresay/foresay/bft"
	"github.com/foresay/foresay/internal/seed"
	"github.com/foresay/foresay/keyspace"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/quorum"
	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/wan"
)

// Twins are a setting in the manner of Bano and others, "Twins: BFT Systems Made Robust": some
// members run twice, with one key and one ID, so the two say what contradicts each other without
// any code of a traitor. In the first views messages pass only within parts of the group; each view
// ends after a while, as nothing passes in it any more. Then everybody hears everybody.
type Twins struct {
	// Places are those of the members that run twice, among the members.
	Places []int
	// Parts say for each view, from the first on, who is on the one side and who on the other: a bit
	// for each member, and then one for each second copy.
	Parts []uint
}

// twinView is for how long a view of a setting lasts, which is enough for some batches, and for one
// that does not begin to be given up.
const twinView = 350 * time.Millisecond

// firstTwin is the ID of the first second copy in the simulation.
const firstTwin = 50

// has reports whether a member runs twice.
func (t *Twins) has(place int) bool { return t != nil && slices.Contains(t.Places, place) }

// lasts is for how long not everybody hears everybody.
func (t *Twins) lasts() time.Duration { return time.Duration(len(t.Parts)) * twinView }

// copies returns in which places of a setting an identity runs.
func (t *Twins) copies(members []bft.Party, id protocol.ID) (at []int) {
	for i, m := range members {
		if m.ID == id {
			at = append(at, i)
		}
	}
	for i, p := range t.Places {
		if members[p].ID == id {
			at = append(at, len(members)+i)
		}
	}
	return at
}

// pass reports whether a message passes from one place to another one that is sent in a view.
func (t *Twins) pass(now time.Duration, v bft.View, from, to int) bool {
	switch {
	case now >= t.lasts() || v >= bft.View(len(t.Parts)):
		return true
	case now >= time.Duration(v+1)*twinView:
		return false // the view is over
	}
	return t.Parts[v]>>from&1 == t.Parts[v]>>to&1
}

// doubled is the node of a place of a setting, or of a client.
type doubled struct {
	protocol.Node[bft.Message]
	w  *World
	at int // less than 0 for a client
}

// wrap returns the node of a place, or of a client, of the setting of a world, if there is one.
func (w *World) wrap(node protocol.Node[bft.Message], at int) protocol.Node[bft.Message] {
	if w.sc.Twins == nil {
		return node
	}
	return &doubled{node, w, at}
}

// Standing is part of bft.Observed, as are State and Decided.
func (d *doubled) Standing() bft.Standing { return d.Node.(bft.Observed).Standing() }

// State is for replicas alone.
func (d *doubled) State(disk keyspace.Reader) keyspace.Reader {
	return d.Node.(bft.Observed).State(disk)
}

// Decided is for replicas alone.
func (d *doubled) Decided(f func(bft.Seq, bft.Digest)) { d.Node.(bft.Observed).Decided(f) }

// Start is part of protocol.Node, as are Receive and Expire.
func (d *doubled) Start(env *protocol.Env[bft.Message], log []protocol.Record[bft.Message]) {
	d.Node.Start(env, log)
	d.route(env)
}

func (d *doubled) Receive(env *protocol.Env[bft.Message], from protocol.ID, msg bft.Message) {
	if i := int(from) - firstTwin; i >= 0 && i < len(d.w.sc.Twins.Places) {
		from = d.w.dir.Members[d.w.sc.Twins.Places[i]].ID
	}
	d.Node.Receive(env, from, msg)
	d.route(env)
}

func (d *doubled) Expire(env *protocol.Env[bft.Message], t protocol.Timer) {
	d.Node.Expire(env, t)
	d.route(env)
}

// route sends what a node has said to all copies of each member that hear it.
func (d *doubled) route(env *protocol.Env[bft.Message]) {
	out := slices.Clone(env.Out)
	env.Out = env.Out[:0]
	for _, e := range out {
		copies := d.w.sc.Twins.copies(d.w.dir.Members, e.To)
		if e.Kind != protocol.KindSend && e.Kind != protocol.KindSendAhead || len(copies) == 0 {
			env.Out = append(env.Out, e)
			continue
		}
		for _, to := range copies {
			if d.at >= 0 && !d.w.sc.Twins.pass(d.w.Sim.Now(), d.Standing().View, d.at, to) {
				continue
			}
			if e.To = protocol.ID(to + 1); to >= len(d.w.dir.Members) {
				e.To = protocol.ID(firstTwin + to - len(d.w.dir.Members))
			}
			env.Out = append(env.Out, e)
		}
	}
}

// addTwins adds the second copies.
func (w *World) addTwins(replicas []bft.ReplicaConfig, sites []wan.Site) error {
	if w.sc.Twins == nil {
		return nil
	}
	for i, p := range w.sc.Twins.Places {
		at := len(w.dir.Members) + i
		err := w.Sim.Add(sim.Node[bft.Message]{ID: protocol.ID(firstTwin + i), Site: sites[at%len(sites)],
			New: func() protocol.Node[bft.Message] {
				n, _ := w.sc.Protocol.NewReplica(replicas[p]) // as the first copy was made
				return w.wrap(n, at)
			}})
		if err != nil {
			return err
		}
	}
	return nil
}

// TwinsOf returns the nth of all settings of a number of views for four members: which of them runs
// twice, and all ways to part five in two in each view.
func TwinsOf(views, n int) Twins {
	t := Twins{Places: []int{n % 4}}
	for n /= 4; len(t.Parts) < views; n /= 16 {
		t.Parts = append(t.Parts, uint(n%16))
	}
	return t
}

// randomTwins returns a setting of four to seven members.
func randomTwins(seed uint64) (members int, t Twins) {
	r := rand.New(rand.NewPCG(seed, 0x7715))
	members = 4 + r.IntN(4)
	t.Places = r.Perm(members)[:quorum.Traitors(members)]
	for range 1 + r.IntN(4) {
		t.Parts = append(t.Parts, uint(r.IntN(1<<(members+len(t.Places)))))
	}
	return members, t
}

// TestTwins plays settings: of all 1,024 of two views and four members a part, of 2,000 random ones
// with more as well, and in soak all of these and a part of those of three views.
func TestTwins(t *testing.T, p bft.Protocol) {
	play := func(name string, members int, twins Twins) {
		if t.Failed() {
			return // one is enough, and there may be many
		}
		r, err := Play(Scenario{Protocol: p, Seed: uint64(twins.Parts[0]), Replicas: members, Twins: &twins,
			For: twins.lasts() + 100*time.Millisecond})
		if err != nil {
			t.Errorf("%s, %d members, %+v: %+v: %v", name, members, twins, r, err)
		}
	}
	first := int(seed.First(t, 0) % (1 << 20))
	few := func(all, few int) int {
		if n := seed.Count(t, all); seed.Named() || n < few {
			return n
		}
		return few
	}
	const two, three, random = 4 * 16 * 16, 4 * 16 * 16 * 16, 2000
	for i := range few(two, 40) {
		n := (first + i*stride) % two
		play(fmt.Sprint("setting ", n), 4, TwinsOf(2, n))
	}
	for i := range few(random, 24) {
		members, twins := randomTwins(uint64(first + i))
		play(fmt.Sprint("seed ", first+i), members, twins)
	}
	for _, n := range []int{3501, 12013} { // which have found something
		play(fmt.Sprint("three views, setting ", n), 4, TwinsOf(3, n))
	}
	if seed.Named() {
		for i := range seed.Count(t, three/64) {
			n := (first + i*stride) % three
			play(fmt.Sprint("three views, setting ", n), 4, TwinsOf(3, n))
		}
	}
}

// stride has no factor in common with a number of settings.
const stride = 389
