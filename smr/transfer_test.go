package smr

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/foresay/foresay/protocol"
)

func randomBytes(seed uint64, n int) []byte {
	rnd := rand.New(rand.NewPCG(seed, 9))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rnd.Uint32())
	}
	return b
}

// TestTransfer moves snapshots over a bad link: messages are lost, repeated and overtaken.
func TestTransfer(t *testing.T) {
	for seed := range uint64(100) {
		rnd := rand.New(rand.NewPCG(seed, 5))
		data := randomBytes(seed, 1+rnd.IntN(20*chunkBytes))
		out := NewOutgoing(Snapshot{Slot: 7, Data: data})
		var in Incoming
		env := protocol.NewEnv[Message](nil, 1, rnd)
		var wire []Message
		var got *Snapshot
		for step := 0; ; step++ {
			if step > 10_000 {
				t.Fatalf("seed %d: the snapshot of %d bytes does not arrive", seed, len(data))
			}
			env.Begin(time.Duration(step) * time.Millisecond)
			out.Continue(env, 2, 1, 50*time.Millisecond)
			for _, e := range env.Out {
				if c := e.Msg.(SnapshotChunk); len(c.Data) > chunkBytes {
					t.Fatalf("a chunk of %d bytes", len(c.Data))
				}
				wire = append(wire, e.Msg)
			}
			if len(wire) > transferWindow*chunkBytes {
				t.Fatalf("%d messages are under way", len(wire))
			}
			if len(wire) == 0 {
				continue
			}
			i := rnd.IntN(min(len(wire), 3))
			m := wire[i]
			if rnd.IntN(10) > 0 {
				wire = append(wire[:i], wire[i+1:]...)
			}
			if rnd.IntN(10) == 0 {
				continue // lost
			}
			if c, ok := m.(SnapshotChunk); ok {
				applied := Slot(0)
				if got != nil {
					applied = got.Slot
				}
				answer, whole := in.Take(c, applied)
				if whole != nil {
					got = whole
				}
				wire = append(wire, answer)
			} else if out.Wanted(env, m.(SnapshotWanted)) {
				break
			}
		}
		if got == nil || got.Slot != 7 || !bytes.Equal(got.Data, data) {
			t.Fatalf("seed %d: something else arrived", seed)
		}
	}
}

// TestReceiverCrashes has the receiver of a snapshot lose what it has, as one does that crashes.
func TestReceiverCrashes(t *testing.T) {
	data := randomBytes(1, 30*chunkBytes)
	out := NewOutgoing(Snapshot{Slot: 7, Data: data})
	env := protocol.NewEnv[Message](nil, 1, rand.New(rand.NewPCG(1, 1)))
	var in Incoming
	var got *Snapshot
	chunks := 0
	for step := 0; got == nil; step++ {
		if step == 2 {
			in = Incoming{}
		}
		if step > 20 {
			t.Fatal("the snapshot does not arrive after a crash")
		}
		env.Begin(time.Duration(step) * time.Millisecond)
		out.Continue(env, 2, 1, 50*time.Millisecond)
		for _, e := range env.Out {
			var answer SnapshotWanted
			answer, got = in.Take(e.Msg.(SnapshotChunk), 0)
			out.Wanted(env, answer)
			chunks++
		}
	}
	if !bytes.Equal(got.Data, data) || chunks > 90 {
		t.Errorf("%d bytes arrived in %d chunks", len(got.Data), chunks)
	}
}

func chunk(slot Slot, data []byte, from, to int) SnapshotChunk {
	return SnapshotChunk{Slot: slot, Size: uint64(len(data)), Sum: Checksum(data), Offset: uint64(from), Data: data[from:to]}
}

func TestNewerSnapshotTakesOver(t *testing.T) {
	older, newer := randomBytes(1, 100), randomBytes(2, 120)
	var in Incoming
	in.Take(chunk(5, older, 0, 50), 0)
	if a, _ := in.Take(chunk(6, newer, 0, 60), 0); a.Offset != 60 {
		t.Errorf("the newer one is taken up to %d", a.Offset)
	}
	if a, whole := in.Take(chunk(5, older, 50, 100), 0); a.Offset != 100 || whole != nil {
		t.Errorf("the older one is answered with %d, not as one that is not needed", a.Offset)
	}
	_, whole := in.Take(chunk(6, newer, 60, 120), 0)
	if whole == nil || !bytes.Equal(whole.Data, newer) {
		t.Error("the newer one did not arrive")
	}
	if a, whole := in.Take(chunk(6, newer, 0, 60), 6); a.Offset != 120 || whole != nil {
		t.Errorf("one that is not needed is answered with %d", a.Offset)
	}
}

func TestDamagedTransferStartsAgain(t *testing.T) {
	data := randomBytes(1, 100)
	bad := chunk(5, data, 0, 100)
	bad.Data = randomBytes(2, 100)
	var in Incoming
	if a, whole := in.Take(bad, 0); a.Offset != 0 || whole != nil {
		t.Errorf("damaged data was taken up to %d", a.Offset)
	}
	if _, whole := in.Take(chunk(5, data, 0, 100), 0); whole == nil {
		t.Error("the right data does not arrive afterwards")
	}
}

// TestSavedSnapshots writes snapshots of different sizes one after the other; only the newest one is there.
func TestSavedSnapshots(t *testing.T) {
	keys := memory{}
	env := protocol.NewEnv[Message](keys, 1, nil)
	for i, size := range []int{1, 3 * chunkBytes, chunkBytes + 1, chunkBytes, 1} {
		env.Begin(0)
		want := Snapshot{Slot: Slot(i + 1), Data: randomBytes(uint64(i), size)}
		new(State).Save(env, want)
		for _, e := range env.Out {
			if e.Kind == protocol.KindPut {
				keys[string(e.Key)] = e.Value
			} else {
				delete(keys, string(e.Key))
			}
		}
		env.Begin(0)
		got, ok, err := LoadSnapshot(env)
		if err != nil || !ok || got.Slot != want.Slot || !bytes.Equal(got.Data, want.Data) {
			t.Fatalf("snapshot %d: slot %d, %v, %v", i+1, got.Slot, ok, err)
		}
		if chunks := len(keys) - 1; chunks != (size+chunkBytes-1)/chunkBytes {
			t.Errorf("snapshot %d of %d bytes is in %d chunks", i+1, size, chunks)
		}
	}
	keys[string(chunkKey(0, 0))] = []byte{0xff}
	env.Begin(0)
	if _, _, err := LoadSnapshot(env); err == nil {
		t.Error("a damaged snapshot was read")
	}
	delete(keys, string(chunkKey(0, 0)))
	if _, _, err := LoadSnapshot(env); err == nil {
		t.Error("a snapshot without a chunk was read")
	}
}
