package smrtest

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/foresay/foresay/history"
	"github.com/foresay/foresay/internal/wirefmt"
	"github.com/foresay/foresay/smr"
)

// commandID names a command among all of a scenario: each is proposed by one call, however often
// the client node repeats it.
type commandID uint64

// machine is a key-value store that tells in which order it was given commands.
type machine struct {
	values map[string]string
	count  int // commands that were applied to this state, those in a snapshot included
	note   func(first int, id commandID)
	saw    func(command []byte) // that was applied; nil: nobody wants to know

	changed map[string]bool // keys, since the last Mark
}

func newMachine(note func(first int, id commandID)) *machine {
	return &machine{values: map[string]string{}, note: note, changed: map[string]bool{}}
}

// command is what a client asks of the machine.
type command struct {
	id commandID
	history.KVInput
	padding int // bytes that mean nothing
}

func (c command) encode() []byte {
	var w wirefmt.Writer
	w.Uint(uint64(c.id))
	w.Uint(uint64(c.Kind))
	w.String(c.Key)
	w.String(c.Value)
	w.String(c.Expect.Value)
	w.Bool(c.Expect.Found)
	w.Bytes(make([]byte, c.padding))
	return w.Buf
}

func decodeCommand(b []byte) (command, error) {
	r := wirefmt.NewReader(b)
	c := command{id: commandID(r.Uint())}
	c.Kind, c.Key, c.Value = history.KVKind(r.Uint()), r.String(), r.String()
	c.Expect = history.KVState{Value: r.String(), Found: r.Bool()}
	c.padding = len(r.Bytes())
	return c, r.Close()
}

func encodeOutput(o history.KVOutput) []byte {
	var w wirefmt.Writer
	w.String(o.State.Value)
	w.Bool(o.State.Found)
	w.Bool(o.Swapped)
	return w.Buf
}

func decodeOutput(b []byte) (history.KVOutput, error) {
	r := wirefmt.NewReader(b)
	o := history.KVOutput{State: history.KVState{Value: r.String(), Found: r.Bool()}, Swapped: r.Bool()}
	return o, r.Close()
}

// Apply is part of smr.StateMachine, as are the other exported methods.
func (m *machine) Apply(b []byte) []byte {
	c, err := decodeCommand(b)
	if err != nil {
		return []byte(err.Error())
	}
	m.note(m.count, c.id)
	if m.saw != nil {
		m.saw(b)
	}
	m.count++
	now := m.get(c.Key)
	out := history.KVOutput{Swapped: c.Kind == history.KVCAS && now == c.Expect}
	m.changed[c.Key] = true
	next, _ := history.KVModel().Step(now, c.KVInput, nil)
	if next.Found {
		m.values[c.Key] = next.Value
	} else {
		delete(m.values, c.Key)
	}
	return encodeOutput(out)
}

func (m *machine) get(key string) history.KVState {
	v, ok := m.values[key]
	return history.KVState{Value: v, Found: ok}
}

func (m *machine) Read(query []byte) []byte {
	return encodeOutput(history.KVOutput{State: m.get(string(query))})
}

func (m *machine) Snapshot(out io.Writer) error {
	var w wirefmt.Writer
	w.Uint(uint64(m.count))
	w.List(len(m.values))
	for _, k := range slices.Sorted(maps.Keys(m.values)) {
		w.String(k)
		w.String(m.values[k])
	}
	_, err := out.Write(w.Buf)
	return err
}

func (m *machine) Restore(in io.Reader) error {
	b, err := io.ReadAll(in)
	if err != nil {
		return err
	}
	r := wirefmt.NewReader(b)
	m.count, m.values = int(r.Uint()), map[string]string{}
	for range r.List(2) {
		k := r.String()
		m.values[k] = r.String()
	}
	if err := r.Close(); err != nil {
		return fmt.Errorf("the test's state machine: %w", err)
	}
	return nil
}

// Freeze, Mark, Changes and Patch make the machine an smr.Differ.
func (m *machine) Freeze() io.Reader {
	var b bytes.Buffer
	_ = m.Snapshot(&b) // a buffer takes all
	return &b
}

func (m *machine) Mark() { clear(m.changed) }

func (m *machine) Changes() io.Reader {
	var w wirefmt.Writer
	w.Uint(uint64(m.count))
	w.List(len(m.changed))
	for _, k := range slices.Sorted(maps.Keys(m.changed)) {
		now := m.get(k)
		w.String(k)
		w.Bool(now.Found)
		w.String(now.Value)
	}
	return bytes.NewReader(w.Buf)
}

func (m *machine) Patch(in io.Reader) error {
	b, err := io.ReadAll(in)
	if err != nil {
		return err
	}
	r := wirefmt.NewReader(b)
	m.count = int(r.Uint())
	for range r.List(3) {
		k, found, value := r.String(), r.Bool(), r.String()
		if delete(m.values, k); found {
			m.values[k] = value
		}
	}
	if err := r.Close(); err != nil {
		return fmt.Errorf("the test's state machine: %w", err)
	}
	return nil
}

// stepwise is a machine that restores snapshots as they come.
type stepwise struct{ *machine }

func (m stepwise) Restore(in io.Reader) error { return restoreBy(m, in) }

func (m stepwise) Restoring() smr.Restoration { return m.machine.restoring(0) }

// plain returns the machine itself.
func plain(m smr.StateMachine) *machine {
	if s, ok := m.(stepwise); ok {
		return s.machine
	}
	return m.(*machine)
}

// restoreBy restores a snapshot as one that comes.
func restoreBy(m smr.Restorer, in io.Reader) error {
	r := m.Restoring()
	if _, err := io.Copy(r, in); err != nil {
		return err
	}
	if err := r.End(); err != nil {
		return err
	}
	return r.Become()
}

// restoring returns a restoration of snapshots with so many bytes in front, which are nothing.
func (m *machine) restoring(skip int) *restoration {
	return &restoration{of: m, skip: skip, to: newMachine(nil)}
}

type restoration struct {
	of    *machine
	to    *machine // as far as parts have ended
	skip  int      // bytes that are still to be skipped
	parts int
	part  bytes.Buffer
}

func (r *restoration) Write(p []byte) (int, error) {
	n := min(r.skip, len(p))
	r.skip -= n
	r.part.Write(p[n:])
	return len(p), nil
}

func (r *restoration) End() error {
	if r.parts++; r.parts == 1 {
		return r.to.Restore(&r.part)
	}
	return r.to.Patch(&r.part)
}

func (r *restoration) Become() error {
	r.of.values, r.of.count = r.to.values, r.to.count
	return nil
}
