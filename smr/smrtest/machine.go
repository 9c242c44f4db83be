package smrtest

import (
	"bytes"
	"io"

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

func (c command) encode() []byte { return commandLayout.Encode(c) }

var commandLayout = wirefmt.NewLayout("the test's command", func(c *wirefmt.Coder, m *command) {
	wirefmt.Uint(c, &m.id)
	wirefmt.Enum(c, &m.Kind, 0, 255, "kind")
	wirefmt.String(c, &m.Key)
	wirefmt.String(c, &m.Value)
	wirefmt.String(c, &m.Expect.Value)
	wirefmt.Bool(c, &m.Expect.Found)
	padding := make([]byte, m.padding)
	wirefmt.View(c, &padding)
	m.padding = len(padding)
})

var outputLayout = wirefmt.NewLayout("the test's output", func(c *wirefmt.Coder, o *history.KVOutput) {
	wirefmt.String(c, &o.State.Value)
	wirefmt.Bool(c, &o.State.Found)
	wirefmt.Bool(c, &o.Swapped)
})

// contents is what the machine has, and changes what has changed of it.
type (
	contents struct {
		count  int
		values map[string]string
	}
	changes struct {
		count  int
		values map[string]history.KVState
	}
)

var contentsLayout = wirefmt.NewLayout("the test's state machine", func(c *wirefmt.Coder, m *contents) {
	wirefmt.Count(c, &m.count)
	wirefmt.Map(c, &m.values, 2, func(c *wirefmt.Coder, key, v *string) {
		wirefmt.String(c, key)
		wirefmt.String(c, v)
	})
})

var changesLayout = wirefmt.NewLayout("the test's state machine", func(c *wirefmt.Coder, m *changes) {
	wirefmt.Count(c, &m.count)
	wirefmt.Map(c, &m.values, 3, func(c *wirefmt.Coder, key *string, v *history.KVState) {
		wirefmt.String(c, key)
		wirefmt.Bool(c, &v.Found)
		wirefmt.String(c, &v.Value)
	})
})

// Apply is part of smr.StateMachine, as are the other exported methods.
func (m *machine) Apply(b []byte) []byte {
	c, err := commandLayout.Decode(b)
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
	return outputLayout.Encode(out)
}

func (m *machine) get(key string) history.KVState {
	v, ok := m.values[key]
	return history.KVState{Value: v, Found: ok}
}

func (m *machine) Read(query []byte) []byte {
	return outputLayout.Encode(history.KVOutput{State: m.get(string(query))})
}

func (m *machine) Snapshot(out io.Writer) error {
	_, err := out.Write(contentsLayout.Encode(contents{m.count, m.values}))
	return err
}

func (m *machine) Restore(in io.Reader) error {
	b, err := io.ReadAll(in)
	if err != nil {
		return err
	}
	now, err := contentsLayout.Decode(b)
	if err != nil {
		return err
	}
	if m.count, m.values = now.count, now.values; m.values == nil {
		m.values = map[string]string{}
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
	now := changes{m.count, map[string]history.KVState{}}
	for k := range m.changed {
		now.values[k] = m.get(k)
	}
	return bytes.NewReader(changesLayout.Encode(now))
}

func (m *machine) Patch(in io.Reader) error {
	b, err := io.ReadAll(in)
	if err != nil {
		return err
	}
	now, err := changesLayout.Decode(b)
	if err != nil {
		return err
	}
	m.count = now.count
	for k, v := range now.values {
		if delete(m.values, k); v.Found {
			m.values[k] = v.Value
		}
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
