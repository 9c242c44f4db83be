package carousel

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/sim/deploy"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/storedeploy"
	"github.com/foresay/foresay/wan"
)

// paper is the thesis' deployment: five sites with a client each, and five partitions with three
// replicas, which are led at one site each [Carousel §3.4.1].
type paper struct {
	*storedeploy.Store
	t      *testing.T
	layout store.Layout
	sites  []wan.Site
	matrix wan.Matrix
}

func newPaper(t *testing.T, mode variant) *paper {
	t.Helper()
	p := &paper{t: t, layout: storedeploy.Layout(5, 5), matrix: wan.Carousel()}
	p.sites = p.matrix.Sites()
	at := make([][]int, len(p.sites))
	for k := range at { // a partition's replicas are at the site of its number, which leads it, and the two that follow
		p.layout.Sites[k].Name = string(p.sites[k])
		at[k] = []int{k, (k + 1) % len(at), (k + 2) % len(at)}
	}
	p.layout = storedeploy.CopiesAt(p.layout, at)
	carousel := in(mode)
	if carousel.Coordinating {
		p.layout = p.layout.Coordinated(store.Coordinating(len(p.sites), p.trip), func(site, group int) protocol.ID {
			return protocol.ID(100 + 10*site + group)
		})
	}
	var err error
	p.Store, err = storedeploy.New(storedeploy.Config{Protocol: carousel, Layout: p.layout, Clients: p.sites,
		Sim:  sim.Config[store.Message]{Seed: 1, WAN: p.matrix},
		Node: func(c *store.Config) { c.RoundTrip = 300 * time.Millisecond }})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Pass(3 * time.Second); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *paper) client(site int) protocol.ID { return protocol.ID(200 + site) }

// key returns the n-th key of a partition.
func (p *paper) key(k, n int) store.Key {
	for i := 0; ; i++ {
		key := store.Key(fmt.Sprint("key", i))
		if p.layout.ShardOf(key) != k {
			continue
		}
		if n--; n < 0 {
			return key
		}
	}
}

// ask has a site's client do something, and returns the answer and how long that took.
func (p *paper) ask(site int, msg func(n uint64) store.Message) (store.Message, time.Duration) {
	p.t.Helper()
	var out deploy.Answer[store.Message]
	p.Call(p.client(site), msg, func(a deploy.Answer[store.Message]) { out = a })
	if err := p.Await(10*time.Second, func() bool { return out.Msg != nil }); err != nil {
		p.t.Fatal(err)
	}
	return out.Msg, out.Took
}

// read has a client read.
func (p *paper) read(site int, key store.Key) (store.Value, time.Duration) {
	p.t.Helper()
	m, took := p.ask(site, func(n uint64) store.Message { return store.Get{Ref: n, Key: key} })
	if got := m.(store.Got); got.OK {
		return got.Value, took
	}
	p.t.Fatalf("%s cannot be read", key)
	return store.Value{}, 0
}

// commit has a client commit.
func (p *paper) commit(site int, m store.Submit) time.Duration {
	p.t.Helper()
	out, took := p.ask(site, func(n uint64) store.Message {
		m.Ref = n
		return m
	})
	if o := out.(store.Done).Outcome; o.Verdict != store.Committed {
		p.t.Fatalf("the commit of %v at %s is %v: %v", m, p.sites[site], o.Verdict, o.Reason)
	}
	return took
}

// rest lets all that was begun end.
func (p *paper) rest() {
	p.t.Helper()
	if err := p.Pass(2 * time.Second); err != nil {
		p.t.Fatal(err)
	}
}

func (p *paper) trip(a, b int) time.Duration { return p.matrix.RTT(p.sites[a], p.sites[b]) }

// replicating returns how long a partition's leader takes to replicate something.
func (p *paper) replicating(k int) time.Duration {
	return min(p.trip(k, (k+1)%5), p.trip(k, (k+2)%5))
}

