package plansim

import (
	"encoding/binary"
	"fmt"
	"io"
)

// counter is a state machine that counts its commands. No two of them conflict.
type counter struct{ n uint64 }

// Apply counts a command.
func (c *counter) Apply([]byte) []byte {
	c.n++
	return nil
}

// Read returns nothing.
func (c *counter) Read([]byte) []byte { return nil }

// Footprint says that a command is about itself.
func (c *counter) Footprint(command []byte) (keys []string, ok bool) {
	return []string{string(command)}, true
}

// Snapshot writes the count.
func (c *counter) Snapshot(w io.Writer) error { return binary.Write(w, binary.BigEndian, c.n) }

// Restore reads it.
func (c *counter) Restore(r io.Reader) error {
	if err := binary.Read(r, binary.BigEndian, &c.n); err != nil {
		return fmt.Errorf("plansim: restore: %w", err)
	}
	return nil
}
