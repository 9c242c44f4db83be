package wan

import (
	"math"
	"testing"
	"time"
)

func TestTransitIsAFunctionOfItsArguments(t *testing.T) {
	l := Link{Delay: 10 * time.Millisecond, Jitter: 4 * time.Millisecond}
	d := Departure{Path: Path{From: "a", To: "b"}, At: time.Second, SizeBytes: 100}
	first := l.Transit(1, d)
	if again := l.Transit(1, d); again != first {
		t.Errorf("the same arguments gave %v and %v", first, again)
	}
	bigger := d
	bigger.SizeBytes = 1_000_000
	if got := l.Transit(1, bigger); got != first {
		t.Errorf("the size changed the jitter: %v and %v", first, got)
	}
	later := d
	later.At++
	for name, got := range map[string]time.Duration{
		"seed":      l.Transit(2, d),
		"direction": l.Transit(1, Departure{Path: d.Path.Reverse(), At: d.At, SizeBytes: d.SizeBytes}),
		"names":     l.Transit(1, Departure{Path: Path{From: "ab", To: ""}, At: d.At, SizeBytes: d.SizeBytes}),
		"time":      l.Transit(1, later),
	} {
		if got == first {
			t.Errorf("another %s gave the same transit of %v", name, got)
		}
	}
	l.Jitter = 0
	if got := l.Transit(1, d); got != l.Delay {
		t.Errorf("without jitter and loss: %v", got)
	}
}

func TestJitterIsUniform(t *testing.T) {
	l := Link{Jitter: 1000}
	var buckets [10]int
	const n = 100_000
	for i := range n {
		d := l.Transit(7, Departure{Path: Path{From: "a", To: "b"}, At: time.Duration(i) * time.Millisecond})
		if d < 0 || d >= l.Jitter {
			t.Fatalf("jitter of %d", d)
		}
		buckets[d/100]++
	}
	for i, got := range buckets {
		if want := n / len(buckets); got < want*9/10 || got > want*11/10 {
			t.Errorf("tenth %d has %d of %d", i, got, n)
		}
	}
}

func TestLossCostsTimeouts(t *testing.T) {
	l := Link{Loss: 0.1, RTO: time.Second}
	const n = 100_000
	for _, test := range []struct {
		sizeBytes int
		want      float64 // the probability that something is lost
	}{
		{0, 0.1}, {1, 0.1}, {SegmentBytes, 0.1}, {SegmentBytes + 1, 0.19}, {10 * SegmentBytes, 1 - math.Pow(0.9, 10)},
	} {
		lost, twice := 0, 0
		for i := range n {
			d := l.Transit(7, Departure{Path: Path{From: "a", To: "b"}, At: time.Duration(i) * time.Millisecond,
				SizeBytes: test.sizeBytes})
			switch {
			case d == 0:
			case d == l.RTO:
				lost++
			case d == 3*l.RTO: // the second timeout is twice as long
				twice++
			case d < 7*l.RTO:
				t.Fatalf("%d bytes took %v", test.sizeBytes, d)
			}
		}
		if got := float64(lost+twice) / n; math.Abs(got-test.want) > 0.01 {
			t.Errorf("of %d bytes something was lost with probability %.3f, want %.3f", test.sizeBytes, got, test.want)
		}
		if got := float64(twice) / float64(lost+twice); math.Abs(got-0.09) > 0.02 {
			t.Errorf("of %d bytes exactly two were lost in a row in %.3f of losses, want 0.09", test.sizeBytes, got)
		}
	}
}

func TestTimeout(t *testing.T) {
	for _, test := range []struct {
		link Link
		want time.Duration
	}{
		{Link{}, 200 * time.Millisecond},
		{Link{Delay: 50 * time.Millisecond}, 300 * time.Millisecond},
		{Link{Delay: 50 * time.Millisecond, RTO: time.Second}, time.Second},
	} {
		if got := test.link.Timeout(); got != test.want {
			t.Errorf("%+v: %v, want %v", test.link, got, test.want)
		}
	}
}

func TestSerialize(t *testing.T) {
	for _, test := range []struct {
		bytesPerSecond int64
		sizeBytes      int
		want           time.Duration
	}{
		{0, 1 << 30, 0}, {1000, 0, 0}, {1000, 1, time.Millisecond}, {3, 10, 3*time.Second + 333333333},
		{math.MaxInt64, 1, 0}, {1, 1 << 30, (1 << 30) * time.Second},
	} {
		if got := (Link{BytesPerSecond: test.bytesPerSecond}).Serialize(test.sizeBytes); got != test.want {
			t.Errorf("%d bytes at %d/s: %v, want %v", test.sizeBytes, test.bytesPerSecond, got, test.want)
		}
	}
}

func TestValidate(t *testing.T) {
	for _, test := range []struct {
		link Link
		want string
	}{
		{Link{}, ""},
		{Link{Delay: 1, Jitter: 1, Tail: maxTail, Loss: 0.999, RTO: 1, BytesPerSecond: 1, Down: true}, ""},
		{Link{Delay: -1}, "delay -1ns is negative"},
		{Link{Jitter: -1}, "jitter -1ns is negative"},
		{Link{Tail: -1}, "tail -1ns is not from 0 to 10m0s"},
		{Link{Loss: 1}, "loss 1 is not in [0, 1)"},
		{Link{Loss: math.NaN()}, "loss NaN is not in [0, 1)"},
		{Link{RTO: -1}, "rto -1ns is negative"},
		{Link{BytesPerSecond: -1}, "bandwidth -1 bytes per second is negative"},
	} {
		if got := test.link.Validate(); got == nil && test.want != "" || got != nil && got.Error() != test.want {
			t.Errorf("%+v: %v, want %q", test.link, got, test.want)
		}
	}
	for site, want := range map[Site]string{
		"oregon": "", "us-west_2.a": "",
		"":     "empty site name",
		"a:1":  `site name "a:1": ':' is not a letter, a digit, '.', '_' or '-'`,
		"köln": `site name "köln": 'ö' is not a letter, a digit, '.', '_' or '-'`,
	} {
		if got := site.Validate(); got == nil && want != "" || got != nil && got.Error() != want {
			t.Errorf("%q: %v, want %q", site, got, want)
		}
	}
}
