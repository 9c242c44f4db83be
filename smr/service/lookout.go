package service

import (
	"slices"
	"sync"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/quorum"
)

// lookoutRenewal is the time between two requests to be told of changes, if they are answered.
const lookoutRenewal = 5 * time.Second

// A lookout has the members of a group tell a watch when it should read: see watchers. What they
// say is a hint, and the watch's own read shows what has changed.
//
// The watch need not read otherwise as long as a majority has promised to tell: a command that is
// decided is known to a majority, so one of these executes it. Each member says who the members
// are, and it takes a majority of what each of them says. A promise lasts until it should have been
// renewed, or the connection has broken: the hint may have been lost with it.
type lookout struct {
	c      *Client
	group  int // from 0 on
	keys   span
	number uint64
	forget func()
	wake   chan struct{} // of one place; of the whole watch
	grace  time.Duration // how long an answer may take; a promise outlives no member's memory of it

	mu       sync.Mutex
	round    uint64
	first    uint64 // rounds before it were made with less known than now
	sent     time.Time
	promises map[protocol.ID]promise // of round first and later
	told     bool                    // to read, since first
}

type promise struct {
	until   time.Time
	members []protocol.ID
}

func (c *Client) lookOut(group int, keys span, wake chan struct{}) *lookout {
	l := &lookout{c: c, group: group, keys: keys, wake: wake,
		grace: min(max(lookFor*c.cfg.roundTrip, time.Second), waitLasts-lookoutRenewal)}
	ref, _ := c.lookouts.Add(l.hear) // the table has no bound; who watches with a closed client reads
	l.number = c.number + ref
	l.forget = func() { c.lookouts.Forget(ref) }
	return l
}

// close ends what members keep for the lookout. If they are not told, it ends by itself.
func (l *lookout) close() {
	l.forget()
	l.send(waitsNoMore{l.number})
}

func (l *lookout) send(msg statusMessage) {
	var all toEach
	for _, id := range l.c.known() {
		all = append(all, envelope{id, msg})
	}
	_ = l.c.status.TryDeliver(all) // it comes again
}

// hear takes what a member has said.
func (l *lookout) hear(m heard) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch msg := m.msg.(type) {
	case waiting:
		if msg.Round != l.round || !slices.Contains(msg.Members, m.peer) {
			return // late
		}
		l.promises[m.peer] = promise{l.sent.Add(lookoutRenewal + l.grace), msg.Members}
	case changed:
		if msg.Round < l.first || msg.Round > l.round {
			return // what it tells of was read
		}
		l.told = true
	case broken:
		delete(l.promises, m.peer)
	case nil: // the client is closed: the watch is to read, and to find that out
		clear(l.promises)
	}
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// stands returns until when a majority tells of changes, as things are; the zero time is not.
func (l *lookout) stands(now time.Time) (until time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.standing(now)
}

// standing is stands. The caller holds the lock.
func (l *lookout) standing(now time.Time) (until time.Time) {
	holds := func(id protocol.ID) bool { return l.promises[id].until.After(now) }
	for id, p := range l.promises {
		if !holds(id) {
			continue
		}
		if until.IsZero() || p.until.Before(until) {
			until = p.until
		}
		n := 0
		for _, m := range p.members {
			if holds(m) {
				n++
			}
		}
		if n < quorum.Majority(len(p.members)) {
			return time.Time{}
		}
	}
	return until
}

// hinted reports whether a member has said that the watch should read.
func (l *lookout) hinted() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.told
}

// renewal returns when the members are to be asked again.
func (l *lookout) renewal(now time.Time) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.nextRenewal(now)
}

func (l *lookout) nextRenewal(now time.Time) time.Time {
	if l.standing(now).IsZero() {
		return l.sent.Add(l.grace)
	}
	return l.sent.Add(lookoutRenewal)
}

// renew asks the members to tell of changes after a version, if it is time to. Who has been told to
// read, and has read, asks anew: each member tells once.
func (l *lookout) renew(now time.Time, after uint64, read bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	anew := l.round == 0 || read && l.told
	if !anew && now.Before(l.nextRenewal(now)) {
		return
	}
	l.round++
	l.sent = now
	if anew {
		l.first, l.told, l.promises = l.round, false, map[protocol.ID]promise{}
	}
	l.send(waits{Number: l.number, Round: l.round, Group: uint64(l.group + 1), From: l.keys.from, To: l.keys.to,
		After: after})
}
