package sessions

import (
	"bytes"
	"encoding/binary"
	"slices"
	"time"

	"github.com/foresay/foresay/bft"
	"github.com/foresay/foresay/internal/wirefmt"
	"github.com/foresay/foresay/keyspace"
	"github.com/foresay/foresay/protocol"
)

// Bounds of sessions.
const (
	MaxOfClient = 4
	Window      = 1024
)

// The parts of the key space.
const (
	servicePrefix = "s"
	clientPrefix  = "c" // and a client: its sessions
	sessionPrefix = "h" // and a session: what is kept of it
	entryPrefix   = "e" // and a session and a number: what became of it
	timeKey       = "t"
	membersKey    = "m"
)

// A Change of the members is executed like a command, but by who has the group's directory. Other
// clients than its administrators get a refusal.
type Change func(space keyspace.Space, by protocol.ID, command []byte) (value []byte)

// Members returns what was kept by SetMembers, if anything was.
func Members(r keyspace.Reader) ([]byte, bool) { return r.Get([]byte(membersKey)) }

// SetMembers keeps who the members are from the next place on.
func SetMembers(s keyspace.Space, b []byte) { s.Put([]byte(membersKey), b) }

// An Entry is what became of an operation, and where in the order that was.
type Entry struct {
	Number bft.Number
	Seq    bft.Seq
	Result bft.Result
}

// client is what is kept of one.
type client struct {
	Gone     bft.SessionID // sessions up to here are gone
	Sessions []bft.SessionID
}

var clientLayout = wirefmt.NewLayout("bft: client", func(c *wirefmt.Coder, m *client) {
	wirefmt.Version(c, 1)
	wirefmt.Uint(c, &m.Gone)
	wirefmt.List(c, &m.Sessions, 1, wirefmt.Uint)
})

// session is what is kept of one.
type session struct {
	Acked bft.Number
	Bytes uint64 // of its results, see charge
}

var sessionLayout = wirefmt.NewLayout("bft: session", func(c *wirefmt.Coder, m *session) {
	wirefmt.Version(c, 1)
	wirefmt.Uint(c, &m.Acked)
	wirefmt.Uint(c, &m.Bytes)
})

// acked returns up to where a session has acknowledged what it knows.
func acked(r keyspace.Reader, id protocol.ID, s bft.SessionID) bft.Number {
	m, _ := read(r, sessionKey(sessionPrefix, id, s), sessionLayout)
	return m.Acked
}

var entryLayout = wirefmt.NewLayout("bft: result", func(c *wirefmt.Coder, m *Entry) {
	wirefmt.Version(c, 1)
	wirefmt.Uint(c, &m.Number)
	wirefmt.Uint(c, &m.Seq)
	bft.ResultFields(c, &m.Result)
})

var timeLayout = wirefmt.NewLayout("bft: time", func(c *wirefmt.Coder, m *time.Duration) {
	wirefmt.Version(c, 1)
	wirefmt.Int(c, m)
})

// Service returns the service's part of a space.
func Service(s keyspace.Space) keyspace.Space { return keyspace.Within(s, servicePrefix) }

// readOnly is a Reader where a Space is asked for that nobody writes.
type readOnly struct{ keyspace.Reader }

func (readOnly) Put(_, _ []byte) { panic("sessions: a reader is written") }
func (readOnly) Delete([]byte)   { panic("sessions: a reader is written") }

// ServiceView returns the service's part of what is read.
func ServiceView(r keyspace.Reader) keyspace.Reader {
	return keyspace.Within(readOnly{r}, servicePrefix)
}

// Time returns the time of the last batch.
func Time(r keyspace.Reader) time.Duration {
	t, _ := read(r, []byte(timeKey), timeLayout)
	return t
}

// SetTime notes the time of a request. It never goes back.
func SetTime(s keyspace.Space, t time.Duration) time.Duration {
	before := Time(s)
	if t > before {
		s.Put([]byte(timeKey), timeLayout.Encode(t))
	}
	return max(t, before)
}

func read[T any](r keyspace.Reader, key []byte, l *wirefmt.Layout[T]) (T, bool) {
	var none T
	b, ok := r.Get(key)
	if !ok {
		return none, false
	}
	v, err := l.Decode(b)
	if err != nil {
		return none, false // only this package writes there
	}
	return v, true
}

func clientKey(id protocol.ID) []byte {
	return binary.BigEndian.AppendUint32([]byte(clientPrefix), uint32(id))
}

func sessionKey(prefix string, id protocol.ID, s bft.SessionID) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint32([]byte(prefix), uint32(id)), uint64(s))
}

func entryKey(id protocol.ID, s bft.SessionID, n bft.Number) []byte {
	return binary.BigEndian.AppendUint64(sessionKey(entryPrefix, id, s), uint64(n))
}

// Find returns what became of an operation. It is not fresh if that is known, or the session or the
// number are gone.
func Find(r keyspace.Reader, id protocol.ID, s bft.SessionID, n bft.Number) (e Entry, fresh bool) {
	gone := Entry{Number: n, Result: bft.Result{Outcome: bft.Gone}}
	c, _ := read(r, clientKey(id), clientLayout)
	if s <= c.Gone {
		return gone, false
	}
	if e, ok := read(r, entryKey(id, s, n), entryLayout); ok {
		return e, false
	}
	if n <= acked(r, id, s) {
		return gone, false
	}
	return Entry{Number: n}, true
}

