package kit

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kv"
)

// loadSnapshot returns the bytes of the snapshot in the key space; ok is false if there is none.
func loadSnapshot(env *protocol.Env[smr.Message]) (s Snapshot, ok bool, err error) {
	h, err := readSnapshotHead(env)
	if err != nil || !h.there() {
		return Snapshot{}, false, err
	}
	s.Slot = h.slot
	for from := (&storedReader{head: h}); ; {
		piece, err := from.next(env)
		if err == io.EOF {
			return s, true, nil
		}
		if err != nil {
			return Snapshot{}, false, err
		}
		s.Data = append(s.Data, piece...)
	}
}

// blob is a Restorer that has some bytes.
type blob struct{ data []byte }

func (b *blob) Apply([]byte) []byte { return nil }

func (b *blob) Read([]byte) []byte { return nil }

func (b *blob) Snapshot(w io.Writer) error {
	_, err := w.Write(b.data)
	return err
}

func (b *blob) Restore(r io.Reader) (err error) {
	b.data, err = io.ReadAll(r)
	return err
}

func (b *blob) Restoring() smr.Restoration { return &restoredBlob{of: b} }

type restoredBlob struct {
	of *blob
	bytes.Buffer
}

func (r *restoredBlob) End() error { return nil }

func (r *restoredBlob) Become() error {
	r.of.data = r.Bytes()
	return nil
}

// randomState returns a state of so many random bytes.
func randomState(t *testing.T, seed uint64, sizeBytes int) []byte {
	t.Helper()
	of := func(data []byte) []byte {
		b, err := NewState(&blob{data}, group(1)).Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	return of(randomBytes(seed, sizeBytes-len(of(nil))))
}

// receiver is a replica's state that gets snapshots, and its disk.
type receiver struct {
	*State
	env   *protocol.Env[smr.Message]
	keys  memory
	split Front
}

func newReceiver(machine smr.StateMachine, split Front) *receiver {
	r := &receiver{State: NewState(machine, nil), keys: memory{}, split: split}
	r.env = protocol.NewEnv[smr.Message](r.keys, 1, nil)
	return r
}

// take takes a chunk, and returns the snapshot that is on the disk if it has come whole and was
// installed. Before that nothing of it shows: neither in the state nor, after a crash, on the disk.
func (r *receiver) take(t *testing.T, c SnapshotChunk, applied smr.Slot) (SnapshotWanted, *Snapshot) {
	t.Helper()
	r.env.Begin(0)
	before, state := r.stored(t), r.Applied()
	answer, whole, err := r.Take(r.env, c, applied, r.split)
	if err != nil {
		t.Fatal(err)
	}
	if whole == nil {
		r.write()
		if r.stored(t) != before || r.Applied() != state {
			t.Fatalf("a part of a snapshot shows: %d bytes on the disk, the state is at slot %d", len(r.stored(t)), r.Applied())
		}
		return answer, nil
	}
	if err := r.Install(r.env, whole); err != nil {
		t.Fatal(err)
	}
	r.write()
	s := Snapshot{Slot: whole.Slot, Data: []byte(r.stored(t))}
	again := NewState(r.machine, nil)
	want, err := r.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	r.env.Begin(0)
	if slot, front, ok, err := again.Load(r.env, r.split); !ok || err != nil || slot != whole.Slot ||
		!bytes.Equal(front, whole.Front) {
		t.Fatalf("what was installed is loaded as slot %d behind %q, not %d behind %q: %v, %v", slot, front, whole.Slot,
			whole.Front, ok, err)
	}
	if got, err := again.Snapshot(); err != nil || !bytes.Equal(got, want) {
		t.Fatalf("a replica that has crashed loads %d bytes, another state than the %d that it had: %v", len(got), len(want),
			err)
	}
	return answer, &s
}

func (r *receiver) stored(t *testing.T) string {
	t.Helper()
	s, _, err := loadSnapshot(r.env)
	if err != nil {
		t.Fatal(err)
	}
	return string(s.Data)
}

func (r *receiver) write() {
	for _, e := range r.env.Out {
		if e.Kind == protocol.KindPut {
			r.keys[string(e.Key)] = e.Value
		} else if e.Kind == protocol.KindDelete {
			delete(r.keys, string(e.Key))
		}
	}
	r.env.Begin(0)
}

// The key-value store is all that a machine with much state should be.
var (
	_ smr.Restorer = (*kv.Store)(nil)
	_ smr.Differ   = (*kv.Store)(nil)
)

// TestDecisions: a disk that a program wrote that did not write down decisions is not taken for one
// that tells what was executed, before there is a snapshot of what this program has executed.
func TestDecisions(t *testing.T) {
	for _, blank := range []bool{true, false} {
		b := newSavingBench(&blob{})
		load := func(blank bool) (d Decisions) {
			b.do(func() { d.Load(b.env, blank) })
			return d
		}
		d := load(blank)
		if again := load(false); (again.Check() == nil) != blank {
			t.Errorf("blank %v: after a start: %v", blank, again.Check())
		} else if !blank && !errors.Is(again.Check(), smr.ErrNoSalvage) {
			t.Errorf("the error is %v", again.Check())
		}
		b.do(func() { d.Saved(b.env) })
		if again := load(false); again.Check() != nil {
			t.Errorf("blank %v: after a snapshot: %v", blank, again.Check())
		}
	}
}
