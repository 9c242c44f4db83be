package sessions

import (
	"strings"
	"testing"
	"time"

	"github.com/foresay/foresay/bft"
	"github.com/foresay/foresay/keyspace"
)

// echo keeps its commands, and returns all that it has, in pairs.
type echo struct{}

func (echo) Apply(s keyspace.Space, _ time.Duration, command []byte) []byte {
	v, _ := s.Get([]byte("all"))
	s.Delete([]byte("all"))
	s.Put([]byte("all"), append(v[:len(v):len(v)], command...))
	s.Put([]byte("new"), command)
	s.Delete([]byte("gone"))
	v, _ = s.Get([]byte("all"))
	return v
}

func (echo) Read(keyspace.Reader, []byte) []byte { return nil }

// TestOversizedResults: a command whose result is too large changes nothing, and so says its
// result, which is remembered as others are.
func TestOversizedResults(t *testing.T) {
	space := newSpace(t)
	Service(space).Put([]byte("gone"), []byte("not yet"))
	l := limits
	l.Value = 10
	run := func(n bft.Number, command string) bft.Result {
		return Execute(space, echo{}, nil, l, 0, 5, request(1, 0, n, bft.Operation{Command: []byte(command)}))[0].Result
	}
	service := func(key string) string {
		v, ok := Service(space).Get([]byte(key))
		if !ok {
			return "none"
		}
		return string(v)
	}
	if r := run(1, "more than ten"); r.Outcome != bft.Oversized || len(r.Value) > 0 {
		t.Errorf("a result of 13 bytes: %v %q", r.Outcome, r.Value)
	}
	if service("all") != "none" || service("new") != "none" || service("gone") != "not yet" {
		t.Errorf("it left %q, %q, %q", service("all"), service("new"), service("gone"))
	}
	if r := run(1, "few"); r.Outcome != bft.Oversized {
		t.Errorf("the same number again: %v", r.Outcome)
	}
	for i, c := range []struct {
		command string
		want    bft.Outcome
	}{{"12345", bft.Executed}, {"67890", bft.Executed}, {"!", bft.Oversized}} {
		if r := run(bft.Number(i+2), c.command); r.Outcome != c.want {
			t.Errorf("%q: %v, want %v", c.command, r.Outcome, c.want)
		}
	}
	if service("all") != "1234567890" || service("new") != "67890" || service("gone") != "none" {
		t.Errorf("it has %q, %q, %q", service("all"), service("new"), service("gone"))
	}
}

// TestSessionBytes: the results that a session has not acknowledged are bounded, so its client
// cannot fill the disks, and what it acknowledges makes room again.
func TestSessionBytes(t *testing.T) {
	space := newSpace(t)
	l := limits
	l.Session = 10 << 10
	large := bft.Operation{Command: []byte(strings.Repeat("x", 3<<10))}
	run := func(acked, n bft.Number) bft.Outcome {
		Service(space).Delete([]byte("all"))
		return Execute(space, echo{}, nil, l, 0, 5, request(1, acked, n, large))[0].Result.Outcome
	}
	for i, c := range []struct {
		acked bft.Number
		want  bft.Outcome
	}{{0, bft.Executed}, {0, bft.Executed}, {0, bft.Executed}, {0, bft.Oversized}, {2, bft.Executed}, {2, bft.Executed},
		{2, bft.Oversized}, {7, bft.Executed}} {
		if got := run(c.acked, bft.Number(i+1)); got != c.want {
			t.Errorf("result %d, with %d acknowledged: %v, want %v", i+1, c.acked, got, c.want)
		}
	}
}
