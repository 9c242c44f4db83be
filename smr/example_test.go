package smr_test

import (
	"encoding/binary"
	"fmt"
	"io"

	"github.com/foresay/foresay/smr"
)

// counter adds up what it is sent.
type counter struct{ sum uint64 }

func (c *counter) Apply(command []byte) []byte {
	n, size := binary.Uvarint(command)
	if size <= 0 {
		return []byte("not a number")
	}
	c.sum += n
	return c.Read(nil)
}

func (c *counter) Read([]byte) []byte { return fmt.Append(nil, c.sum) }

func (c *counter) Snapshot(w io.Writer) error {
	return binary.Write(w, binary.BigEndian, c.sum)
}

func (c *counter) Restore(r io.Reader) error {
	return binary.Read(r, binary.BigEndian, &c.sum)
}

// A state machine is all that a service brings.
func Example() {
	var machine smr.StateMachine = new(counter)
	machine.Apply(binary.AppendUvarint(nil, 40))
	fmt.Printf("%s\n", machine.Apply(binary.AppendUvarint(nil, 2)))
	// Output: 42
}
