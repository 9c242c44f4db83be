package main

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	bffv1 "github.com/foresay/foresay/api/foresay/bff/v1"
)

const (
	userCount    = 50
	articleCount = 20
	seePrices    = "see-prices" // an action that a plan permits or not
)

func plans() []string { return []string{"guest", "member", "trade"} }

// account is what the user service knows of a user.
type account struct{ name, plan string }

// offer is what a price is for.
type offer struct{ sku, plan string }

// data is what the four services keep, with all that it ever was.
type data struct {
	mu     sync.Mutex
	users  map[string]*history[account]
	may    map[string]*history[bool] // see prices, by plan
	prices map[offer]*history[uint32]
	stock  map[string]*history[uint32]
	views  map[string][]*bffv1.RecordViewRequest // by the request's ID
}

func userID(i int) string    { return fmt.Sprintf("u%d", i) }
func articleID(i int) string { return fmt.Sprintf("a%d", i) }

// newData lays the data out. Equal seeds give equal data.
func newData(seed uint64) *data {
	rng := rand.New(rand.NewPCG(seed, 1))
	d := &data{
		users: make(map[string]*history[account]), may: make(map[string]*history[bool]),
		prices: make(map[offer]*history[uint32]), stock: make(map[string]*history[uint32]),
		views: make(map[string][]*bffv1.RecordViewRequest),
	}
	start := time.Now()
	for i := range userCount {
		plan := plans()[1+rng.IntN(2)]
		if i%10 == 3 {
			plan = "guest"
		}
		put(d.users, userID(i), account{fmt.Sprintf("customer %d", i), plan}, start)
	}
	for _, plan := range plans() {
		put(d.may, plan, plan != "guest", start)
		for i := range articleCount {
			put(d.prices, offer{articleID(i), plan}, 500+rng.Uint32N(10_000), start)
		}
	}
	for i := range articleCount {
		put(d.stock, articleID(i), 200+rng.Uint32N(800), start)
	}
	return d
}

// put changes one of the values.
func put[K comparable, T any](all map[K]*history[T], key K, v T, at time.Time) {
	h := all[key]
	if h == nil {
		h = &history[T]{}
		all[key] = h
	}
	h.set(v, at)
}

// get returns one of the values as it is now.
func get[K comparable, T any](d *data, all map[K]*history[T], key K) (value T, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	h := all[key]
	if h == nil {
		return value, false
	}
	return h.now(), true
}
