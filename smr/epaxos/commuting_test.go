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
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
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

// TestReplayEvictsTheSameSession: which session goes when there are too many does not depend on the
// order in which commands that commute were executed here; nor does it when a restart replays what
// was executed behind the snapshot on disk. First session 2 goes, which was not used since session
// 3 was opened. Then all three were used since as many were opened, so the oldest goes, session 1,
// though the others were used before it.
func TestReplayEvictsTheSameSession(t *testing.T) {
	var disk smrtest.Disk
	cfg := smr.ReplicaConfig{ID: 2, Members: smrtest.Group(3), Machine: newRegisters(nil), RoundTrip: trip,
		SnapshotPartBytes: 64}
	r, env := smrtest.OnDisk(t, &disk, newReplica, cfg)
	execute := func(e kit.Entry) {
		r.apply(env, &instance{cmd: &command{Kind: work, Entries: []kit.Entry{e}}})
	}
	open := func(client protocol.ID) {
		execute(kit.Entry{Kind: kit.OpenSession, Client: client, Seq: 1, Open: &kit.Open{MaxSessions: 3, Window: 8}})
	}
	seq := kit.Seq(0)
	work := func(session kit.SessionID, value string) kit.Entry {
		seq++
		return kit.Entry{Kind: kit.Command, Client: protocol.ID(session), Session: session, Seq: seq, Acked: seq,
			Command: set(value, fmt.Sprint("k", session))}
	}
	open(1)
	open(2)
	open(3)
	execute(work(1, strings.Repeat("v", 500))) // so that a snapshot has several parts
	execute(work(3, "v"))
	r.rewrite(env)
	for r.State.Saving() {
		disk.Write(env, 0)
		r.State.PartSaved(env, cfg.ID)
		if _, err := r.State.ContinueSave(env); err != nil {
			t.Fatal(err)
		}
	}
	disk.Write(env, 0)
	open(4)
	execute(work(3, "w"))
	execute(work(1, "w"))
	open(5)
	r.rewrite(env)
	disk.Write(env, 0)
	cfg.Machine = newRegisters(nil)
	again, _ := smrtest.OnDisk(t, &disk, newReplica, cfg)
	if !again.State.HasTail() {
		t.Fatal("nothing is replayed")
	}
	if a, b := fmt.Sprint(r.Cfg.Machine), fmt.Sprint(again.Cfg.Machine); a != b {
		t.Errorf("%s after a restart, %s before", b, a)
	}
	for name, r := range map[string]*replica{"": r, " after a restart": again} {
		for session := range kit.SessionID(5) {
			reply, ok := r.State.Seen(work(session+1, "x"))
			if gone := ok && reply.Gone; gone != (session < 2) {
				t.Errorf("session %d is gone%s: %v, want sessions 1 and 2 only", session+1, name, gone)
			}
		}
	}
}
