package client

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/foresay/foresay/history"
	"github.com/foresay/foresay/internal/nearest"
)

// Level is what a transaction is promised as to others: an Option of Txn and Run. Without one it is
// what the store's protocol promises. A store that cannot keep what is asked for says so by a
// RejectedError, before the function runs; one that keeps more does.
type Level int64

const (
	// Strict transactions are serializable in the order of real time: one that begins after another
	// one has ended comes behind it. With Carousel that of transactions which only read needs clocks
	// that are no further apart than max_offset, and costs round trips where one is found to be.
	Strict Level = iota + 1
	// Serializable transactions that only read see a state of the store that was there at some time,
	// all of it, but perhaps not the latest, or what the same client has just written. Those that
	// write are as strict as the protocol has them. With Carousel this does not depend on clocks.
	Serializable
	// Snapshot transactions read what was committed before they began, all of it as of one time, and
	// what the same session has committed before; of two that write the same key and overlap only one
	// commits. Two that read what the other one writes may both commit, which no serial order
	// explains: write skew.
	Snapshot
)

// Stale is the level of transactions that, if they only read, may see the store as it was so long
// ago or later: all of it as of one time, and of each key what the same session has written or read
// before, or something later. A session is a backend, such as a front.Conn: all clients that are
// made from it. How old something is goes by the clock of a machine at the client's site.
//
// The nearest site that has a key answers alone, as of a time at or below which nothing is written
// any more, where that is recent enough: without a word of the key's leader. Where it is not, the
// leader answers, as of now. A transaction that writes is as strict as the protocol has it: if what
// it has read is not the latest any more, it is tried again, and then it is Strict. So is one in a
// task of package foresay.
func Stale(maxAge time.Duration) Level {
	if maxAge <= 0 {
		return noAge
	}
	return -Level(maxAge)
}

// noAge is Stale without an age.
const noAge Level = math.MinInt64

// MaxAge returns how old what a Stale transaction reads may be; ok is false for the other levels.
func (l Level) MaxAge() (d time.Duration, ok bool) {
	if l >= 0 || l == noAge {
		return 0, false
	}
	return time.Duration(-l), true
}

func levelNames() []string { return []string{"strict", "serializable", "snapshot"} }

// staleName is what the name of a Stale level begins with.
const staleName = "stale"

// String returns the name that ParseLevel takes.
func (l Level) String() string {
	if d, ok := l.MaxAge(); ok || l == noAge {
		return fmt.Sprintf("%s(%v)", staleName, d)
	}
	if i := int(l) - 1; i >= 0 && i < len(levelNames()) {
		return levelNames()[i]
	}
	return fmt.Sprintf("Level(%d)", int64(l))
}

// ParseLevel returns the level of a name: strict, serializable, snapshot, or stale with how old
// what is read may be, as in stale(5s).
func ParseLevel(name string) (Level, error) {
	for i, n := range levelNames() {
		if n == name {
			return Level(i + 1), nil
		}
	}
	age, stale := strings.CutPrefix(name, staleName)
	if text, ok := strings.CutPrefix(age, "("); stale && ok {
		if text, ok = strings.CutSuffix(text, ")"); ok {
			if d, err := time.ParseDuration(text); err == nil && d > 0 {
				return Stale(d), nil
			}
		}
	}
	if stale {
		return 0, fmt.Errorf("client: the level %q does not say how old what is read may be (want, say, %v)", name,
			Stale(5*time.Second))
	}
	names := append(levelNames(), staleName)
	return 0, fmt.Errorf("client: no level %q (there are %s, %s%s)", name, strings.Join(levelNames(), ", "),
		Stale(5*time.Second), nearest.Hint(name, names))
}

func (l Level) apply(o *options) {
	_, stale := l.MaxAge()
	switch {
	case l == noAge:
		o.reject("a stale transaction has to say how old what it reads may be, more than 0")
	case l != Strict && l != Serializable && l != Snapshot && !stale:
		o.reject(fmt.Sprintf("no level %v", l))
	case o.level != 0:
		o.reject("the transaction's level is given twice")
	}
	o.level = l
}

// LevelOf returns the level that a backend's transactions have unless they ask for another one.
func LevelOf(b Backend) Level {
	switch b.Promises() {
	case history.StrictSerializable:
		return Strict
	case history.SnapshotIsolation, history.SessionSnapshotIsolation:
		return Snapshot
	}
	return Serializable
}
