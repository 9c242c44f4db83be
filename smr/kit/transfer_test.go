package kit

import (
	"bytes"
	"io"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kv"
)

func randomBytes(seed uint64, n int) []byte {
	rnd := rand.New(rand.NewPCG(seed, 9))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rnd.Uint32())
	}
	return b
}

// outgoing begins a transfer of some bytes.
func outgoing(slot smr.Slot, data []byte) *Outgoing {
	return &Outgoing{slot: slot, from: stateSource{bytes.NewReader(data)}, again: stateSource{bytes.NewReader(data)}}
}

// chunksOf returns the chunks that a call has sent.
func chunksOf(env *protocol.Env[smr.Message]) (out []SnapshotChunk) {
	for _, e := range env.Out {
		if c, ok := Inside(e.Msg).(SnapshotChunk); ok {
			out = append(out, c)
		}
	}
	return out
}

// TestTransfer moves snapshots over a bad link: messages are lost, repeated and overtaken.
func TestTransfer(t *testing.T) {
	for seed := range uint64(100) {
		rnd := rand.New(rand.NewPCG(seed, 5))
		data := randomState(t, seed, 100+rnd.IntN(20*chunkBytes))
		out := outgoing(7, data)
		in := newReceiver(&blob{}, nil)
		env := protocol.NewEnv[smr.Message](nil, 1, rnd)
		var wire []smr.Message
		var got *Snapshot
		for step := 0; ; step++ {
			if step > 10_000 {
				t.Fatalf("seed %d: the snapshot of %d bytes does not arrive", seed, len(data))
			}
			env.Begin(time.Duration(step) * time.Millisecond)
			out.Continue(env, 2, 1, 50*time.Millisecond)
			for _, c := range chunksOf(env) {
				if len(c.Data) > chunkBytes {
					t.Fatalf("a chunk of %d bytes", len(c.Data))
				}
				wire = append(wire, c)
			}
			if len(wire) > transferWindow*chunkBytes {
				t.Fatalf("%d messages are under way", len(wire))
			}
			if len(out.chunks) > transferWindow+1 {
				t.Fatalf("%d chunks are in memory", len(out.chunks))
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
				applied := smr.Slot(0)
				if got != nil {
					applied = got.Slot
				}
				answer, whole := in.take(t, c, applied)
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

// TestReceiverCrashes has the receiver of a snapshot lose what it has, as one does that crashes. If
// the sender has dropped what the receiver had, it says so, and the next transfer arrives.
func TestReceiverCrashes(t *testing.T) {
	data := randomState(t, 1, 30*chunkBytes)
	for _, kept := range []bool{true, false} {
		begin := func() *Outgoing {
			out := outgoing(7, data)
			if kept {
				out.again = nil
			}
			return out
		}
		out := begin()
		env := protocol.NewEnv[smr.Message](nil, 1, rand.New(rand.NewPCG(1, 1)))
		in := newReceiver(&blob{}, nil)
		var got *Snapshot
		chunks, failed := 0, 0
		for step := 0; got == nil; step++ {
			if step == 9 {
				in.State = NewState(&blob{}, nil) // some chunks are there: all were read in the step before
			}
			if step > 300 {
				t.Fatal("the snapshot does not arrive after a crash")
			}
			if out.Failed() {
				out = begin()
				failed++
			}
			env.Begin(time.Duration(step) * time.Millisecond)
			out.Continue(env, 2, 1, 50*time.Millisecond)
			for _, c := range chunksOf(env) {
				var answer SnapshotWanted
				answer, got = in.take(t, c, 0)
				out.Wanted(env, answer)
				chunks++
			}
		}
		if !bytes.Equal(got.Data, data) || chunks > 90 || (failed == 0) != kept {
			t.Errorf("kept %v: %d bytes arrived in %d chunks, after %d failed transfers", kept, len(got.Data), chunks, failed)
		}
	}
}

func chunk(slot smr.Slot, data []byte, from, to int) SnapshotChunk {
	return SnapshotChunk{Slot: slot, Size: uint64(len(data)), Sum: Checksum(data), Offset: uint64(from),
		Data: data[from:to]}
}

// TestNewerSnapshotTakesOver: a newer snapshot takes the place of one of which nothing more comes,
// when it is begun for the second time.
func TestNewerSnapshotTakesOver(t *testing.T) {
	older, newer := randomState(t, 1, 100), randomState(t, 2, 120)
	in := newReceiver(&blob{}, nil)
	in.take(t, chunk(5, older, 0, 50), 0)
	for _, want := range []uint64{120, 60} {
		if a, _ := in.take(t, chunk(6, newer, 0, 60), 0); a.Offset != want {
			t.Errorf("the newer one is answered with %d, want %d", a.Offset, want)
		}
	}
	if a, whole := in.take(t, chunk(5, older, 50, 100), 0); a.Offset != 100 || whole != nil {
		t.Errorf("the older one is answered with %d, not as one that is not needed", a.Offset)
	}
	_, whole := in.take(t, chunk(6, newer, 60, 120), 0)
	if whole == nil || !bytes.Equal(whole.Data, newer) {
		t.Error("the newer one did not arrive")
	}
	if a, whole := in.take(t, chunk(6, newer, 0, 60), 6); a.Offset != 120 || whole != nil {
		t.Errorf("one that is not needed is answered with %d", a.Offset)
	}
}

// TestSnapshotsDoNotTakeTurns: while a snapshot arrives, others are begun again and again, each
// newer than the one before. The first one arrives.
func TestSnapshotsDoNotTakeTurns(t *testing.T) {
	first := randomState(t, 1, 100)
	in := newReceiver(&blob{}, nil)
	for at := 0; at < 100; at += 10 {
		if a, whole := in.take(t, chunk(5, first, at, at+10), 0); int(a.Offset) != at+10 {
			t.Fatalf("at %d the first one is answered with %d", at, a.Offset)
		} else if (whole != nil) != (at == 90) {
			t.Fatalf("at %d: %v arrived", at, whole)
		}
		newer := randomState(t, uint64(at+2), 120)
		in.take(t, chunk(smr.Slot(6+at), newer, 0, 60), 0)
	}
}

// TestTwoSendersOfOneSlot has two replicas send a snapshot of the same slot as different bytes: it
// is written in other segments. The one that came first arrives, also if the other one begins again
// and again; and if it ends half way, the other one does.
func TestTwoSendersOfOneSlot(t *testing.T) {
	for _, dies := range []bool{false, true} {
		one, other := randomState(t, 1, 100), randomState(t, 2, 100)
		in := newReceiver(&blob{}, nil)
		var got *Snapshot
		offset := 0 // of the other one
		for at := 0; at < 100 && got == nil; at += 10 {
			if at < 50 || !dies {
				_, got = in.take(t, chunk(5, one, at, at+10), 0)
			}
			for got == nil && offset < 100 {
				var a SnapshotWanted
				if a, got = in.take(t, chunk(5, other, offset, offset+10), 0); a.Offset == 100 {
					break // it is told that it is not needed, or arrived
				}
				offset = int(a.Offset)
			}
		}
		want := map[bool][]byte{false: one, true: other}[dies]
		if got == nil || !bytes.Equal(got.Data, want) {
			t.Errorf("the first one ends half way: %v; %v arrived, the other one was taken up to %d", dies, got, offset)
		}
	}
}

func TestDamagedTransferStartsAgain(t *testing.T) {
	data := randomState(t, 1, 100)
	bad := chunk(5, data, 0, 100)
	bad.Data = randomBytes(2, 100)
	in := newReceiver(&blob{}, nil)
	if a, whole := in.take(t, bad, 0); a.Offset != 0 || whole != nil {
		t.Errorf("damaged data was taken up to %d", a.Offset)
	}
	if _, whole := in.take(t, chunk(5, data, 0, 100), 0); whole == nil {
		t.Error("the right data does not arrive afterwards")
	}
}

// TestSavedSnapshots writes snapshots of different sizes one after the other; only the newest one
// is there.
func TestSavedSnapshots(t *testing.T) {
	keys := memory{}
	env := protocol.NewEnv[smr.Message](keys, 1, nil)
	for i, size := range []int{1, 3 * chunkBytes, chunkBytes + 1, chunkBytes, 1} {
		env.Begin(0)
		want := Snapshot{Slot: smr.Slot(i + 1), Data: randomBytes(uint64(i), size)}
		new(State).Save(env, want)
		for _, e := range env.Out {
			if e.Kind == protocol.KindPut {
				keys[string(e.Key)] = e.Value
			} else {
				delete(keys, string(e.Key))
			}
		}
		env.Begin(0)
		got, ok, err := loadSnapshot(env)
		if err != nil || !ok || got.Slot != want.Slot || !bytes.Equal(got.Data, want.Data) {
			t.Fatalf("snapshot %d: slot %d, %v, %v", i+1, got.Slot, ok, err)
		}
		if chunks := len(keys) - 1; chunks != (size+chunkBytes-1)/chunkBytes {
			t.Errorf("snapshot %d of %d bytes is in %d chunks", i+1, size, chunks)
		}
	}
	keys[string(chunkKey(0, 0))] = []byte{0xff}
	env.Begin(0)
	if _, _, err := loadSnapshot(env); err == nil {
		t.Error("a damaged snapshot was read")
	}
	delete(keys, string(chunkKey(0, 0)))
	if _, _, err := loadSnapshot(env); err == nil {
		t.Error("a snapshot without a chunk was read")
	}
}

// TestTransferInSteps counts how much of a state each call reads. Nothing is sent before all is
// read, and each call but the last has a timer for the next.
func TestTransferInSteps(t *testing.T) {
	const most = collectedChunks * chunkBytes
	data := randomBytes(3, 30*chunkBytes+5)
	from := &countingReader{Reader: bytes.NewReader(data)}
	out := &Outgoing{slot: 7, from: stateSource{from}}
	env := protocol.NewEnv[smr.Message](nil, 1, nil)
	for calls := 1; ; calls++ {
		from.read = 0
		env.Begin(0)
		out.Continue(env, 2, 1, time.Second)
		if from.read > most {
			t.Fatalf("call %d read %d bytes", calls, from.read)
		}
		if !out.Collecting() {
			if calls < len(data)/most {
				t.Errorf("%d bytes were read in %d calls", len(data), calls)
			}
			break
		}
		if e := env.Out; len(e) != 1 || e[0].Timer != (TransferTimer{2}) || e[0].Delay != collectPause {
			t.Fatalf("call %d ends with %v", calls, e)
		}
	}
	if got := len(chunksOf(env)); got != transferWindow {
		t.Errorf("%d chunks were sent once all was read", got)
	}
}

type countingReader struct {
	io.Reader
	read int
}

func (r *countingReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	r.read += n
	return n, err
}

// brief is a key space that keeps to what it promises, and no more: bytes that it has handed out
// are others after the call.
type brief struct {
	memory
	out  [][]byte
	read int
}

func (b *brief) Get(key []byte) ([]byte, bool) {
	v, ok := b.memory.Get(key)
	v = bytes.Clone(v)
	b.out = append(b.out, v)
	b.read += len(v)
	return v, ok
}

func (b *brief) end() {
	for _, v := range b.out {
		clear(v)
	}
	b.out, b.read = nil, 0
}

// TestStoredSnapshotGoesInSteps sends a snapshot of several segments from the disk, of which each
// call reads a part only. What arrives is what is on the disk.
func TestStoredSnapshotGoesInSteps(t *testing.T) {
	b := newSavingBench(kv.New())
	for key := range 20 {
		b.slot++
		put := kv.Put([]byte{byte(key)}, randomBytes(uint64(key), 200_000))
		b.Apply(b.slot, Entry{Kind: Command, Client: 1, Session: 1, Seq: Seq(b.slot), Acked: Seq(b.slot), Command: put})
		if key%10 < 9 {
			continue
		}
		for done := b.begin(t, chunkBytes); !done; {
			b.do(func() { done, _ = b.ContinueSave(b.env) })
		}
	}
	keys := &brief{memory: b.keys}
	env := protocol.NewEnv[smr.Message](keys, 1, nil)
	want, ok, err := loadSnapshot(env)
	if !ok || err != nil || len(want.Data) < 4_000_000 {
		t.Fatal(len(want.Data), ok, err)
	}
	keys.end()
	out, ok, err := SendSnapshot(env)
	if !ok || err != nil {
		t.Fatal(ok, err)
	}
	in := newReceiver(kv.New(), func(b []byte) (int, bool) { return len("front"), len(b) >= len("front") })
	var got *Snapshot
	for now := time.Duration(0); got == nil; now += time.Millisecond {
		if now > time.Second {
			t.Fatal("the snapshot does not arrive")
		}
		env.Begin(now)
		keys.end()
		out.Continue(env, 2, 1, time.Second)
		if most := (collectedChunks + 2) * chunkBytes; keys.read > most {
			t.Fatalf("a call read %d bytes", keys.read)
		}
		for _, c := range chunksOf(env) {
			var answer SnapshotWanted
			answer, got = in.take(t, c, 0)
			out.Wanted(env, answer)
		}
	}
	if got.Slot != want.Slot || !bytes.Equal(got.Data, want.Data) {
		t.Errorf("%d bytes of slot %d arrived, not %d of %d", len(got.Data), got.Slot, len(want.Data), want.Slot)
	}
	// One that is replaced while it is read is not sent, and its timer says so.
	out, _, _ = SendSnapshot(env)
	env.Begin(0)
	out.Continue(env, 2, 1, time.Second)
	b.do(func() { b.Save(b.env, Snapshot{Slot: b.slot, Data: randomBytes(1, 5_000_000)}) })
	for calls := 0; !out.Failed(); calls++ {
		if calls > 20 || !out.Collecting() {
			t.Fatal("half of a snapshot and half of another were sent")
		}
		env.Begin(0)
		out.Continue(env, 2, 1, time.Second)
	}
	if e := env.Out; len(e) != 1 || e[0].Timer != (TransferTimer{2}) {
		t.Errorf("the call in which it fails ends with %v", e)
	}
	env.Begin(0)
	if out.Continue(env, 2, 1, time.Second); len(env.Out) > 0 || out.Wanted(env, SnapshotWanted{Slot: out.Slot()}) {
		t.Errorf("one that has failed goes on: %v", env.Out)
	}
}
