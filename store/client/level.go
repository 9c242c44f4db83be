package client

import (
	"fmt"
	"strings"

	"github.com/foresay/foresay/history"
	"github.com/foresay/foresay/internal/nearest"
)

// Level is what a transaction is promised as to others: an Option of Txn and Run. Without one it is
// what the store's protocol promises. A store that cannot keep what is asked for says so by a
// RejectedError, before the function runs; one that keeps more does.
type Level uint8

const (
	// Strict transactions are serializable in the order of real time: one that begins after another
	// one has ended comes behind it. With Carousel that of transactions which only read needs clocks
	// that are no further apart than max_offset, and costs round trips where one is found to be.
	Strict Level = iota + 1
	// Serializable transactions that only read see a state of the store that was there at some time,
	// all of it, but perhaps not the latest, or what the same client has just written. Those that
	// write are as strict as the protocol has them. With Carousel this does not depend on clocks.
	Serializable
)

func levelNames() []string { return []string{"strict", "serializable"} }

// String returns the name that ParseLevel takes.
func (l Level) String() string {
	if i := int(l) - 1; i >= 0 && i < len(levelNames()) {
		return levelNames()[i]
	}
	return fmt.Sprintf("Level(%d)", uint8(l))
}

// ParseLevel returns the level of a name: strict or serializable.
func ParseLevel(name string) (Level, error) {
	for i, n := range levelNames() {
		if n == name {
			return Level(i + 1), nil
		}
	}
	return 0, fmt.Errorf("client: no level %q (there are %s%s)", name, strings.Join(levelNames(), ", "),
		nearest.Hint(name, levelNames()))
}

func (l Level) apply(o *options) {
	switch {
	case l != Strict && l != Serializable:
		o.reject(fmt.Sprintf("no level %v", l))
	case o.level != 0:
		o.reject("the transaction's level is given twice")
	}
	o.level = l
}

// LevelOf returns the level that a backend's transactions have unless they ask for another one.
func LevelOf(b Backend) Level {
	if b.Promises() == history.StrictSerializable {
		return Strict
	}
	return Serializable
}
