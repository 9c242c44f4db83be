package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sort"
	"time"
)

// request is one page that a customer asks for.
type request struct {
	id, user, sku string
	at            time.Duration // since the load's beginning
	changes       []change      // what changes just before
}

// change changes one thing in the data.
type change func(d *data, at time.Time)

// How often something changes, per request. The more popular a thing is, the more often.
const (
	userChanges       = 0.04
	permissionChanges = 0.003
	priceChanges      = 0.06
	sales             = 0.15
)

// workload lays out n requests at a mean rate. Equal arguments give equal
// requests. They come as from many customers who know nothing of each other.
func workload(seed uint64, n int, perSecond float64) []request {
	rng := rand.New(rand.NewPCG(seed, 2))
	users, articles := newPopularity(userCount), newPopularity(articleCount)
	requests := make([]request, n)
	at := time.Duration(0)
	for i := range requests {
		at += time.Duration(rng.ExpFloat64() / perSecond * float64(time.Second))
		requests[i] = request{
			id: fmt.Sprintf("r%d", i), user: userID(users.pick(rng)), sku: articleID(articles.pick(rng)), at: at,
			changes: changes(rng, users, articles),
		}
	}
	return requests
}

func changes(rng *rand.Rand, users, articles popularity) []change {
	var all []change
	if rng.Float64() < userChanges {
		all = append(all, userChange(userID(users.pick(rng)), rng))
	}
	if rng.Float64() < permissionChanges {
		all = append(all, func(d *data, at time.Time) {
			put(d.may, "guest", !d.may["guest"].now(), at)
		})
	}
	if rng.Float64() < priceChanges {
		o, price := offer{articleID(articles.pick(rng)), plans()[rng.IntN(3)]}, 500+rng.Uint32N(10_000)
		all = append(all, func(d *data, at time.Time) { put(d.prices, o, price, at) })
	}
	if rng.Float64() < sales {
		sku, pieces := articleID(articles.pick(rng)), 1+rng.Uint32N(3)
		all = append(all, func(d *data, at time.Time) {
			put(d.stock, sku, max(d.stock[sku].now(), pieces)-pieces, at)
		})
	}
	return all
}

// userChange renames a user or changes the user's plan.
func userChange(user string, rng *rand.Rand) change {
	name, plan, renamed := fmt.Sprintf("customer %d", rng.IntN(1_000_000)), plans()[1+rng.IntN(2)], rng.IntN(2) == 0
	return func(d *data, at time.Time) {
		a := d.users[user].now()
		if renamed {
			a.name = name
		} else {
			a.plan = plan
		}
		put(d.users, user, a, at)
	}
}

// apply makes changes.
func (d *data) apply(all []change) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, c := range all {
		c(d, time.Now())
	}
}

// popularity says how often each of n things is asked for: a Zipf law with
// exponent 0.8. Its elements are the shares, added up.
type popularity []float64

func newPopularity(n int) popularity {
	p, sum := make(popularity, n), 0.0
	for i := range p {
		sum += math.Pow(float64(i+1), -0.8)
		p[i] = sum
	}
	return p
}

func (p popularity) pick(rng *rand.Rand) int {
	return min(sort.SearchFloat64s(p, rng.Float64()*p[len(p)-1]), len(p)-1)
}
