package kit

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
)

// savingBench is a state whose snapshots are written a few bytes at a time.
type savingBench struct {
	*State
	env  *protocol.Env[smr.Message]
	keys memory
	slot smr.Slot
}

const savingNode = protocol.ID(4)

func newSavingBench(machine smr.StateMachine) *savingBench {
	b := &savingBench{State: NewState(machine, group(1)), keys: memory{}}
	b.env = protocol.NewEnv[smr.Message](b.keys, 1, nil)
	b.do(func() {
		b.Apply(1, Entry{Kind: OpenSession, Client: 1, Seq: 1, Open: &Open{Window: 100, MaxSessions: 1}})
	})
	b.slot = 1
	return b
}

// do makes one call of the node, and writes what it wants written.
func (b *savingBench) do(call func()) (out []protocol.Effect[smr.Message]) {
	b.env.Begin(0)
	call()
	for _, e := range b.env.Out {
		switch e.Kind {
		case protocol.KindPut:
			b.keys[string(e.Key)] = e.Value
		case protocol.KindDelete:
			delete(b.keys, string(e.Key))
		default:
			out = append(out, e)
		}
	}
	return out
}

func (b *savingBench) command() {
	b.slot++
	b.Apply(b.slot, Entry{Kind: Command, Client: 1, Session: 1, Seq: Seq(b.slot), Acked: Seq(b.slot),
		Command: []byte("a command")})
}

func (b *savingBench) begin(t *testing.T, part int) (done bool) {
	t.Helper()
	b.do(func() {
		var err error
		if done, err = b.BeginSave(b.env, smr.ReplicaConfig{ID: savingNode, SnapshotPartBytes: part}, b.slot,
			[]byte("front")); err != nil {
			t.Fatal(err)
		}
	})
	return done
}

func (b *savingBench) onDisk(t *testing.T) Snapshot {
	t.Helper()
	b.env.Begin(0)
	s, ok, err := loadSnapshot(b.env)
	if err != nil || !ok {
		t.Fatalf("snapshot on disk: %v, %v", ok, err)
	}
	return s
}

// TestSavingBesideCommands writes snapshots a part at a time while commands are applied. After each
// write the disk has the one before, until it has the new one, which is of the moment in which it
// began; what others leave behind, that a crash or a newer state ended, is gone with the next that
// is done.
func TestSavingBesideCommands(t *testing.T) {
	b := newSavingBench(&journal{})
	want := Snapshot{}
	for round := range 6 {
		for range 10 {
			b.command()
		}
		image, err := b.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		next := Snapshot{b.slot, append([]byte("front"), image...)}
		if b.begin(t, 16+round) {
			t.Fatalf("round %d: %d bytes were written at once", round, len(image))
		}
		for parts, done := 1, false; !done; parts++ {
			if want.Slot > 0 {
				if got := b.onDisk(t); got.Slot != want.Slot || !bytes.Equal(got.Data, want.Data) {
					t.Fatalf("round %d: after %d parts the disk has slot %d, want %d", round, parts, got.Slot, want.Slot)
				}
			}
			b.command()
			if round%3 == 1 && parts == 5 {
				b.saving = nil // as a crash does
				break
			}
			b.do(func() { done, err = b.ContinueSave(b.env) })
			if err != nil {
				t.Fatal(err)
			}
			if done {
				want = next
			}
		}
		if b.saving != nil {
			t.Fatalf("round %d: a snapshot that is done goes on", round)
		}
		got := b.onDisk(t)
		if got.Slot != want.Slot || !bytes.Equal(got.Data, want.Data) {
			t.Errorf("round %d: the disk has the snapshot at slot %d, want %d", round, got.Slot, want.Slot)
		}
		if part := 16 + round; round%3 != 1 && len(b.keys)-1 != (len(got.Data)-len("front")+part-1)/part {
			t.Errorf("round %d: %d keys for %d bytes in parts of %d", round, len(b.keys), len(got.Data), part)
		}
	}
}

// TestSavingWeighsWhatCameSince: what was applied while a snapshot was written is not in it.
func TestSavingWeighsWhatCameSince(t *testing.T) {
	b := newSavingBench(&journal{})
	b.command()
	b.begin(t, 8)
	before := b.weightBytes
	b.command()
	one := b.weightBytes - before
	for b.Saving() {
		b.do(func() { b.ContinueSave(b.env) })
	}
	if b.weightBytes != one || b.Saved() != b.slot-1 {
		t.Errorf("%d bytes since the snapshot at slot %d, want %d since %d", b.weightBytes, b.Saved(), one, b.slot-1)
	}
}

// TestSavingLeavesTheDiskToTheLog: a part waits until the one before is on disk, and as long again.
func TestSavingLeavesTheDiskToTheLog(t *testing.T) {
	b := newSavingBench(&journal{})
	b.command()
	out := b.do(func() {
		b.BeginSave(b.env, smr.ReplicaConfig{ID: savingNode, SnapshotPartBytes: 8}, b.slot, nil)
	})
	if len(out) != 1 || out[0].Kind != protocol.KindSend || out[0].To != savingNode {
		t.Fatalf("a part has %+v done, want a message to itself when it is on disk", out)
	}
	b.env.Begin(30 * time.Millisecond)
	b.PartSaved(b.env, savingNode+1)
	if len(b.env.Out) > 0 {
		t.Errorf("another replica's word counts: %+v", b.env.Out)
	}
	b.PartSaved(b.env, savingNode)
	if out := b.env.Out; len(out) != 1 || out[0].Timer != (SaveTimer{}) || out[0].Delay != 30*time.Millisecond {
		t.Errorf("after 30ms %+v, want a timer of 30ms", out)
	}
}

// freezer is a Freezer whose reader fails after some bytes.
type freezer struct{ journal }

var errFrozen = errors.New("the moment is lost")

func (freezer) Freeze() io.Reader {
	return io.MultiReader(bytes.NewReader(make([]byte, 100)), failing{})
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errFrozen }

// TestSavingIsGivenUp by an error of the state machine, and by another state.
func TestSavingIsGivenUp(t *testing.T) {
	b := newSavingBench(&freezer{})
	b.begin(t, 16)
	var err error
	for i := 0; b.Saving() && i < 20; i++ {
		b.do(func() { _, err = b.ContinueSave(b.env) })
	}
	if !errors.Is(err, errFrozen) || b.Saving() {
		t.Errorf("%v, saving %v", err, b.Saving())
	}
	other := newSavingBench(&journal{})
	image, err := other.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	other.command()
	other.begin(t, 16)
	if err := other.Restore(image); err != nil || other.Saving() {
		t.Errorf("%v, saving %v", err, other.Saving())
	}
}
