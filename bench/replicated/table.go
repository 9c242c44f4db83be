package replicated

import (
	"fmt"
	"io"
	"maps"
	"slices"
)

// fieldBytes is the size of a table's keys, and of its values.
const fieldBytes = 8

// table is the state machine that benchmarks write to: a value of 8 bytes for each key of 8 bytes.
// A command is both, one behind the other. Unlike those of package smr/kv, whose versions are one
// sequence, two commands for different keys commute, and the table says so to protocols that ask.
type table struct{ rows map[string]string }

func newTable() *table { return &table{map[string]string{}} }

// put returns the command that sets a key's value.
func put(key, value string) []byte { return []byte(key + value) }

// Apply executes a command. Its result is the value.
func (t *table) Apply(command []byte) []byte {
	if len(command) != 2*fieldBytes {
		return nil
	}
	t.rows[string(command[:fieldBytes])] = string(command[fieldBytes:])
	return command[fieldBytes:]
}

// Footprint makes writes of different keys commute (epaxos.Interferer).
func (t *table) Footprint(command []byte) (keys []string, ok bool) {
	if len(command) != 2*fieldBytes {
		return nil, false
	}
	return []string{string(command[:fieldBytes])}, true
}

// Read returns the value of a key, nil if there is none.
func (t *table) Read(query []byte) []byte {
	if v, ok := t.rows[string(query)]; ok {
		return []byte(v)
	}
	return nil
}

// Snapshot writes all rows as commands, in the order of their keys.
func (t *table) Snapshot(to io.Writer) error {
	for _, key := range slices.Sorted(maps.Keys(t.rows)) {
		if _, err := to.Write(put(key, t.rows[key])); err != nil {
			return fmt.Errorf("table: snapshot: %w", err)
		}
	}
	return nil
}

// Restore reads what Snapshot wrote.
func (t *table) Restore(from io.Reader) error {
	all, err := io.ReadAll(from)
	if err != nil {
		return fmt.Errorf("table: restore: %w", err)
	}
	if len(all)%(2*fieldBytes) != 0 {
		return fmt.Errorf("table: a snapshot of %d bytes is none", len(all))
	}
	clear(t.rows)
	for command := range slices.Chunk(all, 2*fieldBytes) {
		t.Apply(command)
	}
	return nil
}

func (t *table) has(key string) bool {
	_, ok := t.rows[key]
	return ok
}
