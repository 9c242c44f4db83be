package wan

import (
	"fmt"
	"math"
	"time"
)

// A Site is the name of a place: a data centre, a city. It is made of letters, digits, '.', '_' and
// '-'.
type Site string

// Validate tells why s is no name of a site, or nil.
func (s Site) Validate() error {
	if s == "" {
		return fmt.Errorf("empty site name")
	}
	for _, r := range string(s) {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '.', r == '_', r == '-':
		default:
			return fmt.Errorf("site name %q: %q is not a letter, a digit, '.', '_' or '-'", string(s), r)
		}
	}
	return nil
}

// A Path is one direction between two sites, or within one.
type Path struct{ From, To Site }

// Reverse returns the other direction.
func (p Path) Reverse() Path { return Path{From: p.To, To: p.From} }

func (p Path) String() string { return string(p.From) + "->" + string(p.To) }

// A Link is what one direction between two sites does to bytes. The zero Link delivers at once.
type Link struct {
	// Delay is the one-way delay.
	Delay time.Duration
	// Jitter is the bound of a further delay, uniform in [0, Jitter).
	Jitter time.Duration
	// Tail is the scale of a further delay with a heavy tail, the Pareto distribution of the second
	// kind with the shape 4: it is above x with the probability (1 + x/Tail)^-4. So its median is
	// 0.19 Tail, its mean 0.33 Tail, and of a hundred delays one is above 2.2 Tail, of ten thousand
	// one above 9 Tail.
	Tail time.Duration
	// Loss is the probability, in [0, 1), that a segment of up to SegmentBytes is lost. A stream
	// does not lose bytes: a lost segment is sent again RTO later, and everything behind it waits.
	Loss float64
	// RTO is the retransmission timeout; 0 means 200 ms (the least that Linux waits) plus twice
	// Delay.
	RTO time.Duration
	// BytesPerSecond is the bandwidth of the direction, shared by everything that crosses it; 0 is
	// unlimited.
	BytesPerSecond int64
	// Down makes the link a black hole: nothing that leaves while it is down arrives, and nobody is
	// told.
	Down bool
}

// SegmentBytes is the unit in which bytes are lost: the payload of a TCP segment on Ethernet.
const SegmentBytes = 1448

// minRTO is the least retransmission timeout of Linux.
const minRTO = 200 * time.Millisecond

// maxTail bounds the scale of a tail: what it makes of the smallest chance is then some months,
// which is far from what a Duration can hold.
const maxTail = 10 * time.Minute

// maxRetransmissions bounds how often one segment is lost in a row.
const maxRetransmissions = 8

// A Departure is something that leaves along a path.
type Departure struct {
	Path Path
	// At is the time since the network began.
	At time.Duration
	// SizeBytes is how much leaves; 0 is a packet without payload.
	SizeBytes int
}

// Transit returns how long the last byte of d is under way, once it has left: Delay, jitter, the
// tail, and the timeouts of lost segments. It is a function of its arguments and nothing else.
// Neither bandwidth nor Down count: these concern when bytes leave.
func (l Link) Transit(seed uint64, d Departure) time.Duration {
	t := l.Delay
	if l.Jitter <= 0 && l.Tail <= 0 && l.Loss <= 0 {
		return t
	}
	h := hashDeparture(seed, d)
	if l.Jitter > 0 {
		t += time.Duration(unit(mix(h+1)) * float64(l.Jitter))
	}
	if l.Tail > 0 {
		above := 1 - unit(mix(h+tailSalt)) // in (0, 1]
		t += time.Duration((1/math.Sqrt(math.Sqrt(above)) - 1) * float64(l.Tail))
	}
	if l.Loss > 0 {
		segments := max(1, (d.SizeBytes+SegmentBytes-1)/SegmentBytes)
		lost := 1 - math.Pow(1-l.Loss, float64(segments))
		rto := l.Timeout()
		for i := range uint64(maxRetransmissions) {
			if unit(mix(h+2+i)) >= lost {
				break
			}
			t += rto
			rto *= 2
			lost = l.Loss // what is sent again is one segment
		}
	}
	return t
}

// tailSalt keeps the chance of the tail from that of jitter and losses, which take small numbers.
const tailSalt = 0x7461696c

// Timeout returns RTO, or its default.
func (l Link) Timeout() time.Duration {
	if l.RTO > 0 {
		return l.RTO
	}
	return minRTO + 2*l.Delay
}

// Serialize returns how long the link takes to put sizeBytes on the wire: 0 if its bandwidth is
// unlimited.
func (l Link) Serialize(sizeBytes int) time.Duration {
	if l.BytesPerSecond <= 0 {
		return 0
	}
	seconds, rest := int64(sizeBytes)/l.BytesPerSecond, int64(sizeBytes)%l.BytesPerSecond
	return time.Duration(seconds)*time.Second + time.Duration(float64(rest)/float64(l.BytesPerSecond)*float64(time.Second))
}

// Validate tells which value of l is out of range, or nil.
func (l Link) Validate() error {
	switch {
	case l.Delay < 0:
		return fmt.Errorf("delay %v is negative", l.Delay)
	case l.Jitter < 0:
		return fmt.Errorf("jitter %v is negative", l.Jitter)
	case l.Tail < 0 || l.Tail > maxTail:
		return fmt.Errorf("tail %v is not from 0 to %v", l.Tail, maxTail)
	case !(l.Loss >= 0 && l.Loss < 1):
		return fmt.Errorf("loss %v is not in [0, 1)", l.Loss)
	case l.RTO < 0:
		return fmt.Errorf("rto %v is negative", l.RTO)
	case l.BytesPerSecond < 0:
		return fmt.Errorf("bandwidth %d bytes per second is negative", l.BytesPerSecond)
	}
	return nil
}

// hashDeparture mixes seed, path and time. The size is left out: what a message says must not
// change when it arrives.
func hashDeparture(seed uint64, d Departure) uint64 {
	h := mix(seed)
	for _, s := range [...]Site{d.Path.From, d.Path.To} {
		for i := range len(s) {
			h = (h ^ uint64(s[i])) * 0x100000001b3
		}
		h = mix(h + uint64(len(s)))
	}
	return mix(h ^ uint64(d.At))
}

// mix is the finaliser of SplitMix64.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// unit maps a hash to [0, 1).
func unit(h uint64) float64 { return float64(h>>11) / (1 << 53) }
