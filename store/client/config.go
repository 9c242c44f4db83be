package client

import (
	"fmt"
	"time"

	"github.com/foresay/foresay"
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
)

func modeNames() []string { return []string{"spec", "off", "grpc"} }

// String returns the name that ParseMode takes.
func (m Mode) String() string {
	if int(m) < len(modeNames()) {
		return modeNames()[m]
	}
	return fmt.Sprintf("Mode(%d)", uint8(m))
}

// ParseMode returns the mode of a name: spec, off or grpc.
func ParseMode(name string) (Mode, error) {
	for i, n := range modeNames() {
		if n == name {
			return Mode(i), nil
		}
	}
	return 0, fmt.Errorf("client: no mode %q (there are spec, off and grpc)", name)
}

// Config is what a Client is made from. Zero fields have the defaults that they name.
type Config struct {
	// Backend is required.
	Backend Backend
	Mode    Mode
	// MaxAttempts bounds how often a transaction is tried. 0: until its context ends.
	MaxAttempts int
	// Backoff is the longest pause before the second attempt; it doubles with each one, up to eight times. Pauses are drawn at random. 0 is 50 ms.
	Backoff time.Duration
	// Limits bound speculation, as in foresay.WithLimits.
	Limits foresay.Limits
}
