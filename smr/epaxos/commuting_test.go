package epaxos

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/foresay/foresay/internal/wirefmt"
	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kv"
	"github.com/foresay/foresay/smr/smrtest"
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

// TestAllConflict: if all commands conflict, 1,800 a second of them take two round trips, and
// components have hundreds of instances. The search for them must not look at each pair: that takes
// a minute here for each second, which is how long this test may then last. Clients that wait for
// results keep a component from growing for ever.
func TestAllConflict(t *testing.T) {
	for _, early := range []float64{0, 1} {
		d := deploy(t, "na3", sim.Config[smr.Message]{}, func(c *smr.ReplicaConfig) { c.Machine = kv.New() })
		told, executed := load(t, d, 200, time.Second, 0.75, early)
		if len(told)+len(executed) != 9*200 {
			t.Errorf("%d calls are done", len(told)+len(executed))
		}
		if p50 := smrtest.Percentile(told, 0.5); p50 > 120*time.Millisecond {
			t.Errorf("durable: %v", p50)
		}
		if p50 := smrtest.Percentile(executed, 0.5); p50 > 400*time.Millisecond {
			t.Errorf("executed: %v", p50)
		}
	}
}