// slow returns how long it takes until a site has the word of a partition's group: to the leader,
// from there to the nearest replica, and back.
func (p *paper) slow(site, k int) time.Duration { return p.trip(site, k) + p.replicating(k) }

// word returns how long that takes in a mode: in mode fast the farthest replica's is enough, and in
// mode direct also those of any two of them, of which followers have it from the leader.
func (p *paper) word(mode variant, site, k int) time.Duration {
	d := p.slow(site, k)
	if mode.fast() {
		d = min(d, max(p.trip(site, k), p.trip(site, (k+1)%5), p.trip(site, (k+2)%5)))
	}
	if mode == directMode {
		words := []time.Duration{p.trip(site, k)}
		for _, f := range []int{(k + 1) % 5, (k + 2) % 5} {
			words = append(words, (p.trip(site, k)+p.trip(k, f)+p.trip(f, site))/2)
		}
		slices.Sort(words)
		d = min(d, words[1])
	}
	return d
}

// recording returns how long it takes until a commit request of a site's client is on record.
func (p *paper) recording(mode variant, site int) time.Duration {
	if mode != directMode {
		return p.replicating(site)
	}
	nearest := time.Hour
	for i := range p.sites {
		if i != site {
			nearest = min(nearest, p.trip(site, i))
		}
	}
	return nearest
}

// nearest returns how far the nearest replica of a partition is.
func (p *paper) nearest(site, k int) time.Duration {
	return min(p.trip(site, k), p.trip(site, (k+1)%5), p.trip(site, (k+2)%5))
}

// equal compares what something took with what it takes by the model. Nodes take no time, and a
// message within a site a few microseconds.
func (p *paper) equal(got, want time.Duration, format string, args ...any) {
	p.t.Helper()
	if d := got - want; d < -time.Millisecond || d > time.Millisecond {
		p.t.Errorf("%s takes %v, want %v", fmt.Sprintf(format, args...), got, want)
	}
}

func modes(t *testing.T, test func(t *testing.T, mode variant)) {
	for _, mode := range []variant{basicMode, fastMode, directMode} {
		t.Run(string(mode), func(t *testing.T) { test(t, mode) })
	}
}

// TestCommitsTakeWhatTheModelSays: a commit waits for the word of each partition, and for its
// request to be on record nearby, side by side [Carousel §3.2.1, §3.2.2].
func TestCommitsTakeWhatTheModelSays(t *testing.T) {
	modes(t, func(t *testing.T, mode variant) {
		p := newPaper(t, mode)
		for site := range p.sites {
			p.read(site, p.key(site, 0)) // its agent is that of its own site
			for k := range p.sites {
				for l := k; l < len(p.sites); l++ {
					writes := []store.Write{{Key: p.key(k, 1)}}
					if l > k {
						writes = append(writes, store.Write{Key: p.key(l, 1)})
					}
					m := store.Submit{Writes: writes}
					if len(writes) == 2 && writes[0].Key > writes[1].Key {
						writes[0], writes[1] = writes[1], writes[0]
					}
					want := max(p.word(mode, site, k), p.word(mode, site, l), p.recording(mode, site))
					p.equal(p.commit(site, m), want, "a commit at %s to the partitions %d and %d", p.sites[site], k, l)
					p.rest()
				}
			}
		}
	})
}

