package view

import (
	"bytes"
	"slices"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/specfs"
	"github.com/foresay/foresay/specfs/tree"
)

func (v *View) sayHello(env *Env) {
	v.hello = true
	first := v.last + 1
	if len(v.epochs) > 0 {
		first = v.epochs[0].number
	}
	env.Send(v.config.Server, specfs.Hello{
		Token: v.config.Token, At: env.Now, First: first, Era: v.era, News: v.news, Leases: v.config.System.Leases,
	})
}

// onWelcome goes on with a session: what is not answered is sent again.
func (v *View) onWelcome(env *Env, m specfs.Welcome) {
	if !v.hello || m.Token != v.config.Token || v.session != 0 && m.Session != v.session {
		return // of an earlier Hello, perhaps: what is not answered has been sent again
	}
	v.adopt(m.Generation)
	v.session, v.hello, v.welcome = m.Session, false, m
	v.setClock(env, m.Now)
	v.lease = lease{length: m.Lease, until: m.At + usable(m.Lease), tag: v.lease.tag}
	for _, e := range v.epochs {
		if e.sent {
			v.send(env, e)
		}
	}
	for _, p := range v.asked {
		if p.fetch != nil {
			p.fetch.News = v.news
			env.Send(v.config.Server, *p.fetch)
		}
	}
}

// adopt forgets what was fetched in another generation.
func (v *View) adopt(generation uint64) {
	if generation != v.generation {
		v.cache.clear()
		v.generation, v.news = generation, 0
	}
}

// usable is how much of a lease the client relies on. Its clock may be slower than the server's.
func usable(lease time.Duration) time.Duration { return lease - lease/8 }

// setClock sets the client's estimate of the server's clock. It is behind by what the message took,
// and so never ahead.
func (v *View) setClock(env *Env, server specfs.Time) { v.offset = time.Duration(server) - env.Now }

// now returns the estimate.
func (v *View) now(env *Env) specfs.Time { return specfs.Time(env.Now + v.offset) }

// onRetry says hello if the server owes an answer and is silent, and has the lease go on.
func (v *View) onRetry(env *Env) {
	waiting := func(p *pending) bool { return p.fetch != nil }
	owes := len(v.epochs) > 0 || slices.ContainsFunc(v.asked, waiting)
	if v.hello || owes && !v.heard { // a Hello may be lost while the server says other things
		v.sayHello(env)
	}
	v.heard = false
	every := v.config.Retry
	if v.config.System.Leases && v.session != 0 {
		v.lease.due = false
		v.renew(env)
		every = min(every, max(v.lease.length/4, every/64)) // whatever the server says
	}
	env.After(every, retry{})
}

// renew asks for the lease to go on, unless it has done so.
func (v *View) renew(env *Env) {
	if v.lease.due {
		return
	}
	v.lease.tag++
	v.lease.at, v.lease.due = env.Now, true
	env.Send(v.config.Server, specfs.Renew{Tag: v.lease.tag})
}

func (v *View) onRenewed(m specfs.Renewed) {
	if !v.lease.due || m.Tag != v.lease.tag {
		return
	}
	v.adopt(m.Generation)
	v.lease.due, v.lease.until = false, v.lease.at+usable(v.lease.length)
}

// onNotice forgets what others are about to change.
func (v *View) onNotice(env *Env, m specfs.Notice) {
	for _, p := range m.Parts {
		v.cache.missed = nil
		if tree.KindOf(v.cache, p.ID) != specfs.Directory {
			p = specfs.Part{ID: p.ID}
		}
		v.cache.forget(p)
	}
	env.Send(v.config.Server, specfs.Heard{Notice: m.Notice})
}

// fetch asks for the records that an operation has missed.
func (v *View) fetch(env *Env, p *pending) {
	var wants []specfs.Want
	for _, w := range v.cache.missed {
		same := func(o specfs.Want) bool { return bytes.Equal(o.Lo, w.Lo) && bytes.Equal(o.Hi, w.Hi) }
		if !slices.ContainsFunc(wants, same) && len(wants) < specfs.MaxWants {
			wants = append(wants, w)
		}
	}
	v.counts.Fetches++
	v.fetches++
	p.fetch = &specfs.Fetch{Tag: v.fetches, News: v.news, Wants: wants, Cred: p.Cred}
	env.Send(v.config.Server, *p.fetch)
}

