package storecmd

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/foresay/foresay/internal/cli/command"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/client"
	"github.com/foresay/foresay/store/storeservice"
)

// An explanation says what a transaction waited for, and what it would have had to wait for at
// least. Times are in milliseconds since the transaction began.
type explanation struct {
	Attempts []attemptExplained `json:"attempts"`
	TookMS   float64            `json:"took_ms"`
	// FloorMS is one round trip to the nearest majority of sites, 0 if too few were measured.
	// FloorSite is the farthest of these.
	FloorMS   float64             `json:"floor_ms,omitempty"`
	FloorSite string              `json:"floor_site,omitempty"`
	Ratio     float64             `json:"ratio,omitempty"` // of what it took to the floor
	Distances []distanceExplained `json:"distances"`       // the nearest first

	sites int
}

type distanceExplained struct {
	Site        string  `json:"site"`
	RoundTripMS float64 `json:"round_trip_ms"`
}

// An attemptExplained is one try.
type attemptExplained struct {
	Attempt  int    `json:"attempt"`
	Mode     string `json:"read_mode"`
	Level    string `json:"level"`
	Declared bool   `json:"keys_declared,omitempty"`
	// AsOf is the time as of which it has read that may see what is old, and AgeMS how long ago that
	// was when it was read. Absent: it has seen what there was.
	AsOf    *time.Time      `json:"as_of,omitempty"`
	AgeMS   float64         `json:"age_ms,omitempty"`
	Outcome string          `json:"outcome"`
	Reason  string          `json:"reason,omitempty"`
	BeganMS float64         `json:"began_ms"`
	EndedMS float64         `json:"ended_ms"`
	Reads   []readExplained `json:"reads"`
	Commit  *hop            `json:"commit,omitempty"`
	// Path is what the attempt waited for, one thing after the other.
	Path []hop `json:"critical_path"`
	// Fast says that the protocol's fast path has decided it.
	Fast bool `json:"fast_path,omitempty"`
	// HeldMS is for how long leaders held what it asked for at most, until it should have arrived
	// everywhere.
	HeldMS float64 `json:"held_ms,omitempty"`
}

// A readExplained is one read. FirstMS and KnownMS are absent if no answer came alone, or nobody
// waited for the quorum.
type readExplained struct {
	Key       string   `json:"key"`
	AskedMS   float64  `json:"asked_ms"`
	FirstMS   *float64 `json:"first_ms,omitempty"`
	FirstSite string   `json:"first_site,omitempty"`
	KnownMS   *float64 `json:"quorum_ms,omitempty"`
	KnownSite string   `json:"quorum_site,omitempty"`
	Right     bool     `json:"predicted_right"`
}

