package kit

import (
	"cmp"
	"container/list"
	"fmt"
	"maps"
	"slices"

	"github.com/foresay/foresay/internal/wirefmt"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
)

// sessions is the replicated table by which a command that comes twice is executed once. It changes
// only by entries, in the order of the log, and is part of the snapshot.
//
// A command is executed if its number is in the session's window and has no answer yet. Its answer
// is kept until the client says that it has it: until then the client may ask again. So a command
// below acked is never executed, not even by a copy that was on its way for hours; and of a session
// that was closed nothing is, since session IDs are not given twice.
type sessions struct {
	last  SessionID // that was given
	byID  map[SessionID]*session
	opens map[opening]SessionID
	order list.List // of *session; the one that was unused for the longest time is in front
	bytes int       // of the results that are kept
}

// opening is what names a request for a session: the same one gets the same session.
type opening struct {
	client protocol.ID
	nonce  Seq
}

type session struct {
	id     SessionID
	by     opening
	window Seq
	acked  Seq // the client waits for no answer below it
	done   map[Seq]Reply
	place  *list.Element
}

func newSessions() *sessions {
	return &sessions{byID: map[SessionID]*session{}, opens: map[opening]SessionID{}}
}

// opened returns the session that an entry has opened and that is still there.
func (t *sessions) opened(e Entry) (reply Reply, ok bool) {
	id, ok := t.opens[opening{e.Client, e.Seq}]
	if !ok {
		return Reply{}, false
	}
	return Reply{Outcome: smr.Committed, Session: id, Window: t.byID[id].window}, true
}

// open gives a client a session. If there are too many, the one goes that was unused for the
// longest time: no clock would do, as all replicas must close the same one. Its client learns so
// with its next command, and cannot know whether those on their way were executed.
func (t *sessions) open(slot smr.Slot, e Entry) Reply {
	if reply, ok := t.opened(e); ok {
		reply.Slot = slot
		return reply
	}
	t.last++
	s := &session{id: t.last, by: opening{e.Client, e.Seq}, window: max(e.Open.Window, 1), acked: 1, done: map[Seq]Reply{}}
	t.add(s)
	for uint64(len(t.byID)) > max(e.Open.MaxSessions, 1) {
		t.remove(t.order.Front().Value.(*session))
	}
	return Reply{Outcome: smr.Committed, Slot: slot, Session: s.id, Window: s.window}
}

func (t *sessions) add(s *session) {
	s.place = t.order.PushBack(s)
	t.byID[s.id], t.opens[s.by] = s, s.id
}

func (t *sessions) remove(s *session) {
	for _, r := range s.done { //pure:ok a sum
		t.bytes -= len(r.Result)
	}
	t.order.Remove(s.place)
	delete(t.byID, s.id)
	delete(t.opens, s.by)
}

// seen answers a command of a session, which is nil if it is not there, that must not be executed.
// Otherwise ok is false, and the command's answer is to be kept in done until it is acknowledged.
func (s *session) seen(e Entry) (reply Reply, ok bool) {
	switch {
	case s == nil:
		return Reply{Outcome: smr.Unknown, Reason: fmt.Sprintf("session %d is not open any more", e.Session), Gone: true},
			true
	case s.by.client != e.Client:
		return Reply{Outcome: smr.Rejected, Reason: fmt.Sprintf("session %d is another client's", e.Session)}, true
	case e.Seq < s.acked:
		return Reply{Outcome: smr.Unknown, Reason: "the client has acknowledged the command's answer"}, true
	}
	if r, ok := s.done[e.Seq]; ok {
		return r, true
	}
	if e.Seq-s.acked >= s.window {
		return Reply{Outcome: smr.Rejected, Reason: fmt.Sprintf("command %d is beyond the session's window of %d from %d",
			e.Seq, s.window, s.acked)}, true
	}
	return Reply{}, false
}

// use notes that a session, which may be nil, has sent an entry, and what its client has
// acknowledged.
func (t *sessions) use(s *session, e Entry) {
	if s == nil || s.by.client != e.Client {
		return
	}
	t.order.MoveToBack(s.place)
	if e.Acked <= s.acked {
		return
	}
	// By the shorter way, as a client may say any number.
	if uint64(e.Acked-s.acked) > uint64(len(s.done)) {
		for _, q := range slices.Sorted(maps.Keys(s.done)) {
			if q < e.Acked {
				t.drop(s, q)
			}
		}
	} else {
		for q := s.acked; q < e.Acked; q++ {
			t.drop(s, q)
		}
	}
	s.acked = e.Acked
}

func (t *sessions) drop(s *session, q Seq) {
	t.bytes -= len(s.done[q].Result)
	delete(s.done, q)
}