func (v *View) onFetched(env *Env, m specfs.Fetched) {
	i := slices.IndexFunc(v.asked, func(p *pending) bool { return p.fetch != nil && p.fetch.Tag == m.Tag })
	v.changed(m.Changed, m.News)
	for _, f := range m.Facts {
		if lawful(f) {
			v.cache.learn(f)
		}
	}
	if i < 0 {
		return
	}
	p := v.asked[i]
	if p.fetch = nil; m.Refused != specfs.OK {
		p.result = specfs.Result{Errno: m.Refused}
		v.answer(env, p, 0)
	}
}

// changed takes the news of what others have changed.
func (v *View) changed(parts []specfs.Part, news uint64) {
	for _, p := range parts {
		v.cache.forget(p)
	}
	v.news = max(v.news, news)
}

// lawful reports whether a fact is one.
func lawful(f specfs.Fact) bool {
	if _, ok := tree.Object(f.Lo); !ok || bytes.Compare(f.Lo, f.Hi) >= 0 {
		return false
	}
	last := f.Lo
	for i, r := range f.Records {
		if c := bytes.Compare(last, r.Key); c > 0 || c == 0 && i > 0 || bytes.Compare(r.Key, f.Hi) >= 0 {
			return false
		}
		if !tree.IsRecord(r.Key, r.Value) {
			return false
		}
		last = r.Key
	}
	return true
}

// onAnswer takes what became of the oldest epoch.
func (v *View) onAnswer(env *Env, m specfs.Answer) {
	v.changed(m.Changed, m.News)
	if len(v.epochs) == 0 || v.epochs[0].number != m.Number || !v.epochs[0].sent {
		return // a copy, or of an epoch that was taken back with another one
	}
	e := v.epochs[0]
	v.acked = m.Number
	if m.Refused != specfs.Accepted {
		v.refused(env, e, m)
		return
	}
	v.serials[e.number] = m.Serial
	v.epochs = v.epochs[1:]
	v.layers.Merge(settling{cache: v.cache, since: e.since, version: v.resolved})
	for _, p := range m.Moved {
		v.cache.forget(p)
		v.moved[movedPart{e.number, p}] = true
	}
	if len(v.epochs) == 0 {
		v.forgetNumbers()
	}
	for _, p := range slices.Clone(v.asked) {
		if p.epoch == e.number {
			v.answer(env, p, m.Serial)
		}
	}
	if v.config.System.Behind {
		env.Send(protocol.App, Settled{Epoch: e.number, Serial: m.Serial})
	}
}

// forgetNumbers forgets what is remembered for epochs that are not settled.
func (v *View) forgetNumbers() {
	clear(v.serials)
	clear(v.moved)
	v.cache.moved = nil
}

// refused takes back an epoch and all after it. What it assumed is fetched anew: the server has
// told what has changed, but only once.
func (v *View) refused(env *Env, e *epoch, m specfs.Answer) {
	v.counts.Refused++
	v.era = max(v.era+1, m.Era)
	if m.Refused == specfs.WrongClock {
		v.setClock(env, m.Now)
	}
	v.layers.Drop(e.layer)
	for _, a := range slices.Concat(e.saw, e.blind) {
		v.cache.forget(a.Part)
	}
	// Numbers of what is on its way are not used again: the server answers them all.
	if v.open() != nil {
		v.last--
	}
	v.acked = v.last
	v.epochs = nil
	v.forgetNumbers()
	if v.config.System.Behind {
		v.asked = nil
		env.Send(protocol.App, Refused{Epoch: e.number, Era: v.era, Reason: m.Refused})
		return
	}
	for _, p := range v.asked {
		p.epoch = 0
	}
}
