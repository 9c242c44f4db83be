package simulated

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/foresay/foresay/bench"
	"github.com/foresay/foresay/internal/catalog"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/plan"
	"github.com/foresay/foresay/wan"
	"github.com/foresay/foresay/workload"
)

// The setting of STR's experiments [STR §8]: nine sites, with a partition for each server, and six
// copies of each.
const (
	paperServers = 3 // at each site
	paperCopies  = 6
)

// ringOfNine returns the sites in the order of replication: a partition has its copies at the site
// of its master, and at the five that follow.
func ringOfNine() []wan.Site {
	return []wan.Site{"ireland", "seoul", "sydney", "oregon", "singapore", "california", "frankfurt", "tokyo", "virginia"}
}

// A nineSystem is STR in a mode, or in another setting, and what its users do.
type nineSystem struct {
	name    string // in rows
	variant string // see store.Protocol.Variant
	// ahead is how many transactions a user may have that are not final: beside the last one these are
	// committed locally [STR: SL]. 0: it hears of local commits only when they are final.
	ahead int
}

// The systems of the paper. STR's degree stays the same: see strTuning.
func clockSIRep() nineSystem  { return nineSystem{"clocksi-rep", "clocksi-rep", 0} }
func planet() nineSystem      { return nineSystem{"planet", "planet", 1} }
func strInternal() nineSystem { return nineSystem{"str-internal", "internal-8", 0} }
func strExternal(ahead int) nineSystem {
	return nineSystem{"str-external", "internal-8", ahead}
}

// A nine is a store at the nine sites with its users. Each server is a machine with a coordinator,
// the master of a partition, and copies of others: one processor for all. Clocks are right.
type nine struct {
	system  nineSystem
	servers int // at each site
	users   int // of each server
	readers int // of each partition; 0: all its copies
	cpu     cpu
	seed    uint64
}

// paperCPU is fitted: with it clocksi-rep, at low contention and with 80 clients for each server,
// commits about as much as in the paper, 4,000 transactions per second on 27 servers [STR §8.1].
func paperCPU() cpu { return cpu{"paper", 29 * time.Microsecond} }

// A server is a place for users: their transactions begin there.
type server struct {
	number int   // of its partition, which has its master here
	others []int // partitions with a copy at the site whose master is elsewhere
	id     protocol.ID
}

// users are the users of a store and the store.
type users struct {
	*population
	nine
	all       []*user
	placement [][]wan.Site
	on        bool            // time is taken
	stopped   bool            // users do what they are at, and no more
	idle      int             // who has done that
	wrote     map[string]bool // all keys that were written, by their names in the store; nil: nobody asks
	tally
}

// settle returns the store with its users when leaders are elected.
func (n nine) settle() (*users, error) {
	sites := wan.EC2()
	placement, err := ringOf(ringOfNine(), len(ringOfNine())*n.servers, paperCopies)
	if err != nil {
		return nil, err
	}
	u := &users{nine: n, placement: placement, tally: tally{aborted: map[store.Reason]int{}}}
	p, err := catalog.Store("str")
	if err != nil {
		return nil, err
	}
	u.population, err = populate(setting{system: plan.STR, protocol: p.Variant(n.system.variant), wan: sites,
		placement: placement, agents: n.servers, machines: true, clients: atEach(sites, n.candidates()),
		callers: n.users * n.callers(), readers: n.readers, roundTrip: sites.MaxRTT(sites.Sites()), seed: max(n.seed, 1),
		disk: sim.Disk{Latency: bench.SyncTime}, service: u.serve})
	if err != nil {
		return nil, err
	}
	return u, u.choose()
}

// candidates is how many clients a site has, of which one is taken for each server: a client is at
// one of the site's coordinators by chance.
func (n nine) candidates() int {
	if n.servers == 1 {
		return 1
	}
	return 8 * n.servers
}

// choose finds out at which server each client's transactions begin, and takes one for each server.
func (u *users) choose() error {
	taken := map[protocol.ID]bool{}
	left := len(u.byID)
	for _, id := range u.Clients {
		callers := u.byID[id]
		callers[0].runs(program{code: func(ctx context.Context, tx workload.Tx) error {
			_, _, err := tx.Get(ctx, "")
			return err
		}}, func(r result) {
			left--
			c := callers[0]
			site := slices.IndexFunc(u.Layout.Sites, func(s store.Site) bool { return s.Name == string(c.site) })
			at := u.Layout.Coordinator(site, r.id)
			if taken[at] {
				return
			}
			taken[at] = true
			s := u.serverOf(c.site, slices.Index(u.Layout.Sites[site].Coordinators, at))
			for own := range slices.Chunk(callers, u.callers()) {
				u.all = append(u.all, &user{server: s, site: c.site, random: own[0].random, free: own})
			}
		})
	}
	if err := u.Await(time.Minute, func() bool { return left == 0 }); err != nil {
		return err
	}
	if n := len(u.placement); len(taken) != n {
		return fmt.Errorf("simulated: there are clients at %d of %d servers", len(taken), n)
	}
	return nil
}

// serve says how long a call takes: a message from another node takes time, unless a client gets
// it, or leaders are still elected.
func (u *users) serve(c sim.Call[store.Message]) time.Duration {
	if c.Kind != sim.CallReceive || c.From == protocol.App || c.From == c.Node || u.population == nil ||
		u.byID[c.Node] != nil {
		return 0
	}
	if u.on {
		u.calls++
	}
	return u.cpu.call
}

// serverOf returns a site's server, by its number there.
func (u *users) serverOf(site wan.Site, number int) server {
	ring := ringOfNine()
	s := server{number: slices.Index(ring, site) + len(ring)*number}
	for k, at := range u.placement {
		if at[0] != site && slices.Contains(at, site) {
			s.others = append(s.others, k)
		}
	}
	i := slices.IndexFunc(u.Layout.Sites, func(s store.Site) bool { return s.Name == string(site) })
	s.id = u.Layout.Sites[i].Coordinators[number]
	return s
}

// work returns for how long the machine of a server was at work.
func (u *users) work(s server) (d time.Duration) {
	for _, site := range u.Layout.Sites {
		if k := slices.Index(site.Coordinators, s.id); k >= 0 {
			d = u.Busy(s.id)
			for i, id := range site.Shards {
				if i/len(u.Layout.Sites)%len(site.Coordinators) == k {
					d += u.Busy(id)
				}
			}
		}
	}
	return d
}

// A homed is a transaction whose keys are where a workload has them: each has a name in the store
// that belongs to its partition.
type homed struct {
	workload.Tx
	partitions int
	home       func(key string) int
}

// Get implements workload.Tx.
func (h homed) Get(ctx context.Context, key string) ([]byte, bool, error) {
	return h.Tx.Get(ctx, h.name(key))
}

// Put implements workload.Tx.
func (h homed) Put(key string, value []byte) error { return h.Tx.Put(h.name(key), value) }

// name returns the name of a key in the store.
func (h homed) name(key string) string {
	home := h.home(key)
	for n := 0; ; n++ {
		name := key + "#" + strconv.Itoa(n)
		if store.ShardOf(store.Key(name), h.partitions) == home {
			return name
		}
	}
}
