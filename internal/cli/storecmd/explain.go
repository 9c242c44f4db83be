package storecmd

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/foresay/foresay/internal/cli/command"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/client"
	"github.com/foresay/foresay/store/plan"
	"github.com/foresay/foresay/store/storeconfig"
	"github.com/foresay/foresay/store/storeservice"
	"github.com/foresay/foresay/wan"
)

// An explanation says what a transaction waited for, and what it would have had to wait for at
// least. Times are in milliseconds since the transaction began.
type explanation struct {
	Attempts []attemptExplained `json:"attempts"`
	TookMS   float64            `json:"took_ms"`
	// Class is the transaction's, as in package plan, and FloorMS what no protocol goes below for it
	// from here. They are absent if it came to no commit, or too few sites were measured.
	Class     string              `json:"class,omitempty"`
	FloorMS   float64             `json:"floor_ms,omitempty"`
	Ratio     float64             `json:"ratio,omitempty"` // of what it took to the floor
	Distances []distanceExplained `json:"distances"`       // the nearest first

	at sight
}

// A sight is what a client has measured of a store.
type sight struct {
	near    []storeservice.Distance // the nearest first
	sites   int                     // how many there are, those that have not answered too
	system  plan.System
	placed  [][]wan.Site     // the sites with a copy of each shard
	leaders map[int]wan.Site // of shards that are led
	names   []string         // of the sites, by their places in the store's file
}

// sightOf measures how far a store's sites are, and asks who leads.
func sightOf(ctx context.Context, c *storeservice.Client) sight {
	s := sight{near: c.Distances(ctx), sites: c.Sites(), leaders: map[int]wan.Site{}}
	file, top := c.Store(), c.Store().Topology()
	s.system = systemOf(file)
	for _, site := range top.Sites {
		s.names = append(s.names, site.Name)
	}
	for k := range top.Shards {
		var at []wan.Site
		for i, site := range top.Sites {
			if top.Has(i, k) {
				at = append(at, wan.Site(site.Name))
			}
		}
		s.placed = append(s.placed, at)
	}
	terms := map[int]uint64{}
	for _, m := range c.Status(ctx) {
		for _, sh := range m.Shards {
			if k := int(sh.Shard); sh.Leads && sh.Term > terms[k] {
				terms[k], s.leaders[k] = sh.Term, wan.Site(m.Site)
			}
		}
	}
	return s
}

// systemOf is what package plan calls a store's protocol in its mode.
func systemOf(s *storeconfig.Store) plan.System {
	p, mode := s.StoreProtocol(), s.Mode
	if mode == "" && len(p.Modes) > 0 {
		mode = p.Modes[0]
	}
	if mode == "" {
		return plan.System(p.Name)
	}
	return plan.System(p.Name + "-" + mode)
}

// txnOf returns the shards of a transaction that was asked to be committed; false if none was, or
// nobody has told what it was.
func (s sight) txnOf(t *client.Trace) (txn plan.Txn, ok bool) {
	add := func(to *[]int, key store.Key) {
		if len(s.placed) > 0 {
			*to = append(*to, store.ShardOf(key, len(s.placed)))
		}
	}
	for _, r := range t.Txn.Reads {
		add(&txn.Reads, r.Key)
	}
	for _, w := range t.Txn.Writes {
		add(&txn.Writes, w.Key)
	}
	if t.Txn.ID.IsZero() && !t.Failed && t.Outcome.Verdict == store.Committed { // it only reads, and needed no commit
		for _, r := range t.Reads {
			add(&txn.Reads, r.Key)
		}
	}
	return txn, len(txn.Reads)+len(txn.Writes) > 0
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
	// Course is how it came to its end, with protocols whose coordinators tell that.
	Course *courseExplained `json:"course,omitempty"`
}

