package traceanalysis

import (
	"container/list"

	"github.com/foresay/foresay/internal/otlp"
)

// LeftOut counts what was not as it should be, and what was done about it.
type LeftOut struct {
	// Unreadable spans were left out by the caller, who knows what was wrong with them.
	Unreadable int `json:"unreadable_spans"`
	// Broken is at how many places the input was not OTLP JSON, and was left out up to a next line.
	Broken int `json:"broken_places"`
	// Twice is how many spans came again: the first counts.
	Twice int `json:"spans_that_came_twice"`
	// EndBeforeStart spans were left out, with the requests that they are of.
	EndBeforeStart int `json:"spans_that_end_before_they_begin"`
	// ParentMissing is how many calls could not be given to a request, for a span between them is
	// not in the input, and CallerMissing how many requests have a parent that is not, which makes
	// no difference to them.
	ParentMissing int `json:"calls_whose_parent_is_missing"`
	CallerMissing int `json:"requests_whose_caller_is_missing"`
	// Outside is how many calls have no parent: nothing is known of what they were made for.
	Outside int `json:"calls_outside_of_a_request"`
	// Circles is how many spans are their own ancestors.
	Circles int `json:"spans_in_a_circle"`
	// Skewed is how many server spans lie outside of the calls that they serve, by the clocks of
	// two machines: only their lengths were used. Longer is how many are longer than the call: cut
	// to it.
	Skewed int `json:"server_spans_outside_of_their_call"`
	Longer int `json:"server_spans_longer_than_their_call"`
	// Early is how many calls began before their request: taken to have begun with it.
	Early int `json:"calls_before_their_request"`
	// Evicted is how many traces were taken apart early because too many spans were held, and Late
	// how many spans came after that, and were left out.
	Evicted int `json:"traces_taken_apart_early"`
	Late    int `json:"spans_too_late"`
	// Large is how many requests have more calls than are modelled, and Entries and Names how many
	// came after there were too many kinds of request, and too many names.
	Large   int `json:"requests_with_too_many_calls"`
	Entries int `json:"requests_of_too_many_kinds"`
	Names   int `json:"names_beyond_the_limit"`
}

// Collector takes spans and keeps what a report needs. It is not for concurrent use.
type Collector struct {
	options Options
	names   *nameTable
	traces  map[otlp.TraceID]*list.Element // of *trace
	touched list.List                      // the trace touched longest ago first
	held    int                            // spans in traces
	evicted map[otlp.TraceID]bool
	order   []otlp.TraceID // of evicted, a ring
	oldest  int

	entries  map[entryKey]*entry
	spans    int
	whole    int // traces
	requests int
	rest     int // of the requests, those without calls
	out      LeftOut
}

// trace is what is known of a trace so far.
type trace struct {
	id    otlp.TraceID
	spans []span
}

// span is what is kept of one.
type span struct {
	id, parent      otlp.SpanID
	kind            otlp.Kind
	failed          bool
	service, method nameID
	start, end      int64 // ns since 1970
}

// New makes a collector. It fails if an option is out of its range.
func New(o Options) (*Collector, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	return &Collector{
		options: o, names: newNameTable(maxNames), traces: make(map[otlp.TraceID]*list.Element),
		evicted: make(map[otlp.TraceID]bool), entries: make(map[entryKey]*entry),
	}, nil
}

// Unreadable counts a span that could not be read.
func (c *Collector) Unreadable() { c.out.Unreadable++ }

// Broken counts a place at which the input could not be read.
func (c *Collector) Broken() { c.out.Broken++ }

// Add takes a span.
func (c *Collector) Add(s *otlp.Span) {
	c.spans++
	if c.evicted[s.Trace] {
		c.out.Late++
		return
	}
	at, ok := c.traces[s.Trace]
	if !ok {
		at = c.touched.PushBack(&trace{id: s.Trace})
		c.traces[s.Trace] = at
	} else {
		c.touched.MoveToBack(at)
	}
	service := "(unknown service)"
	if s.Resource != nil && s.Resource.Service != "" {
		service = s.Resource.Service
	}
	t := at.Value.(*trace)
	t.spans = append(t.spans, span{
		id: s.ID, parent: s.Parent, kind: s.Kind, failed: s.Failed, service: c.name(service), method: c.name(methodOf(s)),
		start: int64(s.Start), end: int64(s.End),
	})
	c.held++
	for c.held > c.options.MaxSpans {
		c.evict()
	}
}

func (c *Collector) name(s string) nameID {
	id, ok := c.names.id(s)
	if !ok {
		c.out.Names++
	}
	return id
}

// evict takes the trace apart that has had no span for the longest time.
func (c *Collector) evict() {
	t := c.remove(c.touched.Front())
	c.out.Evicted++
	c.evicted[t.id] = true
	if len(c.order) < maxEvicted {
		c.order = append(c.order, t.id)
		return
	}
	delete(c.evicted, c.order[c.oldest])
	c.order[c.oldest] = t.id
	c.oldest = (c.oldest + 1) % maxEvicted
}

func (c *Collector) remove(at *list.Element) *trace {
	t := c.touched.Remove(at).(*trace)
	delete(c.traces, t.id)
	c.held -= len(t.spans)
	c.whole++
	c.takeApart(t)
	return t
}

// finish takes apart what is left.
func (c *Collector) finish() {
	for at := c.touched.Front(); at != nil; at = c.touched.Front() {
		c.remove(at)
	}
}

// nameID is a name's number. 0 is that of all names beyond the limit.
type nameID uint32

type nameTable struct {
	ids   map[string]nameID
	names []string
	limit int
}

func newNameTable(limit int) *nameTable {
	return &nameTable{map[string]nameID{}, []string{"(other)"}, limit}
}

func (t *nameTable) id(name string) (nameID, bool) {
	if id, ok := t.ids[name]; ok {
		return id, true
	}
	if len(t.names) > t.limit {
		return 0, false
	}
	id := nameID(len(t.names))
	t.ids[name] = id
	t.names = append(t.names, name)
	return id, true
}