// TestDeclaredTransactionsPrepareWhileTheyRead: of a client that knows its keys the partitions
// prepare while it reads [Carousel §3.2.1], and it reads from the leaders or, on the fast path,
// from the nearest replicas [§3.2.4]. What it has read is on record a round trip later.
func TestDeclaredTransactionsPrepareWhileTheyRead(t *testing.T) {
	modes(t, func(t *testing.T, mode variant) {
		p := newPaper(t, mode)
		for site := range p.sites {
			p.read(site, p.key(site, 0))
			for k := range p.sites {
				key := p.key(k, 2)
				began := p.Now()
				out, took := p.ask(site, func(n uint64) store.Message {
					return store.Declare{Ref: n, Reads: []store.Key{key}, Writes: []store.Key{key}}
				})
				reading := p.trip(site, k)
				if mode.fast() {
					reading = p.nearest(site, k)
				}
				p.equal(took, reading, "reading from partition %d at %s", k, p.sites[site])
				d := out.(store.Declared)
				p.commit(site, store.Submit{Begun: d.Ref, Reads: []store.Read{{Key: key, Version: d.Values[0].Value.Version}},
					Writes: []store.Write{{Key: key}}})
				want := max(p.word(mode, site, k), reading+p.recording(mode, site))
				p.equal(p.Now()-began, want, "a transaction at %s on partition %d", p.sites[site], k)
				p.rest()
			}
		}
	})
}

// TestOneRoundTripToLocalReplicas: with local reads and the fast path, a transaction on partitions
// that have replicas at the client's site takes one round trip, to the farthest of them or to put
// it on record [Carousel §3.2.4].
func TestOneRoundTripToLocalReplicas(t *testing.T) {
	p := newPaper(t, fastMode)
	for site := range p.sites {
		p.read(site, p.key(site, 0))
		for k := range p.sites {
			if !p.layout.Sites[site].Has(k) {
				continue
			}
			key := p.key(k, 3)
			began := p.Now()
			out, _ := p.ask(site, func(n uint64) store.Message {
				return store.Declare{Ref: n, Reads: []store.Key{key}, Writes: []store.Key{key}}
			})
			d := out.(store.Declared)
			p.commit(site, store.Submit{Begun: d.Ref, Reads: []store.Read{{Key: key, Version: d.Values[0].Value.Version}},
				Writes: []store.Write{{Key: key}}})
			farthest := max(p.trip(site, k), p.trip(site, (k+1)%5), p.trip(site, (k+2)%5))
			if got, most := p.Now()-began, max(farthest, p.replicating(site))+time.Millisecond; got > most {
				t.Errorf("a transaction at %s on partition %d takes %v, want at most %v", p.sites[site], k, got, most)
			}
			p.rest()
		}
	}
}

// TestReadOnlyTransactionsTakeOneRoundTrip to the leaders of their keys [Carousel §3.2.4]: if their
// keys are declared, in all, and else once they have read. The first ones wait until the leaders
// may serve timestamps: then that goes on as long as somebody reads.
func TestReadOnlyTransactionsTakeOneRoundTrip(t *testing.T) {
	modes(t, func(t *testing.T, mode variant) {
		p := newPaper(t, mode)
		for site := range p.sites {
			p.read(site, p.key(site, 0)) // its agent is that of its own site
		}
		all := make([]store.Key, len(p.sites))
		for k := range all {
			all[k] = p.key(k, 4)
		}
		slices.Sort(all)
		view := func(site int) time.Duration {
			m, took := p.ask(site, func(n uint64) store.Message { return store.Declare{Ref: n, Reads: all} })
			if d := m.(store.Declared); !d.OK || len(d.Values) != len(all) {
				t.Fatalf("at %s: %+v", p.sites[site], d)
			}
			return took
		}
		if got, want := view(0), p.trip(0, 4)+p.replicating(4); got < want {
			t.Errorf("the first one takes %v, want %v at least", got, want)
		}
		p.rest()
		for site := range p.sites {
			var farthest time.Duration
			for k := range p.sites {
				farthest = max(farthest, p.trip(site, k))
				key := p.key(k, 4)
				v, _ := p.read(site, key)
				took := p.commit(site, store.Submit{Reads: []store.Read{{Key: key, Version: v.Version}}})
				p.equal(took, p.trip(site, k), "validating at %s what was read from partition %d", p.sites[site], k)
			}
			p.equal(view(site), farthest, "reading from all partitions at %s", p.sites[site])
		}
	})
}