// A readExplained is one read. FirstMS and KnownMS are absent if no answer came alone, or nobody
// waited for the quorum.
type readExplained struct {
	keyText
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
	// WideArea says that the site is far, compared with the majority's farthest, or that a commit
	// took others than those that are near. Trips is how many round trips such a commit takes at
	// most, one after the other.
	WideArea bool `json:"wide_area"`
	Trips    int  `json:"round_trips_at_most,omitempty"`
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
func explain(traces []*client.Trace, at sight, level client.Level) *explanation {
	x := &explanation{Attempts: []attemptExplained{}, Distances: []distanceExplained{}, at: at}
	for _, d := range at.near {
		x.Distances = append(x.Distances, distanceExplained{d.Site, ms(d.RoundTrip)})
	}
	for _, t := range traces {
		x.Attempts = append(x.Attempts, x.attempt(t, level))
		x.TookMS = ms(t.Ended)
	}
	if len(traces) > 0 {
		if txn, ok := at.txnOf(traces[len(traces)-1]); ok {
			m := plan.Measured{Trips: map[wan.Site]time.Duration{}, Placement: at.placed, Leaders: at.leaders}
			for _, d := range at.near {
				m.Trips[wan.Site(d.Site)] = d.RoundTrip
			}
			if class, floor, ok := m.Floor(txn); ok {
				x.Class, x.FloorMS = string(class), ms(floor)
			}
		}
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
		BeganMS: ms(t.Began), EndedMS: ms(t.Ended), Reads: []readExplained{}, Course: x.at.course(t.Outcome.Course),
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
		a.Reads = append(a.Reads, readExplained{newKeyText(string(r.Key)), ms(r.Asked), msOrNone(r.First), r.FirstSite,
			msOrNone(r.Known), r.KnownSite, r.Right})
	}
	if t.Commit >= 0 {
		commit := x.commit(t)
		a.Commit = &commit
	}
	a.Path = x.path(t)
	return a
}

// far reports whether a site is not where the client is, or next door. What is not known is far.
func (x *explanation) far(site string) bool {
	i := slices.IndexFunc(x.at.near, func(d storeservice.Distance) bool { return d.Site == site })
	most, ok := storeservice.Majority(x.at.near, x.at.sites)
	return i < 0 || !ok || float64(x.at.near[i].RoundTrip) > nearFraction*float64(most)
}

// commit is an attempt's wait for its commit. Whoever had the last word may be near, and have
// waited for others: then it took at least as long as the way to another site and back.
func (x *explanation) commit(t *client.Trace) hop {
	h := hop{What: "commit", Site: t.Site, FromMS: ms(t.Commit), ToMS: ms(t.Ended), WideArea: x.far(t.Site)}
	if len(x.at.near) > 1 && t.Ended-t.Commit >= x.at.near[1].RoundTrip {
		h.WideArea = true
	}
	if txn, ok := x.at.txnOf(t); ok && h.WideArea {
		h.Trips = x.at.system.CommitTrips(txn, t.Outcome.Fast)
	}
	return h
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
		hops = append(hops, x.commit(t))
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
		hops = append(hops, hop{What: last.what, Site: last.site, FromMS: ms(last.asked), ToMS: ms(last.at),
			WideArea: x.far(last.site)})
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
		fmt.Fprintf(w, "that is %.2f times the floor of %.1f ms, of its class from here: %s\n", x.Ratio, x.FloorMS,
			classText(plan.Class(x.Class)))
	}
	var near []string
	for _, d := range x.Distances {
		near = append(near, fmt.Sprintf("%s %.1f ms", d.Site, d.RoundTripMS))
	}
	fmt.Fprintf(w, "round trips from here: %s\n", command.Joined(near))
}

func classText(c plan.Class) string {
	switch c {
	case plan.ReadOnly:
		return "ro, it only reads"
	case plan.LocalReplica:
		return "lrt, it writes, and its site has copies of all that it touches"
	}
	return "rpt, it writes, and touches what its site has no copy of"
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
		label = max(label, len([]rune("get "+r.printable())))
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
		row("get "+r.printable(), r.bar(at), r.text())
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
	if a.Course != nil {
		a.Course.write(w)
	}
	var path []string
	for _, h := range a.Path {
		text := h.What
		if h.Trips > 1 {
			text += fmt.Sprintf(", of up to %d round trips,", h.Trips)
		}
		text += fmt.Sprintf(" %.1f ms", h.ToMS-h.FromMS)
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
