package epaxos

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/foresay/foresay/internal/wirefmt"
)

// registers is a state machine of which commands commute that have no key in common: each of a
// command's keys gets its value, and remembers all that it had.
type registers struct {
	values map[string][]string
	note   func(key, value string, place int)
}

func newRegisters(note func(key, value string, place int)) *registers {
	return &registers{values: map[string][]string{}, note: note}
}

// set returns the command that sets keys to a value, and get the query for them.
func set(value string, keys ...string) []byte { return []byte(value + "=" + strings.Join(keys, ",")) }
func get(keys ...string) []byte               { return []byte("=" + strings.Join(keys, ",")) }

// Footprint is part of Interferer.
func (m *registers) Footprint(command []byte) (keys []string, ok bool) {
	_, list, ok := strings.Cut(string(command), "=")
	return strings.Split(list, ","), ok && list != "*"
}

func (m *registers) Apply(command []byte) []byte {
	value, list, _ := strings.Cut(string(command), "=")
	for key := range strings.SplitSeq(list, ",") {
		if m.note != nil {
			m.note(key, value, len(m.values[key]))
		}
		m.values[key] = append(m.values[key], value)
	}
	return []byte(value)
}

// Read returns the last values of the keys.
func (m *registers) Read(query []byte) []byte {
	_, list, _ := strings.Cut(string(query), "=")
	var out []string
	for key := range strings.SplitSeq(list, ",") {
		last := ""
		if v := m.values[key]; len(v) > 0 {
			last = v[len(v)-1]
		}
		out = append(out, last)
	}
	return []byte(strings.Join(out, ","))
}

func (m *registers) Snapshot(to io.Writer) error {
	var w wirefmt.Writer
	w.List(len(m.values))
	for _, key := range slices.Sorted(maps.Keys(m.values)) {
		w.String(key)
		w.List(len(m.values[key]))
		for _, v := range m.values[key] {
			w.String(v)
		}
	}
	_, err := to.Write(w.Buf)
	return err
}

func (m *registers) Restore(from io.Reader) error {
	b, err := io.ReadAll(from)
	if err != nil {
		return err
	}
	r := wirefmt.NewReader(b)
	m.values = map[string][]string{}
	for range r.List(2) {
		key := r.String()
		for range r.List(1) {
			m.values[key] = append(m.values[key], r.String())
		}
	}
	return r.Close()
}

func (m *registers) String() string { return fmt.Sprint(m.values) }
