package command

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestIntervalsOfALoop: whole intervals have their rates. What ended within the last one, if that
// is shorter, or when the time was over has none: eight calls in a millisecond are not 8,000 a
// second.
func TestIntervalsOfALoop(t *testing.T) {
	for _, test := range []struct {
		lasts time.Duration
		rates string // per s, of 8 clients whose calls take 300 ms
	}{
		{2 * time.Second, "0:24:24 1:24:24 2:8:-"},
		{2001 * time.Millisecond, "0:24:24 1:24:24 2:8:-"},
		{2500 * time.Millisecond, "0:24:24 1:24:24 2:24:-"},
		{2700 * time.Millisecond, "0:24:24 1:24:24 2:24:-"},
	} {
		synctest.Test(t, func(t *testing.T) {
			l := ClosedLoop{Name: "bench", Kinds: []string{"call"}, clients: 8, duration: test.lasts, every: time.Second,
				Timeout: time.Minute}
			l.Call = func(context.Context, int, *rand.Rand) (int, time.Time, error) {
				began := time.Now()
				time.Sleep(300 * time.Millisecond)
				return 0, began, nil
			}
			var out bytes.Buffer
			if err := (&Program{Streams: Streams{Out: &out, Err: io.Discard}}).LoadTest(t.Context(), &l, false); err != nil {
				t.Fatal(err)
			}
			_, table, _ := strings.Cut(out.String(), "from s")
			var rates []string
			for _, line := range strings.Split(table, "\n")[1:] {
				if f := strings.Fields(line); len(f) == 5 { // from, calls, failed, rate, longest
					rates = append(rates, f[0]+":"+f[1]+":"+f[3])
				}
			}
			if got := strings.Join(rates, " "); got != test.rates {
				t.Errorf("%v: got %s, want %s", test.lasts, got, test.rates)
			}
			out.Reset()
			if err := (&Program{Streams: Streams{Out: &out, Err: io.Discard}}).LoadTest(t.Context(), &l, true); err != nil {
				t.Fatal(err)
			}
			var result loadResult
			if err := json.Unmarshal(out.Bytes(), &result); err != nil {
				t.Fatal(err)
			}
			n := len(result.Intervals)
			if n != 3 || result.Intervals[0].OpsPerSecond == nil || *result.Intervals[0].OpsPerSecond != 24 ||
				result.Intervals[n-1].OpsPerSecond != nil {
				t.Errorf("%v: %s", test.lasts, &out)
			}
		})
	}
}