// Fits reports whether numbers are in the window of a session: whoever proposes leaves out those
// that are not, and so does who executes.
func Fits(r keyspace.Reader, m *bft.Request) bool {
	return m.First+bft.Number(len(m.Operations)) <= max(acked(r, m.Client, m.Session), m.Acked)+Window
}

// Execute executes the operations of a request that were not executed before, and returns what
// became of all of them.
func Execute(
	space keyspace.Space, service bft.Service, change Change, l bft.Limits, now time.Duration, at bft.Seq,
	m *bft.Request,
) []Entry {
	if !m.Lawful(l) || !Fits(space, m) || !open(space, m.Client, m.Session) {
		return goneAll(m)
	}
	acknowledge(space, m)
	out := make([]Entry, 0, len(m.Operations))
	for i := range m.Operations {
		n := m.First + bft.Number(i)
		e, fresh := Find(space, m.Client, m.Session, n)
		if fresh {
			e = Entry{Number: n, Seq: at}
			if e.Result.Outcome = judge(space, m, &m.Operations[i]); e.Result.Outcome == bft.Executed {
				if o := &m.Operations[i]; o.Members {
					e.Result.Value = change(space, m.Client, o.Command)
				} else {
					e.Result = apply(space, service, l, now, m, o.Command)
				}
			}
			space.Put(entryKey(m.Client, m.Session, n), entryLayout.Encode(e))
		}
		out = append(out, e)
	}
	return out
}

func goneAll(m *bft.Request) []Entry {
	var out []Entry
	for i := range m.Operations {
		out = append(out, Entry{Number: m.First + bft.Number(i), Result: bft.Result{Outcome: bft.Gone}})
	}
	return out
}

// judge tells whether an operation is executed: a condition that is false aborts it, and one of
// which nothing is known any more, or yet, has it tried again.
func judge(r keyspace.Reader, m *bft.Request, o *bft.Operation) bft.Outcome {
	outcome := bft.Executed
	if o.After > acked(r, m.Client, m.Session) {
		e, ok := read(r, entryKey(m.Client, m.Session, o.After), entryLayout)
		if !ok || e.Result.Outcome != bft.Executed {
			outcome = bft.Retry
		}
	}
	for _, c := range o.Conditions {
		e, ok := read(r, entryKey(m.Client, m.Session, c.Number), entryLayout)
		switch {
		case !ok:
			outcome = bft.Retry
		case e.Result.Digest() != c.Digest:
			return bft.Aborted
		}
	}
	return outcome
}

// open sees to it that there is a session, and reports whether there can be: it was not closed for
// newer ones.
func open(space keyspace.Space, id protocol.ID, s bft.SessionID) bool {
	c, _ := read(space, clientKey(id), clientLayout)
	i, ok := slices.BinarySearch(c.Sessions, s)
	if ok || s <= c.Gone {
		return ok
	}
	c.Sessions = slices.Insert(slices.Clone(c.Sessions), i, s)
	for len(c.Sessions) > MaxOfClient {
		c.Gone = c.Sessions[0]
		c.Sessions = c.Sessions[1:]
		space.Delete(sessionKey(sessionPrefix, id, c.Gone))
		forget(space, sessionKey(entryPrefix, id, c.Gone), nil)
	}
	space.Put(clientKey(id), clientLayout.Encode(c))
	return s > c.Gone
}

// acknowledge forgets what the client knows.
func acknowledge(space keyspace.Space, m *bft.Request) {
	key := sessionKey(sessionPrefix, m.Client, m.Session)
	s, _ := read(space, key, sessionLayout)
	if m.Acked <= s.Acked {
		return
	}
	s.Acked = m.Acked
	s.Bytes -= forget(space, sessionKey(entryPrefix, m.Client, m.Session), entryKey(m.Client, m.Session, m.Acked+1))
	space.Put(key, sessionLayout.Encode(s))
}

// forget removes the entries from lo up to hi, or all that begin with lo. It returns what their
// results count for.
func forget(space keyspace.Space, lo, hi []byte) (sizeBytes uint64) {
	var keys [][]byte
	for k, v := range space.Scan(lo, hi) {
		if hi == nil && !bytes.HasPrefix(k, lo) {
			break
		}
		keys = append(keys, bytes.Clone(k))
		if len(v) <= free {
			continue
		}
		if e, err := entryLayout.Decode(v); err == nil {
			sizeBytes += uint64(charge(len(e.Result.Value)))
		}
	}
	for _, k := range keys {
		space.Delete(k)
	}
	return sizeBytes
}

// Unmet returns the lowest operation of the session that one of the request waits for and that was
// not executed yet, 0 if there is none: who proposes waits a little for it.
func Unmet(r keyspace.Reader, m *bft.Request) bft.Number {
	known := acked(r, m.Client, m.Session)
	var lowest bft.Number
	lacks := func(n bft.Number) {
		if n <= known || n >= m.First || lowest != 0 && n >= lowest {
			return
		}
		if _, ok := r.Get(entryKey(m.Client, m.Session, n)); !ok {
			lowest = n
		}
	}
	for _, o := range m.Operations {
		lacks(o.After)
		for _, c := range o.Conditions {
			lacks(c.Number)
		}
	}
	return lowest
}
