package replicated

import (
	"fmt"
	"io"
	"maps"
	"slices"
)

// fieldBytes is the size of a table's keys, and of its values.
const fieldBytes = 8

// cells is the state machine that benchmarks write to: a value of 8 bytes for each key of 8 bytes.
// A command is both, one behind the other. Unlike those of package smr/kv, whose versions are one
// sequence, two commands for different keys commute, and the table says so to protocols that ask.
type cells struct{ rows map[string]string }

func newCells() *cells { return &cells{map[string]string{}} }

// put returns the command that sets a key's value.
func put(key, value string) []byte { return []byte(key + value) }

// Apply executes a command. Its result is the value.
func (t *cells) Apply(command []byte) []byte {
	if len(command) != 2*fieldBytes {
		return nil
	}
	t.rows[string(command[:fieldBytes])] = string(command[fieldBytes:])
	return command[fieldBytes:]
}

// Footprint makes writes of different keys commute (epaxos.Interferer).
func (t *cells) Footprint(command []byte) (keys []string, ok bool) {
	if len(command) != 2*fieldBytes {
		return nil, false
	}
	return []string{string(command[:fieldBytes])}, true
}

// Read returns the value of a key, nil if there is none.
func (t *cells) Read(query []byte) []byte {
	if v, ok := t.rows[string(query)]; ok {
		return []byte(v)
	}
	return nil
}

// Snapshot writes all rows as commands, in the order of their keys.
func (t *cells) Snapshot(to io.Writer) error {
	for _, key := range slices.Sorted(maps.Keys(t.rows)) {
		if _, err := to.Write(put(key, t.rows[key])); err != nil {
			return fmt.Errorf("cells: snapshot: %w", err)
		}
	}
	return nil
}

// Restore reads what Snapshot wrote.
func (t *cells) Restore(from io.Reader) error {
	all, err := io.ReadAll(from)
	if err != nil {
		return fmt.Errorf("cells: restore: %w", err)
	}
	if len(all)%(2*fieldBytes) != 0 {
		return fmt.Errorf("cells: a snapshot of %d bytes is none", len(all))
	}
	clear(t.rows)
	for command := range slices.Chunk(all, 2*fieldBytes) {
		t.Apply(command)
	}
	return nil
}

func (t *cells) has(key string) bool {
	_, ok := t.rows[key]
	return ok
}
