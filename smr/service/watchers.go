package service

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kv"
)

// Bounds of what clients wait for at one process. What is beyond them is not taken, and the client
// looks by itself.
const (
	maxWaits       = 1 << 14
	maxClientWaits = 2 * MaxGroups // of one client
	maxWaitBytes   = 16 << 20      // of the keys
	maxWaitRanges  = 256           // different ones of a group, which are compared with each change
)

// waitLasts is how long a replica tells a client of changes that does not ask again.
const waitLasts = 10 * time.Second

// watchers are the clients that wait for changes at a process. Each waits is answered once, by the
// first change of its keys that this replica executes, and is forgotten then: the client reads what
// has changed, by a call of its own, and asks again. So nothing depends on who is told, or when.
//
// The versions up to which a client has seen all come to be forgotten by the store if others of the
// group change much. The client is told before that, as if its keys had changed.
//
// Registrations and changes of a group come from the group's node; the rest from anywhere.
type watchers struct {
	mu      sync.Mutex
	all     map[waitID]*waiter
	clients map[protocol.ID]int
	bytes   int
	groups  []waitGroup
	untold  toEach // what there was no room for
}

type waitID struct {
	client protocol.ID
	number uint64
}

type waiter struct {
	waitID
	waits
	until  time.Time
	before progress // of the group
}

// span is the keys from from up to, but not including, to.
type span struct{ from, to string }

func (s span) one() bool { return s.to == s.from+"\x00" }

// progress counts changes, and the bytes of their keys and values.
type progress struct{ changes, bytes int64 }

// beyond reports whether a part of what a store remembers of its changes has come since.
func (p progress) beyond(before progress, part int64) bool {
	return (p.changes-before.changes)*part > kv.MaxChanges || (p.bytes-before.bytes)*part > kv.MaxChangeBytes
}

// waitGroup is those who wait for changes of one group.
type waitGroup struct {
	some   atomic.Bool // somebody waits: changes need no lock otherwise
	keys   map[string]map[*waiter]bool
	ranges map[span]map[*waiter]bool
	seen   progress
	oldest progress // Invariant: of no waiter less is before.
	asked  []asking // taken, and not looked at
}

// maxLooks is how many waits a node looks at before it does something else: of a range of keys each
// goes through a quarter of the changes that the store remembers.
const maxLooks = 64

// asking is a waits that has come, and from whom.
type asking struct {
	from protocol.ID
	waits
}

func newWatchers(groups int) *watchers {
	return &watchers{all: map[waitID]*waiter{}, clients: map[protocol.ID]int{}, groups: make([]waitGroup, groups)}
}

// onWaits takes what clients send about changes. It is called by the status node's goroutine.
func (r *Replica) onWaits(m heard) {
	switch q := m.msg.(type) {
	case waits:
		if m.peer < firstClient || q.Group < 1 || q.Group > uint64(len(r.groups)) || q.To != "" && q.To <= q.From ||
			len(q.From) > MaxKeyBytes || len(q.To) > MaxKeyBytes+1 {
			return
		}
		g := r.groups[q.Group-1]
		if first := r.watchers.ask(g.number, asking{m.peer, q}); first {
			g.look()
		}
	case waitsNoMore:
		r.watchers.leave(waitID{m.peer, q.Number})
	}
}

// look has the group's node look at what clients wait for.
func (g *replicaGroup) look() {
	_, err := question(g, &g.asking, g.await, func(id smr.CallID) smr.Message { return smr.StatusQuery{ID: id} })
	if err != nil {
		g.watchers.takeAsked(g.number, maxClientWaits) // they come again
	}
}

// await looks at what clients wait for, and answers them. It is called by the node's goroutine.
func (g *replicaGroup) await(s smr.Status) {
	asked, more := g.watchers.takeAsked(g.number, maxLooks)
	if more {
		defer g.look()
	}
	var members []protocol.ID
	for _, m := range s.Members {
		members = append(members, m.ID)
	}
	if !slices.Contains(members, g.cfg.ID) {
		return // it need not hear of changes
	}
	var answers toEach
	for _, q := range asked {
		if g.machine.ChangedAfter([]byte(q.From), []byte(q.To), q.After) {
			g.watchers.leave(waitID{q.from, q.Number})
			answers = append(answers, envelope{q.from, changed{q.Number, q.Round}})
		} else if g.watchers.add(g.number, q) {
			answers = append(answers, envelope{q.from, waiting{q.Number, q.Round, members}})
		}
	}
	g.say(answers)
}

// noticed is told of each change by the store.
func (g *replicaGroup) noticed(i kv.Item, all bool) { g.say(g.watchers.changed(g.number, i, all)) }

// say sends what there is, and what there was no room for before. What a network loses is asked for
// again.
func (r *Replica) say(all toEach) { r.watchers.tell(all, r.status.TryDeliver) }

