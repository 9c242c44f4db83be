package traceanalysis

import (
	"math/rand/v2"
	"time"

	"github.com/foresay/foresay/internal/otlp"
)

// entryKey is a kind of request.
type entryKey struct{ service, method nameID }

// entry is what is kept of a kind of request.
type entry struct {
	requests int
	calls    int // of all requests
	sample   []request
	chance   *rand.Rand
}

// request is one request. Times are since its beginning.
type request struct {
	duration time.Duration
	calls    []calling
}

// calling is one call of it.
type calling struct {
	method     nameID
	start, end time.Duration
	server     time.Duration // how long the server took, -1 if it is not in the input
	failed     bool
}

// The owners of spans, besides indexes of spans.
const (
	unknown  = -1 // not looked at yet
	visiting = -2
	none     = -3 // under a call: part of it
	orphan   = -4 // an ancestor is missing
	circle   = -5
)

// tree is a trace being taken apart.
type tree struct {
	spans []span
	index map[otlp.SpanID]int
	owner []int // for each span the entry that it works for, itself if it is one
}

// takeApart makes requests of a trace's spans.
func (c *Collector) takeApart(t *trace) {
	tree := &tree{spans: t.spans[:0], index: make(map[otlp.SpanID]int, len(t.spans))}
	for _, s := range t.spans {
		if _, ok := tree.index[s.id]; ok {
			c.out.Twice++
			continue
		}
		tree.index[s.id] = len(tree.spans)
		tree.spans = append(tree.spans, s)
	}
	tree.findOwners()
	servers := tree.servers()
	requests := make(map[int]*request)
	for i := range tree.spans {
		if s := &tree.spans[i]; tree.isEntry(i) && s.end >= s.start {
			requests[i] = &request{duration: time.Duration(s.end - s.start)}
			if _, ok := tree.index[s.parent]; !ok && s.parent != (otlp.SpanID{}) {
				c.out.CallerMissing++
			}
		}
	}
	for i := range tree.spans {
		c.addCall(tree, i, servers, requests)
	}
	for i := range tree.spans { // in this order, for the sample to be the same each time
		if r, ok := requests[i]; ok {
			c.addRequest(entryKey{tree.spans[i].service, tree.spans[i].method}, r)
		}
	}
}

// addCall gives span i, if it is a call, to its request.
func (c *Collector) addCall(t *tree, i int, servers map[int]int, requests map[int]*request) {
	s := &t.spans[i]
	owner := t.callOwner(i)
	switch {
	case s.end < s.start:
		c.out.EndBeforeStart++
		if isCall(s) {
			delete(requests, owner) // it waited for what is not known
		}
		return
	case owner == circle:
		c.out.Circles++
		return
	case !isCall(s):
		return
	case s.parent == (otlp.SpanID{}):
		c.out.Outside++
		return
	case owner == orphan:
		c.out.ParentMissing++
		return
	}
	r, ok := requests[owner]
	if !ok {
		return
	}
	origin := t.spans[owner].start
	if s.start < origin {
		c.out.Early++
		s.start, s.end = origin, max(origin, s.end)
	}
	call := calling{
		method: s.method, start: time.Duration(s.start - origin), end: time.Duration(s.end - origin), server: -1,
		failed: s.failed,
	}
	if at, ok := servers[i]; ok {
		server := &t.spans[at]
		if server.start < s.start || server.end > s.end {
			c.out.Skewed++
		}
		call.server = time.Duration(server.end - server.start)
		if limit := call.end - call.start; call.server > limit {
			c.out.Longer++
			call.server = limit
		}
	}
	r.calls = append(r.calls, call)
}

func isCall(s *span) bool { return s.kind == otlp.Client || s.kind == otlp.Producer }

// isEntry reports whether a request begins with a span: another's call arrives, or nobody called.
func (t *tree) isEntry(i int) bool {
	s := &t.spans[i]
	return s.kind == otlp.Server || s.kind == otlp.Consumer || s.parent == (otlp.SpanID{}) && !isCall(s)
}

// findOwners goes up from each span to the first that has an owner, and gives it to all on the way.
func (t *tree) findOwners() {
	t.owner = make([]int, len(t.spans))
	for i := range t.owner {
		t.owner[i] = unknown
	}
	var way []int
	for i := range t.spans {
		way = way[:0]
		at, found := i, unknown
		for found == unknown {
			switch parent, ok := t.index[t.spans[at].parent]; {
			case t.owner[at] == visiting:
				found = circle
			case t.owner[at] != unknown:
				found = t.owner[at]
			case t.isEntry(at):
				t.owner[at], found = at, at
			case isCall(&t.spans[at]):
				// What is under it belongs to it. Its own request is callOwner's to find, and its
				// parent is looked at in its turn.
				t.owner[at], found = none, none
			case !ok:
				t.owner[at], found = orphan, orphan
			default:
				t.owner[at] = visiting
				way = append(way, at)
				at = parent
			}
		}
		for _, at := range way {
			t.owner[at] = found
		}
	}
}

// callOwner returns the entry whose request a call is one of: its parent's owner.
func (t *tree) callOwner(i int) int {
	parent, ok := t.index[t.spans[i].parent]
	switch {
	case !isCall(&t.spans[i]):
		return t.owner[i]
	case !ok:
		return orphan
	}
	return t.owner[parent]
}

// servers returns for each call the server's span under it, the longest if it was tried again.
func (t *tree) servers() map[int]int {
	longest := make(map[int]int)
	for i := range t.spans {
		s := &t.spans[i]
		call, ok := t.index[s.parent]
		if !ok || s.kind != otlp.Server || t.spans[call].kind != otlp.Client || s.end < s.start {
			continue
		}
		if at, ok := longest[call]; !ok || s.end-s.start > t.spans[at].end-t.spans[at].start {
			longest[call] = i
		}
	}
	return longest
}

// addRequest counts a request and keeps it if the sample draws it.
func (c *Collector) addRequest(key entryKey, r *request) {
	c.requests++
	if len(r.calls) == 0 {
		c.rest++
	}
	e, ok := c.entries[key]
	if !ok {
		if len(c.entries) >= maxEntries {
			c.out.Entries++
			return
		}
		e = &entry{chance: rand.New(rand.NewPCG(c.options.Seed, uint64(len(c.entries))))}
		c.entries[key] = e
	}
	if len(r.calls) > maxCalls {
		c.out.Large++
		return
	}
	e.requests++
	e.calls += len(r.calls)
	if len(e.sample) < c.options.Sample {
		e.sample = append(e.sample, *r)
	} else if at := e.chance.IntN(e.requests); at < len(e.sample) {
		e.sample[at] = *r
	}
}
