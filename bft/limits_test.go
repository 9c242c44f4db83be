package bft

import "testing"

func TestLimits(t *testing.T) {
	for _, c := range []struct {
		name string
		l    Limits
		ok   bool
	}{
		{"the defaults", Limits{}, true},
		{"a command that is larger than a request", Limits{Command: 2 << 10, Request: 1 << 10}, false},
		{"a request that is larger than a batch", Limits{Request: 2 << 10, Command: 1 << 10, Batch: 1 << 10}, false},
		{"a request that fills a message", Limits{Request: MaxMessageBytes, Batch: MaxMessageBytes}, false},
		{"a value that fills a message", Limits{Value: MaxMessageBytes}, false},
		{"a session without room for a result", Limits{Session: 1 << 10}, false},
		{"less than nothing", Limits{Command: -1}, false},
	} {
		if _, err := c.l.WithDefaults(); (err == nil) != c.ok {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// TestLawfulBytes: a request is lawful up to the limits.
func TestLawfulBytes(t *testing.T) {
	l := Limits{Command: 100, Request: 150}
	of := func(commands ...int) *Request {
		r := &Request{First: 5}
		for _, n := range commands {
			r.Operations = append(r.Operations, Operation{Command: make([]byte, n)})
		}
		return r
	}
	conditional := of(100)
	conditional.Operations[0].Conditions = make([]Condition, 2)
	for _, c := range []struct {
		r  *Request
		ok bool
	}{{of(100, 50), true}, {of(101), false}, {of(100, 51), false}, {conditional, false}} {
		if got := c.r.Lawful(l); got != c.ok {
			t.Errorf("%d bytes in %d operations: lawful is %v", c.r.Bytes(), len(c.r.Operations), got)
		}
	}
}
