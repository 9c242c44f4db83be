package control

import (
	"fmt"

	"github.com/foresay/foresay/internal/nearest"
)

// Mode says what is done with a call site's predictions. It is set in the call site's
// configuration, in a file, or at run time: see Control.
type Mode uint8

const (
	// ModeDefault leaves the mode to the connection, whose default is ModeObserve.
	ModeDefault Mode = iota
	// ModeOff makes and learns no predictions.
	ModeOff
	// ModeObserve makes predictions, compares them with the actual responses and
	// uses none: not a call more is made, and nothing waits less or longer.
	ModeObserve
	// ModeShadow is ModeObserve, but for a share of the requests the work that
	// follows a prediction is started as well, beside the task and for no one: its
	// calls without side effects are sent, and all that it does is thrown away.
	ModeShadow
	// ModeCanary is ModeOn for a share of the requests and ModeObserve for the
	// others. The request's id decides, alike in all services: see Control.Begin.
	ModeCanary
	// ModeOn takes predictions.
	ModeOn
)

// modes are the names that configuration files use.
func modes() []string { return []string{"default", "off", "observe", "shadow", "canary", "on"} }

// String returns the name that configuration files use.
func (m Mode) String() string {
	if names := modes(); int(m) < len(names) {
		return names[m]
	}
	return fmt.Sprintf("Mode(%d)", uint8(m))
}

// uses reports whether something is done on predictions.
func (m Mode) uses() bool { return m >= ModeShadow }

// ParseMode returns the mode of a name.
func ParseMode(name string) (Mode, error) {
	for i, n := range modes() {
		if n == name && i > 0 {
			return Mode(i), nil
		}
	}
	return 0, fmt.Errorf("%q is not one of off, observe, shadow, canary, on%s", name, nearest.Hint(name, modes()[1:]))
}

// MarshalText implements encoding.TextMarshaler.
func (m Mode) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (m *Mode) UnmarshalText(text []byte) (err error) {
	*m, err = ParseMode(string(text))
	return err
}
