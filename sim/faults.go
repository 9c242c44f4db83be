package sim

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"github.com/foresay/foresay/internal/nearest"
)

// Faults is a set of kinds of faults. Its text is that of the --faults flag: names with commas
// between them, "none" or "all".
type Faults uint32

// The kinds of faults.
const (
	Crash     Faults = 1 << iota // a node crashes, between two calls or within one, and comes back
	Power                        // all nodes crash at once, and come back one by one
	LostDisk                     // a node crashes for good, with its disk
	SlowDisk                     // a disk takes long
	Pause                        // a node stands still
	Skew                         // a clock is off, and drifts
	Jump                         // a clock jumps
	Partition                    // the nodes fall into two groups that do not reach each other
	OneWay                       // a node is not heard by some others, or does not hear them
	Partial                      // two nodes do not reach each other, but others reach both
	Reset                        // a connection is lost with what is under way
	Slow                         // a link takes longer, and carries less
	Jitter                       // all messages take a random time longer
	Loss                         // single messages are lost; on links like TCP's they are late instead
	Duplicate                    // messages arrive twice; makes links carry datagrams
	Reorder                      // messages overtake others; makes links carry datagrams
)

// NoFaults and AllFaults are the smallest set and the largest.
const (
	NoFaults  Faults = 0
	AllFaults Faults = 1<<16 - 1
)

// StreamFaults are the faults that leave links in order.
const StreamFaults = AllFaults &^ (Duplicate | Reorder)

func faultNames() []string {
	return []string{
		"crash", "power", "lostdisk", "slowdisk", "pause", "skew", "jump", "partition", "oneway", "partial", "reset", "slow",
		"jitter", "loss",
		"duplicate", "reorder",
	}
}

// Has reports whether all of g are in f.
func (f Faults) Has(g Faults) bool { return f&g == g }

// String returns what ParseFaults reads.
func (f Faults) String() string {
	switch {
	case f == NoFaults:
		return "none"
	case f == AllFaults:
		return "all"
	}
	var names []string
	for i, name := range faultNames() {
		if f.Has(1 << i) {
			names = append(names, name)
		}
	}
	if rest := f &^ AllFaults; rest != 0 {
		names = append(names, fmt.Sprintf("unknown %#x", uint32(rest)))
	}
	return strings.Join(names, ",")
}

// ParseFaults reads a set of faults: names with commas between them, "none", "all", or "stream",
// those that leave links in order. A name with a '-' before it takes the fault out again.
func ParseFaults(text string) (Faults, error) {
	var f Faults
	for name := range strings.SplitSeq(text, ",") {
		bare, without := strings.CutPrefix(strings.TrimSpace(name), "-")
		var g Faults
		switch i := slices.Index(faultNames(), bare); {
		case i >= 0:
			g = 1 << i
		case bare == "all":
			g = AllFaults
		case bare == "stream":
			g = StreamFaults
		case bare == "none" && !without:
		default:
			return 0, fmt.Errorf("sim: unknown fault %q (want all, stream, none or some of %s%s)", bare,
				strings.Join(faultNames(), ", "), nearest.Hint(bare, faultNames()))
		}
		if without {
			f &^= g
		} else {
			f |= g
		}
	}
	return f, nil
}

// MarshalText and UnmarshalText make Faults a flag's value.
func (f Faults) MarshalText() ([]byte, error) { return []byte(f.String()), nil }

// UnmarshalText is ParseFaults.
func (f *Faults) UnmarshalText(text []byte) (err error) {
	*f, err = ParseFaults(string(text))
	return err
}

// Swarm returns a random subset of a set of faults, each with a chance of a half. Different subsets
// find different bugs: a fault that strikes often may hide what another one would show.
func Swarm(seed uint64, of Faults) Faults {
	return of & Faults(mix(seed^0x737761726d)&mask(bits.Len32(uint32(AllFaults))))
}

func mask(n int) uint64 { return 1<<n - 1 }
