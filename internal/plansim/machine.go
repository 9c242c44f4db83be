package plansim

import (
	"encoding/binary"
	"fmt"
	"io"
)

// tally is a state machine that counts its commands. No two of them conflict.
type tally struct{ n uint64 }

// Apply counts a command.
func (c *tally) Apply([]byte) []byte {
	c.n++
	return nil
}

// Read returns nothing.
func (c *tally) Read([]byte) []byte { return nil }

// Footprint says that a command is about itself.
func (c *tally) Footprint(command []byte) (keys []string, ok bool) {
	return []string{string(command)}, true
}

// Snapshot writes the count.
func (c *tally) Snapshot(w io.Writer) error { return binary.Write(w, binary.BigEndian, c.n) }

// Restore reads it.
func (c *tally) Restore(r io.Reader) error {
	if err := binary.Read(r, binary.BigEndian, &c.n); err != nil {
		return fmt.Errorf("plansim: restore: %w", err)
	}
	return nil
}
