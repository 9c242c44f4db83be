package observe

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/foresay/foresay/control"
)

// maxStops bounds the places that are told apart, per kind of request.
const maxStops = 16

// stops sums up where what stands on guesses waits. Under the kind's mu.
type stops map[Stop]time.Duration // WaitMS is not set

// add adds the waits of a request that was worked out.
func (s *stops) add(r *control.RequestRecord, w *work) {
	for i, held := range w.stops {
		if held <= 0 {
			continue
		}
		at := stopOf(r, i)
		if _, known := (*s)[at]; !known {
			if *s == nil {
				*s = make(stops)
			}
			if len(*s) >= maxStops {
				at = Stop{Kind: at.Kind, Name: Other}
			}
			at.Name = strings.Clone(at.Name)
		}
		(*s)[at] += held
	}
}

// stopOf says what call i of the model is, which are the request's calls and then its waits.
func stopOf(r *control.RequestRecord, i int) Stop {
	if i >= len(r.Calls) {
		at := &r.Waits[i-len(r.Calls)]
		name := at.Name
		if at.Kind == control.WaitAct || len(name) > maxName { // keys may be many
			name = ""
		}
		return Stop{Kind: at.Kind.String(), Name: name}
	}
	c := &r.Calls[i]
	kind := "effects"
	switch reads := onGuesses(c.Effect); {
	case !reads:
	case c.Peer == control.PeerNever:
		kind = "observed"
	case c.Peer == control.PeerPlain && c.SendPlainly && c.Failed:
		kind = "again"
	case c.Peer == control.PeerPlain:
		kind = "plain"
	case len(r.Tasks) > 0 && c.Task == 0:
		kind = "outside" // of the request's tasks
	default:
		kind = "order"
	}
	return Stop{Kind: kind, Name: c.CallSite}
}

// report returns the means over so many requests.
func (s stops) report(requests int64) []Stop {
	var out []Stop
	for at, held := range s {
		at.WaitMS = per(milliseconds(held), requests)
		out = append(out, at)
	}
	slices.SortFunc(out, func(a, b Stop) int {
		return cmp.Or(cmp.Compare(b.WaitMS, a.WaitMS), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	return out
}

// text says what waits, and how long.
func (s *Stop) text() string {
	what := map[string]string{
		"effects":  "a call with effects waits here",
		"plain":    "held: the server takes no call on a guess, it has no registrar",
		"again":    "a read that was sent plainly ahead failed, and is made again here",
		"observed": "a call whose headers are looked at waits here", "outside": "a call outside of the task waits here",
		"order":  "a call waits for earlier ones here, since it is ordered or they have effects",
		"stream": "a stream waits here", "barrier": "Barrier waits here", "act": "Act waits here",
		"hooks":  "OnCommit functions wait here",
		"result": "the end of a task waits here",
	}[s.Kind]
	if s.Name != "" && s.Kind != "result" {
		what += ": " + s.Name
	}
	return fmt.Sprintf("%s of what could run ahead: %s", ms(s.WaitMS), what)
}
