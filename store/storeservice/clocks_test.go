package storeservice

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/foresay/foresay/store/client"
	"github.com/foresay/foresay/store/storeconfig"
)

// TestClockOfAMachineIsOff: it is named, whatever the clock of who asks shows, and nobody is where
// it may be the way there, or where it cannot be told whose clock is wrong.
func TestClockOfAMachineIsOff(t *testing.T) {
	at := func(ahead, within time.Duration) *clockReading { return &clockReading{ahead, within} }
	for _, tc := range []struct {
		name  string
		a, b  *clockReading
		c     *clockReading
		bound time.Duration
		want  string
	}{
		{"behind", at(0, time.Millisecond), at(0, time.Millisecond), at(-90*time.Second, time.Millisecond), time.Second,
			"the clock of machine c is 90.0 s behind those of other machines: set it"},
		{"of who asks", at(time.Hour, 0), at(time.Hour, 0), at(time.Hour, 0), time.Millisecond, ""},
		{"ahead", at(time.Hour, 0), at(time.Hour, 0), at(time.Hour+70*time.Second, 0), time.Second,
			"the clock of machine c is 70.0 s ahead of those of other machines: set it"},
		{"the way", at(0, 50*time.Millisecond), at(0, 0), at(55*time.Millisecond, 50*time.Millisecond), 10 * time.Millisecond,
			""},
		{"two", at(0, 0), nil, at(time.Hour, 0), time.Second, ""},
	} {
		all := []Status{{Machine: "a", clock: tc.a}, {Machine: "b", clock: tc.b}, {Machine: "c", clock: tc.c}}
		compareClocks(all, tc.bound)
		got := strings.Join(ClockComplaints(all), "\n")
		if tc.want == "" && got != "" || !strings.HasPrefix(got, tc.want) {
			t.Errorf("%s: got %q, want %q", tc.name, got, tc.want)
		}
	}
}

// TestClocksAreMeasured: the status has how far clocks are apart, with a protocol whose nodes do
// not measure it.
func TestClocksAreMeasured(t *testing.T) {
	inStore(t, []string{"a", "b", "c"}, storeconfig.InitOptions{Protocol: "tapir"}, func(w *world) {
		w.start("a", "b", "c")
		w.client(func(ctx context.Context, conn *Client, _ *client.Client) {
			for _, s := range w.ready(ctx, conn) {
				if c := s.MachineClock; c == nil || c.Off || c.AheadMS < -c.WithinMS || c.AheadMS > c.WithinMS {
					t.Errorf("the clock of %s is %+v", s.Machine, c)
				}
			}
		})
	})
}
