package sessions

import (
	"testing"
	"time"

	"github.com/foresay/foresay/bft"
	"github.com/foresay/foresay/internal/wirefmt/wiretest"
	"github.com/foresay/foresay/keyspace"
)

func TestLayouts(t *testing.T) {
	wiretest.Layouts(t,
		wiretest.Sample("client", clientLayout, client{Gone: 300, Sessions: []bft.SessionID{301, 400}}),
		wiretest.Sample("session", sessionLayout, session{300, 5000}),
		wiretest.Sample("result", entryLayout, Entry{300, 400, bft.Result{Outcome: bft.Executed, Value: []byte("v")}}),
		wiretest.Sample("time", timeLayout, 3*time.Second))
}

// count counts how often it is asked.
type count struct{}

func (count) Apply(s keyspace.Space, _ time.Duration, _ []byte) []byte {
	v, _ := s.Get([]byte("n"))
	s.Put([]byte("n"), append(v[:len(v):len(v)], '+'))
	return append(v[:len(v):len(v)], '+')
}

func (count) Read(keyspace.Reader, []byte) []byte { return nil }

func request(session bft.SessionID, acked, first bft.Number, ops ...bft.Operation) *bft.Request {
	return &bft.Request{Client: 7, Session: session, Acked: acked, First: first, Operations: ops}
}

func TestExecute(t *testing.T) {
	space := newSpace(t)
	run := func(m *bft.Request) []Entry { return Execute(space, count{}, nil, limits, 0, 5, m) }
	first := bft.Result{Outcome: bft.Executed, Value: []byte("+")}
	right := []bft.Condition{{Number: 1, Digest: first.Digest()}}
	for _, c := range []struct {
		name string
		m    *bft.Request
		want bft.Result
	}{
		{"an operation", request(1, 0, 1, bft.Operation{}), first},
		{"repeated", request(1, 0, 1, bft.Operation{}), first},
		{"a right guess", request(1, 0, 2, bft.Operation{After: 1, Conditions: right}),
			bft.Result{Outcome: bft.Executed, Value: []byte("++")}},
		{"a wrong guess", request(1, 0, 3, bft.Operation{Conditions: []bft.Condition{{Number: 1}}}),
			bft.Result{Outcome: bft.Aborted}},
		{"after what was aborted", request(1, 0, 4, bft.Operation{After: 3}), bft.Result{Outcome: bft.Retry}},
		{"after what has not come", request(1, 0, 6, bft.Operation{After: 5}), bft.Result{Outcome: bft.Retry}},
		{"a guess at what is forgotten", request(1, 2, 7, bft.Operation{Conditions: right}),
			bft.Result{Outcome: bft.Retry}},
		{"what is forgotten", request(1, 0, 1, bft.Operation{}), bft.Result{Outcome: bft.Gone}},
		{"beyond the window", request(1, 0, Window+9, bft.Operation{}), bft.Result{Outcome: bft.Gone}},
	} {
		if got := run(c.m)[0].Result; got.Digest() != c.want.Digest() {
			t.Errorf("%s: %v %q, want %v %q", c.name, got.Outcome, got.Value, c.want.Outcome, c.want.Value)
		}
	}
	for s := bft.SessionID(2); s <= 1+MaxOfClient; s++ {
		run(request(s, 0, 1, bft.Operation{}))
	}
	if got := run(request(1, 0, 8, bft.Operation{}))[0].Result; got.Outcome != bft.Gone {
		t.Errorf("the oldest of too many sessions is there: %v", got.Outcome)
	}
}

// TestTime: the group's time does not go back.
func TestTime(t *testing.T) {
	space := newSpace(t)
	for i, at := range []time.Duration{2, 1, 3} {
		if got, want := SetTime(space, at), []time.Duration{2, 2, 3}[i]; got != want || Time(space) != want {
			t.Errorf("at %d it is %d, and %d is kept", at, got, Time(space))
		}
	}
}

// TestOthersSessions: however many sessions a client has, another client's stay.
func TestOthersSessions(t *testing.T) {
	space := newSpace(t)
	m := &bft.Request{Client: 8, Session: 1, First: 1, Operations: []bft.Operation{{}}}
	Execute(space, count{}, nil, limits, 0, 1, m)
	for s := bft.SessionID(1); s <= 3*MaxOfClient; s++ {
		Execute(space, count{}, nil, limits, 0, 2, request(s, 0, 1, bft.Operation{}))
	}
	if e, fresh := Find(space, 8, 1, 1); fresh || e.Result.Outcome != bft.Executed {
		t.Errorf("a client's operation became %v by another one's sessions", e.Result.Outcome)
	}
}