// A hop is a wait for a site.
type hop struct {
	What   string  `json:"what"` // such as: get "k", quorum
	Site   string  `json:"site,omitempty"`
	FromMS float64 `json:"from_ms"`
	ToMS   float64 `json:"to_ms"`
	// WideArea says that the site is far, compared with the majority's farthest.
	WideArea bool `json:"wide_area"`
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func msOrNone(d time.Duration) *float64 {
	if d < 0 {
		return nil
	}
	x := ms(d)
	return &x
}

// nearFraction is how near a site is, compared with the majority's farthest, for a wait for it not
// to be wide-area.
const nearFraction = 0.1

// explain makes an explanation of the traces of a transaction's attempts. The level is that of
// transactions that ask for none.
func explain(traces []*client.Trace, near []storeservice.Distance, sites int, level client.Level) *explanation {
	x := &explanation{Attempts: []attemptExplained{}, Distances: []distanceExplained{}, sites: sites}
	for _, d := range near {
		x.Distances = append(x.Distances, distanceExplained{d.Site, ms(d.RoundTrip)})
	}
	if floor, ok := storeservice.Floor(near, sites); ok {
		x.FloorMS, x.FloorSite = ms(floor), near[sites/2].Site
	}
	for _, t := range traces {
		x.Attempts = append(x.Attempts, x.attempt(t, level))
		x.TookMS = ms(t.Ended)
	}
	if x.FloorMS > 0 {
		x.Ratio = x.TookMS / x.FloorMS
	}
	return x
}

func (x *explanation) attempt(t *client.Trace, level client.Level) attemptExplained {
	a := attemptExplained{
		Attempt: t.Attempt, Mode: t.Mode.String(), Level: cmp.Or(t.Level, level).String(), Declared: t.Declared,
		Outcome: t.Outcome.Verdict.String(), Fast: t.Outcome.Fast, HeldMS: ms(t.Outcome.Held),
		BeganMS: ms(t.Began), EndedMS: ms(t.Ended), Reads: []readExplained{},
	}
	if t.At > 0 {
		at := time.Unix(0, int64(t.At)).UTC()
		a.AsOf, a.AgeMS = &at, ms(t.Age)
	}
	if t.Failed {
		a.Outcome = "failed"
	}
	if t.Outcome.Verdict == store.Aborted {
		a.Reason = t.Outcome.Reason.String()
	}
	for _, r := range t.Reads {
		a.Reads = append(a.Reads, readExplained{string(r.Key), ms(r.Asked), msOrNone(r.First), r.FirstSite, msOrNone(r.Known),
			r.KnownSite, r.Right})
	}
	if t.Commit >= 0 {
		a.Commit = &hop{What: "commit", Site: t.Site, FromMS: ms(t.Commit), ToMS: ms(t.Ended), WideArea: x.far(t.Site)}
	}
	a.Path = x.path(t)
	return a
}

// far reports whether a site is not where the client is, or next door. What is not known is far.
func (x *explanation) far(site string) bool {
	i := slices.IndexFunc(x.Distances, func(d distanceExplained) bool { return d.Site == site })
	return i < 0 || x.FloorMS == 0 || x.Distances[i].RoundTripMS > nearFraction*x.FloorMS
}

// An arrival is an answer, which something that came later may have waited for.
type arrival struct {
	at, asked time.Duration
	what      string
	site      string
}

// path finds what an attempt waited for, from its end backwards: whatever was asked at a moment had
// waited for the last answer before. The program's own time is not told apart from that of the wait
// behind it.
func (x *explanation) path(t *client.Trace) []hop {
	var arrivals []arrival
	for _, r := range t.Reads {
		if r.First >= 0 {
			arrivals = append(arrivals, arrival{r.First, r.Asked, fmt.Sprintf("get %.40q, first answer", r.Key), r.FirstSite})
		}
		if r.Known >= 0 {
			arrivals = append(arrivals, arrival{r.Known, r.Asked, fmt.Sprintf("get %.40q, quorum", r.Key), r.KnownSite})
		}
	}
	hops := []hop{}
	now := t.Ended
	if t.Commit >= 0 {
		hops = append(hops, hop{"commit", t.Site, ms(t.Commit), ms(t.Ended), x.far(t.Site)})
		now = t.Commit
	}
	for {
		var last *arrival
		for i := range arrivals {
			if a := &arrivals[i]; a.at <= now && a.asked < a.at && (last == nil || a.at >= last.at) {
				last = a
			}
		}
		if last == nil {
			break
		}
		hops = append(hops, hop{last.what, last.site, ms(last.asked), ms(last.at), x.far(last.site)})
		now = last.asked // which is earlier than it was, so this ends
	}
	slices.Reverse(hops)
	return hops
}

// timelineWidth is how many columns a timeline has.
const timelineWidth = 40

// write writes the explanation for people.
func (x *explanation) write(w io.Writer) {
	for _, a := range x.Attempts {
		x.writeAttempt(w, a)
	}
	hops := 0
	for _, a := range x.Attempts {
		for _, h := range a.Path {
			if h.WideArea {
				hops++
			}
		}
	}
	fmt.Fprintf(w, "in all %.1f ms; wide-area waits, one after the other: %d\n", x.TookMS, hops)
	if x.FloorMS > 0 {
		fmt.Fprintf(w, "that is %.2f times the floor of %.1f ms: one round trip to %s, which completes the nearest "+
			"majority of %d sites\n",
			x.Ratio, x.FloorMS, x.FloorSite, x.sites)
	}
	var near []string
	for _, d := range x.Distances {
		near = append(near, fmt.Sprintf("%s %.1f ms", d.Site, d.RoundTripMS))
	}
	fmt.Fprintf(w, "round trips from here: %s\n", command.Joined(near))
}

func (x *explanation) writeAttempt(w io.Writer, a attemptExplained) {
	outcome := a.Outcome
	if a.Reason != "" {
		outcome += ": " + a.Reason
	}
	declared := ""
	if a.Declared {
		declared = ", keys declared"
	}
	fmt.Fprintf(w, "attempt %d, read mode %s, %s%s: %s\n", a.Attempt, a.Mode, a.Level, declared, outcome)
	if a.AsOf != nil {
		fmt.Fprintf(w, "  as of %s, which was %.1f ms before\n", a.AsOf.Format("15:04:05.000000"), a.AgeMS)
	}
	took := a.EndedMS - a.BeganMS
	label := len("commit")
	for _, r := range a.Reads {
		label = max(label, len([]rune(command.Printable("get "+r.Key))))
	}
	right := fmt.Sprintf("%.1f ms", a.EndedMS)
	left := fmt.Sprintf("%.1f", a.BeganMS)
	fmt.Fprintf(w, "  %*s  %s%*s\n", label, "", left, timelineWidth-len(left)+2, right)
	row := func(name, bar, text string) { fmt.Fprintf(w, "  %-*s  |%s|  %s\n", label, name, bar, text) }
	at := func(ms float64) int {
		if took <= 0 {
			return 0
		}
		return min(max(int((ms-a.BeganMS)/took*timelineWidth), 0), timelineWidth)
	}
	for _, r := range a.Reads {
		row(command.Printable("get "+r.Key), r.bar(at), r.text())
	}
	if c := a.Commit; c != nil {
		text := fmt.Sprintf("asked at %.1f", c.FromMS)
		if c.Site != "" {
			text += fmt.Sprintf(", decided at %.1f by the word of %s", c.ToMS, c.Site)
		}
		if a.Fast {
			text += ", on the fast path"
		}
		if a.HeldMS > 0 {
			text += fmt.Sprintf(", held by leaders for up to %.1f ms", a.HeldMS)
		}
		row("commit", bar(at(c.FromMS), at(c.ToMS), at(c.ToMS)), text)
	}
	var path []string
	for _, h := range a.Path {
		text := fmt.Sprintf("%s %.1f ms", h.What, h.ToMS-h.FromMS)
		if h.Site != "" {
			text += " (" + h.Site
			if h.WideArea {
				text += ", wide-area"
			}
			text += ")"
		}
		path = append(path, text)
	}
	if len(path) > 0 {
		fmt.Fprintf(w, "  waited for: %s\n", strings.Join(path, "; "))
	}
}

// bar is solid from one column to another, where somebody waits, and shaded up to a third, where
// nobody does. What has happened has a column.
func bar(from, waited, to int) string {
	from = min(from, timelineWidth-1)
	waited = min(max(waited, from+1), timelineWidth)
	to = max(to, waited)
	return strings.Repeat(" ", from) + strings.Repeat("█", waited-from) + strings.Repeat("░", to-waited) +
		strings.Repeat(" ", timelineWidth-to)
}

func (r readExplained) bar(at func(float64) int) string {
	switch {
	case r.FirstMS != nil && r.KnownMS != nil && r.Right:
		return bar(at(r.AskedMS), at(*r.FirstMS), at(*r.KnownMS))
	case r.KnownMS != nil:
		return bar(at(r.AskedMS), at(*r.KnownMS), at(*r.KnownMS))
	case r.FirstMS != nil:
		return bar(at(r.AskedMS), at(*r.FirstMS), at(*r.FirstMS))
	}
	return bar(at(r.AskedMS), timelineWidth, timelineWidth)
}

func (r readExplained) text() string {
	text := fmt.Sprintf("asked at %.1f", r.AskedMS)
	if r.FirstMS != nil {
		text += fmt.Sprintf(", %s answered at %.1f", r.FirstSite, *r.FirstMS)
		switch {
		case r.KnownMS == nil:
		case r.Right:
			text += ", rightly"
		default:
			text += ", wrongly"
		}
	}
	if r.KnownMS != nil {
		text += fmt.Sprintf(", quorum at %.1f with %s", *r.KnownMS, r.KnownSite)
	}
	return text
}