// keep keeps the answer to a command of a session until its client acknowledges it. If all results
// that are kept have more than bound bytes, some are forgotten, first those of sessions that were
// unused for the longest time. That the commands were executed is not: it decides what is executed.
// A result decides nothing, so replicas may differ in what they have forgotten.
func (t *sessions) keep(s *session, q Seq, r Reply, bound int) {
	s.done[q] = r
	t.bytes += len(r.Result)
	if bound <= 0 || t.bytes <= bound {
		return
	}
	room := bound - bound/8 // so that not each command looks through all sessions
	for el := t.order.Front(); el != nil && t.bytes > room; el = el.Next() {
		old := el.Value.(*session)
		for _, k := range slices.Sorted(maps.Keys(old.done)) {
			if t.bytes <= room {
				return
			}
			if old != s || k != q { // which is about to be told
				t.forget(old, k)
			}
		}
	}
}

// forget forgets a result. An answer that is Committed and has a reason lacks it.
func (t *sessions) forget(s *session, q Seq) {
	r := s.done[q]
	if len(r.Result) == 0 {
		return
	}
	t.bytes -= len(r.Result)
	r.Result, r.Reason = nil, "it was forgotten, as there were too many that no client has acknowledged"
	s.done[q] = r
}

// fields are those of the table in a snapshot: the session that was unused for the longest time
// comes first.
func (t *sessions) fields(c *wirefmt.Coder) {
	var all []*session
	for el := t.order.Front(); el != nil; el = el.Next() {
		all = append(all, el.Value.(*session))
	}
	wirefmt.Uint(c, &t.last)
	wirefmt.List(c, &all, 6, sessionFields)
	if !c.Reading() {
		return
	}
	for _, s := range all {
		if t.byID[s.id] != nil || s.id > t.last {
			c.Failf("session %d is twice there or was never given", s.id)
			return
		}
		t.add(s)
		for _, r := range s.done { //pure:ok a sum
			t.bytes += len(r.Result)
		}
	}
}

func sessionFields(c *wirefmt.Coder, at **session) {
	if *at == nil {
		*at = &session{}
	}
	s := *at
	wirefmt.Uint(c, &s.id)
	wirefmt.Uint32(c, &s.by.client)
	wirefmt.Uint(c, &s.by.nonce)
	wirefmt.Uint(c, &s.window)
	wirefmt.Uint(c, &s.acked)
	wirefmt.Map(c, &s.done, 5, func(c *wirefmt.Coder, q *Seq, r *Reply) {
		wirefmt.Uint(c, q)
		wirefmt.Enum(c, &r.Outcome, smr.Committed, smr.Unknown, "outcome")
		wirefmt.Uint(c, &r.Slot)
		wirefmt.Bytes(c, &r.Result)
		wirefmt.String(c, &r.Reason)
	})
	if s.done == nil {
		s.done = map[Seq]Reply{}
	}
}

func (t *sessions) check() error {
	if len(t.byID) != t.order.Len() || len(t.byID) != len(t.opens) {
		return fmt.Errorf("smr: session table: %d sessions, %d in order, %d openings", len(t.byID), t.order.Len(),
			len(t.opens))
	}
	size := 0
	for el := t.order.Front(); el != nil; el = el.Next() {
		for _, r := range el.Value.(*session).done { //pure:ok a sum
			size += len(r.Result)
		}
		if s := el.Value.(*session); s.id > t.last || uint64(len(s.done)) > uint64(s.window) {
			return fmt.Errorf("smr: session %d: %d answers kept, window %d, last session %d", s.id, len(s.done), s.window,
				t.last)
		}
	}
	if size != t.bytes {
		return fmt.Errorf("smr: session table: %d bytes of results are counted as %d", size, t.bytes)
	}
	return nil
}

// ArrangeSessions puts the sessions in order of when they were used last, as used says: the one
// with the lowest value goes first when there are too many, of equals the older one. Protocols call
// it in which replicas apply commands that commute in different orders, and come to know the order
// of use otherwise.
func (s *State) ArrangeSessions(used func(SessionID) uint64) {
	t := s.sessions
	all := make([]*session, 0, t.order.Len())
	ages := map[SessionID]uint64{}
	for el := t.order.Front(); el != nil; el = el.Next() {
		one := el.Value.(*session)
		all = append(all, one)
		ages[one.id] = used(one.id)
	}
	slices.SortFunc(all, func(a, b *session) int {
		return cmp.Or(cmp.Compare(ages[a.id], ages[b.id]), cmp.Compare(a.id, b.id))
	})
	for _, one := range all {
		t.order.MoveToBack(one.place)
	}
}
