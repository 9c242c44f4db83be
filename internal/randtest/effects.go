package randtest

import (
	"fmt"
	"slices"
	"strings"
	"sync"
)

// effect is a write that took effect at a server.
type effect struct {
	key, what string
	version   uint64
	seq       int // in the whole world
}

func (e effect) String() string { return fmt.Sprintf("%s %s -> %d", e.key, e.what, e.version) }

// journal keeps what became of a program's hooks and acts, at clients and in
// handlers.
type journal struct {
	mu      sync.Mutex
	hooks   []note   // commit hooks of the program's own, as they ran
	acts    []note   // acts, as they ran
	tokens  []*token // of all hooks ever registered
	memos   map[string]int
	drifts  map[string]int
	clock   []effect // readings of confirmed code, in the program's order
	seq     int
	acks    []effect // writes that confirmed code was told of
	traces  []string // of confirmed code
	faults  []string // that were injected
	broken  []string // rules that were seen broken
	learnt  []string // pairs that predictors learnt
	carried []string // pairs that interceptors of clients saw
	served  map[string]struct{}
}

func newJournal() *journal {
	return &journal{memos: make(map[string]int), drifts: make(map[string]int), served: make(map[string]struct{})}
}

// note is something that happened at a place of the program.
type note struct{ at, what string }

// token follows a pair of hooks, exactly one of which must run.
type token struct {
	at                 string
	commits, rollbacks int
}

func (j *journal) token(at string) *token {
	j.mu.Lock()
	defer j.mu.Unlock()
	t := &token{at: at}
	j.tokens = append(j.tokens, t)
	return t
}

func (j *journal) commit(t *token) {
	j.mu.Lock()
	defer j.mu.Unlock()
	t.commits++
}

func (j *journal) rollback(t *token) {
	j.mu.Lock()
	defer j.mu.Unlock()
	t.rollbacks++
}

func (j *journal) hook(at, what string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.hooks = append(j.hooks, note{at, what})
}

// actOnce notes an act unless there was one at this place.
func (j *journal) actOnce(at string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !slices.ContainsFunc(j.acts, func(n note) bool { return n.at == at }) {
		j.acts = append(j.acts, note{at: at})
	}
}

// act notes an act and returns how often there was one at this place.
func (j *journal) act(at, what string) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	n := 1
	for _, a := range j.acts {
		if a.at == at {
			n++
		}
	}
	j.acts = append(j.acts, note{at, what})
	return n
}

func (j *journal) memo(at string) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.memos[at]++
	return j.memos[at]
}

// drift counts how often a place was passed, in whatever run.
func (j *journal) drift(at string) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.drifts[at]++
	return j.drifts[at]
}

func (j *journal) nextSeq() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.seq++
	return j.seq
}

func (j *journal) acknowledged(acks []effect, clock []effect, trace []string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.acks = append(j.acks, acks...)
	j.clock = append(j.clock, clock...)
	j.traces = append(j.traces, trace...)
}

func (j *journal) brokenRule(format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.broken = append(j.broken, fmt.Sprintf(format, args...))
}

func (j *journal) fault(format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.faults = append(j.faults, fmt.Sprintf(format, args...))
}

func (j *journal) learn(pair string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.learnt = append(j.learnt, pair)
}

func (j *journal) carry(pair string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.carried = append(j.carried, pair)
}

func (j *journal) serve(pair string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.served[pair] = struct{}{}
}

// laneOf returns the lane that a place belongs to: within it there is one order.
func laneOf(at string) string {
	i := strings.LastIndexByte(at, '/')
	if i < 0 {
		return at[:strings.IndexByte(at, '.')] // the task's name
	}
	for i++; i < len(at) && '0' <= at[i] && at[i] <= '9'; i++ {
	}
	return at[:i]
}

// byLane sorts notes into lanes.
func byLane(notes []note) map[string][]string {
	out := make(map[string][]string)
	for _, n := range notes {
		out[laneOf(n.at)] = append(out[laneOf(n.at)], n.at+" "+n.what)
	}
	return out
}

// byKey sorts effects by key.
func byKey(effects []effect) map[string][]string {
	out := make(map[string][]string)
	for _, e := range effects {
		out[e.key] = append(out[e.key], e.what)
	}
	return out
}

// hasPrefix reports whether a list begins with another.
func hasPrefix(list, prefix []string) bool {
	return len(prefix) <= len(list) && slices.Equal(list[:len(prefix)], prefix)
}
