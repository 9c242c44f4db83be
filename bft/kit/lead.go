package kit

import (
	"slices"
	"time"

	"github.com/foresay/foresay/bft"
	"github.com/foresay/foresay/bft/sessions"
	"github.com/foresay/foresay/keyspace"
	"github.com/foresay/foresay/protocol"
)

// Leading is what a primary has of its view. It is dropped with the view.
type Leading struct {
	open  *opening
	queue []bft.Digest // requests that wait for room in a batch
	held  []held
}

// opening is the batch that is not proposed yet, executed as far as it has come.
type opening struct {
	layer      *keyspace.Layer
	batch      Batch
	results    []Executed
	operations int
}

// held is a request that names another one which has not come: it waits for it, but not for ever.
type held struct {
	request bft.Digest
	until   int // a tick
}

const heldTicks = 2

// Open reports whether there is a batch that is not proposed yet.
func (l *Leading) Open() bool { return l.open != nil }

// Filled reports whether there is one that has requests.
func (l *Leading) Filled() bool { return l.open != nil && len(l.open.batch.Entries) > 0 }

// Full reports whether the batch that is not proposed yet has no room for what comes next.
func (r *Replica) Full() bool {
	return r.Lead.Open() && (len(r.Lead.queue) > 0 || r.Lead.open.operations >= r.Config.MaxBatch)
}

// OnSubmit takes a client's request, from it or from a member. It returns what is known of it, for
// which the client is to be told; unless all of it is committed it waits to be ordered.
func (r *Replica) OnSubmit(from protocol.ID, m Submitted) (known Found) {
	b := m.Request.Body()
	if !r.Dir.From(&m.Request) || from != b.Client && !r.Dir.Member(from) || !b.Lawful() {
		return known
	}
	d := r.st.DigestOfRequest(b)
	if !r.Fetching() {
		known = r.Find(b.Client, b.Session, b.First, len(b.Operations))
		if len(known.Committed) == len(b.Operations) {
			r.Requests.Settled(d)
			return known
		}
	}
	if fresh, _ := r.Requests.submit(d, &m, r.Tick, from == b.Client); fresh {
		r.enqueue(d)
	}
	return known
}

// enqueue has a primary order a request.
func (r *Replica) enqueue(d bft.Digest) {
	if r.Active && r.Primary() && !slices.Contains(r.Lead.queue, d) {
		r.Lead.queue = append(r.Lead.queue, d)
	}
}

// Fill executes what waits, as long as the open batch has room, in the order in which it came. It
// says what became of each request, which is so if the view lasts.
func (r *Replica) Fill(env *protocol.Env[bft.Message], ordered func(*bft.Request, []sessions.Entry)) {
	for len(r.Lead.queue) > 0 {
		d := r.Lead.queue[0]
		x := r.Requests.bodies[d]
		if x == nil || !x.waiting {
			r.Lead.queue = r.Lead.queue[1:]
			continue
		}
		m := x.Request.Body()
		o := r.Lead.open
		if o != nil && o.operations+len(m.Operations) > r.Config.MaxBatch && o.operations > 0 {
			return
		}
		r.Lead.queue = r.Lead.queue[1:]
		if o == nil {
			o = &opening{layer: r.Store.Push()}
			r.Lead.open = o
		}
		switch {
		case !fresh(o.layer, m) || !sessions.Fits(o.layer, m):
			continue
		case sessions.Unmet(o.layer, m) != 0 && r.hold(d):
			continue
		}
		ordered(m, r.order(env.Now, o, d, m))
	}
}

// hold has a request wait for another one, and reports whether it does.
func (r *Replica) hold(d bft.Digest) bool {
	i := slices.IndexFunc(r.Lead.held, func(h held) bool { return h.request == d })
	if i < 0 {
		r.Lead.held = append(r.Lead.held, held{d, r.Tick + heldTicks})
		return true
	}
	return r.Lead.held[i].until > r.Tick
}

// ReleaseHeld tries again what has waited long enough.
func (r *Replica) ReleaseHeld() {
	for _, h := range r.Lead.held {
		if h.until <= r.Tick {
			r.enqueue(h.request)
		}
	}
	r.Lead.held = slices.DeleteFunc(r.Lead.held, func(h held) bool { return h.until < r.Tick })
}

// order executes a request as the next of the open batch.
func (r *Replica) order(now time.Duration, o *opening, d bft.Digest, m *bft.Request) []sessions.Entry {
	now = sessions.SetTime(o.layer, max(now, sessions.Time(o.layer)))
	entries := sessions.Execute(o.layer, r.Config.Service, now, r.Top+1, m)
	o.batch.Entries = append(o.batch.Entries, BatchEntry{d, now})
	o.results = append(o.results, Executed{m, d, entries})
	o.operations += len(m.Operations)
	for _, h := range r.Lead.held { // one of them may have waited for this one
		if h.request != d {
			r.enqueue(h.request)
		}
	}
	return entries
}

// Close closes the open batch, which is executed then in the place above all others: it is to be
// proposed there.
func (r *Replica) Close() (bft.Seq, bft.Digest) {
	o := r.Lead.open
	r.Lead.open = nil
	digest := r.st.DigestOf(o.batch)
	r.Requests.Keep(digest, o.batch)
	r.Top++
	r.performed[r.Top] = &Performed{Layer: o.layer, Batch: digest, Results: o.results}
	return r.Top, digest
}

// Late passes requests that have waited for half of the timeout to the primary, which may not have
// had them from their client, and reports whether one has waited for all of it since.
func (r *Replica) Late(env *protocol.Env[bft.Message], timeout int) bool {
	if r.Fetching() || r.Low() > r.Committed {
		return false
	}
	oldest := r.Requests.oldest(r.Store.Committed())
	if oldest == nil {
		return false
	}
	r.pass(env, timeout)
	return oldest.Passed && r.Tick-oldest.Since > timeout
}

// pass gives the primary the requests that have waited for long. Only from now on is it late.
func (r *Replica) pass(env *protocol.Env[bft.Message], timeout int) {
	for _, d := range r.Requests.arrivals {
		x := r.Requests.bodies[d]
		if x.Passed {
			continue
		}
		if r.Tick-x.Since <= timeout/2 {
			return // those behind came later
		}
		x.Passed, x.Since = true, r.Tick
		if !r.Primary() {
			env.Send(r.Dir.Primary(r.View).ID, Submitted{Request: x.Request})
		}
	}
}

// Leave ends the present view: nothing is accepted until another one begins.
func (r *Replica) Leave(v bft.View) {
	if !r.Fetching() {
		r.DropLayers()
	}
	if !r.Active {
		r.Doublings = min(r.Doublings+1, maxTimeoutDoubling)
	}
	r.Lead = Leading{}
	r.View, r.Active, r.Since = v, false, r.Tick
}

// Begin begins a view: what waits is asked of its primary from now on.
func (r *Replica) Begin(v bft.View) {
	if !r.Fetching() {
		r.DropLayers()
	}
	r.View, r.Active, r.Since = v, true, r.Tick
	r.Lead = Leading{}
	for _, d := range r.Requests.arrivals {
		x := r.Requests.bodies[d]
		x.Since, x.Passed = r.Tick, false
		r.enqueue(d)
	}
	r.Spoke = r.Tick - MaxIdleTicks // so that what is missing is asked for soon
}