// tell hands over what there is, and keeps it for the next time if it is not taken: whoever has
// been told of a change waits no more, and would hear nothing until it asks again.
func (w *watchers) tell(all toEach, deliver func(statusMessage) error) {
	w.mu.Lock()
	all, w.untold = append(w.untold, all...), nil
	w.mu.Unlock()
	if len(all) == 0 || deliver(all) == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if all = append(all, w.untold...); len(all) > maxWaits {
		all = all[:maxWaits]
	}
	w.untold = all
}

// ask keeps a waits until the group's node looks at it, and reports whether it is the first one.
// What there is no room for is dropped.
func (w *watchers) ask(group int, q asking) (first bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	g := &w.groups[group]
	if len(g.asked) >= maxClientWaits || w.bytes+q.sizeBytes() > maxWaitBytes {
		return false
	}
	w.bytes += q.sizeBytes()
	g.asked = append(g.asked, q)
	return len(g.asked) == 1
}

// takeAsked returns the first ones of what ask has kept, at most so many, and whether there are
// more.
func (w *watchers) takeAsked(group, most int) (asked []asking, more bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	g := &w.groups[group]
	most = min(most, len(g.asked))
	asked, g.asked = g.asked[:most], g.asked[most:]
	for _, q := range asked {
		w.bytes -= q.sizeBytes()
	}
	return asked, len(g.asked) > 0
}

// add has a client told of changes. It returns false if there is no room.
func (w *watchers) add(group int, q asking) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	id, g := waitID{q.from, q.Number}, &w.groups[group]
	w.remove(w.all[id])
	r := span{q.From, q.To}
	if len(w.all) >= maxWaits || w.clients[q.from] >= maxClientWaits || w.bytes+q.sizeBytes() > maxWaitBytes ||
		!r.one() && g.ranges[r] == nil && len(g.ranges) >= maxWaitRanges {
		return false
	}
	if !g.some.Load() {
		g.oldest = g.seen
	}
	g.some.Store(true)
	n := &waiter{waitID: id, waits: q.waits, until: time.Now().Add(waitLasts), before: g.seen}
	w.all[id] = n
	w.clients[q.from]++
	w.bytes += q.sizeBytes()
	if r.one() {
		put(&g.keys, q.From, n)
	} else {
		put(&g.ranges, r, n)
	}
	return true
}

func put[K comparable](m *map[K]map[*waiter]bool, k K, n *waiter) {
	if *m == nil {
		*m = map[K]map[*waiter]bool{}
	}
	if (*m)[k] == nil {
		(*m)[k] = map[*waiter]bool{}
	}
	(*m)[k][n] = true
}

func take[K comparable](m map[K]map[*waiter]bool, k K, n *waiter) {
	if delete(m[k], n); len(m[k]) == 0 {
		delete(m, k)
	}
}

// remove forgets who waits, who may be nobody. The caller holds the lock.
func (w *watchers) remove(n *waiter) {
	if n == nil {
		return
	}
	delete(w.all, n.waitID)
	if w.clients[n.client]--; w.clients[n.client] == 0 {
		delete(w.clients, n.client)
	}
	w.bytes -= n.sizeBytes()
	g := &w.groups[n.Group-1]
	if r := (span{n.From, n.To}); r.one() {
		take(g.keys, n.From, n)
	} else {
		take(g.ranges, r, n)
	}
	if len(g.keys)+len(g.ranges) == 0 {
		g.some.Store(false)
	}
}

// leave forgets who waits, if somebody does.
func (w *watchers) leave(id waitID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.remove(w.all[id])
}

// sweep forgets those who have not asked again for long.
func (w *watchers) sweep(now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, n := range w.all {
		if now.After(n.until) {
			w.remove(n)
		}
	}
}

// changed returns whom to tell of a change, or that all may have changed.
func (w *watchers) changed(group int, i kv.Item, all bool) toEach {
	g := &w.groups[group]
	if !g.some.Load() {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	g.seen.changes++
	g.seen.bytes += int64(len(i.Key) + len(i.Value))
	var tell toEach
	due := func(n *waiter) {
		tell = append(tell, envelope{n.client, changed{n.Number, n.Round}})
		w.remove(n)
	}
	for n := range g.keys[string(i.Key)] {
		if i.Version > n.After {
			due(n)
		}
	}
	for r, those := range g.ranges {
		if string(i.Key) < r.from || r.to != "" && string(i.Key) >= r.to {
			continue
		}
		for n := range those {
			if i.Version > n.After {
				due(n)
			}
		}
	}
	if all || g.seen.beyond(g.oldest, 4) {
		g.each(func(n *waiter) {
			if all && i.Version > n.After || g.seen.beyond(n.before, 8) {
				due(n)
			}
		})
		g.oldest = g.seen
		g.each(func(n *waiter) {
			g.oldest = progress{min(g.oldest.changes, n.before.changes), min(g.oldest.bytes, n.before.bytes)}
		})
	}
	return tell
}

// each calls f for all who wait, which may remove them.
func (g *waitGroup) each(f func(*waiter)) {
	for _, those := range g.keys {
		for n := range those {
			f(n)
		}
	}
	for _, those := range g.ranges {
		for n := range those {
			f(n)
		}
	}
}
