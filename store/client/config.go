package client

import (
	"fmt"
	"strings"
	"time"

	"github.com/foresay/foresay/control"
	"github.com/foresay/foresay/internal/nearest"
)

// Mode is how a client's transactions wait for their reads.
type Mode uint8

const (
	// Spec goes on with the first replica's answer. It is the default.
	Spec Mode = iota
	// Off waits for the quorum. The engine runs the transaction, but guesses nothing.
	Off
	// GRPC waits for the quorum, without the engine.
	GRPC
	// Predicated reads from the nearest site only, and has the commit say whether that was right.
	Predicated
	// Auto is Predicated or Spec, for each class of transactions what its aborts speak for: see
	// WithClass.
	Auto
)

func modeNames() []string { return []string{"spec", "off", "grpc", "predicated", "auto"} }

// String returns the name that ParseMode takes.
func (m Mode) String() string {
	if int(m) < len(modeNames()) {
		return modeNames()[m]
	}
	return fmt.Sprintf("Mode(%d)", uint8(m))
}

// ParseMode returns the mode of a name: spec, off, grpc, predicated or auto.
func ParseMode(name string) (Mode, error) {
	for i, n := range modeNames() {
		if n == name {
			return Mode(i), nil
		}
	}
	return 0, fmt.Errorf("client: no mode %q (there are %s%s)", name, strings.Join(modeNames(), ", "),
		nearest.Hint(name, modeNames()))
}

// Config is what a Client is made from. Zero fields have the defaults that they name.
type Config struct {
	// Backend is required.
	Backend Backend
	Mode    Mode
	// MaxAttempts bounds how often a transaction is tried. 0: until its context ends.
	MaxAttempts int
	// Backoff is the longest pause before the second attempt, where an older transaction goes
	// first; it doubles with each one, up to eight times. What was in the way of others is over
	// when the refusal is there, and they are tried again at once. After 64 attempts pauses are up
	// to 64 times as long. They are drawn at random. 0 is 6 ms.
	Backoff time.Duration
	// QuorumAfter is how long a transaction in mode Predicated may take until its reads are asked
	// of a quorum too: its function may wait for something that needs to know, or loop on values
	// that do not go together. 0 is 500 ms.
	QuorumAfter time.Duration
	// PrepareEarly has transactions in mode Predicated prepare keys as their functions reach them,
	// on stores that can, Carousel: general transactions [Carousel §6.1]. Leaders then say sooner
	// than the commit whether a guess was right. Only the first attempt does so: what it has had
	// prepared is still locked when the next one begins. Where most transactions meet on the same
	// keys this gains nothing.
	PrepareEarly bool
	// Predictor guesses what keys hold, for transactions in mode Predicated: the request is the key, a
	// string, the response a store.Value. A transaction goes on at once with its guess, and reads
	// from the nearest site what it has none for; the commit says whether that was right. The
	// predictor learns what committed transactions have read and, if the store's protocol tells the
	// version, written, and what refused ones should have read. predict.NewLast is a cache of what
	// this client has seen. nil: there is none. A guess counts as right if its Version is: the bytes
	// that it has must be those of that version. A transaction asks for a key twice at most, and once
	// if the guess was wrong.
	Predictor control.Predictor
	// Limits bound speculation, as in foresay.WithLimits. A Depth of 0 is 4096 here, as many as a
	// transaction may read.
	Limits control.Limits
	// Attempted gets each attempt that came to an outcome, for figures: of those in a task of the
	// application's own, the commits that were sent. It may be called concurrently, and must not
	// wait. nil: nobody.
	Attempted func(Attempted)
}
