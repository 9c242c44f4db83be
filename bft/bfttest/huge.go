package bfttest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/foresay/foresay/bft"
	"github.com/foresay/foresay/keyspace"
)

// TestHugeRequests: clients that send as much as they can, and more than they may, leave the first
// primary in its view and the others served; and no message is too large to be carried.
func TestHugeRequests(t *testing.T, p bft.Protocol) {
	l := bft.Limits{Command: 8 << 10, Request: 32 << 10, Batch: 128 << 10} // a 16th
	r, err := Play(Scenario{Protocol: p, Seed: 1, Bad: []string{"huge", "huge"}, For: time.Second, Coded: 1, Limits: l})
	if err != nil || r.View > 0 || r.Confirmed < 20 || r.Largest > bft.MaxMessageBytes {
		t.Errorf("%+v: %v", r, err)
	}
	if r.Largest < l.Request {
		t.Errorf("the largest message has %d bytes: they do not send much", r.Largest)
	}
}

// TestLargeResults: results as large as they may be come to their clients, also by optimised reads,
// and larger ones end with an outcome.
func TestLargeResults(t *testing.T, p bft.Protocol) {
	w := &sizes{limit: bft.DefaultLimits().Value}
	r, err := Play(Scenario{Protocol: p, Seed: 1, For: 2 * time.Second, Coded: 1,
		Workload: func() Workload { return w }})
	if err != nil || w.oversized < 10 || w.large < 10 || r.Largest > bft.MaxMessageBytes || r.View > 0 {
		t.Errorf("%d were too large, %d nearly: %+v: %v", w.oversized, w.large, r, err)
	}
}

// sizes is a service whose results are as large as its clients ask.
type sizes struct{ limit, large, oversized int }

func (w *sizes) Service() bft.Service { return w }

// Apply is part of bft.Service, as is Read.
func (w *sizes) Apply(_ keyspace.Space, _ time.Duration, command []byte) []byte {
	return w.Read(nil, command)
}

func (*sizes) Read(_ keyspace.Reader, query []byte) []byte {
	var n int
	if _, err := fmt.Sscan(string(query), &n); err != nil {
		return []byte(err.Error())
	}
	return make([]byte, n)
}

// Ask is part of Workload, as is Judge.
func (w *sizes) Ask(c Caller, _ *bft.Result) Question {
	n := []int{0, 2000, w.limit, w.limit + 1}[c.Rand.IntN(4)]
	return Question{Command: fmt.Append(nil, n), Query: c.Rand.IntN(2) == 0,
		Ended: func(_ time.Duration, r *bft.Result) error {
			switch {
			case r == nil:
			case r.Outcome == bft.Oversized && n > w.limit:
				w.oversized++
			case r.Outcome != bft.Executed || len(r.Value) != n || n > w.limit:
				return errors.New("a result of " + fmt.Sprint(len(r.Value), " bytes, ", n, " asked for: ", r.Outcome))
			case n == w.limit:
				w.large++
			}
			return nil
		}}
}

func (*sizes) Judge() error { return nil }
