package client

import (
	"context"
	"sync"
	"time"

	"github.com/foresay/foresay/store"
)

type classKey struct{}

// WithClass names the class of the transactions under a context: those that do alike, such as
// "transfer". Mode Auto decides for each class by itself.
func WithClass(ctx context.Context, class string) context.Context {
	return context.WithValue(ctx, classKey{}, class)
}

func classOf(ctx context.Context) string {
	class, _ := ctx.Value(classKey{}).(string)
	return class
}

// What a controller goes by.
const (
	maxClasses = 1024 // further ones count as the class without a name
	probeEvery = 64   // one attempt of so many is made in the mode that is not chosen
	learnFirst = 8    // attempts in each mode before there is a choice
	weight     = 1.0 / 32
	harmless   = 0.5  // aborts that do not make it worth while to look at the other mode
	hopeless   = 0.97 // aborts that make it worth while to look at once
	hysteresis = 0.7  // the other mode is chosen if it takes less than this share
)

// controller chooses between the modes Predicated and Spec. An attempt that takes so long and is
// aborted with such a chance costs the one divided by what the other leaves: Predicated is half as
// long, and wins unless reading from one site makes it fail more than twice as often. Its zero
// value is ready.
type controller struct {
	mu      sync.Mutex
	classes map[string]*class
}

// class is what is known of a class of transactions.
type class struct {
	chosen   Mode
	attempts uint64
	modes    [Auto]observed // of which two are used
}

type observed struct {
	n       uint64
	took    float64 // seconds, an average that forgets
	aborted float64 // the share, likewise
}

func (c *controller) class(name string) *class {
	if c.classes == nil {
		c.classes = map[string]*class{}
	}
	k := c.classes[name]
	if k == nil && len(c.classes) >= maxClasses {
		name = ""
		k = c.classes[name]
	}
	if k == nil {
		k = &class{chosen: Predicated}
		c.classes[name] = k
	}
	return k
}

func other(m Mode) Mode {
	if m == Predicated {
		return Spec
	}
	return Predicated
}

// choose returns the mode of an attempt.
func (c *controller) choose(name string) Mode {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := c.class(name)
	k.attempts++
	if k.chosen == Predicated && k.modes[Predicated].aborted <= harmless {
		return Predicated // it is half as long: Spec cannot be better, and to try it would cost something
	}
	now, then := k.modes[k.chosen], k.modes[other(k.chosen)]
	// Where others are in the way they are in both modes, and a few attempts that were lucky say
	// little: so the other mode is looked at seldom.
	if k.attempts%probeEvery == 0 || now.n >= probeEvery && then.n < learnFirst && now.aborted > hopeless {
		return other(k.chosen)
	}
	return k.chosen
}

// saw learns from an attempt.
func (c *controller) saw(name string, mode Mode, took time.Duration, v store.Verdict) {
	if mode != Predicated && mode != Spec || v != store.Committed && v != store.Aborted {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	k := c.class(name)
	k.modes[mode].learn(took.Seconds(), v == store.Aborted)
	if now, then := k.modes[k.chosen], k.modes[other(k.chosen)]; now.n >= learnFirst && then.n >= learnFirst &&
		then.cost() < hysteresis*now.cost() {
		k.chosen = other(k.chosen)
	}
}

func (o *observed) learn(took float64, aborted bool) {
	o.n++
	w := max(weight, 1/float64(o.n))
	o.took += w * (took - o.took)
	share := 0.0
	if aborted {
		share = 1
	}
	o.aborted += w * (share - o.aborted)
}

// cost returns the expected time until a transaction is committed, in seconds, pauses between
// attempts aside.
func (o *observed) cost() float64 { return o.took / max(1-o.aborted, 0.01) }
