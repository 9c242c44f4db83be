package calls

import (
	"bytes"
	"testing"

	"github.com/foresay/foresay/bench"
)

func TestQuestionInvertsAnswer(t *testing.T) {
	rng := bench.Random(3)
	for range 100 {
		p := firstPayload(rng.Uint64())
		if len(p) != payloadBytes {
			t.Fatalf("a payload has %d bytes, want %d", len(p), payloadBytes)
		}
		if got := question(answer(p)); !bytes.Equal(got, p) {
			t.Fatalf("question(answer(%x)) = %x", p, got)
		}
		if bytes.Equal(wrongAnswer(p), answer(p)) {
			t.Fatalf("the wrong answer to %x is right", p)
		}
	}
}
