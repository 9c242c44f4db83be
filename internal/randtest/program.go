package randtest

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// kind is what a step does.
type kind uint8

const (
	kindGet      kind = iota // read a key
	kindPut                  // replace a key's value
	kindAppend               // extend a key's value
	kindObserved             // read a key and look at the response's header
	kindRelay                // RelayRead or RelayWrite: calls made by a handler
	kindBranch               // one of two bodies, by the digest
	kindRepeat               // a body, several times
	kindGroup                // bodies in the lanes of a Group
	kindShared               // reading bodies in goroutines on one context
	kindContend              // equal appends to one key at once
	kindFutures              // bodies in futures, each with a continuation
	kindQuorum               // reads of a replicated key
	kindAny                  // the same, and the first counts
	kindDo                   // a body in a nested Do
	kindAct
	kindOnce  // an act that all lanes name alike
	kindDrift // a write of what differs from run to run
	kindMemo
	kindHook
	kindBarrier
	kindSleep
	kindTrap  // misbehaves if the digest is wrong
	kindLoose // bodies in futures that fail, or that nobody waits for
	kindEnd   // ends a context of its own, and goes on to use it
	kindCrowd // bodies with Groups and effects in goroutines on one context
)

func (k kind) String() string {
	return [...]string{
		"get", "put", "append", "observed get", "relay", "branch", "repeat", "group", "shared", "contend",
		"futures", "quorum", "any", "do", "act", "once", "drift", "memo", "hook", "barrier", "sleep", "trap", "loose", "end",
		"crowd",
	}[k]
}

// step is one step of a program. What a field means depends on the kind.
type step struct {
	id      int
	kind    kind
	keys    []string      // one of them, by the digest
	value   string        // what is written; derived from the digest if empty
	tenant  bool          // with metadata that the answer depends on
	limit   bool          // with a time limit and defer cancel()
	dead    bool          // on a context that was cancelled
	cancels bool          // futures in a context of their own, which the code cancels with the results
	count   int           // repetitions, goroutines
	relay   *relay        // what a handler is asked to do
	bodies  [][]*step     // of lanes, branches, futures
	then    [][]*step     // continuations of futures
	parts   [][]string    // the keys that the lanes of a Group may write
	outer   bool          // with the context of the code around the Group
	lanes   bool          // contend in lanes of a Group, not on a shared context
	pause   time.Duration // sleep
	how     loosely       // what becomes of the futures
	ends    ending        // how the context ends
}

// relay is a list of operations that a server carries out on others.
type relay struct {
	server int
	write  bool
	ops    []op
}

// op is one operation of a relay: on the server's own state if the key is its
// own, and otherwise by a call.
type op struct {
	kind  kind // kindGet, kindPut, kindAppend, kindRelay
	key   string
	value string // derived from the results so far if empty
	relay *relay
}

// task is one task of a program: a Do if there is one link, and otherwise a
// chain of futures.
type task struct {
	name  string
	links [][]*step
}

// Keys begin with their server's letter and their class.
const (
	classOwn       = 'k' // written by one lane at a time
	classConstant  = 'r' // never written
	classSecret    = 's' // nobody may read it
	classReplica   = 'q' // on all servers, stale on one of three
	classContended = 'c' // appended to by several lanes at once
	classPrivate   = 'o' // written by one of them
	classClock     = 'w' // its version is the time
)

func keyOf(server int, class byte, n int) string { return fmt.Sprintf("%c%c%d", 'a'+server, class, n) }

func serverOf(key string) int { return int(key[0] - 'a') }

func serverName(i int) string { return string(rune('a' + i)) }

// concurrent reports whether the steps of the bodies may overlap.
func concurrent(steps []*step) bool {
	for _, s := range steps {
		switch s.kind {
		case kindGroup, kindShared, kindContend, kindFutures, kindQuorum, kindAny, kindLoose, kindEnd, kindCrowd:
			return true
		}
		for _, b := range s.bodies {
			if concurrent(b) {
				return true
			}
		}
	}
	return false
}

// limits reports whether the steps set time limits.
func limits(steps []*step) bool {
	return slices.ContainsFunc(steps, func(s *step) bool { return s.limit || slices.ContainsFunc(s.bodies, limits) })
}

// format writes steps as an indented list.
func format(b *strings.Builder, indent string, steps []*step) {
	for _, s := range steps {
		fmt.Fprintf(b, "%s%d %v", indent, s.id, s.kind)
		if len(s.keys) > 0 {
			fmt.Fprintf(b, " %s", strings.Join(s.keys, "|"))
		}
		if s.kind == kindPut || s.kind == kindAppend {
			fmt.Fprintf(b, " value %q", s.value)
		}
		if s.count > 0 {
			fmt.Fprintf(b, " x%d", s.count)
		}
		for _, flag := range []struct {
			set  bool
			name string
		}{{s.tenant, "tenant"}, {s.limit, "limit"}, {s.dead, "dead"}, {s.cancels, "cancels"},
			{s.outer, "outer"}, {s.lanes, "lanes"}} {
			if flag.set {
				b.WriteString(" " + flag.name)
			}
		}
		switch s.kind {
		case kindLoose:
			fmt.Fprintf(b, " %v", s.how)
		case kindEnd:
			fmt.Fprintf(b, " %v", s.ends)
		}
		if s.pause > 0 {
			fmt.Fprintf(b, " %v", s.pause)
		}
		if s.relay != nil {
			fmt.Fprintf(b, " %v", s.relay)
		}
		b.WriteByte('\n')
		for i, body := range s.bodies {
			fmt.Fprintf(b, "%s  body %d\n", indent, i)
			format(b, indent+"    ", body)
			if i < len(s.then) && s.then[i] != nil {
				fmt.Fprintf(b, "%s  then %d\n", indent, i)
				format(b, indent+"    ", s.then[i])
			}
		}
	}
}

func (r *relay) String() string {
	var parts []string
	for _, o := range r.ops {
		switch o.kind {
		case kindRelay:
			parts = append(parts, o.relay.String())
		case kindGet:
			parts = append(parts, "get "+o.key)
		default:
			parts = append(parts, fmt.Sprintf("%v %s %q", o.kind, o.key, o.value))
		}
	}
	word := "read"
	if r.write {
		word = "write"
	}
	return fmt.Sprintf("%s at %s (%s)", word, serverName(r.server), strings.Join(parts, "; "))
}

func (t *task) String() string {
	var b strings.Builder
	for i, link := range t.links {
		fmt.Fprintf(&b, "%s link %d\n", t.name, i)
		format(&b, "  ", link)
	}
	return b.String()
}

// writes reports whether the relay's server is asked for a write of its own, and
// for one elsewhere.
func (r *relay) writes() (here, elsewhere bool) {
	for _, o := range r.ops {
		switch {
		case o.kind == kindRelay:
			h, e := o.relay.writes()
			elsewhere = elsewhere || h || e
		case o.kind == kindGet:
		case serverOf(o.key) == r.server:
			here = true
		default:
			elsewhere = true
		}
	}
	return here, elsewhere
}

// mixes reports whether a handler of the relay writes both here and elsewhere.
func (r *relay) mixes() bool {
	here, elsewhere := r.writes()
	return here && elsewhere || slices.ContainsFunc(r.ops, func(o op) bool { return o.relay != nil && o.relay.mixes() })
}
