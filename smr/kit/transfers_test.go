package kit

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
)

// failingReader ends in the midst of what it reads.
type failingReader struct{ left int }

func (r *failingReader) Read(p []byte) (int, error) {
	if r.left == 0 {
		return 0, errors.New("torn")
	}
	n := min(r.left, len(p))
	r.left -= n
	return n, nil
}

// TestTransfers has one transfer come to its end, one fail and be dropped so that another can
// begin, and messages about none do nothing.
func TestTransfers(t *testing.T) {
	const roundTrip = 20 * time.Millisecond
	tempo := NewTempo(roundTrip)
	env := protocol.NewEnv[smr.Message](nil, 1, nil)
	transfers := NewTransfers(&Admission{own: 1}, &tempo)
	transfers.Continue(env, 2)
	if transfers.OnTimer(env, 2) || transfers.OnWanted(env, 2, SnapshotWanted{}) != nil ||
		len(env.Out) > 0 {
		t.Fatalf("without a transfer: %v", env.Out)
	}

	steps := collectedChunks + 1
	out := &Outgoing{slot: 7, from: stateSource{bytes.NewReader(randomBytes(1, steps*chunkBytes))}}
	transfers.Begin(env, 2, out)
	env.Begin(time.Hour)
	if transfers.OnTimer(env, 2) || len(chunksOf(env)) == 0 {
		t.Fatal("the timer does not go on with what is to be sent")
	}
	if got := out.Stalled(time.Hour + time.Second); got != time.Second {
		t.Errorf("stalled for %v a second after the last step", got)
	}
	env.Begin(2 * time.Hour)
	if transfers.OnWanted(env, 2, SnapshotWanted{Slot: 7, Sum: out.sum, Offset: chunkBytes}) != nil ||
		out.Stalled(2*time.Hour) != 0 {
		t.Error("the first answer is no progress, or all of it")
	}
	if done := transfers.OnWanted(env, 2, SnapshotWanted{Slot: 7, Sum: out.sum, Offset: out.size}); done != out ||
		transfers.Len() > 0 {
		t.Errorf("the last answer gave %v, and %d transfers are left", done, transfers.Len())
	}

	transfers.Begin(env, 3, &Outgoing{slot: 7, from: stateSource{&failingReader{chunkBytes}}})
	if !transfers.OnTimer(env, 3) || transfers.Len() > 0 {
		t.Errorf("one that has failed is not dropped: %d are left", transfers.Len())
	}
}

// TestHeldCut: whoever is sent a state finds the log behind it, as long as that is no longer than a
// log may be. A transfer that has failed holds nothing.
func TestHeldCut(t *testing.T) {
	b := newSavingBench(&journal{})
	out, err := b.SendState(b.slot, nil)
	if err != nil {
		t.Fatal(err)
	}
	before, weight := b.slot, b.passedBytes
	b.command()
	weight = b.passedBytes - weight
	later, _ := b.SendState(b.slot, nil)
	b.command()
	large := *out
	large.size = uint64(2*weight + 1)
	type outs = map[protocol.ID]*Outgoing
	for _, c := range []struct {
		on       outs
		to, want smr.Slot
		failed   bool
		logBytes int
		what     string
	}{
		{nil, b.slot, b.slot, false, 1 << 20, "nobody is sent a state"},
		{outs{2: out, 3: later}, b.slot, before, false, 1 << 20, "the first one holds it"},
		{outs{2: out, 3: later}, before - 1, before - 1, false, 1 << 20, "what the log keeps anyway is enough"},
		{outs{2: out, 3: later}, b.slot, before + 1, false, 2 * weight,
			"so much came since the first one that the second one holds it"},
		{outs{2: out, 3: later}, b.slot, b.slot, false, weight, "so much came since both"},
		{outs{2: &large}, b.slot, before, false, weight, "no more came since than the state has"},
		{outs{2: out}, b.slot, b.slot, true, 1 << 20, "it has failed"},
	} {
		out.failed = c.failed
		if got := b.HeldCut(&Transfers{out: c.on}, c.to, c.logBytes); got != c.want {
			t.Errorf("%s: a log is cut up to %d, want %d", c.what, got, c.want)
		}
	}
}

// TestChunksWaitForThePresentRoundTrip: chunks are sent again when their answer is late by what
// answers take at present, and not by the configuration: they are on their way behind others.
func TestChunksWaitForThePresentRoundTrip(t *testing.T) {
	const roundTrip = 20 * time.Millisecond
	for _, took := range []time.Duration{0, 4 * roundTrip} {
		tempo := NewTempo(roundTrip)
		tempo.Saw(time.Hour, took)
		trip := max(took, roundTrip)
		env := protocol.NewEnv[smr.Message](nil, 1, nil)
		transfers := NewTransfers(&Admission{own: 1}, &tempo)
		env.Begin(time.Hour)
		transfers.Begin(env, 2, &Outgoing{slot: 7, from: stateSource{bytes.NewReader(randomBytes(1, chunkBytes))}})
		if len(chunksOf(env)) != 1 {
			t.Fatalf("%d chunks were sent, want 1", len(chunksOf(env)))
		}
		env.Begin(time.Hour + 3*trip - time.Millisecond)
		transfers.Continue(env, 2)
		if n := len(chunksOf(env)); n != 0 {
			t.Errorf("answers take %v: %d chunks were sent again before one could be there", trip, n)
		}
		env.Begin(time.Hour + 3*trip)
		transfers.Continue(env, 2)
		if n := len(chunksOf(env)); n != 1 {
			t.Errorf("answers take %v: %d chunks were sent again after three round trips, want 1", trip, n)
		}
	}
}
